/**
 * A stream of events, for each turn of the event loop only so many messages: what a socket gives at once may be more than a
 * thousand of them, and the system offers many such pieces in one turn.
 */
import type { IncomingMessage } from 'node:http'

const sliceBytes = 4 * 1024
const bytesPerTurn = 256 * 1024
const messagesPerTurn = 64

interface PacedReader {
  take(chunk: Uint8Array): void
  end(): void
  fail(cause: Error): void
  /** Messages that came of what was taken so far. */
  heard(): number
}

/** Hands the bytes of `response` on to `reader`, and then how it ended. */
export function pace(response: IncomingMessage, reader: PacedReader): void {
  const paced = new Paced(response, reader)
  response.on('data', chunk => paced.take(chunk))
  response.on('end', () => paced.end())
  response.on('error', cause => paced.fail(cause))
}

/** Where the bytes come from. */
interface Flow {
  pause(): unknown
  resume(): unknown
}

export class Paced {
  readonly #response: Flow
  readonly #reader: PacedReader
  /** What came, but not in this turn. */
  #rest: Buffer | undefined = undefined
  #bytes = 0
  #heard = 0
  #counting = false
  #ended = false

  constructor(response: Flow, reader: PacedReader) {
    this.#response = response
    this.#reader = reader
  }

  take(chunk: Buffer): void {
    let at = 0
    while (at < chunk.length && !this.#enough()) {
      const slice = chunk.length <= sliceBytes ? chunk : chunk.subarray(at, at + sliceBytes)
      at += slice.length
      this.#bytes += slice.length
      this.#reader.take(slice)
    }
    this.#rest = at < chunk.length ? chunk.subarray(at) : undefined
    const enough = this.#enough()
    if (enough) this.#response.pause()
    // Where little comes, no turn is counted.
    if (this.#counting || (!enough && this.#bytes < sliceBytes)) return
    this.#counting = true
    setImmediate(this.#next)
  }

  /** Comes while some of it is still to be taken. */
  end(): void {
    this.#ended = true
    if (this.#rest === undefined) this.#reader.end()
  }

  /** Nothing more comes, but what has come still counts. */
  fail(cause: Error): void {
    if (this.#rest !== undefined) this.#reader.take(this.#rest)
    this.#rest = undefined
    this.#reader.fail(cause)
  }

  #enough(): boolean {
    return this.#bytes >= bytesPerTurn || this.#reader.heard() - this.#heard >= messagesPerTurn
  }

  readonly #next = (): void => {
    this.#counting = false
    this.#bytes = 0
    this.#heard = this.#reader.heard()
    const rest = this.#rest
    if (rest !== undefined) this.take(rest)
    if (this.#rest !== undefined) return
    if (!this.#ended) this.#response.resume()
    else if (rest !== undefined) this.#reader.end()
  }
}
