/** Limits as HTTP headers, for what stands between: `RateLimit-Policy`, `RateLimit` (IETF httpapi draft) and `Retry-After`. */
import { type Exchange, limitHeaders } from '../../../engine/exchange.ts'

interface LimitState {
  /** Which limit it is. */
  readonly name: string
  readonly most: number
  readonly periodMs: number
  readonly remaining: number
  /** After how long there is as much as ever again. */
  readonly resetMs: number
  /** What is counted, where it is not calls. */
  readonly unit?: string
}

/** Several limits are named side by side. Where the carrier has no headers nothing is written. */
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

export function tellWait(exchange: Exchange, waitMs: number): void {
  if (exchange.caller.carrier === 'http')
    exchange.set(limitHeaders, { ...exchange.get(limitHeaders), 'retry-after': `${seconds(waitMs)}` })
}

function joined(before: string | undefined, more: string): string {
  return before === undefined ? more : `${before}, ${more}`
}

/** Names of limits are few, and told with each call. */
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
