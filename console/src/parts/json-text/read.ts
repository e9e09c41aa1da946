/**
 * Reads JSON as it is typed. It says where the first mistake is, in line and column, and it refuses what `JSON.parse` would change without a
 * word: a name that stands twice, and a number that does not come out as it was written.
 */

/** The first mistake of a text. */
export interface JsonFault {
  readonly at: number
  readonly line: number
  readonly column: number
  readonly message: string
}

/** What a text says, or what is wrong with it. */
export type JsonReading = { readonly value: unknown } | { readonly fault: JsonFault }

class Mistake extends Error {
  readonly at: number

  constructor(at: number, message: string) {
    super(message)
    this.at = at
  }
}

/** Deeper values would be a mistake anyhow, and would exhaust the stack. */
const deepest = 500

/** The value of a JSON text, or its first mistake. */
export function readJson(text: string): JsonReading {
  try {
    const end = skip(text, valueAt(text, skip(text, 0), 0))
    if (end < text.length) throw new Mistake(end, 'The value ends before this. Remove what follows it.')
    return { value: JSON.parse(text) }
  } catch (error) {
    if (error instanceof Mistake) return { fault: placed(text, error) }
    throw error
  }
}

function placed(text: string, { at, message }: Mistake): JsonFault {
  const before = text.slice(0, at)
  return { at, line: before.split('\n').length, column: at - before.lastIndexOf('\n'), message }
}

function skip(text: string, at: number): number {
  while (' \t\n\r'.includes(text[at] ?? 'x')) at++
  return at
}

/** The place behind the value that begins at `at`. */
function valueAt(text: string, at: number, depth: number): number {
  if (depth > deepest) throw new Mistake(at, `Values lie more than ${deepest} deep here.`)
  const first = text[at]
  if (first === '{') return objectAt(text, at, depth)
  if (first === '[') return arrayAt(text, at, depth)
  if (first === '"') return stringAt(text, at)
  const [word] = /^[\w+.-]+/.exec(text.slice(at, at + 400)) ?? []
  if (word === undefined) throw new Mistake(at, first === undefined ? 'A value is missing at the end.' : expected(first))
  if (word === 'true' || word === 'false' || word === 'null') return at + word.length
  if (!/^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(word)) {
    throw new Mistake(at, `${word} is no value. Text stands in double quotes, for example "${word}".`)
  }
  if (!isExact(word)) throw new Mistake(at, `${word} cannot be sent as it is written: it becomes ${String(Number(word))}.`)
  return at + word.length
}

function expected(found: string): string {
  if (found === "'") return 'Text stands in double quotes.'
  if (found === ',' || found === '}' || found === ']') return `A value is missing before ${found}`
  return `A value is expected, not ${found}`
}

/** Whether a number keeps the digits that were typed. */
export function isExact(word: string): boolean {
  const value = Number(word)
  if (!Number.isFinite(value)) return false
  return digitsOf(word) === digitsOf(String(value))
}

/** The digits that count and the power of ten, so that `1.50`, `15e-1` and `1.5` are the same. */
function digitsOf(word: string): string {
  const [, sign = '', whole = '', part = '', power = '0'] = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(word) ?? []
  const digits = (whole + part).replace(/^0+/, '')
  const short = digits.replace(/0+$/, '')
  if (short === '') return '0'
  return `${sign}${short}e${Number(power) - part.length + digits.length - short.length}`
}

function stringAt(text: string, at: number): number {
  for (let next = at + 1; next < text.length; next++) {
    const character = text[next] ?? ''
    if (character === '"') return next + 1
    if (character < ' ') {
      const name = character === '\n' ? 'A line break' : 'This character'
      throw new Mistake(
        next,
        `${name} in a text is written as ${character === '\n' ? '\\n' : JSON.stringify(character).slice(1, -1)}`,
      )
    }
    if (character !== '\\') continue
    const [escaped] = /^\\(["\\/bfnrt]|u[\da-fA-F]{4})/.exec(text.slice(next, next + 6)) ?? []
    if (escaped === undefined) throw new Mistake(next, 'A backslash in a text is written as \\\\')
    next += escaped.length - 1
  }
  throw new Mistake(at, 'This text has no end. Its second double quote is missing.')
}

function arrayAt(text: string, at: number, depth: number): number {
  let next = skip(text, at + 1)
  if (text[next] === ']') return next + 1
  for (;;) {
    next = skip(text, valueAt(text, next, depth + 1))
    if (text[next] === ']') return next + 1
    next = skip(text, comma(text, next, ']', at))
  }
}

function objectAt(text: string, at: number, depth: number): number {
  const names = new Set<string>()
  let next = skip(text, at + 1)
  if (text[next] === '}') return next + 1
  for (;;) {
    if (text[next] !== '"') throw new Mistake(next, next < text.length ? 'A name in double quotes is expected.' : noEnd('}'))
    const end = stringAt(text, next)
    const name = JSON.parse(text.slice(next, end)) as string
    if (names.has(name)) throw new Mistake(next, `The name ${text.slice(next, end)} stands twice. Only the last would be sent.`)
    names.add(name)
    const colon = skip(text, end)
    if (text[colon] !== ':') throw new Mistake(colon, 'A colon is expected after the name.')
    next = skip(text, valueAt(text, skip(text, colon + 1), depth + 1))
    if (text[next] === '}') return next + 1
    next = skip(text, comma(text, next, '}', at))
  }
}

function comma(text: string, at: number, end: string, begun: number): number {
  if (text[at] === ',') {
    const after = skip(text, at + 1)
    if (text[after] === end) throw new Mistake(at, `No comma stands before ${end}`)
    return at + 1
  }
  if (at >= text.length) throw new Mistake(begun, noEnd(end))
  throw new Mistake(at, `A comma or ${end} is expected.`)
}

function noEnd(end: string): string {
  return `This has no end: ${end} is missing.`
}
