/** Keeping the state of callers who echo no token: with their conversation, or under a key of the store that any process finds. */
import type { Clock } from '../../../core/clock.ts'
import { quotaExhausted, Shares } from '../../../core/occupancy.ts'
import type { Conversation, Memory } from '../../../engine/conversation.ts'
import { type Entry, type Op, put, remove, type Store } from '../../../stores/store.ts'
import { readStateVersion, type StateVersion } from './version.ts'

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
