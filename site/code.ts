/** Blocks of code: coloured by classes, so that light and dark are one style sheet, with a title and a button that copies. */
import { html, type Markup, raw } from './html.ts'
import type { Packages } from './packages.ts'

const ALIASES: Readonly<Record<string, string>> = {
  typescript: 'ts',
  javascript: 'js',
  bash: 'sh',
  shell: 'sh',
  yml: 'yaml',
  jsonc: 'json',
}

/** What a language is called above its block. Plain text and commands need no name. */
const NAMES: Readonly<Record<string, string>> = {
  ...{ ts: 'TypeScript', js: 'JavaScript', json: 'JSON', yaml: 'YAML', console: 'Terminal', sh: 'Terminal', diff: 'Change' },
}

/** `info` is what stands behind the fence: a language, and a title in brackets. */
export function codeBlock(code: string, info: string, packages: Packages): Markup {
  const { language, title } = readInfo(info)
  const named = title ?? NAMES[language]
  return html`<div class="code" data-lang="${language}"><div class="code-bar"><span>${named ?? 'Text'}</span><button type="button" class="copy" aria-label="${`Copy ${named === undefined ? 'text' : named}`}">Copy</button></div><pre><code>${raw(highlight(code.replace(/\n$/, ''), language, packages))}</code></pre></div>
`
}

/** The language and the title of a fence. */
export function readInfo(info: string): { language: string; title: string | undefined } {
  const [word = ''] = info.trim().split(/\s/)
  return { language: ALIASES[word] ?? word, title: /\[([^\]]+)\]/.exec(info)?.[1] }
}

/** Without a limit of time: on a busy machine the first lines of a language would stay plain. */
function highlight(code: string, language: string, packages: Packages): string {
  if (language === 'console') return terminal(code, packages)
  if (language === 'diff') return difference(code)
  if (!packages.languages.has(language)) return html`${code}`.text
  return packages.highlighter
    .codeToTokensBase(code, { lang: language, theme: 'variables', tokenizeTimeLimit: 0 })
    .map(line => line.map(({ content, color }) => coloured(content, color)).join(''))
    .join('\n')
}

/** Neighbouring words of the colour of the text need no element. */
function coloured(content: string, color: string | undefined): string {
  const name = /--code-token-([a-z-]+)/.exec(color ?? '')?.[1]
  if (name === undefined || content.trim() === '') return html`${content}`.text
  return html`<span class="c-${name}">${content}</span>`.text
}

/** Commands stand out from what they print; the button copies them without their prompt. */
function terminal(code: string, packages: Packages): string {
  return code
    .split('\n')
    .map(line => {
      const command = /^([$>] )(.*)$/.exec(line)
      if (command === null) return html`<span class="printed">${line}</span>`.text
      return html`<span class="prompt">${command[1]}</span><span class="command">${raw(highlight(command[2] ?? '', 'sh', packages))}</span>`
        .text
    })
    .join('\n')
}

function difference(code: string): string {
  return code
    .split('\n')
    .map(line => {
      const kind = line.startsWith('+') ? 'added' : line.startsWith('-') ? 'removed' : undefined
      return kind === undefined ? html`${line}`.text : html`<span class="${kind}">${line}</span>`.text
    })
    .join('\n')
}
