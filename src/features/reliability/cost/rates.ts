/**
 * Rate limits: token buckets per user, or per network for anonymous callers; for logs and progress per connection. A refusal names the
 * limit and the wait, and HTTP responses carry rate-limit headers.
 */

import { countingKey } from '../../../core/accounts.ts'
import { type Buckets, createBuckets } from '../../../core/bucket.ts'
import { checkOptions } from '../../../core/options.ts'
import { compensation, type Exchange, field, limitHeaders } from '../../../engine/exchange.ts'
import { defineServerFeature, provide } from '../../../engine/server-feature.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import { ratesPort } from '../../mcp/rates/messages.ts'
import { callTool, toolsPort } from '../../mcp/tools/messages.ts'
import { isKeyed } from '../idempotency/messages.ts'

/** A rate limit. */
interface Rate {
  /** The sustained rate per second. */
  readonly perSecond: number
  /** The most at once. Default: `perSecond`, at least 1. */
  readonly burst?: number
}

/** The rate limits of a server. */
export interface RateOptions {
  /** Tool calls of one caller. Default: 1,000 per second over the network, unlimited on stdio and in memory. */
  readonly calls?: Rate | false
  /** Completions of one caller. Default: 50 per second over the network, unlimited on stdio and in memory. */
  readonly completions?: Rate | false
  /** Log messages sent to one caller; more are dropped. Default: 200 per second, bursts of 1,000. */
  readonly log?: Rate | false
  /** Progress notifications sent to one caller; more are dropped. Default: 200 per second, bursts of 400. */
  readonly progress?: Rate | false
}

/** The defaults. */
export const defaultRates = {
  calls: { perSecond: 1_000, burst: 2_000 },
  completions: { perSecond: 50, burst: 100 },
  log: { perSecond: 200, burst: 1_000 },
  progress: { perSecond: 200, burst: 400 },
} satisfies RateOptions

/** The options of `createServer` that this feature reads. */
interface RatesServerOptions {
  readonly limits?: { readonly rates?: RateOptions | false }
}

/** The server feature: rate limits. */
export const ratesFeature = defineServerFeature<RatesServerOptions>({
  name: 'rates',
  setup: (kit, { limits: { rates: given = {} } = {} }) => {
    if (given !== false) checkRates(given)
    const tools = kit.port(toolsPort)
    const buckets = (name: keyof RateOptions): Buckets | undefined => {
      const rate = given !== false && (given[name] ?? defaultRates[name])
      return rate === false ? undefined : createBuckets({ ...rate, clock: kit.clock })
    }
    const calls = buckets('calls')
    const completions = buckets('completions')
    const log = buckets('log')
    const progress = buckets('progress')
    const chosen = new Set(Object.entries(given).flatMap(([name, rate]) => (isRecord(rate) ? [name] : [])))
    // Only configured limits are reported in headers; the defaults are too far away to matter.
    const told = chosen.has('calls')
    /** On stdio and in memory only configured limits apply, because the caller owns the process. */
    const holds = (name: keyof RateOptions, exchange: Exchange): boolean => chosen.has(name) || !ownsProcess(exchange)
    /** A repeated call may be answered from the journal without reaching the tool. */
    const mayRepeat = (exchange: Exchange): boolean =>
      isKeyed(exchange) || tools.facts(exchange.params['name'] as string)?.dedupe !== undefined
    const takeOwn = (own: Buckets, exchange: Exchange): void =>
      take(own, exchange, 'calls of this tool', 'option rate of the tool', true)
    tools.extend({
      // Counts a call; throws if the limit is exceeded. `own` is a limit of the tool itself.
      admit: (exchange, own) => {
        // A compensation is never refused.
        if (exchange.get(compensation) !== undefined) return
        const common = calls !== undefined && holds('calls', exchange) ? calls : undefined
        if (own !== undefined && (!mayRepeat(exchange) || (common !== undefined && own.perSecond > common.perSecond)))
          return takeOwn(own, exchange)
        if (common !== undefined) take(common, exchange, 'tool calls', 'limits.rates.calls', told)
        if (own !== undefined) exchange.set(owing, own)
      },
    })
    return {
      sides: [
        {
          layers: [
            {
              // Counts calls that may be repetitions once it is certain that they run.
              stage: 'budget',
              methods: [callTool.name],
              marked: true,
              when: exchange => exchange.get(owing) !== undefined,
              run: (exchange, next) => {
                takeOwn(exchange.get(owing) as Buckets, exchange)
                return next()
              },
            },
          ],
        },
      ],
      provides: provide(ratesPort, {
        callsPerMinute: calls && Math.floor(calls.perSecond * 60),
        callsLeft: exchange => (holds('calls', exchange) ? calls?.left(countingKey(exchange.caller)) : undefined),
        completion: exchange => {
          if (completions !== undefined && holds('completions', exchange))
            take(completions, exchange, 'completions', 'limits.rates.completions')
        },
        log: exchange => log === undefined || log.take(readerOf(exchange)) === 0,
        progress: exchange => progress === undefined || progress.take(readerOf(exchange)) === 0,
      }),
    }
  },
})

