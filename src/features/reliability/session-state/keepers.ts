/** Keeping the state of callers who echo no token: with their conversation, or under a key of the store that any process finds. */
import type { Conversation, Memory } from '../../../engine/conversation.ts'
import { put } from '../../../stores/ops.ts'
import type { Store } from '../../../stores/store.ts'
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

export function storeKeeper(store: Store, owner: string, ttlMs: number): Keeper {
  const key = `session-state/of/${owner}`
  return {
    read: async () => {
      const entry = await store.get(key)
      const version = entry === undefined ? undefined : readStateVersion(JSON.parse(entry.value))
      return entry === undefined || version === undefined ? undefined : { version, mark: entry.version }
    },
    write: async (version, mark) => {
      const expected = typeof mark === 'number' ? { ifVersion: mark } : { ifAbsent: true }
      return (await store.commit([put(key, JSON.stringify(version), { ...expected, ttl: ttlMs })])).ok
    },
  }
}
