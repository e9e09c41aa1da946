/**
 * The log of a server or client: structured records, five methods. What is written is clean; what is
 * switched off costs a comparison. The log of the protocol (`ctx.log`), which clients read, is another thing.
 */
import type { Caller } from '../jsonrpc/connection.ts'
import { McpError } from '../jsonrpc/error.ts'
import { isRecord } from '../jsonrpc/message.ts'
import { createBuckets } from './bucket.ts'
import { type Clock, realClock } from './clock.ts'
import { isSecretName, redact, redacted, secretValues } from './redact.ts'

/** The severity of a log record. */
type Severity = 'debug' | 'info' | 'warn' | 'error'

/** The lowest severity that is written; `silent` writes nothing. */
export type Level = Severity | 'silent'

/** Receives log records. `event` is a fixed short name; everything that varies is in the fields. */
export interface Log {
  /** Writes details for debugging. */
  debug(event: string, fields?: LogFields): void
  /** Writes a normal event, such as a start. */
  info(event: string, fields?: LogFields): void
  /** Writes something unusual that the program can handle. */
  warn(event: string, fields?: LogFields): void
  /** Writes a failure that needs attention. */
  error(event: string, fields?: LogFields): void
  /** A log that adds these fields to every record. */
  child(fields: LogFields): Log
  /** The level of the log. With `debug` every call is logged. */
  readonly level?: string
}

/** Options of a log. */
export interface LogOptions {
  /** The lowest severity that is written. Default `info`. */
  readonly level?: Level
  /** `text` for people, `json` for machines (one object per line). Default `text`. */
  readonly format?: 'text' | 'json'
  /** Called with each line, without line end. Default: writes to standard error. */
  readonly write?: (line: string) => void
  /** Values that are replaced wherever they occur in a record. Default: none. */
  readonly secrets?: readonly string[]
  /** For tests: the time. Default: the real clock. */
  readonly clock?: Clock
}

/** Records a second, and at once: a peer that provokes errors must not fill the disk. What was left out is counted. */
const rate = { perSecond: 100, burst: 1_000 } as const

const ranks = { debug: 0, info: 1, warn: 2, error: 3, silent: 4 } as const

/**
 * Creates a log that writes lines, for the option `log`.
 * @example
 * const log = createLog({ level: 'debug', format: 'json' })
 * log.info('started', { port: 7420 }) // {"time":"…","level":"info","event":"started","port":7420}
 */
export function createLog(options: LogOptions = {}): Log {
  const { level = 'info', format = 'text', write = toStandardError, clock = realClock } = options
  if (!isLevel(level)) throw new TypeError(`level is ${String(level)}: give ${levels}`)
  const buckets = createBuckets({ ...rate, clock })
  const render = format === 'json' ? jsonLine : textLine
  let dropped = 0
  const sink: Sink = (severity, event, fields) => {
    if (buckets.take('records') > 0) {
      dropped++
      return
    }
    const head = { time: new Date(clock.now()).toISOString(), level: severity, event }
    // A field of the same name must not pass for one of these.
    write(render(Object.assign({ ...head }, fields, head, dropped === 0 ? {} : { dropped })))
    dropped = 0
  }
  return new CleanLog(level, sink, {}, options.secrets ?? [])
}

const levels = Object.keys(ranks).join(', ')

function isLevel(word: unknown): word is Level {
  return typeof word === 'string' && Object.hasOwn(ranks, word)
}

/** Whether records of this severity are wanted. What another log calls its levels is its own matter: it gets all and chooses. */
function isWanted({ level }: Log, severity: Severity): boolean {
  return (new Map<string | undefined, number>(Object.entries(ranks)).get(level) ?? 0) <= ranks[severity]
}

type Sink = (severity: Severity, event: string, fields: CleanFields) => void

class CleanLog implements Log {
  readonly level: Level
  readonly #rank: number
  readonly #sink: Sink
  readonly #base: CleanFields
  readonly #secrets: readonly string[]

  constructor(level: Level, sink: Sink, base: CleanFields, secrets: readonly string[]) {
    this.level = level
    this.#rank = ranks[level]
    this.#sink = sink
    this.#base = base
    this.#secrets = secrets
  }

