/**
 * The head of an answer over HTTP/1.1, read strictly (RFC 9112): what says in two ways how long its body is, folds its lines or
 * names its members in other characters is refused rather than guessed, since others on the way may have guessed otherwise.
 */
import { ConnectionError } from '../../jsonrpc/connection.ts'
import { clip } from '../../jsonrpc/limits.ts'
import type { HeaderView } from './client-wire.ts'

/** How the end of a body is told. */
export type Framing = { readonly length: number } | 'chunked' | 'until-close'

export interface AnswerHead {
  readonly status: number
  readonly headers: HeaderView
  readonly framing: Framing
  /** Milliseconds for which its socket may serve again; 0: not at all; undefined: as long as we like. */
  readonly keepMs: number | undefined
}

/** Of an answer's head. */
export const mostHeadBytes = 16 * 1024

const statusLine = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: [^\0\r\n]*)?$/
const lengthText = /^\d{1,15}$/
const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/

/** Throws ConnectionError where it is none. */
export function readHead(text: string): AnswerHead {
  const lines = text.split('\r\n')
  const [, minor, code] = statusLine.exec(lines[0] ?? '') ?? []
  if (code === undefined) throw notHttp(`it begins with ${JSON.stringify(clip(lines[0] ?? ''))}`)
  const headers = new FlatHeaders()
  for (let i = 1; i < lines.length; i++) {
    const line = lines[i] as string
    const colon = line.indexOf(':')
    const name = colon <= 0 ? undefined : nameIn(line.slice(0, colon))
    if (name === undefined) throw notHttp('a line of its head is no header')
    headers.add(name, line.slice(colon + 1).trim())
  }
  const status = Number(code)
  return { status, headers, framing: framingOf(status, headers), keepMs: keepMsOf(minor === '1', headers) }
}

/** Names that were found to be some, in lower case: servers say the same few with every answer. */
const names = new Map<string, string>()
const mostNames = 200

function nameIn(text: string): string | undefined {
  const known = names.get(text)
  if (known !== undefined) return known
  if (!token.test(text)) return undefined
  const name = text.toLowerCase()
  if (names.size < mostNames && text.length <= 40) names.set(text, name)
  return name
}

function framingOf(status: number, headers: FlatHeaders): Framing {
  const coding = headers.get('transfer-encoding')
  const said = headers.get('content-length')
  if (coding !== undefined && said !== undefined) throw notHttp('it says its length in two ways')
  if (status === 204 || status === 304 || status < 200) return { length: 0 }
  if (coding !== undefined) {
    if (coding.toLowerCase() !== 'chunked') throw notHttp('it comes in a coding that nobody asked for')
    return 'chunked'
  }
  if (said === undefined) return 'until-close'
  if (lengthText.test(said)) return { length: Number(said) }
  const [first = '', ...others] = said.split(',').map(each => each.trim())
  if (!lengthText.test(first) || others.some(each => each !== first)) throw notHttp('its length is no number')
  return { length: Number(first) }
}

function keepMsOf(persists: boolean, headers: FlatHeaders): number | undefined {
  const options = headers.get('connection')?.toLowerCase() ?? ''
  // The two that nearly all answers have need no closer look.
  if (options !== 'keep-alive' && options !== '' && /(^|[\s,])close($|[\s,])/.test(options)) return 0
  if (!persists && !/(^|[\s,])keep-alive($|[\s,])/.test(options)) return 0
  const kept = headers.get('keep-alive')
  const seconds = kept === undefined ? undefined : /timeout=(\d{1,6})/.exec(kept)?.[1]
  // Given up a second before the server does.
  return seconds === undefined ? undefined : Math.max(0, Number(seconds) * 1000 - 1000)
}

export function notHttp(why: string): ConnectionError {
  return new ConnectionError('protocol', `The answer is not HTTP (${why})`)
}

/** Few and short: a list is found faster than a map is made. */
class FlatHeaders implements HeaderView {
  readonly #flat: string[] = []

  add(name: string, value: string): void {
    const at = this.#flat.indexOf(name)
    if (at !== -1 && at % 2 === 0) this.#flat[at + 1] += `, ${value}`
    else this.#flat.push(name, value)
  }

  get(name: string): string | undefined {
    const flat = this.#flat
    for (let i = 0; i < flat.length; i += 2) if (flat[i] === name) return flat[i + 1]
    return undefined
  }

  forEach(fn: (value: string, name: string) => void): void {
    for (let i = 0; i < this.#flat.length; i += 2) fn(this.#flat[i + 1] as string, this.#flat[i] as string)
  }
}
