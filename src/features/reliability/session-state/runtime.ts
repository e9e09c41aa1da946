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
import { toolsPort } from '../../mcp/tools/messages.ts'
import { eventsPort } from '../events/messages.ts'
import { unitStep } from '../transactions/messages.ts'
import { type CallStateStorage, type Lifecycle, type StateDraft, stateExtension, type WireState } from './messages.ts'
import type { StateParts } from './server.ts'
import {
  conversationStorage,
  firstVersion,
  graceMs,
  invalidState,
  isCut,
  LargeStates,
  type LoadedState,
  randomName,
  readStateVersion,
  StateTokens,
  type StateVersion,
  storeBackedStorage,
} from './versions.ts'

/** What a step records about its write. */
interface StepWrite {
  readonly session: string
  readonly unit: string
}

// Reads the record of a step.
function readWritten(value: unknown): StepWrite | undefined {
  if (!isRecord(value) || typeof value['session'] !== 'string' || typeof value['unit'] !== 'string') return undefined
  return value as unknown as StepWrite
}

const builtUpon = {
  code: 'STATE_CONFLICT',
  message: 'The step was undone, but not the state that it wrote: calls outside the transaction have already changed that state',
}

/** The keys of what is kept beside the versions. */
const keys = {
  /** Marks a transaction's writes as undone. */
  undone: ({ session, unit }: StepWrite) => `session-state/undone/${session}/${unit}`,
  /** Marks that others have built on them. */
  later: ({ session, unit }: StepWrite) => `session-state/later/${session}/${unit}`,
  /** What was before, for callers without a token: sorted by depth. */
  before: (session: string, depth: number) => `${keys.allBefore(session)}${String(Math.max(0, depth)).padStart(12, '0')}`,
  allBefore: (session: string) => `session-state/before/${session}/`,
  /** The depths of rollbacks. */
  cuts: (session: string) => `session-state/cut/${session}`,
  /** Whose session it is. */
  owner: (session: string) => `session-state/owner/${session}`,
}

// Attempts of compare-and-set.
const tries = 20
/** Limit of rollbacks per session. */
const mostCuts = 1_000

/** The state runtime of a server. */
export class StateRuntime implements CallStateStorage {
  readonly patched = patched
  readonly #parts: StateParts
  readonly #feed: Feed
  readonly #tokens: StateTokens
  readonly #large: LargeStates

