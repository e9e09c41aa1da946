/** The form of iCalendar (RFC 5545 §3.1): lines with names, parameters and values; folded, and escaped where they are text. */

export interface Line {
  readonly name: string
  readonly params: ReadonlyMap<string, string>
  readonly value: string
}

export function readLines(text: string): readonly Line[] {
  return text
    .replace(/\r?\n[ \t]/g, '')
    .split(/\r?\n/)
    .flatMap(line => {
      const [, name, params = '', value] =
        /^([\w-]+)((?:;[\w-]+=(?:"[^"]*"|[^";:,]*)(?:,(?:"[^"]*"|[^";:,]*))*)*):(.*)$/s.exec(line) ?? []
      if (name === undefined || value === undefined) return []
      const pairs = [...params.matchAll(/;([\w-]+)=("[^"]*"|[^";:]*)/g)]
      return [
        {
          name: name.toUpperCase(),
          params: new Map(pairs.map(([, key = '', said = '']) => [key.toUpperCase(), said.replace(/^"|"$/g, '')])),
          value,
        },
      ]
    })
}

export const readText = (value: string): string => value.replace(/\\([\\;,nN])/g, (_, c: string) => (/n/i.test(c) ? '\n' : c))

export const writeText = (text: string): string => text.replace(/[\\;,]/g, '\\$&').replace(/\r\n|[\r\n]/g, '\\n')

/** Lines end in CRLF and have at most 75 bytes; what is longer goes on behind a space. No character is cut in two. */
export function writeLines(lines: readonly string[]): string {
  return lines.map(line => `${fold(line)}\r\n`).join('')
}

function fold(line: string): string {
  const pieces: string[] = []
  let piece = ''
  let bytes = 0
  for (const character of line) {
    const size = Buffer.byteLength(character)
    if (bytes + size > 75) {
      pieces.push(piece)
      piece = ''
      bytes = 1
    }
    piece += character
    bytes += size
  }
  return [...pieces, piece].join('\r\n ')
}
