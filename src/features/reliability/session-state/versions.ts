/** One version of a state, as it lies sealed in a token or under a key of the store. */
import { toBase64Url } from '../../../core/base64.ts'
import type { Clock } from '../../../core/clock.ts'
import { HandleError, type HandlePurpose } from '../../../core/handle.ts'
import { quotaExhausted, Shares } from '../../../core/occupancy.ts'
import { Problem, problem } from '../../../core/problem.ts'
import type { Conversation, Memory } from '../../../engine/conversation.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import { accountOf, ownerOf } from '../../../engine/owner.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import { type Entry, type Op, put, remove, type Store } from '../../../stores/store.ts'
import { type Lifecycle, readState, stateExtension, stateIn } from './messages.ts'
import { graceMs, type StatePlace, type StateRuntimeParts } from './runtime.ts'

/** One version of a state. */
export interface StateVersion {
  /** Names its session to operators. No authority: only a token, a session or a principal gets at a state. */
  readonly session: string
  /** How many were written before it on its way, from 1; 0: none yet. */
  readonly depth: number
  /** Tells it from others at that depth. */
  readonly tag: string
  /** How often its session had been rolled back when it was written. */
  readonly epoch: number
  /** From when on it is too old, in milliseconds since the epoch. */
  readonly expires: number
  /** Absent: nothing, or kept on the store. */
  readonly data?: unknown
  /** It is kept on the store. */
  readonly elsewhere?: true
  /** The unit of work whose step wrote it: undone with that. */
  readonly unit?: string
}

export function firstVersion(): StateVersion {
  return { session: randomName(16), depth: 0, tag: '', epoch: 0, expires: 0 }
}

export function nextTag(): string {
  return randomName(9)
}

/** Undefined for whatever else was sealed or stored there. */
export function readStateVersion(value: unknown): StateVersion | undefined {
  if (!isRecord(value) || typeof value['session'] !== 'string' || typeof value['tag'] !== 'string') return undefined
  const numbers = [value['depth'], value['epoch'], value['expires']]
  return numbers.every(Number.isSafeInteger) ? (value as unknown as StateVersion) : undefined
}

/** What was written after a cut, and before it was made. `cuts` are depths, by epoch. */
export function isCut({ depth, epoch }: StateVersion, cuts: readonly number[]): boolean {
  return cuts.slice(epoch).some(cut => depth > cut)
}

/** So many are told apart; the oldest cut holds for all before it. */
const mostCuts = 1_000

export function withCut(cuts: readonly number[], depth: number): readonly number[] {
  if (cuts.length < mostCuts) return [...cuts, depth]
  throw problem('STATE_CONFLICT', `This session was rolled back ${mostCuts} times`, { category: 'permanent' })
}

export function invalidState(message: string): Error {
  return problem('STATE_INVALID', message, restart)
}

function expiredState(): Error {
  return problem('STATE_EXPIRED', 'The state that this call came with is too old', restart)
}

export function stateConflict(): Error {
  return problem('STATE_CONFLICT', 'Another call wrote the same state meanwhile', {
    // The same call with the same state would meet the same conflict.
    category: 'permanent',
    suggestion: 'Make the call again with the newest state, or start again without one',
  })
}

const restart = { suggestion: 'Start again without session_state', details: { recovery: 'restart' } }

function randomName(bytes: number): string {
  return toBase64Url(crypto.getRandomValues(new Uint8Array(bytes)))
}

export interface Keeper {
  read(): Promise<{ readonly version: StateVersion; readonly mark: unknown } | undefined>
  /** False where it is no longer what the mark stands for; undefined stands for nothing being there. */
  write(version: StateVersion, mark: unknown): Promise<boolean>
}

const kept: Memory<{ version: StateVersion | undefined }> = { make: () => ({ version: undefined }) }

/** Gone with the conversation. */
export function conversationKeeper(conversation: Conversation): Keeper {
  const memory = conversation.recall(kept)
  return {
    read: async () => (memory.version === undefined ? undefined : { version: memory.version, mark: memory.version }),
    write: async (version, mark) => {
      if (memory.version !== mark) return false
      memory.version = version
      return true
    },
  }
}

interface StoreKeeperParts {
  readonly store: Store
  readonly large: LargeStates
  /** Whose it is, and whose share it counts against. */
  readonly owner: string
  readonly account: string
  /** Its owner is a user, who has one state. Sessions are as many as somebody opens. */
  readonly ofUser: boolean
  readonly ttlMs: number
}

