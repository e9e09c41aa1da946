/** What a command says on standard error: apart from the protocol, line by line, with the last lines kept for error messages. */
import { redact } from '../../core/redact.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { Lines } from '../framing/lines.ts'

/** The most bytes of a line; longer ones are left out and noted. */
const lineBytes = 64 * 1024
const keptLines = 20
const keptChars = 1000
const quotedLines = 8

export class Stderr {
  /** The last lines, oldest first. */
  readonly tail: string[] = []
  readonly #lines: Lines

  constructor(onLine: (line: string) => void = () => {}) {
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
    this.#lines = new Lines({ frame: add, fault: fault => add(note[fault.kind]) }, lineBytes)
  }

  push(chunk: Buffer): void {
    this.#lines.push(chunk)
  }

  end(): void {
    this.#lines.end()
  }

  /** The last words, short enough for an error message, without secrets. Where a program died, the frames of its stack say least. */
  quote(secrets: readonly string[] = []): string {
    const telling = this.tail.filter(line => !/^\s+at\s/.test(line)).slice(-quotedLines)
    return telling.map(line => clip(redact(line.trim(), secrets))).join(' | ')
  }
}
