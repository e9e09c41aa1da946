/**
 * Writes frames as lines to a byte stream. Writes are expensive, so frames are gathered: what answers the chunk being read
 * leaves in one write when all of it is answered, or, if the chunk held several frames, after this round of the event loop.
 * While the stream is full, frames wait in the backlog.
 */
import type { Writable } from 'node:stream'
import type { Clock } from '../../core/clock.ts'
import { Backlog, type BacklogOwner, wholeBytes } from './backlog.ts'
import type { QueueLimits } from './limits.ts'

/** Gathered text of this length is written at once. */
const gatherChars = 64 * 1024

/** Like `write` of a stream: false when it is full; `done` is called when the data was passed on. */
export type StreamWrite = (data: string | Buffer, done?: () => void) => boolean

/** The stream, and who is told about its backlog. */
interface WriterOptions {
  readonly output: Writable
  /** Writes to `output` in place of `output.write`. */
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
  /** Frames sent since `hold`: equal to the frames read once all are answered. */
  #sentWhileHeld = 0
  /** Number of frames in the last chunk. */
  #lastFrames = 0
  /** The stream is full. Stays set until 'drain' and an empty backlog. */
  #blocked = false
  #whenEmpty: (() => void) | undefined = undefined
  readonly #onFree: (() => void)[] = []

  constructor({ output, write, owner, limits, clock }: WriterOptions) {
    this.#output = output
    this.#write = write ?? ((data, done) => output.write(data, done))
    this.#backlog = new Backlog(owner, limits, clock)
    output.on('drain', this.#drain)
  }

  /** Frames are waiting for the reader. */
  get blocked(): boolean {
    return this.#blocked
  }

  /** Calls back once, when nothing waits any more. */
  onFree(fn: () => void): void {
    this.#onFree.push(fn)
  }

  /** Takes a frame; false if too much waits already. `answers`: no caller waits for its outcome; `spare`: may be dropped. */
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

  /** A chunk is about to be parsed: gather what is sent meanwhile. */
  hold(): void {
    this.#held = true
    this.#sentWhileHeld = 0
  }

  /** The chunk is parsed; it held this many frames. */
  release(frames: number): void {
    this.#held = false
    this.#lastFrames = frames
    if (!this.#scheduled) return
    if (this.#sentWhileHeld >= frames) this.#flush()
    else this.#schedule()
  }

  /** Resolves when the stream has passed on everything that was sent, including its own buffer. */
  async emptied(): Promise<void> {
    this.#flush()
    if (this.#blocked) await new Promise<void>(done => (this.#whenEmpty = done))
    if (this.#output.writableLength > 0) await new Promise<void>(done => this.#write('', done))
  }

  /** Detaches from the stream and discards what waits. */
  stop(): void {
    this.#output.off('drain', this.#drain)
    this.#backlog.clear()
    this.#gathered = ''
    this.#blocked = true
    this.#whenEmpty?.()
  }

  /** After a single frame nothing else is expected, so it is written in this turn already. */
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

  /** Stays blocked until the backlog is empty, so that frames sent meanwhile, even from a callback, keep their order. */
  readonly #drain = (): void => {
    for (let writable = true; writable; ) {
      let text = ''
      let data = this.#backlog.take()?.data
      while (typeof data === 'string') {
        text += data
        data = text.length < gatherChars ? this.#backlog.take()?.data : undefined
      }
      if (text !== '') writable = this.#write(text)
      if (data !== undefined) writable = this.#write(data)
      if (text === '' && data === undefined) {
        this.#blocked = false
        this.#whenEmpty?.()
        for (const fn of this.#onFree.splice(0)) fn()
        return
      }
    }
  }
}

/** Line breaks between JSON tokens have no meaning, but here they would end the frame. */
function oneLine(frame: string): string {
  return frame.replace(/[\r\n]+/g, ' ')
}
