/**
 * What is kept of the logs of resumable streams, whether they lie in memory or on a store. A stream over its limits loses its own
 * oldest events; a session over its limits those of its oldest streams; over the total, the account with the most bytes loses events,
 * first in its largest session. So nobody loses events because of somebody who holds more.
 */
import type { HttpLimits } from './limits.ts'

/** A part of a log that is kept or removed as a whole: an event, or what one value on a store holds. */
export interface LogPart {
  readonly bytes: number
  /** Number of events that begin in it. */
  readonly events: number
  /** The number of the last event in it. */
  readonly last: number
  /** When it was written. */
  readonly at: number
}

interface Amount {
  bytes: number
  events: number
}

/** What is kept of one stream, oldest first. */
export interface BoundedLog<Part extends LogPart> extends Amount {
  readonly session: Session<Part>
  readonly stream: string
  readonly parts: Part[]
}

interface Session<Part extends LogPart> extends Amount {
  readonly name: string
  readonly account: Account<Part>
  readonly logs: Map<string, BoundedLog<Part>>
}

/** A user, or the network of anonymous callers. The limits apply to all of its sessions together. */
interface Account<Part extends LogPart> {
  readonly name: string
  readonly sessions: Set<Session<Part>>
  bytes: number
}

type Limits = Pick<HttpLimits, 'logEvents' | 'logBytes' | 'logSessionEvents' | 'logSessionBytes' | 'logTotal'>

/** Counts what the logs of one process hold, and removes what exceeds the limits. */
export class LogBounds<Part extends LogPart> {
  readonly #limits: Limits
  readonly #removed: (part: Part) => void
  readonly #sessions = new Map<string, Session<Part>>()
  readonly #accounts = new Map<string, Account<Part>>()
  #bytes = 0

  /** `removed` is called for each part that exceeds a limit, not for what is dropped or too old. */
  constructor(limits: Limits, removed: (part: Part) => void = () => {}) {
    this.#limits = limits
    this.#removed = removed
  }

  get(session: string, stream: string): BoundedLog<Part> | undefined {
    return this.#sessions.get(session)?.logs.get(stream)
  }

  /** The log of a stream, new if there is none. `account`: who its bytes are charged to; by default each session is one of its own. */
  open(session: string, stream: string, account = `session ${session}`): BoundedLog<Part> {
    const of = this.#sessions.get(session) ?? this.#begin(session, account)
    let log = of.logs.get(stream)
    if (log === undefined) {
      log = { session: of, stream, parts: [], bytes: 0, events: 0 }
      of.logs.set(stream, log)
    }
    return log
  }

  /** Removes what has to go so that this much can be added. A newer event comes, so that even the newest one of this stream may go. */
  freeCapacity(log: BoundedLog<Part>, bytes: number, events: number): void {
    const { session } = log
    const { logEvents, logBytes, logSessionEvents, logSessionBytes, logTotal } = this.#limits
    // What comes counts already, because who gives way is decided by what each will hold.
    this.#count(log, bytes, events)
    while (log.parts.length > 0 && (log.events > logEvents || log.bytes > logBytes)) this.#shift(log)
    if (session.events > logSessionEvents || session.bytes > logSessionBytes)
      this.#shed(session, log, () => session.events > logSessionEvents || session.bytes > logSessionBytes, true)
    if (this.#bytes > logTotal) this.#shedLargest(log)
    this.#count(log, -bytes, -events)
  }

  add(log: BoundedLog<Part>, part: Part): void {
    log.parts.push(part)
    this.#count(log, part.bytes, part.events)
  }

  /** Forgets a log. */
  drop(log: BoundedLog<Part>): void {
    const { session } = log
    if (session.logs.get(log.stream) !== log) return
    this.#count(log, -log.bytes, -log.events)
    log.parts.length = 0
    session.logs.delete(log.stream)
    if (session.logs.size > 0) return
    this.#sessions.delete(session.name)
    session.account.sessions.delete(session)
    if (session.account.sessions.size === 0) this.#accounts.delete(session.account.name)
  }

  dropSession(name: string): void {
    for (const log of this.#sessions.get(name)?.logs.values() ?? []) this.drop(log)
  }

  /** Forgets what was written before that time. */
  expire(oldest: number): void {
    for (const { logs } of this.#sessions.values())
      for (const log of logs.values()) while ((log.parts[0]?.at ?? oldest) < oldest) this.#take(log)
  }

  #begin(name: string, of: string): Session<Part> {
    const account = this.#accounts.get(of) ?? { name: of, sessions: new Set(), bytes: 0 }
    const session = { name, account, logs: new Map(), bytes: 0, events: 0 }
    this.#accounts.set(of, account)
    this.#sessions.set(name, session)
    account.sessions.add(session)
    return session
  }

  #count(log: BoundedLog<Part>, bytes: number, events: number): void {
    const { session } = log
    log.bytes += bytes
    log.events += events
    session.bytes += bytes
    session.events += events
    session.account.bytes += bytes
    this.#bytes += bytes
  }

  #take(log: BoundedLog<Part>): Part | undefined {
    const part = log.parts.shift()
    if (part !== undefined) this.#count(log, -part.bytes, -part.events)
    return part
  }

  #shift(log: BoundedLog<Part>): void {
    const part = this.#take(log)
    if (part !== undefined) this.#removed(part)
  }

  #shedLargest(written: BoundedLog<Part>): void {
    const isOver = (): boolean => this.#bytes > this.#limits.logTotal
    while (isOver()) {
      const sessions = most(this.#accounts.values())?.sessions ?? []
      // What comes is counted, and stays: its session may hold nothing else.
      const session = most([...sessions].filter(({ logs }) => [...logs.values()].some(({ parts }) => parts.length > 0)))
      if (session === undefined) return
      this.#shed(session, written, isOver, true)
      // Many newest events can be too much as well.
      if (isOver()) this.#shed(session, written, isOver, false)
    }
  }

  /** In the order in which the streams were opened; the one being written comes last. `newest`: the newest event of the others stays, it may be the answer. */
  #shed({ logs }: Session<Part>, written: BoundedLog<Part>, isOver: () => boolean, newest: boolean): void {
    for (const log of logs.values()) {
      if (log === written) continue
      const last = newest ? log.parts.at(-1)?.last : undefined
      while (isOver() && log.parts[0] !== undefined && log.parts[0].last !== last) this.#shift(log)
    }
    if (logs.get(written.stream) === written) while (isOver() && written.parts.length > 0) this.#shift(written)
  }
}

function most<T extends { readonly bytes: number }>(all: Iterable<T>): T | undefined {
  let found: T | undefined
  for (const each of all) if (each.bytes > (found?.bytes ?? 0)) found = each
  return found
}
