/** What a record of the log may hold: plain values, bounded, without secrets and without a character that moves a cursor. */
import { McpError } from '../jsonrpc/error.ts'
import { isRecord } from '../jsonrpc/message.ts'
import { isSecretName, redact, redacted } from './redact.ts'

export type LogValue = string | number | boolean | null | readonly LogValue[] | { readonly [name: string]: LogValue }

export type LogFields = Readonly<Record<string, unknown>>

export type CleanFields = Readonly<Record<string, LogValue>>

/** The most of everything in one record. A record is a line, not a dump. */
const bounds = { text: 1_024, depth: 4, values: 64, frames: 16, causes: 3 } as const

/** Fields as they may be written. Never throws, whatever getters or proxies it is given. */
export function cleanFields(fields: LogFields, known: readonly string[] = []): CleanFields {
  try {
    const cleaner = new Cleaner(known)
    const out = new Map<string, LogValue>()
    for (const name of Object.keys(fields)) {
      const value = cleaner.field(name, fields[name], 0)
      if (value !== undefined) out.set(cleaner.text(name, 64), value)
    }
    return Object.fromEntries(out)
  } catch {
    return { unreadable: true }
  }
}

/** Without secrets, on one line, and no longer than `length`. */
export function cleanText(text: string, known: readonly string[] = [], length: number = bounds.text): string {
  const safe = visible(redact(text, known))
  if (safe.length <= length) return safe
  // A character of two halves is not cut in the middle.
  return `${safe.slice(0, length - 1).replace(/[\ud800-\udbff]$/, '')}…`
}

/** Controls, line breaks of any kind, marks that reorder text and halves of characters, as one would write them in a program. */
function visible(text: string): string {
  return text.replace(unseen, each => named.get(each) ?? `\\u${each.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

const unseen =
  /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g
const named = new Map([
  ['\n', '\\n'],
  ['\r', '\\r'],
  ['\t', '\\t'],
])

class Cleaner {
  readonly #known: readonly string[]
  #values = 0

  constructor(known: readonly string[]) {
    this.#known = known
  }

  text(text: string, length: number = bounds.text): string {
    return cleanText(text, this.#known, length)
  }

  /** Undefined: nothing worth writing. */
  field(name: string, value: unknown, depth: number): LogValue | undefined {
    if (isSecretName(name) && value !== undefined && value !== null && typeof value !== 'boolean') return redacted
    // The names of variables help; their values are nobody's business.
    if ((name === 'env' || name === 'environ') && isRecord(value)) return this.value(Object.keys(value), depth)
    if ((name === 'code' || name === 'state') && typeof value === 'string')
      return redact(`${name}=${value}`, this.#known).endsWith(redacted) ? redacted : this.text(value)
    return this.value(value, depth)
  }

  value(value: unknown, depth: number): LogValue | undefined {
    if (++this.#values > bounds.values) return undefined
    if (typeof value === 'string') return this.text(value)
    if (typeof value === 'number') return Number.isFinite(value) ? value : String(value)
    if (typeof value === 'boolean' || value === null) return value
    if (typeof value === 'bigint' || typeof value === 'symbol') return this.text(String(value))
    if (typeof value !== 'object') return undefined
    if (depth >= bounds.depth) return '…'
    if (value instanceof Error) return this.#error(value, depth)
    if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`
    if (value instanceof URL || value instanceof Date) return this.text(String(value))
    if (Array.isArray(value)) return value.slice(0, bounds.values).map(each => this.value(each, depth + 1) ?? null)
    const entries = value instanceof Headers || value instanceof Map ? value.entries() : Object.entries(value)
    return this.#record(entries, depth)
  }

  #record(entries: Iterable<readonly [unknown, unknown]>, depth: number): LogValue {
    const out = new Map<string, LogValue>()
    for (const [name, value] of entries) {
      if (this.#values >= bounds.values) break
      const clean = this.field(String(name), value, depth + 1)
      if (clean !== undefined) out.set(this.text(String(name), 64), clean)
    }
    return Object.fromEntries(out)
  }

  /** An error's own words; of its other properties only those that name the failure. */
  #error(error: Error, depth: number, causes = 0): LogValue {
    const code = 'code' in error ? error.code : undefined
    const isCode = typeof code === 'number' || (typeof code === 'string' && /^[A-Z][A-Z0-9_]{1,60}$/.test(code))
    const cause = error.cause instanceof Error && causes < bounds.causes ? this.#error(error.cause, depth, causes + 1) : undefined
    return {
      name: this.text(String(error.name), 64),
      message: this.text(String(error.message)),
      ...(error instanceof McpError ? { kind: this.text(error.kind, 64) } : {}),
      ...(isCode ? { code } : {}),
      stack: this.#frames(error),
      ...(cause === undefined ? {} : { cause }),
    }
  }

  /** Only what follows the message is the engine's own: the message may hold lines that look like frames. */
  #frames({ stack, name, message }: Error): string[] {
    const at = typeof stack === 'string' ? stack.indexOf(message) : -1
    if (stack === undefined || at === -1 || at > name.length + 64) return []
    const lines = stack.slice(at + message.length).split('\n', bounds.frames + 1)
    return lines.filter(line => /^\s+at /.test(line)).map(line => this.text(line.trim(), 256))
  }
}
