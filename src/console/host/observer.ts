/**
 * What the console remembers of a host from its start on: log lines, standard error, calls, and the turns that run. It listens by options
 * of `createHost`, so that the host knows nothing of a console.
 */
import { type Clock, realClock } from '../../core/clock.ts'
import { logFrom } from '../../core/log.ts'
import type { Why } from '../../core/suggestion.ts'
import type { HostOptions } from '../../host/host.ts'
import type { Noted } from '../../policy/audit/host-audit.ts'
import type { Fault } from '../contract/log.ts'
import { LogRing } from '../log-ring.ts'
import { Meter } from '../meter.ts'
import { faultOf } from './rows.ts'
import { RunningTurns } from './running-turns.ts'

/** What is remembered of a host. Give it to `serveConsole`. */
export interface HostObserver {
  /** Adds a line to the log that the page shows. */
  log(level: 'info' | 'warn' | 'error', event: string, text: string): void
}

/** News of an observed host. */
export interface HostNews {
  noted(noted: Noted): void
  fault(fault: Fault): void
  /** An event of a server has changed. */
  inbox(server: string, eventId: string): void
  /** A feature set has another checkpoint or head. */
  state(server: string, featureSet: string): void
}

/** The observer, with what the console reads of it. */
export class ObservedHost implements HostObserver {
  readonly meter: Meter
  readonly lines: LogRing
  readonly turns: RunningTurns
  readonly #followers = new Set<Partial<HostNews>>()

  constructor(clock: Clock) {
    this.meter = new Meter(clock)
    this.lines = new LogRing(clock)
    this.turns = new RunningTurns(clock)
  }

  log(level: 'info' | 'warn' | 'error', event: string, text: string): void {
    this.lines.add(level, event, text)
  }

  /** Counts an entry of the audit log, and passes it on. */
  noted(noted: Noted): void {
    const { kind, server, detail, outcome, ms, conversation } = noted
    if (kind === 'tool' && server !== '')
      this.meter.take({
        ...{ server, tool: detail ?? '', client: conversation ?? 'host' },
        outcome: outcome === 'refused' ? 'refused' : outcome === 'success' ? 'success' : 'failure',
        ...(ms !== undefined && { ms }),
      })
    this.tell(each => each.noted?.(noted))
  }

  trouble({ code, message, fix }: Why): void {
    this.lines.add('warn', code, `${message}. ${fix}`)
  }

  /** Tells everybody who follows. */
  tell(news: (follower: Partial<HostNews>) => void): void {
    for (const follower of this.#followers) news(follower)
  }

  /** Calls back with news; returns the way to stop. */
  follow(follower: Partial<HostNews>): () => void {
    this.#followers.add(follower)
    return () => void this.#followers.delete(follower)
  }
}

/** Options of a host with an observer. */
export interface ObservedHostOptions {
  /** Give these to `createHost`. */
  readonly options: HostOptions
  /** Give this to `serveConsole`. */
  readonly observer: HostObserver
}

/**
 * Adds listeners to the options of a host; those that the options have are called too.
 * @example
 * const { options, observer } = observeHost({ servers, ...approvals })
 * const host = await createHost(options)
 * const { link } = await serveConsole({ host, observer, approvals })
 */
export function observeHost(given: HostOptions): ObservedHostOptions {
  const observer = new ObservedHost(given.clock ?? realClock)
  const told = given.onTrouble ?? onStandardError()
  const options: HostOptions = {
    ...given,
    onTurn: (turn, started) => {
      observer.turns.begin(turn)
      given.onTurn?.(turn, started)
    },
    onNote: noted => {
      observer.noted(noted)
      given.onNote?.(noted)
    },
    onServer: server => {
      const { name, status, why } = server
      if (status !== 'connecting')
        observer.lines.add(status === 'up' ? 'info' : 'warn', 'server', `${status}${why ? `: ${why.message}` : ''}`, name)
      given.onServer?.(server)
    },
    onStderr: (server, line) => {
      observer.lines.stderr(server, line)
      given.onStderr?.(server, line)
    },
    onTrouble: why => {
      observer.trouble(why)
      told(why)
    },
    onConfigFault: fault => {
      observer.tell(each => each.fault?.(faultOf(fault)))
      given.onConfigFault?.(fault)
    },
    onInbox: (server, eventId) => {
      observer.tell(each => each.inbox?.(server, eventId))
      given.onInbox?.(server, eventId)
    },
    onState: (server, featureSet) => {
      observer.tell(each => each.state?.(server, featureSet))
      given.onState?.(server, featureSet)
    },
  }
  return { options, observer }
}

/** What a host does where nobody listens: it writes a line on standard error. */
function onStandardError(): (why: Why) => void {
  const log = logFrom(undefined, 'warn')
  return ({ code, rule, message, fix }) => log.warn(code.toLowerCase().replaceAll('_', '-'), { message, fix, rule })
}
