/** What the memory store holds, and what that weighs. */
import { checkOps, checkSteps, sumOf } from './checks.ts'
import { type Conflict, type Entry, type Op, StoreError } from './store.ts'

export interface MemoryLog<V> {
  /** The position of the first entry, or of the next one where there is none. */
  first: number
  readonly values: V[]
}

/** What a commit works on. */
export class MemoryTables<V> {
  readonly entries = new Map<string, Entry<V>>()
  /** The keys of `entries`, sorted. */
  readonly keys: string[] = []
  readonly logs = new Map<string, MemoryLog<V>>()
  readonly values: MemoryValues<V>
  version = 0
  bytes = 0

  constructor(values: MemoryValues<V>) {
    this.values = values
  }
}

/** What the tables must know of values. */
export interface MemoryValues<V> {
  /** Refuses what no store keeps. */
  check(ops: readonly Op<V>[]): void
  /** What a key and its value take up, near enough for a limit. */
  weight(key: string, value: V): number
  /** The sum of an `add` with its value, or what stands in its way. */
  add(op: Op<V> & { op: 'add' }, found: Entry<V> | undefined): { readonly sum: number; readonly value: V } | Conflict['reason']
}

/** Values as all drivers keep them. */
export const textValues: MemoryValues<string> = {
  check: checkOps,
  weight: (key, value) => 2 * (key.length + value.length) + 64,
  add: (op, found) => {
    const sum = sumOf(op, found)
    return typeof sum === 'string' ? sum : { sum, value: String(sum) }
  },
}

/** Values by reference: neither copied nor written as text, so their size is not known and whoever keeps them bounds them. */
export function objectValues<V extends object>(): MemoryValues<V> {
  return {
    check: checkSteps,
    weight: () => 0,
    add: () => {
      throw new StoreError('input', 'A store of objects does not count: use a store of text')
    },
  }
}

/** Whether the time of an entry is over. */
export function isOver(entry: Entry<unknown>, now: number): boolean {
  return entry.expires !== undefined && entry.expires <= now
}
