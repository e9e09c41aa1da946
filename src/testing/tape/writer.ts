/**
 * The file of a tape while it is written. Each line is with the system before the next thing happens, so that nothing is lost with the
 * process; it is bounded, and says on itself when it is full.
 */
import { closeSync, openSync, writeSync } from 'node:fs'
import { type Clock, realClock } from '../../core/clock.ts'
import { version } from '../../core/version.ts'
import type { Carrier } from '../../jsonrpc/connection.ts'
import { type FrameLine, type From, type HttpFacts, headerText, keptFrame, lineText, type TapeLine } from './line.ts'
import { redaction } from './redaction.ts'

export interface RecordOptions {
  /** The server in words, for the first line. */
  readonly target?: string
  /** Members of frames that are not kept: `params.arguments.password`, `**.apiKey`. Headers that hold secrets never are. */
  readonly redact?: readonly string[]
  /** The most bytes of the file. What comes after that still passes, but is not kept. Default 256 MiB. */
  readonly maxBytes?: number
  /** The most characters kept of one frame. Default 16 Mi. */
  readonly maxFrame?: number
  readonly clock?: Clock
}

/** What passes in one conversation. */
export interface ConversationTape {
  frame(from: From, text: string, more?: { readonly exchange?: number; readonly http?: HttpFacts }): void
  http(from: From, exchange: number, http: HttpFacts): void
  closed(why?: string): void
}

type Unplaced = TapeLine extends infer L ? (L extends TapeLine ? Omit<L, 'at' | 'conversation'> : never) : never

/** The end of a file that is full. */
const reserve = 256

export class TapeWriter {
  readonly #path: string
  readonly #header: string
  readonly #clock: Clock
  readonly #began: number
  readonly #maxBytes: number
  readonly #maxFrame: number
  readonly #redaction: ReturnType<typeof redaction>
  #file: number | undefined = undefined
  #bytes = 0
  #conversations = 0
  #over = false

  constructor(path: string, options: RecordOptions = {}) {
    this.#clock = options.clock ?? realClock
    this.#began = this.#clock.now()
    this.#maxBytes = options.maxBytes ?? 256 * 1024 * 1024
    this.#maxFrame = options.maxFrame ?? 16 * 1024 * 1024
    this.#redaction = redaction(options.redact)
    const { target } = options
    const began = new Date(this.#began).toISOString()
    this.#path = path
    this.#header = headerText({ tape: 1, began, by: `vivarium ${version}`, ...(target !== undefined && { target }) })
  }

  /** Takes the place of a file of that name. Before this, or the first frame, nothing is touched. */
  begin(): void {
    if (this.#over || this.#file !== undefined) return
    // It holds what people said and did: nobody else on the machine has to read it.
    this.#file = openSync(this.#path, 'w', 0o600)
    this.#write(this.#file, this.#header)
  }

  conversation(carrier: Carrier): ConversationTape {
    const conversation = ++this.#conversations
    const put = (line: Unplaced): void => this.#put({ at: this.#clock.now() - this.#began, conversation, ...line } as TapeLine)
    put({ kind: 'open', carrier })
    return {
      frame: (from, text, more = {}) => {
        const kept = keptFrame(this.#redaction.frame(text), this.#maxFrame)
        put({ kind: 'frame', from, ...kept, ...this.#passed(more) })
      },
      http: (from, exchange, http) => put({ kind: 'http', from, exchange, http: this.#open(http) }),
      closed: why => put({ kind: 'closed', ...(why !== undefined && { why }) }),
    }
  }

  close(): void {
    if (this.#over) return
    this.#over = true
    if (this.#file !== undefined) closeSync(this.#file)
  }

  #passed({ exchange, http }: { exchange?: number; http?: HttpFacts }): Pick<FrameLine, 'exchange' | 'http'> {
    return { ...(exchange !== undefined && { exchange }), ...(http !== undefined && { http: this.#open(http) }) }
  }

  #open({ headers, ...http }: HttpFacts): HttpFacts {
    return headers === undefined ? http : { ...http, headers: this.#redaction.headers(headers) }
  }

  #put(line: TapeLine): void {
    this.begin()
    if (this.#over || this.#file === undefined) return
    const text = lineText(line)
    if (this.#bytes + Buffer.byteLength(text) <= this.#maxBytes - reserve) return this.#write(this.#file, text)
    this.#write(this.#file, lineText({ at: line.at, conversation: line.conversation, kind: 'full' }))
    this.close()
  }

  #write(file: number, text: string): void {
    const bytes = Buffer.from(text)
    let at = 0
    while (at < bytes.length) at += writeSync(file, bytes, at)
    this.#bytes += bytes.length
  }
}
