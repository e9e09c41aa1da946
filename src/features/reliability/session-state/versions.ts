/**
 * Versions of a state and where they are kept: in the conversation, in the store, or sealed in a token that the client carries. Large
 * states are always in the store, within limits per account.
 */
import { toBase64Url } from '../../../core/base64.ts'
import type { Clock } from '../../../core/clock.ts'
import { HandleError, type HandlePurpose } from '../../../core/handle.ts'
import { quotaExhausted, Shares } from '../../../core/occupancy.ts'
import { Problem, problem } from '../../../core/problem.ts'
import type { Conversation, ConversationSlot } from '../../../engine/conversation.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import { accountOf, ownerOf } from '../../../engine/owner.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import { type Entry, type Op, put, remove, type Store } from '../../../stores/store.ts'
import { type Lifecycle, readState, stateExtension, stateIn } from './messages.ts'
import type { StateParts } from './server.ts'

/** How long an expired state is still recognised as expired. */
export const graceMs = 7 * 86_400_000

/** One version of a state. */
export interface StateVersion {
  /** The session id, for operators. It grants no access. */
  readonly session: string
  /** How many versions precede it in its session; 0: none yet. */
  readonly depth: number
  /** Distinguishes versions of the same depth. */
  readonly tag: string
  /** How often the session had been rolled back when it was written. */
  readonly epoch: number
  /** When it expires, in milliseconds since the epoch. */
  readonly expires: number
  /** The value; absent if there is none, or if it is in the store. */
  readonly data?: unknown
  /** The value is in the store. */
  readonly elsewhere?: true
  /** The transaction that wrote it. */
  readonly unit?: string
}

/** The version before the first write. */
export function firstVersion(): StateVersion {
  return { session: randomName(16), depth: 0, tag: '', epoch: 0, expires: 0 }
}

/** Reads a version; undefined if the value is something else. */
export function readStateVersion(value: unknown): StateVersion | undefined {
  if (!isRecord(value) || typeof value['session'] !== 'string' || typeof value['tag'] !== 'string') return undefined
  const numbers = [value['depth'], value['epoch'], value['expires']]
  return numbers.every(Number.isSafeInteger) ? (value as unknown as StateVersion) : undefined
}

/** Whether a version was cut off by a later rollback. `cuts` are depths, by epoch. */
export function isCut({ depth, epoch }: StateVersion, cuts: readonly number[]): boolean {
  return cuts.slice(epoch).some(cut => depth > cut)
}

/** The problem for a state that is not valid. */
export function invalidState(message: string): Error {
  return problem('STATE_INVALID', message, restart)
}

function expiredState(): Error {
  return problem('STATE_EXPIRED', 'The session_state of this call has expired', restart)
}

const restart = { suggestion: 'Repeat the call without session_state', details: { recovery: 'restart' } }

/** A random name of so many bytes. */
export function randomName(bytes: number): string {
  return toBase64Url(crypto.getRandomValues(new Uint8Array(bytes)))
}

/** Where a state is kept. */
interface StateStorage {
  read(): Promise<{ readonly version: StateVersion; readonly mark: unknown } | undefined>
  /** Compare-and-set: false if the state no longer matches the mark; undefined means that nothing is there. */
  write(version: StateVersion, mark: unknown): Promise<boolean>
}

/** Where the state of a call was found. */
export interface LoadedState {
  readonly value: unknown
  readonly version: StateVersion
  /** Undefined: nothing is kept after the call. */
  readonly storage: StateStorage | undefined
  /** For compare-and-set. */
  readonly mark?: unknown
}

const stored: ConversationSlot<{ version: StateVersion | undefined }> = { make: () => ({ version: undefined }) }

/** Keeps the state in memory; it ends with the conversation. */
export function conversationStorage(conversation: Conversation): StateStorage {
  const memory = conversation.recall(stored)
  return {
    read: async () => (memory.version === undefined ? undefined : { version: memory.version, mark: memory.version }),
    write: async (version, mark) => {
      if (memory.version !== mark) return false
      memory.version = version
      return true
    },
  }
}

