/**
 * Grants on a store. Nothing is remembered here between decisions, so that a grant that was revoked anywhere is gone for the
 * next decision everywhere; uses are counted by the store, so that two processes cannot both take the last one.
 */
import type { Awaitable } from '../../jsonrpc/message.ts'
import { add, check, type Entry, type Op, put, remove, type Store } from '../../stores/store.ts'
import type { Audit } from '../audit/audit.ts'
import { type Clock, lifetimeMs } from '../clock.ts'
import { quotaExhausted } from '../occupancy.ts'
import { problem } from '../problem.ts'
import { mostScopes } from '../scope.ts'
import {
  boundKey,
  checkTerms,
  type Decision,
  type DecisionInput,
  decide,
  type Grant,
  type GrantTerms,
  type GrantUse,
  grantKey,
  grantsPrefix,
  idleKey,
  isStanding,
  readGrant,
  revokedKey,
  standingPrefix,
  type UsableGrant,
  usesKey,
} from './grant.ts'

interface GrantsOptions {
  readonly store: Store
  readonly clock: Clock
  /** Ids of grants: unguessable, and without a slash. */
  readonly id: () => string
  /** The longest a grant may last. Default one day. */
  readonly mostMs?: number
  /** Grants of one owner. Default, and at most, 1,000. */
  readonly perOwner?: number
  readonly audit?: Audit | undefined
}

interface GrantWrite {
  /** Written with it. */
  readonly also?: readonly Op[]
  /** The id of a new one: unguessable, and without a slash. Default: one of `id`. */
  readonly id?: string
  /** Joins it with the request that led to it. */
  readonly correlation?: string | undefined
}

/** What is to be decided. */
export interface GrantQuestion {
  /** The key of the principal; undefined where nobody is known: then no grant counts. */
  readonly owner: string | undefined
  readonly action: string
  readonly resource: string
  readonly arguments?: Readonly<Record<string, unknown>> | undefined
  /** The actions it needs, perhaps by its arguments. Default: the action itself. */
  readonly needs?: readonly string[] | ((args: Readonly<Record<string, unknown>>) => Awaitable<readonly string[]>) | undefined
  /** What the caller's token allows; undefined where no token says. */
  readonly scopes?: readonly string[] | undefined
  /** Ids of the permits that the caller presents: then no more than they give is allowed. */
  readonly presented?: readonly string[] | undefined
  readonly obligations?: readonly string[] | undefined
  /** Ids of the approvals that the caller presents. */
  readonly approvals?: readonly string[] | undefined
  /** Obligations that were met in the course of this very call. */
  readonly met?: readonly string[] | undefined
  /** The digest that approvals of this call are bound to. Asked for only where one may count. */
  readonly binding?: (() => Awaitable<string>) | undefined
}

/** Counters and the marks of revocations outlive their grants a little: clocks of processes and stores differ. */
const graceMs = 60_000
/** One for each scope that a call may need, and room for approvals. */
const PRESENTED = mostScopes + 16

/** The grants of a store: gives, finds, uses and revokes them, and decides requests by them. */
export class Grants {
  readonly store: Store
  readonly clock: Clock
  readonly #id: () => string
  readonly #mostMs: number
  readonly #perOwner: number
  readonly #audit: Audit | undefined

  constructor(options: GrantsOptions) {
    this.store = options.store
    this.clock = options.clock
    this.#id = options.id
    this.#audit = options.audit
    this.#mostMs = options.mostMs ?? 86_400_000
    this.#perOwner = Math.min(options.perOwner ?? 1_000, 1_000)
  }

  /** Lasts as long as was asked for, or less. */
  async issue(owner: string, terms: GrantTerms, ttlMs: number, { also, id, correlation }: GrantWrite = {}): Promise<Grant> {
    const wanted = id === undefined ? terms : { ...terms, id }
    const [grant] = await this.issueAll(owner, [wanted], ttlMs, { ...(also && { also }), correlation })
    return grant as Grant
  }

