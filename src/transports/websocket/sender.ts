/**
 * Sends frames as WebSocket messages. Frames of one turn leave with one write of the socket below. While that is full, frames
 * wait in the backlog; large ones are sent as fragments, so that the progress of a slow reader is visible.
 */
import type { Duplex } from 'node:stream'
import type { Clock } from '../../core/clock.ts'
import { Backlog, type BacklogOwner, wholeBytes } from '../framing/backlog.ts'
import type { QueueLimits } from '../framing/limits.ts'
import type { Socket } from './ws.ts'

/** The sending half of a WebSocket connection. */
export class Sender {
  readonly #backlog: Backlog
  #socket: Socket | undefined = undefined
  #stream: Duplex | undefined = undefined
  /** The stream is full. Stays set until 'drain' and an empty backlog. Before the socket is open it counts as full. */
  #blocked = true
  /** Writes are gathered until the end of this turn. */
  #corked = false
  /** The newest ping that is not answered yet. */
  #ping: Buffer | undefined = undefined
  #whenEmpty: (() => void) | undefined = undefined
  readonly #onFree: (() => void)[] = []

  constructor(owner: BacklogOwner, limits: QueueLimits, clock: Clock) {
    this.#backlog = new Backlog(owner, limits, clock)
  }

  /** The socket is open: sends what waits. `stream` is the TCP or TLS socket below it. */
  open(socket: Socket, stream: Duplex): void {
    this.#socket = socket
    this.#stream = stream
    stream.on('drain', this.#drain)
    this.#drain()
  }

  /** Frames are waiting for the reader. */
  get blocked(): boolean {
    return this.#blocked
  }

  /** Calls back once, when nothing waits any more. */
  onFree(fn: () => void): void {
    this.#onFree.push(fn)
  }

  /** Takes a frame; false if too much waits already. */
  send(frame: string, merge?: string, answers = false, spare = false): boolean {
    if (this.#blocked) return this.#backlog.add(frame, merge, answers, spare)
    if (frame.length <= wholeBytes) {
      this.#blocked = !this.#write(frame, true)
      return true
    }
    this.#blocked = true
    this.#backlog.add(frame)
    this.#drain()
    return true
  }

  /** Answers a ping. While the stream is full, only the newest ping is kept (allowed by RFC 6455 §5.5.3). */
  pong(data: Buffer): void {
    if (this.#stream?.writableNeedDrain === false) this.#socket?.pong(data)
    else this.#ping = data
  }

  /** Resolves when everything was handed to the socket. */
  async emptied(): Promise<void> {
    if (this.#backlog.bytes > 0) {
      await new Promise<void>(done => {
        this.#whenEmpty = done
      })
    }
  }

  /** Detaches from the stream and discards what waits. */
  stop(): void {
    this.#stream?.off('drain', this.#drain)
    this.#backlog.clear()
    this.#whenEmpty?.()
  }

  /** Stays blocked until the backlog is empty, so that frames sent meanwhile, even from a callback, keep their order. */
  readonly #drain = (): void => {
    if (this.#ping !== undefined) this.#socket?.pong(this.#ping)
    this.#ping = undefined
    for (let writable = true; writable; ) {
      const piece = this.#backlog.take()
      if (piece === undefined) {
        this.#blocked = false
        this.#whenEmpty?.()
        for (const fn of this.#onFree.splice(0)) fn()
        return
      }
      writable = this.#write(piece.data, piece.final)
    }
  }

  /** Sends one message or fragment; false if the stream is full now. */
  #write(data: string | Buffer, final: boolean): boolean {
    if (!this.#corked) {
      this.#corked = true
      this.#stream?.cork()
      setImmediate(this.#uncork)
    }
    this.#socket?.send(data, { binary: false, fin: final })
    return this.#stream?.writableNeedDrain === false
  }

  readonly #uncork = (): void => {
    this.#corked = false
    this.#stream?.uncork()
  }
}
