/** What an author may say when making a server. Every option has a default. */
import type { Clock } from '../core/clock.ts'
import type { Duration } from '../core/duration.ts'
import { checkLogOption, type LogOption } from '../core/log.ts'
import { checkOptions, type KindsOf } from '../core/options.ts'
import { type Limits, serverLimits } from '../engine/limits.ts'
import type { CostOptions } from '../features/reliability/cost/server.ts'
import type { ReferencesOptions } from '../features/reliability/data-references/server.ts'
import type { EventsOptions } from '../features/reliability/events/server.ts'
import { type FacadePart, facadeParts } from '../features/reliability/facade/facts.ts'
import type { IdempotencyOptions } from '../features/reliability/idempotency/server.ts'
import type { IntentOptions } from '../features/reliability/intent/server.ts'
import type { ManifestOptions } from '../features/reliability/manifest/server.ts'
import type { PermissionsOptions } from '../features/reliability/permissions/server.ts'
import type { Recommend, Recommendation } from '../features/reliability/recommendations/server.ts'
import type { StateOptions } from '../features/reliability/session-state/server.ts'
import type { StreamingOptions } from '../features/reliability/streaming/server.ts'
import type { TransactionsOptions } from '../features/reliability/transactions/server.ts'
import { clip } from '../jsonrpc/limits.ts'
import { isRecord } from '../jsonrpc/message.ts'
import type { Icon, Implementation, RevisionId } from '../revisions/index.ts'
import type { Store } from '../stores/store.ts'
import type { Context } from './context.ts'
import { checkLive, type LiveOptions } from './live.ts'
import { defaultRates, type RateOptions } from './rates.ts'
import { checkStore } from './store.ts'

