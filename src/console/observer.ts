/**
 * What the console remembers of a gateway from its start on: figures, log lines, standard error. It listens by options of `createGateway`,
 * so that the gateway knows nothing of a console.
 */
import { type Clock, realClock } from '../core/clock.ts'
import type { GatewayOptions } from '../gateway/gateway.ts'
import type { AuditEntry } from './contract/audit.ts'
import type { Fault } from './contract/log.ts'
import { LogRing } from './log-ring.ts'
import { Meter } from './meter.ts'

/** What is remembered of a gateway. Give it to `serveConsole`. */
export interface GatewayObserver {
  /** Replaces the mistakes of the config, which the page shows. */
  setFaults(faults: readonly Fault[]): void
}

/** The observer, with what the console reads of it. */
export class ObservedGateway implements GatewayObserver {
  readonly meter: Meter
  readonly log: LogRing
  readonly #followers = new Set<Partial<ObservedNews>>()
  #faults: readonly Fault[] = []

  constructor(clock: Clock) {
    this.meter = new Meter(clock)
    this.log = new LogRing(clock)
  }

  /** The mistakes of the config at its last reading. */
  get faults(): readonly Fault[] {
    return this.#faults
  }

  setFaults(faults: readonly Fault[]): void {
    this.#faults = faults
    for (const { fault } of this.#followers) for (const each of faults) fault?.(each)
  }

  /** Counts an entry, and passes it on. */
  entry(entry: AuditEntry): void {
    const { outcome, more = {} } = entry
    const { server, tool, client, ms, times } = more
    if (typeof client === 'string' && (outcome === 'refused' || ms !== undefined))
      this.meter.take({
        server: String(server ?? ''),
        tool: String(tool ?? entry.target),
        client,
        outcome: outcome === 'refused' ? 'refused' : outcome === 'failure' ? 'failure' : 'success',
        ...(typeof ms === 'number' && { ms }),
        ...(typeof times === 'number' && { times }),
      })
    for (const follower of this.#followers) follower.audit?.(entry)
  }

  /** Calls back with news; returns the way to stop. */
  follow(follower: Partial<ObservedNews>): () => void {
    this.#followers.add(follower)
    return () => void this.#followers.delete(follower)
  }
}

/** News of an observed gateway. */
interface ObservedNews {
  audit(entry: AuditEntry): void
  fault(fault: Fault): void
}

/** Options of a gateway with an observer. */
export interface ObservedOptions {
  /** Give these to `createGateway`. */
  readonly options: GatewayOptions
  /** Give this to `serveConsole`. */
  readonly observer: GatewayObserver
}

/**
 * Adds listeners to the options of a gateway; those that the options have are called too.
 * @example
 * const { options, observer } = observeGateway({ config: 'gateway.yaml' })
 * const gateway = await createGateway(options)
 * const { link } = await serveConsole({ gateway, observer })
 */
export function observeGateway(given: GatewayOptions): ObservedOptions {
  const observer = new ObservedGateway(given.clock ?? realClock)
  const options: GatewayOptions = {
    ...given,
    onAuditEntry: entry => {
      observer.entry(entryOf(entry))
      given.onAuditEntry?.(entry)
    },
    onLog: record => {
      const { level, event, fields } = record
      const { server, ...rest } = fields
      observer.log.add(level, event, textOf(rest), typeof server === 'string' ? server : undefined)
      given.onLog?.(record)
    },
    onStderr: (server, line) => {
      observer.log.stderr(server, line)
      given.onStderr?.(server, line)
    },
  }
  return { options, observer }
}

type GivenEntry = Parameters<NonNullable<GatewayOptions['onAuditEntry']>>[0]

function entryOf({ at, event, correlation, target, outcome, more }: GivenEntry): AuditEntry {
  return {
    ...{ at, event, target },
    ...(correlation !== undefined && { correlation }),
    ...(outcome !== undefined && { outcome }),
    ...(more !== undefined && { more }),
  }
}

/** The fields of a record as one line. */
function textOf(fields: Readonly<Record<string, unknown>>): string {
  return Object.entries(fields)
    .map(([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(withoutStack(value))}`)
    .join(' ')
}

function withoutStack(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || !('stack' in value)) return value
  const { stack: _, ...rest } = value
  return rest
}
