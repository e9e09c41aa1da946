/** Keeping the state of callers who echo no token: with their conversation, or under a key of the store that any process finds. */
import type { Conversation, Memory } from '../../../engine/conversation.ts'
import { put, type Store } from '../../../stores/store.ts'
import { type LargeStates, oneLength } from './large-states.ts'
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
