/**
 * Frames → lines on a byte stream. Writes are what costs, so all that is sent in one turn leaves with one: at the end of
 * the chunk being read if everything in it is answered by then; else, where it held several frames, after this round of
 * input and output, by when the others tend to be answered too. When the stream is full, frames wait in the backlog.
 */
import type { Writable } from 'node:stream'
import type { Clock } from '../../core/clock.ts'
import { Backlog, type BacklogOwner, wholeBytes } from './backlog.ts'
import type { QueueLimits } from './limits.ts'

/** Text that has gathered to this length is written at once. */
const gatherChars = 64 * 1024

/** Like the `write` of a stream: false when it is full; `done` is called when it has passed the data on. */
export type StreamWrite = (data: string | Buffer, done?: () => void) => boolean

interface WriterOptions {
  readonly output: Writable
  /** Writes to `output`, where its own `write` is not to be used. */
  readonly write?: StreamWrite
  readonly owner: BacklogOwner
  readonly limits: QueueLimits
  readonly clock?: Clock | undefined
}

/** Writes frames to a byte stream. */
export class Writer {
  readonly #write: StreamWrite
  readonly #output: Writable
  readonly #backlog: Backlog
  #gathered = ''
  #scheduled = false
  /** Between `hold` and `release`. */
  #held = false
  #sentWhileHeld = 0
  /** How many frames the last chunk brought. */
  #lastFrames = 0
  /** The stream is full, until it says 'drain' and nothing waits any more. */
  #blocked = false
  #whenEmpty: (() => void) | undefined = undefined
  readonly #onFree: (() => void)[] = []

  constructor({ output, write, owner, limits, clock }: WriterOptions) {
    this.#output = output
    this.#write = write ?? ((data, done) => output.write(data, done))
    this.#backlog = new Backlog(owner, limits, clock)
    output.on('drain', this.#drain)
  }

  /** Something waits for the reader. */
  get blocked(): boolean {
    return this.#blocked
  }

  /** Called once, when nothing waits any more. */
  onFree(fn: () => void): void {
    this.#onFree.push(fn)
  }

  /** Takes a frame; false if too much waits already. */
  send(frame: string, merge?: string, answers = false, spare = false): boolean {
    const line = `${frame.includes('\n') ? oneLine(frame) : frame}\n`
    if (this.#held) this.#sentWhileHeld++
    if (this.#blocked) return this.#backlog.add(line, merge, answers, spare)
    this.#gathered += line
    if (this.#gathered.length >= gatherChars) this.#flush()
    else if (!this.#scheduled) {
      this.#scheduled = true
      if (!this.#held) this.#schedule()
    }
    return true
  }

  /** A chunk is about to be read: what it brings about is gathered. */
  hold(): void {
    this.#held = true
    this.#sentWhileHeld = 0
  }

  /** The chunk brought `frames` frames. */
  release(frames: number): void {
    this.#held = false
    this.#lastFrames = frames
    if (!this.#scheduled) return
    if (this.#sentWhileHeld >= frames) this.#flush()
    else this.#schedule()
  }

  /** Resolves when the stream has taken everything that was sent, the stream's own buffer included. */
  async emptied(): Promise<void> {
    this.#flush()
    if (this.#blocked) await new Promise<void>(done => (this.#whenEmpty = done))
    if (this.#output.writableLength > 0) await new Promise<void>(done => this.#write('', done))
  }

  /** Lets go of the stream and of all that waits. */
  stop(): void {
    this.#output.off('drain', this.#drain)
    this.#backlog.clear()
    this.#gathered = ''
    this.#blocked = true
    this.#whenEmpty?.()
  }

  /** A lone frame has nobody to wait for. */
  #schedule(): void {
    if (this.#lastFrames <= 1) process.nextTick(this.#flush)
    else setImmediate(this.#flush)
  }

  readonly #flush = (): void => {
    this.#scheduled = false
    const text = this.#gathered
    if (text === '') return
    this.#gathered = ''
    if (text.length <= wholeBytes) this.#blocked = !this.#write(text)
    else {
      this.#blocked = true
      this.#backlog.add(text)
      this.#drain()
    }
  }

  /** Stays blocked until nothing waits: what is sent meanwhile, even from within, comes after what was sent before. */
  readonly #drain = (): void => {
    for (let room = true; room; ) {
      let text = ''
      let data = this.#backlog.take()?.data
      while (typeof data === 'string') {
        text += data
        data = text.length < gatherChars ? this.#backlog.take()?.data : undefined
      }
      if (text !== '') room = this.#write(text)
      if (data !== undefined) room = this.#write(data)
      if (text === '' && data === undefined) {
        this.#blocked = false
        this.#whenEmpty?.()
        for (const fn of this.#onFree.splice(0)) fn()
        return
      }
    }
  }
}

/** Line breaks between the tokens of a JSON text mean nothing, but here they would end the frame. */
function oneLine(frame: string): string {
  return frame.replace(/[\r\n]+/g, ' ')
}
