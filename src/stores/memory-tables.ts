/** What the memory store holds, and what that weighs. */
import type { Entry } from './store.ts'

export interface MemoryLog {
  /** The position of the first entry, or of the next one where there is none. */
  first: number
  readonly values: string[]
}

/** What a commit works on. */
export class MemoryTables {
  readonly entries = new Map<string, Entry>()
  /** The keys of `entries`, sorted. */
  readonly keys: string[] = []
  readonly logs = new Map<string, MemoryLog>()
  version = 0
  bytes = 0
}

export function isOver(entry: Entry, now: number): boolean {
  return entry.expires !== undefined && entry.expires <= now
}

/** What a key and its value take up, near enough for a limit. */
export function weight(key: string, value: string): number {
  return 2 * (key.length + value.length) + 64
}
