/**
 * The packages that the site is made with, from the install of this folder's own lock file. What is used of each is said here, so that
 * types are checked where nothing is installed.
 */
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { installPinned } from '../scripts/lib/pinned-install.ts'

/** A token of markdown-it. */
export interface Token {
  type: string
  tag: string
  content: string
  info: string
  hidden: boolean
  level: number
  nesting: -1 | 0 | 1
  children: Token[] | null
  attrGet(name: string): string | null
  attrSet(name: string, value: string): void
}

export interface Markdown {
  parse(text: string, env: object): Token[]
  readonly renderer: { render(tokens: Token[], options: object, env: object): string }
  readonly options: object
}

export interface Highlighter {
  codeToTokensBase(
    code: string,
    options: { lang: string; theme: string; tokenizeTimeLimit: number },
  ): { content: string; color?: string }[][]
}

export interface Packages {
  readonly markdown: Markdown
  readonly highlighter: Highlighter
  /** Languages that the highlighter knows; others are shown plain. */
  readonly languages: ReadonlySet<string>
  /** A file of a package. */
  file(path: string): string
  /** For bundlers: where packages lie. */
  readonly modules: string
}

const LANGUAGES = ['ts', 'js', 'json', 'jsonc', 'yaml', 'sh', 'console', 'diff', 'html', 'sql', 'python', 'docker', 'toml', 'ini']
const ALIASES = ['typescript', 'javascript', 'bash', 'yml']

/** Installs them if they are not there, and loads them. */
export async function loadPackages(): Promise<Packages> {
  const modules = join(installPinned('site', import.meta.dirname), 'node_modules')
  const load = (path: string): Promise<unknown> => import(pathToFileURL(join(modules, path)).href)
  const { default: MarkdownIt } = (await load('markdown-it/dist/markdown-it.mjs')) as {
    default: new (options: object) => Markdown
  }
  const shiki = (await load('shiki/dist/index.mjs')) as {
    createCssVariablesTheme(options: object): object
    createHighlighter(options: object): Promise<Highlighter>
  }
  const { createJavaScriptRegexEngine } = (await load('shiki/dist/engine-javascript.mjs')) as {
    createJavaScriptRegexEngine(options: object): object
  }
  const highlighter = await shiki.createHighlighter({
    themes: [shiki.createCssVariablesTheme({ name: 'variables', variablePrefix: '--code-' })],
    langs: LANGUAGES,
    engine: createJavaScriptRegexEngine({ forgiving: true }),
  })
  return {
    // Our own pages may hold HTML, such as the comments that mark tabs.
    markdown: new MarkdownIt({ html: true }),
    highlighter,
    languages: new Set([...LANGUAGES, ...ALIASES]),
    file: path => join(modules, path),
    modules,
  }
}
