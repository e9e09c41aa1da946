/** The runtime of session state: loads and stores versions, and rolls them back. Loaded on first access. */

import { digestText } from '../../../core/digest.ts'
import { Feed, type Occurrence } from '../../../core/feed/feed.ts'
import type { UndoneParts } from '../../../core/journal/rollback.ts'
import { problem, problemOf } from '../../../core/problem.ts'
import { patched } from '../../../core/state/patch.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import { accountOf, ownerOf } from '../../../engine/owner.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import { check, type Op, put, type Store, StoreError, storeLimits } from '../../../stores/store.ts'
import { unitStep } from '../transactions/messages.ts'
import { type Lifecycle, type StateDraft, stateExtension, type WireState } from './messages.ts'
import type { Keeping, StateParts } from './server.ts'
import {
  conversationKeeper,
  createTokens,
  firstVersion,
  invalidState,
  isCut,
  type Keeper,
  LargeStates,
  nextTag,
  readStateVersion,
  type StateTokenSealer,
  type StateVersion,
  stateConflict,
  storeKeeper,
  withCut,
} from './versions.ts'

/** What a step records about its write. */
interface Written {
  readonly session: string
  readonly unit: string
}

// Reads the record of a step.
function readWritten(value: unknown): Written | undefined {
  if (!isRecord(value) || typeof value['session'] !== 'string' || typeof value['unit'] !== 'string') return undefined
  return value as unknown as Written
}

const builtUpon = {
  code: 'STATE_CONFLICT',
  message: 'What it did was taken back, but not the state that it wrote: others have built on that outside of the transaction',
}

// Marks a transaction's writes as undone.
function undoneKey({ session, unit }: Written): string {
  return `session-state/undone/${session}/${unit}`
}

// Marks that others have built on them.
function laterKey({ session, unit }: Written): string {
  return `session-state/later/${session}/${unit}`
}

function beforePrefix(session: string): string {
  return `session-state/before/${session}/`
}

/** Sorted by depth. */
function beforeKey(session: string, depth: number): string {
  return `${beforePrefix(session)}${String(Math.max(0, depth)).padStart(12, '0')}`
}

/** What the runtime needs from the server. */
export interface StateRuntimeParts extends StateParts {
  readonly ttlMs: number
  readonly opened: Store
  readonly keeping: (exchange: Exchange) => Keeping
}

/** Where the state of a call was found. */
export interface StatePlace {
  readonly value: unknown
  readonly version: StateVersion
  /** Undefined: nothing is kept after the call. */
  readonly keeper: Keeper | undefined
  /** For compare-and-set. */
  readonly mark?: unknown
}

/** The state runtime of a server. */
export interface StateRuntime {
  readonly patched: typeof patched
  /** Loads the state of a call. */
  open(exchange: Exchange): Promise<StatePlace>
  /** Stores the state; returns the result with its token. */
  close(exchange: Exchange, place: StatePlace, draft: StateDraft, result: unknown): Promise<unknown>
  /** Lifecycle events of sessions. */
  follow(after: number | undefined, signal: AbortSignal): AsyncGenerator<Occurrence, void>
  /** Rolls a session back to a version. */
  rollback(session: string, version: number): Promise<void>
  /** Reverts what a step wrote. */
  revert(wrote: unknown): Promise<UndoneParts>
}

/** How long an expired state is still recognised as expired. */
export const graceMs = 7 * 86_400_000
// Attempts of compare-and-set.
const tries = 20

/** Creates the runtime. */
export function createStateRuntime(parts: StateRuntimeParts): StateRuntime {
  return new StateWorks(parts)
}

class StateWorks implements StateRuntime {
  readonly patched = patched
  readonly #parts: StateRuntimeParts
  readonly #feed: Feed
  readonly #tokens: StateTokenSealer
  readonly #large: LargeStates

