/**
 * Parses HTTP/1.1 answers from the bytes of a socket: the head, then the body piece by piece, up to its last byte. Used by
 * `client-socket.ts`, which does not use the parser of node:http.
 */
import { ConnectionError } from '../../jsonrpc/connection.ts'
import { clip } from '../../jsonrpc/limits.ts'
import type { HeaderView } from './client-wire.ts'

/** Receives one answer. It may pause the parser during a call. */
interface CutterUser {
  head(head: AnswerHead): void
  data(bytes: Buffer): void
  end(head: AnswerHead): void
}

const none = Buffer.alloc(0)
const sizeLine = /^([0-9a-fA-F]{1,12})[ \t]*(?:;[^\r\n]*)?$/
/** The most characters in a line between chunks. */
const longestLine = 1024

/** The parser of one answer: a state machine whose state is the function for the next part. */
export class HttpResponseParser {
  readonly #user: CutterUser
  #step: () => boolean = this.#takeHead
  #head: AnswerHead | undefined = undefined
  #rest: Buffer = none
  /** Bytes left of the body or the chunk. */
  #left = 0
  #trailers = 0
  /** While true nothing is passed on; received bytes wait here. */
  paused = false
  /** The answer is complete. */
  done = false

  constructor(user: CutterUser) {
    this.#user = user
  }

  /** The head has been parsed. */
  get begun(): boolean {
    return this.#head !== undefined
  }

  /** Bytes are left that were not passed on. After a complete answer there should be none. */
  get holds(): boolean {
    return this.#rest.length > 0
  }

  /** Parses what a socket received. Throws ConnectionError. */
  push(bytes: Buffer): void {
    this.#rest = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes])
    this.run()
  }

