/** A grant: who may do what, on what, how often, how long, and what must be done first. Immutable; what is counted lies beside it. */
import { clip } from '../../jsonrpc/limits.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import { type Problem, problem } from '../problem.ts'
import { matches, patternLength } from '../scope.ts'

/**
 * `permit` gives an action; `forbid` takes it away, whatever permits it. `fulfil` meets an obligation of that name, e.g. a
 * confirmation that was given; it gives no right, and no right stands for it. `budget` holds units.
 */
type GrantEffect = 'permit' | 'forbid' | 'fulfil' | 'budget'

/** What a grant says: what it allows or forbids, on what, how often and until when. */
export interface GrantTerms {
  /** What it does: allow, forbid, meet an obligation, or hold units. */
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

/** A grant as it is kept, with its owner and its times. */
export interface Grant extends GrantTerms {
  readonly id: string
  /** The key of the principal. */
  readonly owner: string
  /** Milliseconds since the epoch. */
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
      throw new RangeError(`"${clip(pattern)}" is not a valid pattern: give 1 to ${patternLength} characters`)
  checkCount('uses', terms.uses, 1)
  checkCount('idleMs', terms.idleMs, 1)
  if (terms.bound !== undefined && !(terms.bound.length > 0 && terms.bound.length <= boundLimit))
    throw new RangeError(`A grant can be bound to 1 to ${boundLimit} calls, not ${terms.bound.length}`)
  if (terms.units !== undefined && !(terms.units >= 0 && terms.units <= 1e9))
    throw new RangeError(`units is ${terms.units}: give a number from 0 to 1,000,000,000`)
  if ((terms.effect === 'budget') !== (terms.units !== undefined))
    throw new TypeError('units is required for a budget, and not allowed for anything else')
}

function checkCount(name: string, count: number | undefined, least: number): void {
  if (count !== undefined && !(Number.isSafeInteger(count) && count >= least))
    throw new RangeError(`${name} is ${count}: give a whole number of at least ${least}`)
}

/** Owners contain no slash, so that nobody's keys lie among another's. */
export function grantsPrefix(owner: string): string {
  if (owner === '' || owner.includes('/')) throw new TypeError(`"${clip(owner)}" is not the key of a principal`)
  return `grant/${owner}/`
}

/** Those that count for every decision lie together, so that it need not look through those that wait to be presented. */
export function standingPrefix(owner: string): string {
  return `${grantsPrefix(owner)}standing/`
}

/** The key of a grant's record. Standing grants, which need not be presented, lie apart. */
export function grantKey(owner: string, id: string, standing: boolean): string {
  return standing ? standingPrefix(owner) + id : `${grantsPrefix(owner)}held/${id}`
}

/** Prohibitions need nobody who presents them. */
export function isStanding(terms: GrantTerms): boolean {
  return terms.standing === true || terms.effect === 'forbid'
}

/** The key of the counter of a grant's uses. */
export function usesKey(grant: Pick<Grant, 'owner' | 'id'>): string {
  return `grant-uses/${grant.owner}/${grant.id}`
}

/** The key of the counter of uses for one exact call. */
export function boundKey(grant: Pick<Grant, 'owner' | 'id'>, binding: string): string {
  return `grant-bound/${grant.owner}/${grant.id}/${binding}`
}

/** The key that is there as long as a grant is not idle for too long. */
export function idleKey(grant: Pick<Grant, 'owner' | 'id'>): string {
  return `grant-idle/${grant.owner}/${grant.id}`
}

/** Says for a while after a revocation that it was one: otherwise a record that is gone has expired. */
export function revokedKey(grant: Pick<Grant, 'owner' | 'id'>): string {
  return `grant-revoked/${grant.owner}/${grant.id}`
}

/** The grant that a record holds. Throws where it holds none. */
export function readGrant(text: string): Grant {
  const value: unknown = JSON.parse(text)
  if (isRecord(value) && typeof value.id === 'string' && typeof value.effect === 'string' && typeof value.expires === 'number')
    return value as unknown as Grant
  throw new Error('A stored grant does not have the expected form. Another program may have written it')
}

// The one decision: allowed, denied, or allowed once something was done. Pure: from what is asked and what is held. Several
// sources must agree (the scopes of a token, the grants presented with it), and a prohibition wins over all of them.

/** What is to be decided: an action, what it needs, and what the caller has. */
export interface DecisionInput {
  /** What is to be done, e.g. `call`. */
  readonly action: string
  /** On what, e.g. the name of a tool. */
  readonly resource: string
  /** The actions that this needs, all of them. */
  readonly needs: readonly string[]
  /** What the caller's token allows. Undefined where no token says: then grants alone decide. */
  readonly scopes?: readonly string[] | undefined
  /** The caller presented grants, so no more than they give is allowed, also where the token gives more. */
  readonly narrowed: boolean
  /** What must have been done before. */
  readonly obligations: readonly string[]
  /** Those that were met in the course of this very call. */
  readonly met: readonly string[]
  /** The digest that approvals of this call are bound to. */
  readonly binding: string | undefined
}

/** A grant that is alive, and whether it can be used once more. */
export interface UsableGrant {
  readonly grant: Grant
  /** The version of its record. */
  readonly version: number
  /** Whether it can be used once more. */
  readonly left: boolean
}

/** A grant that the call uses: its use is counted when the call begins. */
export interface GrantUse {
  readonly grant: Grant
  readonly version: number
  /** The exact call that it is used for; undefined where any call will do. */
  readonly binding: string | undefined
}

/** The answer to a request: allowed, allowed once obligations are met, or denied. */
export type Decision =
  | { readonly kind: 'allow'; readonly uses: readonly GrantUse[] }
  /** Allowed once these were done: asking the person, as a rule. `binding` is what they approve. */
  | { readonly kind: 'ask'; readonly obligations: readonly string[]; readonly binding: string | undefined }
  | GrantDenial

/** A denial, with all that is missing. */
export interface GrantDenial {
  readonly kind: 'deny'
  /** Whether something is missing, is forbidden, or could not be decided. */
  readonly reason: 'missing' | 'forbidden' | 'evaluation_error'
  /** Everything that is missing, not only the first. */
  readonly missing: readonly string[]
  /** For people. */
  readonly why: string
  readonly cause?: unknown
}

/** Decides a request by the grants that are held. */
export function decide(asked: DecisionInput, held: readonly UsableGrant[]): Decision {
  const here = held.filter(({ grant }) => matches(grant.resource, asked.resource))
  const forbidden = [asked.action, ...asked.needs].find(action => here.some(one => gives(one, 'forbid', action)))
  if (forbidden !== undefined)
    return { kind: 'deny', reason: 'forbidden', missing: [], why: `A rule forbids ${clip(forbidden)} on ${clip(asked.resource)}` }
  const rights = asked.needs.map(need => right(asked, here, need))
  const missing = asked.needs.filter((_, i) => rights[i] === undefined)
  if (missing.length > 0) return { kind: 'deny', reason: 'missing', missing, why: whyMissing(asked, missing) }
  const used = new Set(rights.filter(one => one !== undefined && one !== 'token'))
  const obligations = new Set([...asked.obligations, ...[...used].flatMap(one => one.grant.obligations ?? [])])
  const open: string[] = []
  for (const obligation of obligations) {
    if (asked.met.includes(obligation)) continue
    const approval = best(here.filter(one => gives(one, 'fulfil', obligation) && isFor(one, asked.binding)))
    if (approval === undefined) open.push(obligation)
    else used.add(approval)
  }
  if (open.length > 0) return { kind: 'ask', obligations: open, binding: asked.binding }
  const { binding } = asked
  return { kind: 'allow', uses: [...used].map(({ grant, version }) => ({ grant, version, binding })) }
}

/** A denial as it is told to whoever was denied. */
export function denialProblem(denial: GrantDenial): Problem {
  if (denial.reason === 'missing')
    return problem('SCOPE_INSUFFICIENT', denial.why, {
      details: { missing_scopes: denial.missing },
      suggestion: `Request ${listed(denial.missing)}`,
      actor: 'user',
    })
  const details = denial.reason === 'evaluation_error' ? { details: { reason: denial.reason } } : {}
  return problem('PERMISSION_DENIED', denial.why, { ...details, actor: 'operator', cause: denial.cause })
}

/** What covers a need: the token alone, a grant, or nothing. */
function right(asked: DecisionInput, here: readonly UsableGrant[], need: string): UsableGrant | 'token' | undefined {
  if (asked.scopes !== undefined && !asked.scopes.includes(need)) return undefined
  if (asked.scopes !== undefined && !asked.narrowed) return 'token'
  return best(here.filter(one => gives(one, 'permit', need) && isFor(one, asked.binding)))
}

function gives({ grant }: UsableGrant, effect: Grant['effect'], action: string): boolean {
  return grant.effect === effect && matches(grant.action, action)
}

/** Can be used once more, and for this call. */
function isFor({ grant, left }: UsableGrant, binding: string | undefined): boolean {
  return left && (grant.bound === undefined || (binding !== undefined && grant.bound.includes(binding)))
}

/** The one that costs the least: no obligations, nothing to count; of those that are counted the one made for this call. */
function best(candidates: readonly UsableGrant[]): UsableGrant | undefined {
  const cost = ({ grant }: UsableGrant): number =>
    (grant.obligations?.length ?? 0) * 4 + (grant.bound !== undefined ? 1 : grant.uses !== undefined ? 2 : 0)
  return candidates.reduce<UsableGrant | undefined>(
    (one, other) => (one === undefined || cost(other) < cost(one) ? other : one),
    undefined,
  )
}

function whyMissing(asked: DecisionInput, missing: readonly string[]): string {
  const source = asked.narrowed ? ', which the presented grant does not cover, or no longer covers' : ''
  return `${clip(asked.resource)} needs ${listed(missing)}${source}`
}

function listed(names: readonly string[]): string {
  const shown = names.slice(0, 10).map(name => clip(name))
  return names.length > 10 ? `${shown.join(', ')} and ${names.length - 10} more` : shown.join(', ')
}