/** The limit of a tool that is counted later, at the budget stage. */
const owing = field<Buckets>()

function checkRates(rates: RateOptions): void {
  if (!isRecord(rates)) throw new TypeError('limits.rates must be an object, or false for none')
  for (const [name, rate] of Object.entries(rates)) {
    if (!Object.hasOwn(defaultRates, name))
      throw new TypeError(`limits.rates has no rate "${clip(name)}". The rates are ${Object.keys(defaultRates).join(', ')}`)
    if (rate === undefined || rate === false) continue
    if (!isRecord(rate)) throw new TypeError(`limits.rates.${name} must be { perSecond, burst }, or false for none`)
    checkOptions(`limits.rates.${name}`, rate, { perSecond: 'number', burst: 'number' })
  }
}

/** On stdio and in memory the caller has started the server, or runs in the same process. */
function ownsProcess({ caller: { carrier } }: Exchange): boolean {
  return carrier === 'stdio' || carrier === 'memory'
}

/** Per connection for anonymous callers, because others in the same network do not receive the messages. */
function readerOf({ caller }: Exchange): object | string {
  return caller.principal?.id ?? caller.connection
}

function take(buckets: Buckets, exchange: Exchange, what: string, limit: string, told = false): void {
  const wait = buckets.take(countingKey(exchange.caller))
  if ((told || wait > 0) && exchange.caller.carrier === 'http') tell(buckets, exchange)
  if (wait > 0) {
    tellWait(exchange, wait)
    const message = `Too many ${what}. The limit is ${buckets.perSecond} per second (${limit}). Retry in ${wait} ms`
    throw new McpError('rate-limited', message, { data: { limit: what, retryAfterMs: wait } })
  }
}

// Adds the state of the limit to the response headers.
function tell(buckets: Buckets, exchange: Exchange): void {
  const { burst, perSecond } = buckets
  const { tokens, fullInMs } = buckets.left(countingKey(exchange.caller))
  tellLimit(exchange, { name: 'rate', most: burst, periodMs: (burst / perSecond) * 1000, remaining: tokens, resetMs: fullInMs })
}

interface LimitState {
  /** The name of the limit. */
  readonly name: string
  readonly most: number
  readonly periodMs: number
  readonly remaining: number
  /** After how long it is full again. */
  readonly resetMs: number
  /** What is counted, if not calls. */
  readonly unit?: string
}

/** Adds `RateLimit` headers; several limits are listed side by side. Does nothing without HTTP. */
export function tellLimit(exchange: Exchange, { name, most, periodMs, remaining, resetMs, unit }: LimitState): void {
  if (exchange.caller.carrier !== 'http') return
  const told = exchange.get(limitHeaders)
  const label = quoted(name)
  const counted = unit === undefined ? '' : `;qu=${quoted(unit)}`
  const policy = `${label};q=${Math.floor(most)};w=${seconds(periodMs)}${counted}`
  const state = `${label};r=${Math.max(0, Math.floor(remaining))};t=${seconds(resetMs)}`
  exchange.set(limitHeaders, {
    ...told,
    'ratelimit-policy': joined(told?.['ratelimit-policy'], policy),
    ratelimit: joined(told?.['ratelimit'], state),
  })
}

/** Sets `Retry-After`. Does nothing without HTTP. */
export function tellWait(exchange: Exchange, waitMs: number): void {
  if (exchange.caller.carrier === 'http')
    exchange.set(limitHeaders, { ...exchange.get(limitHeaders), 'retry-after': `${seconds(waitMs)}` })
}

function joined(before: string | undefined, more: string): string {
  return before === undefined ? more : `${before}, ${more}`
}

/** Cache, because the same few names are written with each call. */
const quotes = new Map<string, string>()
const mostQuotes = 1_000

/** A string of structured fields (RFC 9651): printable ASCII. */
function quoted(text: string): string {
  const known = quotes.get(text)
  if (known !== undefined) return known
  const made = `"${text.replace(/[^\x20-\x7e]/g, '?').replace(/["\\]/g, '\\$&')}"`
  if (quotes.size < mostQuotes) quotes.set(text, made)
  return made
}

function seconds(ms: number): number {
  return Math.max(0, Math.ceil(ms / 1000))
}
