/** What a raw peer needs of a carrier: frames out, frames in, and the end. */
import type { Carrier, Json } from '../scenario.ts'
import type { ChildFace, HttpFace, Sent } from './raw-peer.ts'

export interface PipeSink {
  /** `exchange` names the POST that brought it, where there was one. */
  frame(text: string, status?: number, exchange?: number): void
  closed(reason: string): void
}

export interface Outward {
  /** The message in the frame, where it is one: carriers with headers look at it. */
  readonly message?: Json | undefined
  readonly headers?: Readonly<Record<string, string | undefined>> | undefined
  readonly signal?: AbortSignal | undefined
  /** Under which number what comes back on this exchange is told. */
  readonly exchange?: number | undefined
  onHead?(status: number, headers: Readonly<Record<string, string>>): void
}

export interface Pipe {
  readonly carrier: Carrier
  start(sink: PipeSink): Promise<void>
  /** Over HTTP it settles when the exchange is over, elsewhere when the frame is away. */
  send(text: string, outward: Outward): Promise<Sent>
  /** Over HTTP with sessions: the stream for what is said unasked. */
  listen?(): Promise<void>
  readonly http?: HttpFace
  readonly child?: ChildFace
  close(): Promise<void>
}
