/** Limits of what servers may spend: so many tokens, so much money, so many requests in a time. */
import { type Duration, toMilliseconds } from '../../core/duration.ts'
import type { Quota } from '../../core/grant/quota.ts'
import { matches } from '../../core/scope.ts'
import { clip } from '../../jsonrpc/limits.ts'

const spendings = ['tokens', 'money', 'requests'] as const
export type Spending = (typeof spendings)[number]

export interface BudgetLimit {
  /** Names it in refusals and warnings. */
  readonly name: string
  /** What is counted: tokens, money or requests. */
  readonly counts: Spending
  /** How much of it in a window. */
  readonly most: number
  /** Windows follow one another; each begins anew. */
  readonly per: Duration
  /** Names or patterns. Default all. */
  readonly server?: string | readonly string[]
  /** Names or patterns of feature sets. Default all. */
  readonly featureSet?: string | readonly string[]
  /** What is counted apart from each other. Default `server`: each server has all of it. */
  readonly by?: 'all' | 'server' | 'featureSet'
  /** From this part on it is warned. Default 0.8. */
  readonly warnAt?: number
  /** Whether it bounds the turns that the user begins, too. Default false: it is about servers. */
  readonly user?: boolean
}

/** Who spends. */
export interface Spender {
  readonly server: string
  readonly featureSet: string
}

/** The one who spends in turns that the user begins. */
export const usersTurns = { server: 'host', featureSet: 'conversation' } as const satisfies Spender

export function isUsers({ server, featureSet }: Spender): boolean {
  return server === usersTurns.server && featureSet === usersTurns.featureSet
}

const members = new Set(['name', 'counts', 'most', 'per', 'server', 'featureSet', 'by', 'warnAt', 'user'])

/** Throws where a limit is none. */
export function checkLimits(limits: readonly BudgetLimit[]): void {
  const names = new Set<string>()
  for (const limit of limits) {
    const { name, counts, most, per, by = 'server', warnAt = 0.8, user = false } = limit
    const wrong = (what: string): TypeError => new TypeError(`Budget ${clip(String(name))}: ${what}`)
    if (typeof name !== 'string' || name === '' || names.has(name)) throw wrong('give each a name of its own')
    const stranger = Object.keys(limit).find(member => !members.has(member))
    if (stranger !== undefined) throw wrong(`${clip(stranger)} is not known: there is ${[...members].join(', ')}`)
    if (!spendings.includes(counts)) throw wrong(`counts is ${clip(String(counts))}: give ${spendings.join(', ')}`)
    if (!(most > 0 && most <= 1e9)) throw wrong(`most is ${most}: give a number above 0, up to a thousand million`)
    if (!(toMilliseconds(per, 'per') >= 1_000)) throw wrong('per is shorter than a second')
    if (!['all', 'server', 'featureSet'].includes(by)) throw wrong(`by is ${clip(String(by))}: give all, server or featureSet`)
    if (!(warnAt > 0 && warnAt <= 1)) throw wrong(`warnAt is ${warnAt}: give a part, from above 0 to 1`)
    if (typeof user !== 'boolean') throw wrong(`user is ${clip(String(user))}: give true or false`)
    names.add(name)
  }
}

/** `user`: the user spends, for a turn of their own. */
export function limitApplies({ server, featureSet, user }: BudgetLimit, spender: Spender & { readonly user?: boolean }): boolean {
  if (spender.user === true && user !== true) return false
  return fits(server, spender.server) && fits(featureSet, spender.featureSet)
}

function fits(patterns: string | readonly string[] | undefined, text: string): boolean {
  return patterns === undefined || [patterns].flat().some(pattern => matches(pattern, text))
}

/** The limit as a quota of this spender. */
export function limitQuota({ name, counts, most, per, by = 'server' }: BudgetLimit, { server, featureSet }: Spender): Quota {
  const whose = by === 'all' ? [] : by === 'server' ? [server] : [server, featureSet]
  const periodMs = toMilliseconds(per)
  return { name: JSON.stringify([name, ...whose]), counts: counts === 'requests' ? 'calls' : 'units', most, periodMs }
}
