/** The bytes of an answer, cut out of what a socket gives: its head, then its body, told piece by piece, up to its last byte. */
import { ConnectionError } from '../../jsonrpc/connection.ts'
import { type AnswerHead, mostHeadBytes, notHttp, readHead } from './client-head.ts'

/** Hears of one answer. It may pause the cutter from within. */
export interface CutterUser {
  head(head: AnswerHead): void
  data(bytes: Buffer): void
  end(head: AnswerHead): void
}

const none = Buffer.alloc(0)
const sizeLine = /^([0-9a-fA-F]{1,12})[ \t]*(?:;[^\r\n]*)?$/
const longestLine = 1024

export class AnswerCutter {
  readonly #user: CutterUser
  #step: () => boolean = this.#takeHead
  #head: AnswerHead | undefined = undefined
  #rest: Buffer = none
  /** Of the body, or of the chunk. */
  #left = 0
  #trailers = 0
  /** While it is, nothing more is told; what comes waits here. */
  paused = false
  done = false

  constructor(user: CutterUser) {
    this.#user = user
  }

  /** Its head is there. */
  get begun(): boolean {
    return this.#head !== undefined
  }

  /** Something is here that was not told yet; behind the end of an answer nothing should be. */
  get holds(): boolean {
    return this.#rest.length > 0
  }

  /** Takes what a socket gave. Throws ConnectionError. */
  push(bytes: Buffer): void {
    this.#rest = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes])
    this.run()
  }

  /** Goes on with what is here. */
  run(): void {
    while (this.#rest.length > 0 && !this.done && !this.paused) if (!this.#step()) return
  }

  /** The socket has ended. Throws where that is too early. */
  close(): void {
    if (this.done) return
    if (this.#head?.framing !== 'until-close')
      throw new ConnectionError('lost', 'The connection broke while the answer came: it is shorter than it says')
    this.#finish(this.#head)
  }

  #takeHead(): boolean {
    const rest = this.#rest
    const end = rest.indexOf('\r\n\r\n')
    if (end > mostHeadBytes || (end === -1 && rest.length > mostHeadBytes))
      throw new ConnectionError('too-large', 'The headers of the answer are longer than 16 KiB')
    if (end === -1) return false
    const head = readHead(rest.toString('latin1', 0, end))
    this.#rest = rest.subarray(end + 4)
    if (head.status === 101)
      throw new ConnectionError('lost', 'The server switched protocols instead of answering; whether it acted is unknown')
    // What comes before the answer proper says nothing of it.
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

  #takeSize(): boolean {
    const line = this.#line()
    if (line === undefined) return false
    const [, digits] = sizeLine.exec(line) ?? []
    if (digits === undefined) throw notHttp('the size of a chunk is no number')
    this.#left = Number.parseInt(digits, 16)
    this.#step = this.#left === 0 ? this.#takeTrailer : this.#takeBody
    return true
  }

  #takeLineEnd(): boolean {
    if (this.#rest.length < 2) return false
    if (this.#rest[0] !== 13 || this.#rest[1] !== 10) throw notHttp('a chunk is longer than it says')
    this.#rest = this.#rest.subarray(2)
    this.#step = this.#takeSize
    return true
  }

  #takeTrailer(): boolean {
    const line = this.#line()
    if (line === undefined) return false
    this.#trailers += line.length
    if (this.#trailers > mostHeadBytes) throw new ConnectionError('too-large', 'What follows the answer is longer than 16 KiB')
    if (line === '' && this.#head !== undefined) this.#finish(this.#head)
    return true
  }

  /** Undefined while it is not whole. */
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
