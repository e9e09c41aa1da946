/**
 * Takes secrets out of frames before anything of them is stored: values of members whose name says that they are secret, values that are
 * known, and text that looks like a secret. It walks the parsed value, so that the frame stays valid JSON.
 */
import { isSecretName, redact, redacted, secretValues } from '../../core/redact.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import { jsonValue } from '../../recording/format.ts'

/** What text patterns read of one frame: about as much as is stored of it. */
const mostRead = 262_144
/** What one look for patterns reads. */
const pieceLength = 8_000
/** Nested deeper than this nothing is stored. */
const mostDepth = 256
/** Shorter values are words and numbers that stand in honest text too. */
const leastSecret = 6
const mostSeen = 200

/** A frame without secrets. */
export interface RedactedFrame {
  readonly text: string
  /** The parsed text; undefined where it is no JSON. */
  readonly value: unknown
  /** How many values were taken out. */
  readonly taken: number
}

/** Takes secrets out of frames, values and headers. */
export class FrameRedaction {
  readonly #reveals: boolean
  /** Known from the start. */
  readonly #given = new Set<string>()
  /** Seen in headers, the oldest first. */
  readonly #seen = new Set<string>()

  /** `reveals`: fields of frames are left as they are; headers are not. */
  constructor(reveals = false) {
    this.#reveals = reveals
    this.learn(secretValues(process.env))
  }

  /** Values that are secret wherever they stand. */
  learn(values: Iterable<string>): void {
    for (const value of values) if (value.length >= leastSecret) this.#given.add(value)
  }

  /** The same text where nothing is to be taken out. */
  frame(text: string): RedactedFrame {
    const value = jsonValue(text)
    if (this.#reveals) return { text, value, taken: 0 }
    const pass = this.#pass()
    if (value === undefined) return { text: pass.text(text), value, taken: pass.taken }
    const clean = pass.value(value, '', 0)
    return pass.taken === 0 ? { text, value, taken: 0 } : { text: JSON.stringify(clean), value: clean, taken: pass.taken }
  }

  /** A value without secrets. */
  value(value: unknown): unknown {
    return this.#reveals ? value : this.#pass().value(value, '', 0)
  }

  /** A short text without secrets. */
  text(text: string): string {
    return this.#pass().text(text)
  }

  /** Headers: those with secrets say so, and their values are known from now on. */
  headers(headers: Iterable<readonly [string, string]>): Readonly<Record<string, string>> {
    const entries = [...headers].map(([name, value]) => [name.toLowerCase(), value] as const)
    this.#see(secretValues(Object.fromEntries(entries.filter(([name]) => isSecretName(name)))))
    return Object.fromEntries(entries.map(([name, value]) => [name, isSecretName(name) ? redacted : this.text(value)]))
  }

  #see(values: readonly string[]): void {
    for (const value of values) {
      if (value.length < leastSecret || this.#given.has(value)) continue
      this.#seen.delete(value)
      this.#seen.add(value)
      const [oldest] = this.#seen
      if (this.#seen.size > mostSeen && oldest !== undefined) this.#seen.delete(oldest)
    }
  }

  #pass(): Pass {
    return new Pass([...this.#given, ...this.#seen])
  }
}

/** One look at one frame. */
class Pass {
  taken = 0
  readonly #secrets: readonly string[]
  #left = mostRead

  constructor(secrets: readonly string[]) {
    this.#secrets = secrets
  }

  value(value: unknown, name: string, depth: number): unknown {
    if (typeof value === 'string') return isSecretName(name) && value !== '' ? this.#take() : this.text(value)
    if (typeof value !== 'object' || value === null) return value
    if (depth >= mostDepth) return this.#take()
    if (Array.isArray(value)) return value.map(each => this.value(each, name, depth + 1))
    return isRecord(value)
      ? Object.fromEntries(Object.entries(value).map(([key, each]) => [key, this.value(each, key, depth + 1)]))
      : value
  }

  text(text: string): string {
    if (text.length < leastSecret) return text
    let known = text
    for (const secret of this.#secrets) known = known.replaceAll(secret, redacted)
    const clean = this.#withoutPatterns(known)
    if (clean !== text) this.taken++
    return clean
  }

  /** Piece by piece, because the patterns read only the beginning of what they get. */
  #withoutPatterns(text: string): string {
    let clean = ''
    let at = 0
    while (at < text.length && this.#left > 0) {
      const end = pieceEnd(text, at, Math.min(pieceLength, this.#left))
      clean += redact(text.slice(at, end))
      this.#left -= end - at
      at = end
    }
    return clean + text.slice(at)
  }

  #take(): string {
    this.taken++
    return redacted
  }
}

/** Between two words, where there are any. */
function pieceEnd(text: string, from: number, length: number): number {
  const end = from + length
  if (end >= text.length) return text.length
  const gap = Math.max(text.lastIndexOf(' ', end), text.lastIndexOf('\n', end))
  return gap > from + length / 2 ? gap : end
}
