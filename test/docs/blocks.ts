/** The code blocks of a page, and the places of the pages. */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const root = join(import.meta.dirname, '../..')

export interface Block {
  /** `docs/guide/gateway.md:67`, for titles of tests. */
  readonly at: string
  readonly page: string
  readonly language: string
  readonly text: string
}

/** All pages for users, by their path. */
export const pages: ReadonlyMap<string, string> = new Map(
  ['README.md', 'CONTRIBUTING.md', ...globSync('docs/**/*.md', { cwd: root })]
    // Those quote messages, which have tests of their own.
    .filter(path => !path.includes('errors'))
    .map(path => path.replaceAll('\\', '/'))
    .sort()
    .map(path => [path, readFileSync(join(root, path), 'utf8')]),
)

/** The blocks of all pages in one of these languages. */
export function blocksIn(...languages: readonly string[]): readonly Block[] {
  return [...pages].flatMap(([page, markdown]) =>
    [...markdown.matchAll(/^( *)```(\w+)(?: \[[^\]]*\])?\n([\s\S]*?)^\1```/gm)]
      .filter(([, , language = '']) => languages.includes(language))
      .map(({ 2: language = '', 3: text = '', index }) => ({
        at: `${page}:${markdown.slice(0, index).split('\n').length}`,
        page,
        language,
        text,
      })),
  )
}
