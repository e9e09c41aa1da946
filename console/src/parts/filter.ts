/** One line that filters a list: `server:shop outcome:refused since:1h some words`. */

export interface Filter {
  /** Values by name, as they were typed. */
  readonly fields: ReadonlyMap<string, string>
  /** Everything without a name. */
  readonly text: string
  /** Names that this list does not know. */
  readonly unknown: readonly string[]
}

/** Splits a line. A value with spaces stands in double quotes. */
export function parseFilter(line: string, known: readonly string[]): Filter {
  const fields = new Map<string, string>()
  const words: string[] = []
  const unknown: string[] = []
  for (const [word, name, quoted, plain] of line.matchAll(/(?:(\w+):(?:"([^"]*)"|(\S*)))|\S+/g)) {
    if (name === undefined) words.push(word)
    else if (known.includes(name)) fields.set(name, quoted ?? plain ?? '')
    else unknown.push(name)
  }
  return { fields, text: words.join(' '), unknown }
}

/** The line with one field set, replaced, or removed (`undefined`). */
export function withField(line: string, name: string, value: string | undefined): string {
  const rest = line.replace(new RegExp(`(?:^|\\s)${name}:(?:"[^"]*"|\\S*)`, 'g'), '').trim()
  if (value === undefined) return rest
  const written = /\s/.test(value) ? `"${value.replaceAll('"', '')}"` : value
  return `${rest} ${name}:${written}`.trim()
}

const units: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** A point in time: `15m` ago, `2026-11-19`, or `2026-11-19T10:00`. */
export function parseTime(text: string | undefined, now: number): number | undefined {
  if (text === undefined) return undefined
  const [, amount, unit] = /^(\d+)([smhd])$/.exec(text) ?? []
  if (amount !== undefined) return now - Number(amount) * (units[unit ?? ''] ?? 0)
  const at = Date.parse(text)
  return Number.isNaN(at) ? undefined : at
}
