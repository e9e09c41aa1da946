/** A grant: who may do what, on what, how often, how long, and what must be done first. Immutable; what is counted lies beside it. */

import { clip } from '../../jsonrpc/limits.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import { patternLength } from '../scope.ts'

/**
 * `permit` gives an action; `forbid` takes it away, whatever permits it. `fulfil` meets an obligation of that name, e.g. a
 * confirmation that was given; it gives no right, and no right stands for it. `budget` holds units.
 */
type GrantEffect = 'permit' | 'forbid' | 'fulfil' | 'budget'

export interface GrantTerms {
  readonly effect: GrantEffect
  /** A pattern; of `fulfil` the name of the obligation. */
  readonly action: string
  /** A pattern. */
  readonly resource: string
  /** What must be done before each use. */
  readonly obligations?: readonly string[]
  /** Digests of the only calls it is good for, each once. */
  readonly bound?: readonly string[]
  /** Uses in all. Default: as many as one likes. */
  readonly uses?: number
  /** Units in all, of a budget. */
  readonly units?: number
  /** Ends it when it was not used for so long. */
  readonly idleMs?: number
  /** Counts without being presented. Prohibitions always do. */
  readonly standing?: boolean
  /** Where it comes from: a negotiation, a confirmation, an operator. */
  readonly source: string
}

export interface Grant extends GrantTerms {
  readonly id: string
  /** The key of the principal. */
  readonly owner: string
  readonly issuedAt: number
  /** Milliseconds since the epoch. */
  readonly expires: number
}

/** More calls than one person can have looked at; revoking is one commit. */
const boundLimit = 900

/** Throws where the terms make no sense: a mistake of the program, not of its caller. */
export function checkTerms(terms: GrantTerms): void {
  for (const pattern of [terms.action, terms.resource])
    if (pattern === '' || pattern.length > patternLength)
      throw new RangeError(`"${clip(pattern)}" is no pattern: give 1 to ${patternLength} characters`)
  checkCount('uses', terms.uses, 1)
  checkCount('idleMs', terms.idleMs, 1)
  if (terms.bound !== undefined && !(terms.bound.length > 0 && terms.bound.length <= boundLimit))
    throw new RangeError(`A grant is bound to 1 to ${boundLimit} calls, not ${terms.bound.length}`)
  if (terms.units !== undefined && !(terms.units >= 0 && terms.units <= 1e9))
    throw new RangeError(`units is ${terms.units}: give a number from 0 to a thousand million`)
  if ((terms.effect === 'budget') !== (terms.units !== undefined))
    throw new TypeError('A budget needs units, and nothing else has them')
}

function checkCount(name: string, count: number | undefined, least: number): void {
  if (count !== undefined && !(Number.isSafeInteger(count) && count >= least))
    throw new RangeError(`${name} is ${count}: give a whole number of at least ${least}`)
}

/** Owners contain no slash, so that nobody's keys lie among another's. */
export function grantsPrefix(owner: string): string {
  if (owner === '' || owner.includes('/')) throw new TypeError(`"${clip(owner)}" is no key of a principal`)
  return `grant/${owner}/`
}

/** Those that count for every decision lie together, so that it need not look through those that wait to be presented. */
export function standingPrefix(owner: string): string {
  return `${grantsPrefix(owner)}standing/`
}

export function grantKey(owner: string, id: string, standing: boolean): string {
  return standing ? standingPrefix(owner) + id : `${grantsPrefix(owner)}held/${id}`
}

/** Prohibitions need nobody who presents them. */
export function isStanding(terms: GrantTerms): boolean {
  return terms.standing === true || terms.effect === 'forbid'
}

export function usesKey(grant: Pick<Grant, 'owner' | 'id'>): string {
  return `grant-uses/${grant.owner}/${grant.id}`
}

export function boundKey(grant: Pick<Grant, 'owner' | 'id'>, binding: string): string {
  return `grant-bound/${grant.owner}/${grant.id}/${binding}`
}

export function idleKey(grant: Pick<Grant, 'owner' | 'id'>): string {
  return `grant-idle/${grant.owner}/${grant.id}`
}

/** Says for a while after a revocation that it was one: otherwise a record that is gone has expired. */
export function revokedKey(grant: Pick<Grant, 'owner' | 'id'>): string {
  return `grant-revoked/${grant.owner}/${grant.id}`
}

export function readGrant(text: string): Grant {
  const value: unknown = JSON.parse(text)
  if (isRecord(value) && typeof value.id === 'string' && typeof value.effect === 'string' && typeof value.expires === 'number')
    return value as unknown as Grant
  throw new Error('A grant cannot be read: was it written by another program?')
}