export function storeKeeper({ store, large, owner, account, ofUser, ttlMs }: StoreKeeperParts): Keeper {
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

// States that are too large for a token, and lie on the store: counted by account, so that nobody fills it for others. A state guards
// nothing, so here the oldest of the same account gives way; whoever comes back for it is told that it is too old, and starts again.

/** Shorter ones do not count where a caller can have many of them; */
const manyLength = 4 * 1024
/** nor do these, where there is one for each user. */
const oneLength = 64 * 1024

const prefix = 'session-state/large/'
const mostRecords = 10_000
const mostLength = 64 * 1024 * 1024

/** As it is kept beside a state: where that lies, and what it takes. */
interface Note {
  readonly key: string
  readonly length: number
}

interface Noted extends Note {
  readonly entry: Entry
  readonly account: string
}

export class LargeStates {
  readonly #store: Store
  readonly #clock: Clock
  readonly #limit: number

  constructor(store: Store, clock: Clock) {
    this.#store = store
    this.#clock = clock
    this.#limit = Math.min(mostLength, Math.floor((store.capacity ?? Number.POSITIVE_INFINITY) / 8))
  }

  /** The steps that go with writing a state of that length there; none for one that does not count. Lets older ones of the account go. */
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
          'states kept by the server',
          undefined,
          'Keep large contents elsewhere and their address in the state',
        )
      await this.#store.commit([remove(oldest.key), remove(oldest.entry.key)])
      shares.add(account, -1, -oldest.length)
    }
    const before = all.find(note => note.key === key)
    const note: Note = { key, length }
    const place = before?.entry.key ?? `${prefix}${account}/${String(this.#clock.now()).padStart(15, '0')}-${crypto.randomUUID()}`
    return [put(place, JSON.stringify(note), { ttl })]
  }

  async #all(): Promise<readonly Noted[]> {
    const found: Noted[] = []
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

interface TokenParts extends StateRuntimeParts {
  readonly large: LargeStates
  readonly isUndone: (version: StateVersion) => Promise<boolean>
  readonly tell: (name: Lifecycle, session: string, owner: string, also?: readonly Op[]) => Promise<void>
}

export interface StateTokenSealer {
  /** What the call came with. Throws where it is not good, or no longer. */
  open(exchange: Exchange): Promise<StatePlace>
  seal(exchange: Exchange, version: StateVersion): Promise<string>
}

export function createTokens(parts: TokenParts): StateTokenSealer {
  const { opened: store, clock, seal } = parts
  const purpose = ({ caller }: Exchange): HandlePurpose => ({
    kind: 'session-state',
    principal: caller.principal?.id,
    audience: parts.audience,
  })
  const whole = async (version: StateVersion): Promise<unknown> => {
    if (version.elsewhere === undefined) return version.data
    const entry = await store.get(dataKey(version))
    // Its time is not over, but the store lost it, or was another one.
    if (entry === undefined) throw expiredState()
    return JSON.parse(entry.value)
  }
  return {
    open: async exchange => {
      const given = stateIn(exchange.meta)
      const said = given === undefined ? {} : readState(given)
      if (said === undefined)
        throw new McpError('invalid-params', `params._meta["${stateExtension}"] must be an object with the text session_state`)
      if (said.session_state === undefined) return { value: undefined, version: firstVersion(), keeper: undefined }
      const version = await unsealed(parts, said.session_state, purpose(exchange))
      if (version.expires <= clock.now()) {
        const told = put(`session-state/over/${version.session}`, '', { ifAbsent: true, ttl: graceMs })
        await parts.tell('session_expired', version.session, await ownerOf(exchange), [told])
        throw expiredState()
      }
      if (await parts.isUndone(version)) throw invalidState('The state that this call came with was undone')
      return { value: await whole(version), version, keeper: undefined }
    },
    seal: async (exchange, version) => {
      const content = { ...purpose(exchange), expiresAt: version.expires + graceMs }
      try {
        return await seal.seal({ ...content, data: version })
      } catch (error) {
        if (!(error instanceof Problem && error.code === 'PAYLOAD_TOO_LARGE')) throw error
        const { data, ...rest } = version
        const [key, text, ttl] = [dataKey(version), JSON.stringify(data), version.expires - clock.now() + graceMs]
        const noted = await parts.large.admitting(await accountOf(exchange), key, text.length, ttl)
        await store.commit([put(key, text, { ttl }), ...noted])
        return seal.seal({ ...content, data: { ...rest, elsewhere: true } })
      }
    },
  }
}

async function unsealed({ seal }: TokenParts, token: string, purpose: HandlePurpose): Promise<StateVersion> {
  const unknown = () => invalidState('The state that this call came with is not one that this server gave to this caller')
  try {
    const version = readStateVersion(await seal.open(token, purpose))
    if (version === undefined) throw unknown()
    return version
  } catch (error) {
    throw error instanceof HandleError ? unknown() : error
  }
}

function dataKey({ session, tag }: StateVersion): string {
  return `session-state/at/${session}/${tag}`
}
