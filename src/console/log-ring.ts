/** The last lines of the log and of the standard error of servers, without secrets: they are taken out before a line is kept. */
import type { Clock } from '../core/clock.ts'
import { cleanText } from '../core/log.ts'
import { secretValues } from '../core/redact.ts'
import type { LogLevel, LogLine, LogQuery } from './contract/log.ts'

const mostLines = 20_000
const mostChars = 8 * 1024 * 1024
const mostOfServer = 200
const mostServers = 1_000
const longest = 4_000

/** The levels, the least severe first. */
export const logLevels: readonly LogLevel[] = ['debug', 'info', 'warn', 'error']

/** Keeps lines up to a number and a size, and finds them again. */
export class LogRing {
  readonly #clock: Clock
  /** Values that are secret wherever they stand. */
  readonly #secrets = secretValues(process.env)
  #lines: LogLine[] = []
  #chars = 0
  #count = 0
  readonly #ofServers = new Map<string, { readonly at: number; readonly text: string }[]>()
  readonly #followers = new Set<(line: LogLine) => void>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Adds a line. */
  add(level: LogLevel, event: string, text: string, server?: string): void {
    const clean = cleanText(text, this.#secrets, longest)
    const line: LogLine = {
      n: ++this.#count,
      at: this.#clock.now(),
      level,
      ...(server !== undefined && { server }),
      event,
      text: clean,
    }
    this.#lines.push(line)
    this.#chars += clean.length
    // In bulk, because shifting one by one costs as much as the ring is long.
    if (this.#lines.length > mostLines * 1.1 || this.#chars > mostChars) this.#trim()
    for (const follower of this.#followers) follower(line)
  }

  /** Adds a line that a server wrote on standard error. */
  stderr(server: string, text: string): void {
    this.add('info', 'stderr', text, server)
    const { at, text: clean } = this.#lines.at(-1) as LogLine
    const known = this.#ofServers.get(server)
    if (known === undefined && this.#ofServers.size >= mostServers) return
    const lines = known ?? []
    this.#ofServers.set(server, lines)
    lines.push({ at, text: clean })
    if (lines.length > mostOfServer) lines.shift()
  }

  /** The last lines of a server's standard error, oldest first. */
  stderrOf(server: string): readonly { readonly at: number; readonly text: string }[] {
    return this.#ofServers.get(server) ?? []
  }

  /** Lines that match, newest first, before a line number. */
  find({ level, server, event, text }: LogQuery, before: number, limit: number): readonly LogLine[] {
    const least = level === undefined ? 0 : logLevels.indexOf(level)
    const wanted = text?.toLowerCase()
    const found: LogLine[] = []
    for (let i = this.#lines.length - 1; i >= 0 && found.length < limit; i--) {
      const line = this.#lines[i] as LogLine
      if (line.n >= before || logLevels.indexOf(line.level) < least) continue
      if (server !== undefined && line.server !== server) continue
      if (event !== undefined && line.event !== event) continue
      if (wanted === undefined || `${line.event} ${line.text}`.toLowerCase().includes(wanted)) found.push(line)
    }
    return found
  }

  /** Calls back with each new line; returns the way to stop. */
  follow(follower: (line: LogLine) => void): () => void {
    this.#followers.add(follower)
    return () => void this.#followers.delete(follower)
  }

  #trim(): void {
    let from = Math.max(0, this.#lines.length - mostLines)
    let chars = this.#lines.slice(from).reduce((sum, { text }) => sum + text.length, 0)
    while (chars > mostChars * 0.9) chars -= this.#lines[from++]?.text.length ?? 0
    this.#lines = this.#lines.slice(from)
    this.#chars = chars
  }
}