interface StoreStorageParts {
  readonly store: Store
  readonly large: LargeStates
  /** Whose state it is. */
  readonly owner: string
  /** Whose share it uses. */
  readonly account: string
  /** The owner is a user with one state; sessions can be many. */
  readonly ofUser: boolean
  readonly ttlMs: number
}

/** Keeps the state in the store. */
export function storeBackedStorage({ store, large, owner, account, ofUser, ttlMs }: StoreStorageParts): StateStorage {
  const key = `session-state/of/${owner}`
  return {
    read: async () => {
      const entry = await store.get(key)
      const version = entry === undefined ? undefined : readStateVersion(JSON.parse(entry.value))
      return entry === undefined || version === undefined ? undefined : { version, mark: entry.version }
    },
    write: async (version, mark) => {
      const expected = typeof mark === 'number' ? { ifVersion: mark } : { ifAbsent: true }
      const text = JSON.stringify(version)
      const noted = await large.admitting(account, key, text.length, ttlMs, ofUser ? oneLength : undefined)
      return (await store.commit([put(key, text, { ...expected, ttl: ttlMs }), ...noted])).ok
    },
  }
}

// Large states in the store, limited per account. If an account exceeds its share, its oldest state is removed; a client that returns
// with it is told that it has expired.

/** Smaller states do not count, if a caller can have many of them. */
const manyLength = 4 * 1024
/** Smaller states do not count, if there is one per user. */
const oneLength = 64 * 1024

const prefix = 'session-state/large/'
const mostRecords = 10_000
const mostLength = 64 * 1024 * 1024

/** The record about a stored state: its key and length. */
interface Note {
  readonly key: string
  readonly length: number
}

interface NoteEntry extends Note {
  readonly entry: Entry
  readonly account: string
}

/** Keeps track of large states. */
export class LargeStates {
  readonly #store: Store
  readonly #clock: Clock
  readonly #limit: number

  constructor(store: Store, clock: Clock) {
    this.#store = store
    this.#clock = clock
    this.#limit = Math.min(mostLength, Math.floor((store.capacity ?? Number.POSITIVE_INFINITY) / 8))
  }

  /** Store operations for a state of this length; removes older ones of the account if necessary. */
  async admitting(account: string, key: string, length: number, ttl: number, uncounted = manyLength): Promise<readonly Op[]> {
    if (length <= uncounted) return []
    const all = await this.#all()
    const shares = new Shares({ records: mostRecords, length: this.#limit })
    const others = all.filter(note => note.key !== key)
    for (const note of others) shares.add(note.account, 1, note.length)
    const mine = others.filter(note => note.account === account).sort((a, b) => a.entry.version - b.entry.version)
    while (!shares.fits(account, { records: 1, length })) {
      const oldest = mine.shift()
      if (oldest === undefined)
        throw quotaExhausted(
          'the states that the server stores',
          undefined,
          'Store large contents elsewhere, and only their address in the state',
        )
      await this.#store.commit([remove(oldest.key), remove(oldest.entry.key)])
      shares.add(account, -1, -oldest.length)
    }
    const before = all.find(note => note.key === key)
    const note: Note = { key, length }
    const place = before?.entry.key ?? `${prefix}${account}/${String(this.#clock.now()).padStart(15, '0')}-${crypto.randomUUID()}`
    return [put(place, JSON.stringify(note), { ttl })]
  }

  async #all(): Promise<readonly NoteEntry[]> {
    const found: NoteEntry[] = []
    for (let after: string | undefined; ; ) {
      const page = await this.#store.scan(prefix, after === undefined ? {} : { after })
      for (const entry of page) {
        const note: Note = JSON.parse(entry.value)
        found.push({ ...note, entry, account: entry.key.slice(prefix.length).split('/', 1)[0] ?? '' })
      }
      after = page.at(-1)?.key
      if (after === undefined) return found
    }
  }
}

interface TokenParts extends StateParts {
  readonly large: LargeStates
  readonly isUndone: (version: StateVersion) => Promise<boolean>
  readonly tell: (name: Lifecycle, session: string, owner: string, also?: readonly Op[]) => Promise<void>
}

/** Seals and opens the state tokens of one server. */
export class StateTokens {
  readonly #parts: TokenParts
  /** When a token that cannot be opened was last told to the operator. */
  #toldAt = Number.NEGATIVE_INFINITY

