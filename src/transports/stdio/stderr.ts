/**
 * What a command says on standard error: apart from the protocol, line by line, with the last lines kept for error messages. A command
 * that floods it is not heard out: what goes beyond the bounds is counted, and dropped undecoded.
 */
import { type Buckets, createBuckets } from '../../core/bucket.ts'
import type { Clock } from '../../core/clock.ts'
import { redact } from '../../core/redact.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { Lines } from '../framing/lines.ts'

/** The most bytes of a line; longer ones are left out and noted. */
const lineBytes = 64 * 1024
const keptLines = 20
const keptChars = 1000
const quotedLines = 8
const newline = 0x0a
/** Bytes a second, and at once, that are heard. */
const heard = { perSecond: 128 * 1024, burst: 1024 * 1024 } as const
/** What is kept of what is dropped, in case that those are the last words. */
const lastBytes = 4 * 1024

export class Stderr {
  /** The last lines, oldest first. */
  readonly tail: string[] = []
  readonly #lines: Lines
  readonly #buckets: Buckets
  readonly #add: (line: string) => void
  /** Lines that were left out since the last one that was heard. */
  #left = 0
  /** The last bytes of what was left out; undefined where nothing was. */
  #dropped: Buffer | undefined = undefined

  constructor(clock: Clock, onLine: (line: string) => void = () => {}) {
    this.#buckets = createBuckets({ ...heard, clock })
    const add = (line: string) => {
      this.tail.push(clip(line, keptChars))
      if (this.tail.length > keptLines) this.tail.shift()
      onLine(line)
    }
    const note = {
      'too-large': `[a line of more than ${lineBytes} bytes]`,
      'not-utf8': '[a line that is not UTF-8]',
      'not-text': '',
    }
    this.#add = add
    this.#lines = new Lines({ frame: add, fault: fault => add(note[fault.kind]) }, lineBytes)
  }

  push(chunk: Buffer): void {
    if (this.#dropped === undefined) {
      if (this.#buckets.take('bytes', chunk.length) === 0) this.#lines.push(chunk)
      else this.#drop(chunk)
      return
    }
    // It is heard again from the beginning of a line on.
    const broken = this.#dropped.at(-1) !== newline
    const start = broken ? chunk.indexOf(newline) + 1 : 0
    if ((broken && start === 0) || this.#buckets.take('bytes', chunk.length) > 0) return this.#drop(chunk)
    if (broken) this.#left++
    this.#note()
    this.#lines.push(chunk.subarray(start))
  }

  end(): void {
    if (this.#dropped !== undefined) {
      const last = this.#dropped.subarray(this.#dropped.indexOf(newline) + 1)
      this.#left -= newlines(last)
      this.#note()
      this.#lines.push(last)
    }
    this.#lines.end()
  }

  #drop(chunk: Buffer): void {
    // What came of a line before stands for the whole of it.
    if (this.#dropped === undefined) this.#lines.end()
    this.#left += newlines(chunk)
    this.#dropped = Buffer.concat([this.#dropped ?? Buffer.alloc(0), chunk.subarray(-lastBytes)]).subarray(-lastBytes)
  }

  #note(): void {
    this.#dropped = undefined
    this.#add(`[… ${this.#left} lines left out]`)
    this.#left = 0
  }

  /** The last words, short enough for an error message, without secrets. Where a program died, the frames of its stack say least. */
  quote(secrets: readonly string[] = []): string {
    const telling = this.tail.filter(line => !/^\s+at\s/.test(line)).slice(-quotedLines)
    return telling.map(line => clip(redact(line.trim(), secrets))).join(' | ')
  }
}

function newlines(bytes: Buffer): number {
  let count = 0
  for (let at = bytes.indexOf(newline); at !== -1; at = bytes.indexOf(newline, at + 1)) count++
  return count
}
