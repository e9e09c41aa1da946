/** Limits of the queue: per caller, per client of a gateway, and in total, so that nobody can crowd out others or the operator. */
import { leftOf, quotaExhausted } from '../../../core/occupancy.ts'
import type { Problem } from '../../../core/problem.ts'
import { quoted } from '../../../core/suggestion.ts'

/** A waiting call, for counting. */
export interface QueuedCall {
  readonly account: string
  /** The client name that a gateway assigns. */
  readonly client: string | undefined
  /** Milliseconds since the epoch. */
  readonly expires: number
  /** Its arguments lie beside the entry. */
  readonly long?: boolean
}

/** Calls with long arguments in all; each account gets a share of them. */
const mostLong = 64

/** Why one more call with long arguments may not wait: they may fill the store. */
export function longRefusal(all: readonly QueuedCall[], account: string, now: number): Problem | undefined {
  const long = all.filter(each => each.long)
  const mine = long.filter(each => each.account === account)
  return leftOf(mostLong, long.length, mine.length) === 0 ? full(' with long arguments', mine, now) : undefined
}

/** Limit per caller. */
const mostOfCaller = 100
/** Total limit; each account, and each client of a gateway, gets a share of it. */
const mostInAll = 1_000

/** Why one more call may not wait; undefined if it may. */
export function queueRefusal(
  all: readonly QueuedCall[],
  account: string,
  client: string | undefined,
  now: number,
): Problem | undefined {
  const mine = all.filter(each => each.account === account)
  if (mine.length >= mostOfCaller || leftOf(mostInAll, all.length, mine.length) === 0) return full('', mine, now)
  if (client === undefined) return undefined
  const named = all.filter(each => each.client === client)
  return leftOf(mostInAll, all.length, named.length) === 0 ? full(` of the client ${quoted(client)}`, named, now) : undefined
}

function full(whose: string, held: readonly QueuedCall[], now: number): Problem {
  const soonest = Math.min(...held.map(({ expires }) => expires))
  return quotaExhausted(
    `the calls${whose} that wait for approval (${held.length})`,
    Number.isFinite(soonest) ? soonest - now : undefined,
    'Wait until some of them are approved, refused or expired, which takes at most 15 minutes',
  )
}