  constructor(parts: StateRuntimeParts) {
    const { opened: store, clock } = parts
    this.#parts = parts
    this.#feed = new Feed({ store, clock, id: () => crypto.randomUUID(), name: 'session-state' })
    this.#large = new LargeStates(store, clock)
    this.#tokens = createTokens({
      ...parts,
      large: this.#large,
      isUndone: version => this.#isUndone(version),
      tell: (name, session, owner, also) => this.#tell(name, session, owner, also),
    })
  }

  open(exchange: Exchange): Promise<StatePlace> {
    return told(this.#open(exchange))
  }

  close(exchange: Exchange, place: StatePlace, draft: StateDraft, result: unknown): Promise<unknown> {
    return told(this.#close(exchange, place, draft, result))
  }

  async *follow(after: number | undefined, signal: AbortSignal): AsyncGenerator<Occurrence, void> {
    for await (const page of this.#feed.follow(after, signal)) yield* page.occurrences
  }

  async rollback(session: string, version: number): Promise<void> {
    const { opened: store, ttlMs } = this.#parts
    for (let attempt = 0; attempt < tries; attempt++) {
      const entry = await store.get(cutKey(session))
      const cuts = withCut(entry === undefined ? [] : JSON.parse(entry.value), version)
      const expected = entry === undefined ? { ifAbsent: true } : { ifVersion: entry.version }
      const cut = put(cutKey(session), JSON.stringify(cuts), { ...expected, ttl: ttlMs + graceMs })
      const happening = { name: 'session_invalidated', data: { session_id: session, reason: 'rolled back' } }
      if ((await this.#feed.publish(happening, [cut, ...(await this.#rolledBack(session))])) !== undefined) return
    }
    throw stateConflict()
  }

  async revert(wrote: unknown): Promise<UndoneParts> {
    const { opened: store, ttlMs } = this.#parts
    const written = readWritten(wrote)
    if (written === undefined || (await store.get(undoneKey(written))) !== undefined) return { ops: [] }
    const later = laterKey(written)
    if ((await store.get(later)) !== undefined) return { ops: [], stays: builtUpon }
    const happening = { name: 'session_invalidated', data: { session_id: written.session, reason: 'rolled back' } }
    const undone = put(undoneKey(written), '', { ttl: ttlMs + graceMs })
    const told = await this.#rolledBack(written.session)
    return { ops: [check(later, undefined), undone, this.#feed.publishing(happening), ...told] }
  }

  async #open(exchange: Exchange): Promise<StatePlace> {
    const { opened: store, ttlMs } = this.#parts
    const keeping = this.#parts.keeping(exchange)
    if (keeping === 'token') return this.#tokens.open(exchange)
    if (keeping === 'call') return { value: undefined, version: firstVersion(), keeper: undefined }
    const keeper =
      keeping === 'conversation'
        ? conversationKeeper(exchange.conversation)
        : storeKeeper({
            store,
            ttlMs,
            large: this.#large,
            owner: keeping === 'session' ? await sessionKey(exchange) : await ownerOf(exchange),
            account: await accountOf(exchange),
            ofUser: keeping !== 'session' && exchange.caller.principal !== undefined,
          })
    const found = await keeper.read()
    const version = found === undefined ? firstVersion() : await this.#standing(found.version)
    return { value: version.data, version, keeper, mark: found?.mark }
  }

  /** The version, or the newest before it that was not undone, for callers without a token. */
  async #standing(version: StateVersion): Promise<StateVersion> {
    const now = this.#parts.clock.now()
    if (version.expires <= now) return firstVersion()
    if (!(await this.#isUndone(version))) return version
    const { session } = version
    // Starts with the newest, which is usually the right one.
    for (let depth = version.depth; depth > 0; depth -= storeLimits.page) {
      const within = { after: beforeKey(session, depth - storeLimits.page - 1), before: beforeKey(session, depth) }
      for (const { value } of (await this.#parts.opened.scan(beforePrefix(session), within)).toReversed()) {
        const kept = readStateVersion(JSON.parse(value))
        if (kept !== undefined && kept.expires > now && !(await this.#isUndone(kept))) return kept
      }
    }
    return firstVersion()
  }

  async #close(exchange: Exchange, place: StatePlace, draft: StateDraft, result: unknown): Promise<unknown> {
    const { version, keeper } = place
    const isToken = this.#parts.keeping(exchange) === 'token'
    if (!isToken && (keeper === undefined || !draft.changed)) return result
    if (!draft.changed && !(version.depth > 0 && this.#isAging(version)))
      return version.depth > 0 ? stamped(result, { state_changed: false }) : result
    const [made, wire] = isToken
      ? await this.#give(exchange, version, draft)
      : ([await this.#keep(exchange, place, draft), undefined] as const)
    const name = happened(version, made)
    if (name !== undefined) await this.#tell(name, version.session, await ownerOf(exchange))
    return wire === undefined ? result : stamped(result, wire)
  }

  /** Creates the new token. */
  async #give(exchange: Exchange, before: StateVersion, draft: StateDraft): Promise<readonly [StateVersion, WireState]> {
    const { opened: store, ttlMs } = this.#parts
    const made = await this.#after(exchange, before, draft.value)
    if (draft.changed && ruleOf(this.#parts, exchange) === 'conflict') await claim(store, before, ttlMs)
    const token = await this.#tokens.seal(exchange, made)
    return [made, { session_state: token, state_changed: draft.changed, expires_at: new Date(made.expires).toISOString() }]
  }

  /** Stores the state on the server. */
  async #keep(exchange: Exchange, place: StatePlace, draft: StateDraft): Promise<StateVersion> {
    let { version, mark } = place
    let { value } = draft
    for (let attempt = 0; attempt < tries; attempt++) {
      const made = await this.#after(exchange, version, value)
      // Earlier writes of the same transaction are undone together.
      const step = exchange.get(unitStep)
      if (step !== undefined && version.depth > 0 && version.unit !== step.unit) await this.#remember(exchange, version)
      if (await place.keeper?.write(made, mark)) return made
      // Patches are repeated on the newer state; a whole value would overwrite it.
      if (draft.steps === undefined || ruleOf(this.#parts, exchange) === 'conflict') break
      const now = await this.#open(exchange)
      version = now.version
      mark = now.mark
      value = patched(now.value ?? {}, draft.steps)
    }
    throw stateConflict()
  }

  /** The next version; its lifetime is renewed when half of it is over. */
  async #after(exchange: Exchange, version: StateVersion, value: unknown): Promise<StateVersion> {
    const step = exchange.get(unitStep)
    const { session, depth } = version
    checkSize(value)
    const expires = this.#isAging(version) ? this.#parts.clock.now() + this.#parts.ttlMs : version.expires
    const cuts = depth === 0 ? [] : await this.#cutsOf(session)
    if (isCut(version, cuts) || !(await this.#buildsOn(version, step?.unit)))
      throw invalidState('The state that this call has read was undone meanwhile')
    if (step !== undefined) await step.wrote({ session, unit: step.unit } satisfies Written)
    const unit = step === undefined ? {} : { unit: step.unit }
    const data = value === undefined ? {} : { data: value }
    return { session, depth: depth + 1, tag: nextTag(), epoch: cuts.length, expires, ...unit, ...data }
  }

  /** Marks that others build on a transaction's write; false if it was undone. */
  async #buildsOn({ session, unit }: StateVersion, by: string | undefined): Promise<boolean> {
    if (unit === undefined) return true
    const { opened: store, ttlMs } = this.#parts
    const undone = undoneKey({ session, unit })
    if (unit === by) return (await store.get(undone)) === undefined
    const ttl = ttlMs + graceMs
    return (await store.commit([check(undone, undefined), put(laterKey({ session, unit }), '', { ttl })])).ok
  }

  /** Stores the previous version, for callers without a token. */
  async #remember(exchange: Exchange, version: StateVersion): Promise<void> {
    const [key, text] = [beforeKey(version.session, version.depth), JSON.stringify(version)]
    const ttl = Math.max(1, version.expires - this.#parts.clock.now())
    const noted = await this.#large.admitting(await accountOf(exchange), key, text.length, ttl)
    await this.#parts.opened.commit([put(key, text, { ttl }), ...noted])
  }

  // Cut off by a rollback, or undone with its transaction.
  async #isUndone(version: StateVersion): Promise<boolean> {
    const { session, unit } = version
    if (isCut(version, await this.#cutsOf(session))) return true
    return unit !== undefined && (await this.#parts.opened.get(undoneKey({ session, unit }))) !== undefined
  }

  #isAging({ expires }: StateVersion): boolean {
    return expires - this.#parts.clock.now() < this.#parts.ttlMs / 2
  }

  async #tell(name: Lifecycle, session: string, owner: string, also: readonly Op[] = []): Promise<void> {
    const happening = { name, data: { session_id: session }, origin: owner }
    await this.#feed.publish(happening, [...also, ...(await this.#announced(name, session, owner))])
  }

  /** Events for subscribers; the owner is kept as long as a rollback is possible. */
  async #announced(name: Lifecycle, session: string, owner: string, reason?: string): Promise<readonly Op[]> {
    const { announcing, clock, ttlMs } = this.#parts
    const timestamp = new Date(clock.now()).toISOString()
    const why = reason === undefined ? {} : { reason }
    const told = await announcing(name, { type: name, session_id: session, timestamp, ...why }, owner)
    return told.length === 0 ? [] : [...told, put(sessionOwnerKey(session), owner, { ttl: ttlMs + graceMs })]
  }

  async #rolledBack(session: string): Promise<readonly Op[]> {
    const entry = await this.#parts.opened.get(sessionOwnerKey(session))
    return entry === undefined ? [] : this.#announced('session_invalidated', session, entry.value, 'rolled back')
  }

  async #cutsOf(session: string): Promise<readonly number[]> {
    const entry = await this.#parts.opened.get(cutKey(session))
    return entry === undefined ? [] : JSON.parse(entry.value)
  }
}

// The lifecycle event that follows from a write.
function happened(before: StateVersion, after: StateVersion): Lifecycle | undefined {
  if (before.depth === 0) return 'session_created'
  if (after.data === undefined && after.elsewhere === undefined) return 'session_invalidated'
  return after.expires > before.expires ? 'session_renewed' : undefined
}

// The tool's rule for concurrent writers.
function ruleOf(parts: StateParts, { route, params }: Exchange): 'branch' | 'conflict' {
  const tool = route.method.name === 'tools/call' ? params['name'] : undefined
  return (typeof tool === 'string' ? parts.rule(tool) : undefined) ?? 'branch'
}

/** Of several writers on one version, only the first succeeds. */
async function claim(store: Store, { session, depth, tag }: StateVersion, ttlMs: number): Promise<void> {
  if (depth === 0) return
  const key = `session-state/next/${session}/${tag}`
  if (!(await store.commit([put(key, '', { ifAbsent: true, ttl: ttlMs + graceMs })])).ok) throw stateConflict()
}

/** A session is its own owner. */
async function sessionKey({ conversation }: Exchange): Promise<string> {
  return `session.${(await digestText(`session ${conversation.session}`)).slice(0, 22)}`
}

/** Reserved for metadata. */
const besideBytes = 1024

function checkSize(value: unknown): void {
  const text = JSON.stringify(value) ?? ''
  const most = storeLimits.valueBytes - besideBytes
  if (text.length * 3 <= most || new TextEncoder().encode(text).length <= most) return
  throw problem('PAYLOAD_TOO_LARGE', `The state takes more than ${most} bytes`, {
    suggestion: 'Keep large contents elsewhere and their address in the state',
    actor: 'operator',
  })
}

/** Store errors become problems. */
async function told<T>(work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    throw error instanceof StoreError ? problemOf(error) : error
  }
}

function sessionOwnerKey(session: string): string {
  return `session-state/owner/${session}`
}

function cutKey(session: string): string {
  return `session-state/cut/${session}`
}

// Adds the state to the result.
function stamped(result: unknown, wire: WireState): unknown {
  const given: Readonly<Record<string, unknown>> = isRecord(result) ? result : {}
  const meta = isRecord(given['_meta']) ? given['_meta'] : {}
  return { ...given, _meta: { ...meta, [stateExtension]: wire } }
}
