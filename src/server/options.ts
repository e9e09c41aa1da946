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

/** Options of `createServer`. Only `name` and `version` are required. */
export interface ServerOptions extends OwnOptions, FeatureOptions {}

/** Options of `createServer` that concern the server as a whole. */
interface OwnOptions {
  /** The name of the server, for programs. */
  readonly name: string
  /** The version of the server. */
  readonly version: string
  /** The name that people see. Default: `name`. */
  readonly title?: string
  /** What the server is for, in a sentence. Default: none. */
  readonly description?: string
  /** The address of a website about the server. Default: none. */
  readonly websiteUrl?: string
  /** Images that clients can show next to the name. Default: none. */
  readonly icons?: readonly Icon[]
  /** The protocol revisions to speak. Default: the five official ones. */
  readonly revisions?: readonly RevisionId[]
  /**
   * Seals tokens, so that any replica can continue what another one began: at least 32 characters, the same on all replicas. To
   * rotate it, give several, the newest first. Default: random, valid for this process only.
   */
  readonly secret?: string | readonly string[] | undefined
  /** Entries per page of a list. Default 500. */
  readonly pageSize?: number
  /** How long clients may cache lists, and for whom. Default: not at all. */
  readonly cache?: {
    /** How long a list may be cached. Default: not at all. */
    readonly ttl?: Duration
    /** `public` only if every caller gets the same lists. Default `private`. */
    readonly scope?: 'public' | 'private'
  }
  /**
   * Whether HTTP clients of revisions with sessions get one. False: no questions from the server and no notifications outside of
   * a call. Default true.
   */
  readonly sessions?: boolean
  /** How large messages may be, and how many requests may run. Requests above a limit are refused. Default: see the reference of limits. */
  readonly limits?: Partial<Limits> & {
    /** The rate limits of callers. `false`: none. Default: see `RateOptions`. */
    readonly rates?: RateOptions | false
  }
  /**
   * Where durable data is kept: `memory:`, `sqlite:path`, `postgres://…`, or a store of your own, which you close yourself. `listen`
   * and `stdio` open it; without them it is opened when a call first needs it. If set, clients may repeat calls by idempotency key.
   * Default: in memory.
   */
  readonly store?: string | Store
  /**
   * How the audit log is kept (`server.audit`): calls by key, transactions, confirmations and grants. False: no log. Default: a
   * log, if there is a `store`.
   */
  readonly audit?: AuditOptions | false
  /** How long a client may take to answer a question of a call. Default 10 minutes. */
  readonly askTimeout?: Duration
  /**
   * The log of the server: a level for standard error, or a log of your own. Default: the variable VIVARIUM_LOG, else `error`,
   * which shows mistakes in your own code.
   */
  readonly log?: LogOption
  /** Called with every trace event, unredacted: for programs and tests. If set, `log` is `silent` by default. Default: not called. */
  readonly onTrace?: (event: string, detail: unknown) => void
  /** For tests: time and timers. Default: the real clock. */
  readonly clock?: Clock
}

/** How long the audit log is kept. */
export interface AuditOptions {
  /** How long lines are kept. Default 90 days. */
  readonly keep?: Duration
  /** The most lines, approximately. Default 1,000,000. */
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
      throw new TypeError(
        `${where} has no limit "${clip(name)}". The limits are ${[...Object.keys(known), ...beside].join(', ')}`,
      )
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
