/**
 * The one decision: allowed, denied, or allowed once something was done. Pure: from what is asked and what is held. Several
 * sources must agree (the scopes of a token, the grants presented with it), and a prohibition wins over all of them.
 */
import { clip } from '../../jsonrpc/limits.ts'
import { type Problem, problem } from '../problem.ts'
import { matches } from '../scope.ts'
import type { Grant } from './grant.ts'

export interface GrantRequest {
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
export interface Held {
  readonly grant: Grant
  /** The version of its record. */
  readonly version: number
  readonly left: boolean
}

/** A grant that the call uses: its use is counted when the call begins. */
export interface GrantUse {
  readonly grant: Grant
  readonly version: number
  readonly binding: string | undefined
}

export type Decision =
  | { readonly kind: 'allow'; readonly uses: readonly GrantUse[] }
  /** Allowed once these were done: asking the person, as a rule. `binding` is what they approve. */
  | { readonly kind: 'ask'; readonly obligations: readonly string[]; readonly binding: string | undefined }
  | GrantDenial

export interface GrantDenial {
  readonly kind: 'deny'
  readonly reason: 'missing' | 'forbidden' | 'evaluation_error'
  /** Everything that is missing, not only the first. */
  readonly missing: readonly string[]
  readonly why: string
  readonly cause?: unknown
}

export function decide(asked: GrantRequest, held: readonly Held[]): Decision {
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
      suggestion: `Ask for ${listed(denial.missing)}`,
      actor: 'user',
    })
  const details = denial.reason === 'evaluation_error' ? { details: { reason: denial.reason } } : {}
  return problem('PERMISSION_DENIED', denial.why, { ...details, actor: 'operator', cause: denial.cause })
}

/** What covers a need: the token alone, a grant, or nothing. */
function right(asked: GrantRequest, here: readonly Held[], need: string): Held | 'token' | undefined {
  if (asked.scopes !== undefined && !asked.scopes.includes(need)) return undefined
  if (asked.scopes !== undefined && !asked.narrowed) return 'token'
  return best(here.filter(one => gives(one, 'permit', need) && isFor(one, asked.binding)))
}

function gives({ grant }: Held, effect: Grant['effect'], action: string): boolean {
  return grant.effect === effect && matches(grant.action, action)
}

/** Can be used once more, and for this call. */
function isFor({ grant, left }: Held, binding: string | undefined): boolean {
  return left && (grant.bound === undefined || (binding !== undefined && grant.bound.includes(binding)))
}

/** The one that costs the least: no obligations, nothing to count; of those that are counted the one made for this call. */
function best(candidates: readonly Held[]): Held | undefined {
  const cost = ({ grant }: Held): number =>
    (grant.obligations?.length ?? 0) * 4 + (grant.bound !== undefined ? 1 : grant.uses !== undefined ? 2 : 0)
  return candidates.reduce<Held | undefined>(
    (one, other) => (one === undefined || cost(other) < cost(one) ? other : one),
    undefined,
  )
}

function whyMissing(asked: GrantRequest, missing: readonly string[]): string {
  const source = asked.narrowed ? ', which the grant presented with it does not give, or no longer' : ''
  return `${clip(asked.resource)} needs ${listed(missing)}${source}`
}

function listed(names: readonly string[]): string {
  const shown = names.slice(0, 10).map(name => clip(name))
  return names.length > 10 ? `${shown.join(', ')} and ${names.length - 10} more` : shown.join(', ')
}