  constructor(parts: TokenParts) {
    this.#parts = parts
  }

  /** The state that a call carries. Throws if the token is invalid or expired. */
  async open(exchange: Exchange): Promise<LoadedState> {
    const { clock, isUndone, tell } = this.#parts
    const given = stateIn(exchange.meta)
    const said = given === undefined ? {} : readState(given)
    if (said === undefined)
      throw new McpError(
        'invalid-params',
        `params._meta["${stateExtension}"] must be an object with a string member session_state`,
      )
    if (said.session_state === undefined) return { value: undefined, version: firstVersion(), storage: undefined }
    const version = await this.#unsealed(said.session_state, exchange)
    if (version.expires <= clock.now()) {
      const told = put(`session-state/over/${version.session}`, '', { ifAbsent: true, ttl: graceMs })
      await tell('session_expired', version.session, await ownerOf(exchange), [told])
      throw expiredState()
    }
    if (await isUndone(version)) throw invalidState('The session_state of this call has been rolled back')
    return { value: await this.#valueOf(version), version, storage: undefined }
  }

  /** Seals a version as a token. */
  async seal(exchange: Exchange, version: StateVersion): Promise<string> {
    const { seal, store, clock, large } = this.#parts
    const content = { ...this.#purpose(exchange), expiresAt: version.expires + graceMs }
    try {
      return await seal.seal({ ...content, data: version })
    } catch (error) {
      if (!(error instanceof Problem && error.code === 'PAYLOAD_TOO_LARGE')) throw error
      const { data, ...rest } = version
      const [key, text, ttl] = [dataKey(version), JSON.stringify(data), version.expires - clock.now() + graceMs]
      const noted = await large.admitting(await accountOf(exchange), key, text.length, ttl)
      await store.commit([put(key, text, { ttl }), ...noted])
      return seal.seal({ ...content, data: { ...rest, elsewhere: true } })
    }
  }

  #purpose({ caller }: Exchange): HandlePurpose {
    return { kind: 'session-state', principal: caller.principal?.id, audience: this.#parts.name }
  }

  async #unsealed(token: string, exchange: Exchange): Promise<StateVersion> {
    const opened = await this.#parts.seal.open(token, this.#purpose(exchange)).catch(error => {
      if (!(error instanceof HandleError)) throw error
    })
    const version = readStateVersion(opened)
    if (version !== undefined) return version
    this.#logForeign()
    throw invalidState('The session_state of this call was not issued by this server to this caller')
  }

  /** Clients send whatever they like, so the operator is told at most once a minute. */
  #logForeign(): void {
    const { clock, trace } = this.#parts
    if (clock.now() - this.#toldAt < logMs) return
    this.#toldAt = clock.now()
    trace('state-not-opened', foreignToken)
  }

  async #valueOf(version: StateVersion): Promise<unknown> {
    if (version.elsewhere === undefined) return version.data
    const entry = await this.#parts.store.get(dataKey(version))
    // Not expired, but the store has lost it, or is another one.
    if (entry === undefined) throw expiredState()
    return JSON.parse(entry.value)
  }
}

/** How often the log is told of tokens that cannot be opened, at most. */
const logMs = 60_000

const foreignToken = {
  hint: 'A call carried a state that this process cannot open. Replicas, and a server after a restart, need the same option secret. Otherwise the client has altered the state, or sent that of another caller',
}

function dataKey({ session, tag }: StateVersion): string {
  return `session-state/at/${session}/${tag}`
}
