/** What an author may say when making a server. Every option has a default. */
import type { Clock, Duration } from '../core/clock.ts'
import { checkLogOption, type LogOption } from '../core/log.ts'
import { checkOptions, type KindsOf, type OptionKind } from '../core/options.ts'
import { type Limits, serverLimits } from '../engine/limits.ts'
import { clip } from '../jsonrpc/limits.ts'
import type { Icon, Implementation, RevisionId } from '../revisions/index.ts'
import type { Store } from '../stores/store.ts'
import type { FeatureOptions, RateOptions } from './api.ts'
import { checkStore } from './store.ts'

/** What an author may say when making a server. Every option has a default. */
export interface ServerOptions extends OwnOptions, FeatureOptions {}

/** What no feature reads alone. */
interface OwnOptions {
  /** How the server names itself to clients. */
  readonly name: string
  /** Its version, as of the program. */
  readonly version: string
  /** The name that people are shown. Default: `name`. */
  readonly title?: string
  /** What the server is for, in a sentence. */
  readonly description?: string
  /** Where people read more about it. */
  readonly websiteUrl?: string
  /** Pictures that clients may show beside its name. */
  readonly icons?: readonly Icon[]
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
  /** How large messages may be, and how many may be under way. */
  readonly limits?: Partial<Limits> & { readonly rates?: RateOptions | false }
  /**
   * Where what must last is kept: `memory:`, `sqlite:path`, `postgres://…`, or a store of your own, which stays yours to close.
   * Opened when first needed. Given, clients are told that they may repeat calls under a key. Default: in memory.
   */
  readonly store?: string | Store
  /**
   * How the audit log is kept that `server.audit` reads: calls under a key, steps and ends of transactions, confirmations, grants.
   * There is one where a store was given; false: none.
   */
  readonly audit?: AuditOptions | false
  /** How long a client may take to answer what a call asked. Default 10 minutes. */
  readonly askTimeout?: Duration
  /**
   * Where the log goes, and how much of it: a level for standard error, or a log of your own. Default: the variable VIVARIUM_LOG,
   * else `error`, which tells mistakes in your own code.
   */
  readonly log?: LogOption
  /** Told the same as the log, but raw, secrets included: for programs and tests. Where it is given, `log` is `silent` by default. */
  readonly onTrace?: (event: string, detail: unknown) => void
  /** For tests: the time, and timers. Default: the real one. */
  readonly clock?: Clock
}

/** How the audit log is kept. */
export interface AuditOptions {
  /** How long lines are kept. Default 90 days. */
  readonly keep?: Duration
  /** How many at most, roughly. Default 1,000,000. */
  readonly lines?: number
}

const kinds: KindsOf<OwnOptions> = {
  name: 'string',
  version: 'string',
  title: 'string',
  description: 'string',
  websiteUrl: 'string',
  icons: 'list',
  revisions: 'list',
  secret: 'any',
  pageSize: 'number',
  cache: 'object',
  sessions: 'boolean',
  limits: 'object',
  store: 'any',
  audit: 'any',
  askTimeout: 'any',
  log: 'any',
  onTrace: 'function',
  clock: 'object',
}

/** What the compiler cannot see, or nobody asked it. */
export function checkServerOptions(options: ServerOptions, more: Readonly<Record<string, OptionKind>>): void {
  if (typeof options?.name !== 'string' || options.name === '' || typeof options.version !== 'string') {
    throw new TypeError("createServer needs a name and a version: createServer({ name: 'tickets', version: '1.0.0' })")
  }
  checkOptions('createServer', options, { ...kinds, ...more })
  const { pageSize, log } = options
  if (options.audit !== undefined && options.audit !== false)
    checkOptions('audit', options.audit, { keep: 'any', lines: 'number' } satisfies KindsOf<AuditOptions>)
  checkLogOption(log)
  checkStore(options.store)
  if (pageSize !== undefined && !(Number.isSafeInteger(pageSize) && pageSize > 0)) {
    throw new TypeError(`pageSize is ${pageSize}: give a whole number above 0`)
  }
}

/** The limits of a server. */
export function limitsOf({ limits: { rates: _, ...given } = {} }: ServerOptions): Limits {
  return { ...serverLimits, ...givenLimits('limits', given, serverLimits, ['rates']) }
}

/**
 * Those that are given. Every limit is a number above 0, `Infinity` is none at all; what is undefined is not given, and does not
 * stand in the way of the default. `beside`: what else may be named there.
 */
export function givenLimits<L extends object>(
  where: string,
  limits: Partial<L>,
  known: L,
  beside: readonly string[] = [],
): Partial<L> {
  const given = Object.entries(limits).filter(([, value]) => value !== undefined)
  for (const [name, value] of given) {
    if (!Object.hasOwn(known, name))
      throw new TypeError(`${where} has no "${clip(name)}". There are ${[...Object.keys(known), ...beside].join(', ')}`)
    if (!(typeof value === 'number' && value > 0))
      throw new TypeError(`${where}.${name} is ${clip(String(value))}: give a number above 0`)
  }
  return Object.fromEntries(given) as Partial<L>
}

/** How it names itself to clients. */
export function infoOf({ name, version, title, description, websiteUrl, icons }: ServerOptions): Implementation {
  return {
    name,
    version,
    ...(title === undefined ? {} : { title }),
    ...(description === undefined ? {} : { description }),
    ...(websiteUrl === undefined ? {} : { websiteUrl }),
    ...(icons === undefined ? {} : { icons }),
  }
}
