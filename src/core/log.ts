/**
 * The log of a server or client: structured records, five methods. What is written is clean (`log-fields.ts`); what is
 * switched off costs a comparison. The log of the protocol (`ctx.log`), which clients read, is another thing.
 */
import { createBuckets } from './bucket.ts'
import { type Clock, realClock } from './clock.ts'
import { type CleanFields, cleanFields, cleanText, type LogFields, type LogValue } from './log-fields.ts'

export type Severity = 'debug' | 'info' | 'warn' | 'error'

/** The least severe records that are written. */
export type Level = Severity | 'silent'

/** Where records go. `event` is a fixed, short name; everything that varies is in the fields. */
export interface Log {
  debug(event: string, fields?: LogFields): void
  info(event: string, fields?: LogFields): void
  warn(event: string, fields?: LogFields): void
  error(event: string, fields?: LogFields): void
  /** A log that adds these fields to every record. */
  child(fields: LogFields): Log
  /** Where it is `debug`, every call is told. */
  readonly level?: string
}

export interface LogOptions {
  /** The least severe records that are written. Default `info`. */
  readonly level?: Level
  /** `text` for people, `json` for machines: one object a line. Default `text`. */
  readonly format?: 'text' | 'json'
  /** Takes one line, without its end. Default: standard error. */
  readonly write?: (line: string) => void
  /** Values that must not be written, wherever they stand. */
  readonly secrets?: readonly string[]
  /** For tests: the time. Default: the real one. */
  readonly clock?: Clock
}

/** Records a second, and at once: a peer that provokes errors must not fill the disk. What was left out is counted. */
const rate = { perSecond: 100, burst: 1_000 } as const

const ranks = { debug: 0, info: 1, warn: 2, error: 3, silent: 4 } as const

/**
 * A log that writes lines.
 *
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

export const levels = Object.keys(ranks).join(', ')

export function isLevel(word: unknown): word is Level {
  return typeof word === 'string' && Object.hasOwn(ranks, word)
}

/** Whether records of this severity are wanted. What another log calls its levels is its own matter: it gets all and chooses. */
export function isWanted({ level }: Log, severity: Severity): boolean {
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

type LogRecord = CleanFields & { readonly time: string; readonly level: string; readonly event: string }

function jsonLine(record: LogRecord): string {
  return JSON.stringify(record)
}

/** One line, and under it the frames of a stack. */
function textLine({ time, level, event, ...fields }: LogRecord): string {
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
