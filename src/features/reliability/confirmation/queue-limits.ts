/** How many calls may stand in line for an approval: of one caller, of one client of a gateway, and in all, so that nobody crowds out others or whoever answers. */
import type { Problem } from '../../../core/problem.ts'
import { leftOf, quotaExhausted } from '../../../core/share.ts'
import { quoted } from '../../../core/why.ts'

/** A call that waits, by whose it is. */
export interface QueuedCall {
  readonly account: string
  /** The name by which a gateway knows those who call so. */
  readonly client: string | undefined
  /** Milliseconds since the epoch. */
  readonly expires: number
}

/** Of one caller. */
const mostOfCaller = 100
/** Of all callers together; an account, and a client of a gateway, has its share of them. */
const mostInAll = 1_000

/** Why one more may not; undefined where it may. */
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
    `calls${whose} that wait for approval (${held.length})`,
    Number.isFinite(soonest) ? soonest - now : undefined,
    'Wait until some of them are answered, or over: that takes 15 minutes at most',
  )
}