export interface ServerOptions {
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
  /** What clients are told that there is, also before the first one is there and after the last one. Default: what there was once. */
  readonly offers?: readonly OfferedKind[]
  /** How large messages may be, and how many may be under way. */
  readonly limits?: Partial<Limits> & { readonly rates?: RateOptions | false }
  /**
   * Where what must last is kept: `memory:`, `sqlite:path`, `postgres://…`, or a store of your own, which stays yours to close.
   * Opened when first needed. Given, clients are told that they may repeat calls under a key. Default: in memory.
   */
  readonly store?: string | Store
  /** How calls with an idempotency key are remembered. */
  readonly idempotency?: IdempotencyOptions
  /** How transactions are kept. There are some as soon as a tool has an `undo`. */
  readonly transactions?: TransactionsOptions
  /** What callers may be granted beyond what their token says, and for how long. */
  readonly permissions?: PermissionsOptions
  /**
   * How the audit log is kept that `server.audit` reads: calls under a key, steps and ends of transactions, confirmations, grants.
   * There is one where a store was given; false: none.
   */
  readonly audit?: AuditOptions | false
  /** What holds for all tools with a `cost`. */
  readonly cost?: CostOptions
  /** What callers say that calls are for, and what they are told of it. Given, clients are told that they may say it. */
  readonly intent?: IntentOptions<Context>
  /** How calls of tools that stream are kept for callers that were cut off. */
  readonly streaming?: StreamingOptions
  /** How long `ctx.state` lasts. */
  readonly state?: StateOptions
  /**
   * For clients and models that know no extensions: what these have as methods and `_meta` is there as tools (`begin_transaction`,
   * `check_permissions`, …) and as arguments of your tools (`transaction_id`, …). True: all of it. Default false.
   */
  readonly facade?: boolean | readonly FacadePart[]
  /** Take calls also in the form of another implementation: `davioe` is that of davioe/mcp-extension-proposals. Default: none. */
  readonly profile?: 'davioe'
  /** Tells clients in one document what there is and what is known of it. Default: none. */
  readonly manifest?: boolean | ManifestOptions
  /** Other servers that can do what this one cannot: a list, or a function that finds them. */
  readonly recommendations?: readonly Recommendation[] | Recommend
  /** How long events are kept for those who come back, and how many may subscribe. There are some with the first `server.event`. */
  readonly events?: EventsOptions
  /**
   * Lets handlers give contents by reference (`ctx.reference`) and take those of other servers (`ctx.importReference`). Contents are served
   * beside the endpoint to whoever has their signed address. Default: off.
   */
  readonly references?: boolean | ReferencesOptions
  /** What holds for all feature sets of MCP Live. There are some with the first `server.featureSet`. */
  readonly live?: LiveOptions
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

/** What a server can have and say so. */
export type OfferedKind = 'tools' | 'prompts' | 'resources' | 'completions'

export interface AuditOptions {
  /** How long lines are kept. Default 90 days. */
  readonly keep?: Duration
  /** How many at most, roughly. Default 1,000,000. */
  readonly lines?: number
}

const kinds: KindsOf<ServerOptions> = {
  name: 'string',
  version: 'string',
  title: 'string',
  description: 'string',
  websiteUrl: 'string',
  icons: 'list',
  instructions: 'string',
  revisions: 'list',
  secret: 'any',
  pageSize: 'number',
  cache: 'object',
  sessions: 'boolean',
  offers: 'list',
  limits: 'object',
  store: 'any',
  idempotency: 'object',
  transactions: 'object',
  permissions: 'object',
  audit: 'any',
  cost: 'object',
  intent: 'object',
  streaming: 'object',
  state: 'object',
  facade: 'any',
  profile: 'string',
  manifest: 'any',
  recommendations: 'any',
  events: 'object',
  references: 'any',
  live: 'object',
  askTimeout: 'any',
  log: 'any',
  onTrace: 'function',
  clock: 'object',
}

const permissionKinds: KindsOf<PermissionsOptions> = {
  grant: 'function',
  elevationUrl: 'function',
  ttl: 'any',
  idle: 'any',
  hide: 'boolean',
}

const eventKinds: KindsOf<EventsOptions> = {
  keep: 'number',
  keepFor: 'any',
  ttl: 'any',
  perCaller: 'number',
  total: 'number',
  pollEvery: 'any',
  push: 'boolean',
}

/** What the compiler cannot see, or nobody asked it. */
export function checkServerOptions(options: ServerOptions): void {
  if (typeof options?.name !== 'string' || options.name === '' || typeof options.version !== 'string') {
    throw new TypeError("createServer needs a name and a version: createServer({ name: 'tickets', version: '1.0.0' })")
  }
  checkOptions('createServer', options, kinds)
  if (options.permissions !== undefined) checkOptions('permissions', options.permissions, permissionKinds)
  const { pageSize, log, profile } = options
  facadeParts(options.facade)
  if (profile !== undefined && profile !== 'davioe')
    throw new TypeError(`profile is "${clip(String(profile))}": there is 'davioe', or leave it out`)
  if (options.audit !== undefined && options.audit !== false)
    checkOptions('audit', options.audit, { keep: 'any', lines: 'number' } satisfies KindsOf<AuditOptions>)
  if (options.events !== undefined) checkOptions('events', options.events, eventKinds)
  if (options.live !== undefined) checkLive(options.live)
  checkLogOption(log)
  checkStore(options.store)
  if (pageSize !== undefined && !(Number.isSafeInteger(pageSize) && pageSize > 0)) {
    throw new TypeError(`pageSize is ${pageSize}: give a whole number above 0`)
  }
}

/** The limits of a server, and its rates. */
export function limitsOf({ limits = {} }: ServerOptions): { readonly limits: Limits; readonly rates: RateOptions | false } {
  const { rates, ...given } = limits
  if (rates !== undefined && rates !== false) checkRates(rates)
  return { limits: { ...serverLimits, ...givenLimits('limits', given, serverLimits, ['rates']) }, rates: rates ?? {} }
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

function checkRates(rates: RateOptions): void {
  if (!isRecord(rates)) throw new TypeError('limits.rates must be an object, or false for none')
  for (const [name, rate] of Object.entries(rates)) {
    if (!Object.hasOwn(defaultRates, name))
      throw new TypeError(`limits.rates has no "${clip(name)}". There are ${Object.keys(defaultRates).join(', ')}`)
    if (rate === undefined || rate === false) continue
    if (!isRecord(rate)) throw new TypeError(`limits.rates.${name} must be { perSecond, burst }, or false for none`)
    checkOptions(`limits.rates.${name}`, rate, { perSecond: 'number', burst: 'number' })
  }
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
