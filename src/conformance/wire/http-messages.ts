/** What one HTTP exchange sends and gets. Apart from the code that makes it, so that these types can be read without those of Node. */
import type { StreamEvent } from './event-reader.ts'

export interface HttpCall {
  readonly url: URL
  readonly method: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array
  /** The longest time for the whole exchange. Default 10 s. */
  readonly ms?: number
  readonly signal?: AbortSignal
  /** Each event of a stream as it comes. */
  onEvent?(event: StreamEvent): void
  onHead?(status: number, headers: Readonly<Record<string, string>>): void
  /** Stops reading a stream after this event: the exchange is dropped. */
  until?(event: StreamEvent): boolean
}

export interface HttpReply {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** Empty for streams of events. */
  readonly body: string
  readonly events: readonly StreamEvent[]
  /** False: we let go, or the time was over, before the end. */
  readonly whole: boolean
}