  debug(event: string, fields?: LogFields): void {
    if (this.#rank <= 0) this.#put('debug', event, fields)
  }

  info(event: string, fields?: LogFields): void {
    if (this.#rank <= 1) this.#put('info', event, fields)
  }

  warn(event: string, fields?: LogFields): void {
    if (this.#rank <= 2) this.#put('warn', event, fields)
  }

  error(event: string, fields?: LogFields): void {
    if (this.#rank <= 3) this.#put('error', event, fields)
  }

  child(fields: LogFields): Log {
    const base = { ...this.#base, ...cleanFields(fields, this.#secrets) }
    return new CleanLog(this.level, this.#sink, base, this.#secrets)
  }

  #put(severity: Severity, event: string, fields: LogFields = {}): void {
    this.#sink(severity, cleanText(event, this.#secrets, 64), { ...this.#base, ...cleanFields(fields, this.#secrets) })
  }
}

function toStandardError(line: string): void {
  // biome-ignore lint/suspicious/noConsole: standard error on every runtime; no protocol uses it
  console.error(line)
}

type LineRecord = CleanFields & { readonly time: string; readonly level: string; readonly event: string }

function jsonLine(record: LineRecord): string {
  return JSON.stringify(record)
}

/** One line, and under it the frames of a stack. */
function textLine({ time, level, event, ...fields }: LineRecord): string {
  const frames: string[] = []
  let line = `${time} vivarium ${level} ${event}`
  for (const [name, value] of Object.entries(fields)) line += ` ${name}=${worded(value, frames)}`
  return frames.length === 0 ? line : `${line}\n    ${frames.join('\n    ')}`
}

function worded(value: LogValue, frames: string[]): string {
  if (typeof value === 'string') return /^[\w./:@-]+$/.test(value) ? value : quoted(value)
  if (!isError(value)) return JSON.stringify(value)
  const { name, message, stack, cause, ...more } = value
  frames.push(...stack)
  const rest = Object.entries(more).map(([key, each]) => ` (${key} ${worded(each, frames)})`)
  const why = cause === undefined ? '' : ` ← ${worded(cause, frames)}`
  return `${quoted(`${name}: ${message}`)}${rest.join('')}${why}`
}

/** Clean text has its own escapes already. */
function quoted(text: string): string {
  return `"${text.replaceAll('"', '\\"')}"`
}

type ErrorRecord = { name: string; message: string; stack: readonly string[]; [more: string]: LogValue }

/** Any record may have these names; only an error's has frames. */
function isError(value: LogValue): value is ErrorRecord {
  return typeof value === 'object' && value !== null && 'stack' in value && Array.isArray(value['stack']) && 'message' in value
}

/** What a record of the log may hold: plain values, bounded, without secrets and without a character that moves a cursor. */
type LogValue = string | number | boolean | null | readonly LogValue[] | { readonly [name: string]: LogValue }

/** The fields of a log record. */
type LogFields = Readonly<Record<string, unknown>>

/** Fields of a log record: plain values, bounded, without secrets. */
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

// From what the engine traces to records of the log: how severe an event is, and which secrets its caller brought along.

/** Told what went wrong or was refused. The caller is the one whose message led to it, where there is one. */
export type Trace = (event: string, detail: unknown, caller?: Caller) => void

/** A level for the log on standard error, or a log of your own. */
export type LogOption = Level | Log

/** What the compiler cannot see: a level that is none, or a log without its methods. */
export function checkLogOption(option: unknown): void {
  if (option === undefined || isLevel(option)) return
  const log: Partial<Log> = typeof option === 'object' && option !== null ? option : {}
  const missing = (['debug', 'info', 'warn', 'error', 'child'] as const).find(name => typeof log[name] !== 'function')
  if (missing !== undefined) throw new TypeError(`log has no method ${missing}: give ${levels}, or a log with all five`)
}

/** The log that an option asks for, else the variable VIVARIUM_LOG (`debug`, or `debug,json`), else this level. */
export function logFrom(option: LogOption | undefined, fallback: Level): Log {
  if (typeof option === 'object') return option
  if (option !== undefined) return createLog({ level: option })
  const [level = '', format] = variable('VIVARIUM_LOG')?.split(',', 2) ?? [fallback]
  const log = createLog({ level: isLevel(level) ? level : fallback, format: format === 'json' ? 'json' : 'text' })
  if (!isLevel(level)) log.error('log-level-unknown', { VIVARIUM_LOG: level, instead: `${levels}, each with ,json or without` })
  return log
}

interface TraceOptions {
  /** Events that mean a mistake in our own code. */
  readonly mistakes: ReadonlySet<string>
  /** Values that must not be written, besides the secrets of the environment and of the caller. */
  readonly secrets?: readonly string[]
}

/** Feeds a log. Whatever log it is, it gets clean fields. */
export function traceInto(log: Log, { mistakes, secrets = [] }: TraceOptions): Trace {
  return (event, detail, caller) => {
    const fields = fieldsOf(detail)
    const severity = severityOf(mistakes.has(event), fields['error'])
    if (isWanted(log, severity)) log[severity](event, cleanFields(fields, [...secrets, ...knownSecrets(caller)]))
  }
}

/** What must not be repeated of a caller, nor of the process that it called. */
export function knownSecrets(caller?: Caller): string[] {
  const known = secretValues(environment())
  if (caller?.header === undefined) return known
  const header = (name: string): string | undefined => caller.header?.(name)
  for (const name of credentialHeaders) known.push(...secretValues({ [name]: header(name) }))
  for (const cookie of header('cookie')?.split(';') ?? []) known.push(cookie.slice(cookie.indexOf('=') + 1).trim())
  return known
}

const credentialHeaders = ['authorization', 'cookie', 'proxy-authorization', 'dpop', 'mcp-session-id', 'x-api-key']

/** Nothing on runtimes that have none, and on those that were told to show none (Deno without --allow-env). */
function environment(): Readonly<Record<string, string | undefined>> {
  try {
    return { ...globalThis.process?.env }
  } catch {
    return {}
  }
}

function variable(name: string): string | undefined {
  try {
    return globalThis.process?.env?.[name]
  } catch {
    return undefined
  }
}

function fieldsOf(detail: unknown): LogFields {
  if (detail instanceof Error) return { error: detail }
  if (isRecord(detail)) return detail
  return detail === undefined ? {} : { detail }
}

/** What came from the other side, or was thrown on purpose, is no mistake of ours, and is no trouble either. */
function severityOf(mistake: boolean, error: unknown): Severity {
  if (error instanceof McpError && error.cause === undefined) return 'info'
  if (mistake) return 'error'
  return error instanceof Error ? 'warn' : 'info'
}