  /** Continues with the bytes that wait. */
  run(): void {
    while (this.#rest.length > 0 && !this.done && !this.paused) if (!this.#step()) return
  }

  /** The socket has ended. Throws if the answer is incomplete. */
  close(): void {
    if (this.done) return
    if (this.#head?.framing !== 'until-close')
      throw new ConnectionError('lost', 'The connection broke during the response: it is shorter than its stated length')
    this.#finish(this.#head)
  }

  #takeHead(): boolean {
    const rest = this.#rest
    const end = rest.indexOf('\r\n\r\n')
    if (end > mostHeadBytes || (end === -1 && rest.length > mostHeadBytes))
      throw new ConnectionError('too-large', 'The headers of the response are longer than 16 KiB')
    if (end === -1) return false
    const head = readHead(rest.toString('latin1', 0, end))
    this.#rest = rest.subarray(end + 4)
    if (head.status === 101)
      throw new ConnectionError(
        'lost',
        'The server switched protocols instead of responding; it is unknown whether it ran the request',
      )
    // Informational responses (1xx) precede the answer and are ignored.
    if (head.status >= 200) this.#begin(head)
    return true
  }

  #begin(head: AnswerHead): void {
    const { framing } = head
    this.#head = head
    this.#left = typeof framing === 'object' ? framing.length : Number.POSITIVE_INFINITY
    this.#step = framing === 'chunked' ? this.#takeSize : this.#takeBody
    this.#user.head(head)
    if (this.#left === 0) this.#finish(head)
  }

  /** Part of the body, or of a chunk. */
  #takeBody(): boolean {
    const rest = this.#rest
    const part = rest.length <= this.#left ? rest : rest.subarray(0, this.#left)
    this.#rest = part === rest ? none : rest.subarray(part.length)
    this.#left -= part.length
    this.#user.data(part)
    if (this.#left > 0) return true
    if (this.#head?.framing === 'chunked') this.#step = this.#takeLineEnd
    else if (this.#head !== undefined) this.#finish(this.#head)
    return true
  }

  /** The size line of a chunk. */
  #takeSize(): boolean {
    const line = this.#line()
    if (line === undefined) return false
    const [, digits] = sizeLine.exec(line) ?? []
    if (digits === undefined) throw notHttp('the size of a chunk is not a number')
    this.#left = Number.parseInt(digits, 16)
    this.#step = this.#left === 0 ? this.#takeTrailer : this.#takeBody
    return true
  }

  /** The line break after a chunk. */
  #takeLineEnd(): boolean {
    if (this.#rest.length < 2) return false
    if (this.#rest[0] !== 13 || this.#rest[1] !== 10) throw notHttp('a chunk is longer than its stated size')
    this.#rest = this.#rest.subarray(2)
    this.#step = this.#takeSize
    return true
  }

  /** Trailers after the last chunk, which are ignored. */
  #takeTrailer(): boolean {
    const line = this.#line()
    if (line === undefined) return false
    this.#trailers += line.length
    if (this.#trailers > mostHeadBytes)
      throw new ConnectionError('too-large', 'The trailers of the response are longer than 16 KiB')
    if (line === '' && this.#head !== undefined) this.#finish(this.#head)
    return true
  }

  /** The next line; undefined while it is incomplete. */
  #line(): string | undefined {
    const end = this.#rest.indexOf('\r\n')
    if (end > longestLine || (end === -1 && this.#rest.length > longestLine)) throw notHttp('a line between chunks is too long')
    if (end === -1) return undefined
    const line = this.#rest.toString('latin1', 0, end)
    this.#rest = this.#rest.subarray(end + 2)
    return line
  }

  #finish(head: AnswerHead): void {
    this.done = true
    this.#user.end(head)
  }
}

// The head of an answer, parsed strictly (RFC 9112): two lengths, folded lines or invalid header names are refused, not
// interpreted, since an intermediary may have interpreted them differently (request smuggling).

/** How the end of a body is determined. */
type Framing = { readonly length: number } | 'chunked' | 'until-close'

/** Status, headers, and how body and connection end. */
export interface AnswerHead {
  readonly status: number
  readonly headers: HeaderView
  readonly framing: Framing
  /** How long the socket may be reused, in milliseconds; 0: not at all; undefined: the server names no limit. */
  readonly keepMs: number | undefined
}

/** The most bytes of a head. */
const mostHeadBytes = 16 * 1024

const statusLine = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: [^\0\r\n]*)?$/
const lengthText = /^\d{1,15}$/
const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/

/** Throws ConnectionError if the text is not an HTTP head. */
function readHead(text: string): AnswerHead {
  const lines = text.split('\r\n')
  const [, minor, code] = statusLine.exec(lines[0] ?? '') ?? []
  if (code === undefined) throw notHttp(`it starts with ${JSON.stringify(clip(lines[0] ?? ''))}`)
  const headers = new FlatHeaders()
  for (let i = 1; i < lines.length; i++) {
    const line = lines[i] as string
    const colon = line.indexOf(':')
    const name = colon <= 0 ? undefined : nameIn(line.slice(0, colon))
    if (name === undefined) throw notHttp('a line of its head is not a header')
    headers.add(name, line.slice(colon + 1).trim())
  }
  const status = Number(code)
  return { status, headers, framing: framingOf(status, headers), keepMs: keepMsOf(minor === '1', headers) }
}

/** Valid header names in lower case, cached: servers send the same few with every answer. */
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
  if (coding !== undefined && said !== undefined) throw notHttp('it states its length in two ways')
  if (status === 204 || status === 304 || status < 200) return { length: 0 }
  if (coding !== undefined) {
    if (coding.toLowerCase() !== 'chunked') throw notHttp('it has a transfer coding that was not requested')
    return 'chunked'
  }
  if (said === undefined) return 'until-close'
  if (lengthText.test(said)) return { length: Number(said) }
  const [first = '', ...others] = said.split(',').map(each => each.trim())
  if (!lengthText.test(first) || others.some(each => each !== first)) throw notHttp('its length is not a number')
  return { length: Number(first) }
}

/** How long the server keeps the connection, from Connection and Keep-Alive. */
function keepMsOf(persists: boolean, headers: FlatHeaders): number | undefined {
  const options = headers.get('connection')?.toLowerCase() ?? ''
  // Nearly all answers have one of these two values and need no regular expression.
  if (options !== 'keep-alive' && options !== '' && /(^|[\s,])close($|[\s,])/.test(options)) return 0
  if (!persists && !/(^|[\s,])keep-alive($|[\s,])/.test(options)) return 0
  const keepAlive = headers.get('keep-alive')
  const seconds = keepAlive === undefined ? undefined : /timeout=(\d{1,6})/.exec(keepAlive)?.[1]
  // Close a second before the server does.
  return seconds === undefined ? undefined : Math.max(0, Number(seconds) * 1000 - 1000)
}

function notHttp(why: string): ConnectionError {
  return new ConnectionError('protocol', `The response is not valid HTTP (${why})`)
}

/** A flat list: for few headers it is faster than a map. */
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
