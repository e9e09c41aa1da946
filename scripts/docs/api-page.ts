/** One page of the API reference while it is written: headings with their anchors, and cells of tables. */
import { dirname, relative } from 'node:path/posix'

/** A place that types link to. */
export interface Place {
  readonly path: string
  readonly anchor: string
}

export class ApiPage {
  readonly path: string
  readonly #lines: string[] = []
  readonly #slugs = new Map<string, number>()

  constructor(path: string) {
    this.path = path
  }

  /** Adds a heading; gives its anchor, as GitHub and the site make it. */
  heading(level: number, title: string): string {
    this.#lines.push(`${'#'.repeat(level)} ${title}`, '')
    const slug = title
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .replace(/\s/g, '-')
    const times = this.#slugs.get(slug) ?? 0
    this.#slugs.set(slug, times + 1)
    return times === 0 ? slug : `${slug}-${times}`
  }

  paragraph(text: string): void {
    if (text !== '') this.#lines.push(text, '')
  }

  code(text: string): void {
    this.#lines.push('```ts', unmarked(text), '```', '')
  }

  /** Columns whose cells are all empty are left out. */
  table(head: readonly string[], rows: readonly (readonly string[])[]): void {
    if (rows.length === 0) return
    const shown = head.map((_, at) => rows.some(row => row[at] !== ''))
    const line = (cells: readonly string[]): string =>
      `| ${cells
        .filter((_, at) => shown[at])
        .map(cell => cell.replaceAll(/\s*\n\s*/g, ' ').replaceAll('|', '\\|'))
        .join(' | ')} |`
    this.#lines.push(line(head), line(head.map(() => '---')), ...rows.map(line), '')
  }

  /** How this page links to a place. */
  link({ path, anchor }: Place): string {
    return path === this.path ? `#${anchor}` : `${relative(dirname(this.path), path)}#${anchor}`
  }

  get text(): string {
    return `${this.#lines.join('\n').trimEnd()}\n`
  }
}

/** A name in a type that leads somewhere: its number stands behind it until the page is written. */
export function marked(name: string, target: number): string {
  return `${name}\ue000${target}\ue001`
}

const MARK = /([A-Za-z]\w*)\ue000(\d+)\ue001/

/** The targets of a type, each once. */
export function targetsOf(text: string): readonly number[] {
  return [...new Set([...text.matchAll(new RegExp(MARK, 'g'))].map(([, , target]) => Number(target)))]
}

export function unmarked(text: string): string {
  return text.replace(new RegExp(MARK, 'g'), '$1')
}

/**
 * As short as a cell of a table wants it: without `readonly`, which changes nothing for a reader, and without what is put in for type
 * parameters where the whole would be long.
 */
function shortened(text: string): string {
  const open = text.replace(/\breadonly /g, '').replace(/\bReadonly<((?:[^<>]|=>|<(?:[^<>]|=>|<[^<>]*>)*>)*)>/g, '$1')
  return unmarked(open).length <= 70 ? open : open.replace(/(\ue001)<(?:[^<>]|=>|<[^<>]*>)*>/g, '$1')
}

/** A type as code in which names are links. `linkOf` gives the address of a target, where it has one. */
export function linkedType(text: string, linkOf: (target: number) => string | undefined): string {
  const parts: string[] = []
  let plain = ''
  const flush = (): void => {
    if (plain.trim() !== '') parts.push(codeSpan(plain.trim()))
    plain = ''
  }
  const tokens = shortened(text).split(MARK)
  for (let at = 0; at < tokens.length; at += 3) {
    plain += tokens[at]
    const name = tokens[at + 1]
    if (name === undefined) continue
    const link = linkOf(Number(tokens[at + 2]))
    if (link === undefined) plain += name
    else {
      flush()
      parts.push(`[${codeSpan(name)}](${link})`)
    }
  }
  flush()
  return parts.join(' ')
}

export function codeSpan(text: string): string {
  return text.includes('`') ? `\`\` ${text} \`\`` : `\`${text}\``
}
