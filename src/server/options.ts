/** What an author may say when making a server. Every option has a default. */
import type { Clock } from '../core/clock.ts'
import type { Duration } from '../core/duration.ts'
import { checkLogOption, type LogOption } from '../core/log-trace.ts'
import { type Limits, serverLimits } from '../engine/limits.ts'
import type { Icon, RevisionId } from '../revisions/index.ts'
import type { RateOptions } from './rates.ts'

export interface ServerOptions {
  readonly name: string
  readonly version: string
  readonly title?: string
  readonly description?: string
  readonly websiteUrl?: string
  readonly icons?: readonly Icon[]
  /** Told to every client: how to use this server. */
  readonly instructions?: string
  /** The wires spoken. Default: the five official revisions. */
  readonly revisions?: readonly RevisionId[]
  /** At least 32 characters, shared by replicas: any of them can continue what another one asked. Newest first to rotate. */
  readonly secret?: string | readonly string[] | undefined
  /** Entries per page of a list. Default 500. */
  readonly pageSize?: number
  /** How long clients may keep lists, and for whom. Default: not at all. */
  readonly cache?: { readonly ttl?: Duration; readonly scope?: 'public' | 'private' }
  /** Over HTTP, serve session wires without sessions: no pushed questions, no unasked messages. Default true: with sessions. */
  readonly sessions?: boolean
  readonly limits?: Partial<Limits> & { readonly rates?: RateOptions | false }
  /** How long a client may take to answer what a call asked. Default 10 minutes. */
  readonly askTimeout?: Duration
  /**
   * Where the log goes, and how much of it: a level for standard error, or a log of your own. Default: the variable VIVARIUM_LOG,
   * else `error`, which tells mistakes in your own code.
   */
  readonly log?: LogOption
  /** Told the same as the log, but raw, secrets included: for programs and tests. Where it is given, `log` is `silent` by default. */
  readonly onTrace?: (event: string, detail: unknown) => void
  readonly clock?: Clock
}

/** What the compiler cannot see, or nobody asked it. */
export function checkOptions(options: ServerOptions): void {
  if (typeof options?.name !== 'string' || options.name === '' || typeof options.version !== 'string') {
    throw new TypeError("createServer needs a name and a version: createServer({ name: 'tickets', version: '1.0.0' })")
  }
  const { pageSize, limits, log } = options
  checkLogOption(log)
  if (pageSize !== undefined && !(Number.isSafeInteger(pageSize) && pageSize > 0)) {
    throw new TypeError(`pageSize is ${pageSize}: give a whole number above 0`)
  }
  for (const [name, value] of Object.entries(limits ?? {})) {
    if (name !== 'rates' && !(typeof value === 'number' && value > 0))
      throw new TypeError(`limits.${name} is ${String(value)}: give a number above 0`)
    if (name !== 'rates' && !Object.hasOwn(serverLimits, name))
      throw new TypeError(`There is no limit "${name}". There are ${Object.keys(serverLimits).join(', ')}`)
  }
}