  /** All of them, or none: where one cannot be, nothing is left of the others. */
  async issueAll(
    owner: string,
    wanted: readonly (GrantTerms & { readonly id?: string })[],
    ttlMs: number,
    { also = [], correlation }: Omit<GrantWrite, 'id'> = {},
  ): Promise<readonly Grant[]> {
    for (const terms of wanted) checkTerms(terms)
    const ttl = lifetimeMs(ttlMs, { mostMs: this.#mostMs })
    if (!(ttl > 0)) throw new RangeError(`ttl is ${ttlMs} ms: give a duration above 0`)
    await this.#evictIfFull(owner, wanted.length)
    const issuedAt = this.clock.now()
    const grants = wanted.map(terms => ({ ...terms, id: terms.id ?? this.#id(), owner, issuedAt, expires: issuedAt + ttl }))
    const outcome = await this.store.commit([
      ...grants.flatMap(grant => [
        put(grantKey(owner, grant.id, isStanding(grant)), JSON.stringify(grant), { ifAbsent: true, ttl }),
        ...(grant.idleMs === undefined ? [] : [put(idleKey(grant), '', { ttl: Math.min(grant.idleMs, ttl) })]),
        ...this.#told('grant_given', grant, correlation),
      ]),
      ...also,
    ])
    if (!outcome.ok)
      throw problem('SERVER_UNAVAILABLE', 'The object of the grant was changed by another request', { retryAfter: 100 })
    return grants
  }

  /** Counts from the next decision on. False where there is none: another's grants are none. */
  async revoke(owner: string, id: string, { also = [], correlation }: GrantWrite = {}): Promise<boolean> {
    const grant = await this.find(owner, id)
    if (grant === undefined) return false
    const outcome = await this.store.commit([
      remove(grantKey(owner, id, isStanding(grant))),
      remove(usesKey(grant)),
      remove(idleKey(grant)),
      ...(grant.bound ?? []).map(binding => remove(boundKey(grant, binding))),
      put(revokedKey(grant), '', { ttl: graceMs }),
      ...this.#told('grant_revoked', grant, correlation),
      ...also,
    ])
    return outcome.ok
  }

  /** Undefined where it is unknown, another's, revoked, or over. */
  async find(owner: string, id: string): Promise<Grant | undefined> {
    const [found] = await this.#alive([await this.#record(owner, id)])
    return found?.grant
  }

  /** Until when it lasts if nobody uses it, or how it ended; `until` is when it was to end, for one that is not known any more. */
  async lifeOf(owner: string, id: string, until = Number.POSITIVE_INFINITY): Promise<GrantLife> {
    const entry = await this.#record(owner, id)
    if (entry === undefined) return this.#gone(owner, id, until)
    const { expires, idleMs } = readGrant(entry.value)
    if (expires <= this.clock.now()) return { over: 'expired' }
    if (idleMs === undefined) return { expires, until: expires, record: entry }
    const used = await this.store.get(idleKey({ owner, id }))
    if (used !== undefined) return { expires, until: Math.min(expires, used.expires ?? expires), record: entry }
    // Taken away between the two looks, both are gone.
    return (await this.#record(owner, id)) === undefined ? this.#gone(owner, id, until) : { over: 'idle' }
  }

  /**
   * A record that is gone was revoked where that is on record, or where it had more time left than clocks differ. The store may
   * drop one that expired before anybody here has read its end.
   */
  async #gone(owner: string, id: string, until: number): Promise<GrantLife> {
    if ((await this.store.get(revokedKey({ owner, id }))) !== undefined) return { over: 'revoked' }
    const left = until - this.clock.now()
    return { over: left > graceMs && left < Number.POSITIVE_INFINITY ? 'revoked' : 'expired' }
  }

  async #record(owner: string, id: string): Promise<Entry | undefined> {
    const entries = await Promise.all([false, true].map(standing => this.store.get(grantKey(owner, id, standing))))
    return entries.find(found => found !== undefined)
  }

  /** All that are alive. */
  async list(owner: string): Promise<readonly Grant[]> {
    return (await this.#alive(await this.store.scan(grantsPrefix(owner)))).map(({ grant }) => grant)
  }

  /**
   * Changes nothing, so that asking beforehand gives what the call itself would get. Where it cannot be evaluated, it is denied.
   * `taken` are uses that this call has counted already: with them a decision can be taken again while it runs, or at its end.
   */
  async decide(question: GrantQuestion, taken: readonly GrantUse[] = []): Promise<Decision> {
    try {
      const needs = question.needs ?? [question.action]
      const asked: DecisionInput = {
        action: question.action,
        resource: question.resource,
        needs: [...new Set(typeof needs === 'function' ? await needs(question.arguments ?? {}) : needs)],
        scopes: question.scopes,
        narrowed: (question.presented?.length ?? 0) > 0,
        obligations: question.obligations ?? [],
        met: question.met ?? [],
        binding: undefined,
      }
      const heard = await this.#heard(question)
      const bound = asked.obligations.length > 0 || heard.some(({ grant }) => grant.bound ?? grant.obligations)
      const binding = bound ? await question.binding?.() : undefined
      const held = await Promise.all(heard.map(one => this.#held(one, binding, taken)))
      return decide({ ...asked, binding }, held)
    } catch (cause) {
      return { kind: 'deny', reason: 'evaluation_error', missing: [], why: 'The permission could not be evaluated', cause }
    }
  }

  /**
   * Counts the uses that a decision named, all or none, and `also` with them. False where meanwhile one has ended or was used
   * up by others: decide again.
   */
  async use(uses: readonly GrantUse[], also: readonly Op[] = []): Promise<boolean> {
    const seen = new Map<string, number>()
    // Each turn but the last finds one more grant whose end another use has moved, so there are few.
    for (let turn = 0; turn <= uses.length; turn++) {
      const touches = await this.#touches(uses, seen)
      if (touches === undefined) return false
      const ops = [...touches, ...uses.flatMap(use => this.#counts(use)), ...also]
      if (ops.length === 0) return true
      const outcome = await this.store.commit(ops)
      if (outcome.ok) return true
      if (outcome.index >= touches.length) return false
    }
    return false
  }

  /** Moves the ends of grants that end when idle. One that another use moved at the same moment needs no second move. */
  async #touches(uses: readonly GrantUse[], seen: Map<string, number>): Promise<readonly Op[] | undefined> {
    const touches: Op[] = []
    for (const { grant } of uses) {
      if (grant.idleMs === undefined) continue
      const entry = await this.store.get(idleKey(grant))
      const ttl = Math.min(grant.idleMs, grant.expires - this.clock.now())
      if (entry === undefined || !(ttl > 0)) return undefined
      if ((seen.get(entry.key) ?? entry.version) === entry.version)
        touches.push(put(entry.key, '', { ifVersion: entry.version, ttl }))
      seen.set(entry.key, seen.get(entry.key) ?? entry.version)
    }
    return touches
  }

  #counts({ grant, version, binding }: GrantUse): readonly Op[] {
    const ttl = Math.max(0, grant.expires - this.clock.now()) + graceMs
    const ops = [check(grantKey(grant.owner, grant.id, isStanding(grant)), version)]
    if (grant.uses !== undefined) ops.push(add(usesKey(grant), 1, { max: grant.uses, ttl }))
    if (grant.bound !== undefined) ops.push(add(boundKey(grant, binding ?? ''), 1, { max: 1, ttl }))
    return ops
  }

  /** Those that are alive and count: standing ones, and those of the ids that the caller presents. */
  async counting(owner: string, ids: readonly string[]): Promise<readonly VersionedGrant[]> {
    if (ids.length > PRESENTED) throw new RangeError(`${ids.length} grants were presented; the limit is ${PRESENTED}`)
    const [standing, ...named] = await Promise.all([
      this.store.scan(standingPrefix(owner)),
      ...ids.map(id => this.store.get(grantKey(owner, id, false))),
    ])
    return this.#alive([...standing, ...named])
  }

  /** Of those, the ones that have a say in a decision: where permits are presented, no others permit. */
  async #heard(question: GrantQuestion): Promise<readonly VersionedGrant[]> {
    const { owner, presented = [], approvals = [] } = question
    if (owner === undefined) return []
    const found = await this.counting(owner, [...new Set([...presented, ...approvals])])
    return found.filter(({ grant }) => {
      if (grant.effect === 'permit') return presented.length === 0 || presented.includes(grant.id)
      return grant.effect === 'forbid' || (grant.effect === 'fulfil' && (isStanding(grant) || approvals.includes(grant.id)))
    })
  }

  async #alive(entries: readonly (Entry | undefined)[]): Promise<VersionedGrant[]> {
    const now = this.clock.now()
    const found = entries
      .filter(entry => entry !== undefined)
      .map(({ value, version }) => ({ grant: readGrant(value), version }))
      .filter(({ grant }) => grant.expires > now)
    const idle = await Promise.all(found.map(({ grant }) => grant.idleMs === undefined || this.store.get(idleKey(grant))))
    return found.filter((_, i) => idle[i] !== undefined)
  }

  async #held({ grant, version }: VersionedGrant, binding: string | undefined, taken: readonly GrantUse[]): Promise<UsableGrant> {
    if (taken.some(use => use.grant.id === grant.id)) return { grant, version, left: true }
    const [uses, bound] = await Promise.all([
      grant.uses === undefined ? undefined : this.store.get(usesKey(grant)),
      grant.bound === undefined || binding === undefined ? undefined : this.store.get(boundKey(grant, binding)),
    ])
    const left = (grant.uses === undefined || Number(uses?.value ?? 0) < grant.uses) && bound === undefined
    return { grant, version, left }
  }

  #told(event: 'grant_given' | 'grant_revoked', grant: Grant, correlation: string | undefined): readonly Op[] {
    if (this.#audit === undefined) return []
    const { owner, id: target, effect: outcome, action, resource, source, expires, uses } = grant
    return [this.#audit.line({ event, correlation, owner, target, outcome, more: { action, resource, source, expires, uses } })]
  }

  async #evictIfFull(owner: string, wanted: number): Promise<void> {
    const held = await this.store.scan(grantsPrefix(owner), { limit: this.#perOwner })
    if (held.length + wanted <= this.#perOwner) return
    const soonest = Math.min(...held.map(({ expires = Number.POSITIVE_INFINITY }) => expires)) - this.clock.now()
    throw quotaExhausted(
      `grants (${held.length} of ${this.#perOwner})`,
      Number.isFinite(soonest) ? soonest : undefined,
      'Wait until some have expired, or revoke those that you do not need',
    )
  }
}

/** How a grant stands. */
type GrantLife =
  | { readonly expires: number; readonly until: number; readonly record: Entry }
  | { readonly over: 'revoked' | 'expired' | 'idle' }

/** A grant that is alive and counts, by the version of its record. */
export interface VersionedGrant {
  readonly grant: Grant
  readonly version: number
}