  constructor(parts: StateParts) {
    const { store, clock } = parts
    this.#parts = parts
    this.#feed = new Feed({ store, clock, id: () => crypto.randomUUID(), name: 'session-state' })
    this.#large = new LargeStates(store, clock)
    this.#tokens = new StateTokens({
      ...parts,
      large: this.#large,
      isUndone: version => this.#isUndone(version),
      tell: (name, session, owner, also) => this.#tell(name, session, owner, also),
    })
  }

  /** Loads the state of a call. */
  open(exchange: Exchange): Promise<LoadedState> {
    return this.#open(exchange).catch(told)
  }

  /** Stores the state; returns the result with its token. */
  close(exchange: Exchange, place: LoadedState, draft: StateDraft, result: unknown): Promise<unknown> {
    return this.#close(exchange, place, draft, result).catch(told)
  }

  /** Lifecycle events of sessions. */
  async *follow(after: number | undefined, signal: AbortSignal): AsyncGenerator<Occurrence, void> {
    for await (const page of this.#feed.follow(after, signal)) yield* page.occurrences
  }

  /** Rolls a session back to a version. */
  async rollback(session: string, version: number): Promise<void> {
    const { store, ttlMs } = this.#parts
    for (let attempt = 0; attempt < tries; attempt++) {
      const entry = await store.get(keys.cuts(session))
      const before: readonly number[] = entry === undefined ? [] : JSON.parse(entry.value)
      if (before.length >= mostCuts)
        throw problem('STATE_CONFLICT', `This session has already been rolled back ${mostCuts} times (the limit)`, {
          category: 'permanent',
        })
      const expected = entry === undefined ? { ifAbsent: true } : { ifVersion: entry.version }
      const cut = put(keys.cuts(session), JSON.stringify([...before, version]), { ...expected, ttl: ttlMs + graceMs })
      const happening = { name: 'session_invalidated', data: { session_id: session, reason: 'rolled back' } }
      if ((await this.#feed.publish(happening, [cut, ...(await this.#rolledBack(session))])) !== undefined) return
    }
    throw stateConflict()
  }

  /** Reverts what a step wrote. */
  async revert(wrote: unknown): Promise<UndoneParts> {
    const { store, ttlMs } = this.#parts
    const written = readWritten(wrote)
    if (written === undefined || (await store.get(keys.undone(written))) !== undefined) return { ops: [] }
    const later = keys.later(written)
    if ((await store.get(later)) !== undefined) return { ops: [], stays: builtUpon }
    const happening = { name: 'session_invalidated', data: { session_id: written.session, reason: 'rolled back' } }
    const undone = put(keys.undone(written), '', { ttl: ttlMs + graceMs })
    const told = await this.#rolledBack(written.session)
    return { ops: [check(later, undefined), undone, this.#feed.publishing(happening), ...told] }
  }

  async #open(exchange: Exchange): Promise<LoadedState> {
    const { store, ttlMs } = this.#parts
    const keeping = this.#parts.keeping(exchange)
    if (keeping === 'token') return this.#tokens.open(exchange)
    if (keeping === 'call') return { value: undefined, version: firstVersion(), storage: undefined }
    const storage =
      keeping === 'conversation'
        ? conversationStorage(exchange.conversation)
        : storeBackedStorage({
            store,
            ttlMs,
            large: this.#large,
            owner: keeping === 'session' ? await sessionKey(exchange) : await ownerOf(exchange),
            account: await accountOf(exchange),
            ofUser: keeping !== 'session' && exchange.caller.principal !== undefined,
          })
    const found = await storage.read()
    const version = found === undefined ? firstVersion() : await this.#standing(found.version)
    return { value: version.data, version, storage, mark: found?.mark }
  }

  /** The version, or the newest before it that was not undone, for callers without a token. */
  async #standing(version: StateVersion): Promise<StateVersion> {
    const now = this.#parts.clock.now()
    if (version.expires <= now) return firstVersion()
    if (!(await this.#isUndone(version))) return version
    const { session } = version
    // Starts with the newest, which is usually the right one.
    for (let depth = version.depth; depth > 0; depth -= storeLimits.page) {
      const within = { after: keys.before(session, depth - storeLimits.page - 1), before: keys.before(session, depth) }
      for (const { value } of (await this.#parts.store.scan(keys.allBefore(session), within)).toReversed()) {
        const stored = readStateVersion(JSON.parse(value))
        if (stored !== undefined && stored.expires > now && !(await this.#isUndone(stored))) return stored
      }
    }
    return firstVersion()
  }

  async #close(exchange: Exchange, place: LoadedState, draft: StateDraft, result: unknown): Promise<unknown> {
    const { version, storage } = place
    const isToken = this.#parts.keeping(exchange) === 'token'
    if (!isToken && (storage === undefined || !draft.changed)) return result
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
    const { store, ttlMs } = this.#parts
    const made = await this.#after(exchange, before, draft.value)
    if (draft.changed && ruleOf(this.#parts, exchange) === 'conflict') await claim(store, before, ttlMs)
    const token = await this.#tokens.seal(exchange, made)
    return [made, { session_state: token, state_changed: draft.changed, expires_at: new Date(made.expires).toISOString() }]
  }

  /** Stores the state on the server. */
  async #keep(exchange: Exchange, place: LoadedState, draft: StateDraft): Promise<StateVersion> {
    let { version, mark } = place
    let { value } = draft
    for (let attempt = 0; attempt < tries; attempt++) {
      const made = await this.#after(exchange, version, value)
      // Earlier writes of the same transaction are undone together.
      const step = exchange.get(unitStep)
      if (step !== undefined && version.depth > 0 && version.unit !== step.unit) await this.#remember(exchange, version)
      if (await place.storage?.write(made, mark)) return made
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
      throw invalidState('The state that this call has read has since been rolled back')
    if (step !== undefined) await step.wrote({ session, unit: step.unit } satisfies StepWrite)
    const unit = step === undefined ? {} : { unit: step.unit }
    const data = value === undefined ? {} : { data: value }
    return { session, depth: depth + 1, tag: randomName(9), epoch: cuts.length, expires, ...unit, ...data }
  }

  /** Marks that others build on a transaction's write; false if it was undone. */
  async #buildsOn({ session, unit }: StateVersion, by: string | undefined): Promise<boolean> {
    if (unit === undefined) return true
    const { store, ttlMs } = this.#parts
    const undone = keys.undone({ session, unit })
    if (unit === by) return (await store.get(undone)) === undefined
    const ttl = ttlMs + graceMs
    return (await store.commit([check(undone, undefined), put(keys.later({ session, unit }), '', { ttl })])).ok
  }

  /** Stores the previous version, for callers without a token. */
  async #remember(exchange: Exchange, version: StateVersion): Promise<void> {
    const [key, text] = [keys.before(version.session, version.depth), JSON.stringify(version)]
    const ttl = Math.max(1, version.expires - this.#parts.clock.now())
    const noted = await this.#large.admitting(await accountOf(exchange), key, text.length, ttl)
    await this.#parts.store.commit([put(key, text, { ttl }), ...noted])
  }

  // Cut off by a rollback, or undone with its transaction.
  async #isUndone(version: StateVersion): Promise<boolean> {
    const { session, unit } = version
    if (isCut(version, await this.#cutsOf(session))) return true
    return unit !== undefined && (await this.#parts.store.get(keys.undone({ session, unit }))) !== undefined
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
    const { port, clock, ttlMs } = this.#parts
    const timestamp = new Date(clock.now()).toISOString()
    const why = reason === undefined ? {} : { reason }
    const told = await port(eventsPort).announcing(name, { type: name, session_id: session, timestamp, ...why }, owner)
    return told.length === 0 ? [] : [...told, put(keys.owner(session), owner, { ttl: ttlMs + graceMs })]
  }

  async #rolledBack(session: string): Promise<readonly Op[]> {
    const entry = await this.#parts.store.get(keys.owner(session))
    return entry === undefined ? [] : this.#announced('session_invalidated', session, entry.value, 'rolled back')
  }

  async #cutsOf(session: string): Promise<readonly number[]> {
    const entry = await this.#parts.store.get(keys.cuts(session))
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
function ruleOf({ port }: StateParts, { route, params }: Exchange): 'branch' | 'conflict' {
  const tool = route.method.name === 'tools/call' ? params['name'] : undefined
  return (typeof tool === 'string' ? port(toolsPort).facts(tool)?.state : undefined) ?? 'branch'
}

function stateConflict(): Error {
  return problem('STATE_CONFLICT', 'Another call has changed the same state in the meantime', {
    // The same call with the same state would fail again.
    category: 'permanent',
    suggestion: 'Repeat the call with the newest session_state, or without one',
  })
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
  throw problem('PAYLOAD_TOO_LARGE', `The state is larger than ${most} bytes (the limit)`, {
    suggestion: 'Store large contents elsewhere, and only their address in the state',
    actor: 'operator',
  })
}

/** Store errors become problems. */
function told(error: unknown): never {
  throw error instanceof StoreError ? problemOf(error) : error
}

// Adds the state to the result.
function stamped(result: unknown, wire: WireState): unknown {
  const given: Readonly<Record<string, unknown>> = isRecord(result) ? result : {}
  const meta = isRecord(given['_meta']) ? given['_meta'] : {}
  return { ...given, _meta: { ...meta, [stateExtension]: wire } }
}
