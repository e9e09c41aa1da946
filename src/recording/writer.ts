/**
 * The file of a recording while it is written. Each line is with the system before the next thing happens, so that nothing is lost with
 * the process; it is bounded, and says in its last line when it is full.
 */
import { closeSync, openSync, writeSync } from 'node:fs'
import { type Clock, realClock } from '../core/clock.ts'
import { isSecretName, redacted } from '../core/redact.ts'
import type { Carrier } from '../jsonrpc/connection.ts'
import { isRecord } from '../jsonrpc/message.ts'
import { version } from '../revisions/revision.ts'
import {
  type FrameLine,
  type HostLine,
  type HttpFacts,
  jsonValue,
  lineText,
  pathPattern,
  type RecordingLine,
  recordedFrame,
  recordingVersion,
} from './format.ts'

/** Options of a recording. */
export interface RecordOptions {
  /** A description of the server, for the first line. Default: none. */
  readonly target?: string
  /**
   * Members of frames that are not recorded: `params.arguments.password`, `**.apiKey`. Headers with secrets are never recorded.
   * Default: none.
   */
  readonly redact?: readonly string[]
  /** The most bytes of the file. Later traffic is passed on but not recorded. Default 256 MiB. */
  readonly maxBytes?: number
  /** The most characters of a frame that are recorded. Default 16 Mi. */
  readonly maxFrame?: number
  /** For tests: the time. Default: the real clock. */
  readonly clock?: Clock
}

/** A line without what the writer adds. */
type Without<L, K extends string> = L extends unknown ? Omit<L, K> : never

/** The end of a file that is full. */
const reserve = 256

/** Writes one recording. */
export class RecordingWriter {
  readonly #path: string
  readonly #header: string
  readonly #clock: Clock
  readonly #began: number
  readonly #maxBytes: number
  readonly #maxFrame: number
  readonly #redaction: ReturnType<typeof redaction>
  #file: number | undefined = undefined
  #bytes = 0
  #connections = 0
  #over = false
  #failure: unknown = undefined

  constructor(path: string, options: RecordOptions = {}) {
    this.#clock = options.clock ?? realClock
    this.#began = this.#clock.now()
    this.#maxBytes = options.maxBytes ?? 256 * 1024 * 1024
    this.#maxFrame = options.maxFrame ?? 16 * 1024 * 1024
    this.#redaction = redaction(options.redact)
    const { target } = options
    const began = new Date(this.#began).toISOString()
    const by = `vivarium ${version}`
    this.#path = path
    this.#header = lineText({ recording: recordingVersion, began, by, ...(target !== undefined && { target }) })
  }

  /** Takes the place of a file of that name. Before this, or the first line, nothing is touched. */
  begin(): void {
    if (this.#over || this.#file !== undefined) return
    // It holds what people said and did: nobody else on the machine has to read it.
    this.#file = openSync(this.#path, 'w', 0o600)
    this.#write(this.#file, this.#header)
  }

  /** Begins a connection; `server` is its name where a host has several. */
  connection(carrier: Carrier, server?: string) {
    const connection = ++this.#connections
    const put = (line: Without<RecordingLine, 'at' | 'connection'>): void =>
      this.#put({ at: this.#now(), connection, ...line } as RecordingLine)
    put({ kind: 'open', carrier, ...(server !== undefined && { server }) })
    return {
      frame: (from: FrameLine['from'], text: string, more: Pick<FrameLine, 'exchange' | 'http'> = {}): void => {
        const stored = recordedFrame(this.#redaction.frame(text), this.#maxFrame)
        put({ kind: 'frame', from, ...stored, ...more, ...(more.http && { http: this.#open(more.http) }) })
      },
      http: (from: FrameLine['from'], exchange: number, http: HttpFacts): void =>
        put({ kind: 'http', from, exchange, http: this.#open(http) }),
      closed: (why?: string): void => put({ kind: 'closed', ...(why !== undefined && { why }) }),
    }
  }

  /** Writes what happened in a host beside its connections. */
  note(line: Without<HostLine, 'at'>): void {
    this.#put({ at: this.#now(), ...this.#redaction.members(line) } as HostLine)
  }

  /** Throws where something could not be written: whoever recorded learns of it here, and what passed was not disturbed. */
  close(): void {
    this.#end()
    const failure = this.#failure
    this.#failure = undefined
    if (failure !== undefined) throw failure
  }

  #now(): number {
    return this.#clock.now() - this.#began
  }

  #open({ headers, ...http }: HttpFacts): HttpFacts {
    return headers === undefined ? http : { ...http, headers: this.#redaction.headers(headers) }
  }

  /** Writes a line, or marks the file as full. */
  #put(line: RecordingLine): void {
    this.begin()
    if (this.#over || this.#file === undefined) return
    try {
      const text = lineText(line)
      if (this.#bytes + Buffer.byteLength(text) <= this.#maxBytes - reserve) return this.#write(this.#file, text)
      this.#write(this.#file, lineText({ at: line.at, kind: 'full' }))
    } catch (error) {
      this.#failure = error
    }
    this.#end()
  }

  #end(): void {
    if (this.#over) return
    this.#over = true
    if (this.#file !== undefined) closeSync(this.#file)
  }

  #write(file: number, text: string): void {
    const bytes = Buffer.from(text)
    let at = 0
    while (at < bytes.length) at += writeSync(file, bytes, at)
    this.#bytes += bytes.length
  }
}

// What a recording does not keep: headers that hold secrets, and the members that its maker names.

type PathPattern = ReturnType<typeof pathPattern>

/** Takes out what is not to be written down. `members`: paths such as `params.arguments.password` or `**.apiKey`. */
export function redaction(members: readonly string[] = []) {
  const patterns = members.map(pathPattern)
  return {
    headers: (headers: Readonly<Record<string, string>>): Readonly<Record<string, string>> =>
      Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, isSecretName(name) ? redacted : value])),
    /** The same text where nothing is to be taken out. */
    frame: (text: string): string => (patterns.length === 0 ? text : redactedFrame(text, patterns)),
    /** The members of a line that holds no frame; paths begin at the line itself. */
    members: <T extends object>(line: T): T =>
      patterns.length === 0 ? line : (without(line, [], patterns.map(inner), { any: false }) as T),
  }
}

/** A line keeps its own members, so that it can still be read: what is inside of them is taken out. */
function inner(matches: PathPattern): PathPattern {
  return path => path.length > 1 && matches(path)
}

/** What is no JSON has no members, and may hold anything: of that only its length is kept. */
function redactedFrame(text: string, patterns: readonly PathPattern[]): string {
  const value = jsonValue(text)
  if (value === undefined) return `${redacted} (${text.length} characters that are not JSON)`
  const found = { any: false }
  const put = without(value, [], patterns, found)
  return found.any ? JSON.stringify(put) : text
}

/** Replaces matching members; `found` tells whether there were any. */
function without(value: unknown, path: readonly string[], patterns: readonly PathPattern[], found: { any: boolean }): unknown {
  if (path.length > 0 && patterns.some(matches => matches(path))) {
    found.any = true
    return redacted
  }
  if (Array.isArray(value)) {
    // A batch is several frames, and each begins at itself.
    const inner = (at: number): readonly string[] => (path.length === 0 ? [] : [...path, String(at)])
    return value.map((item, at) => without(item, inner(at), patterns, found))
  }
  if (!isRecord(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, without(item, [...path, name], patterns, found)]))
}
