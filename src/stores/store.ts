/**
 * What must last is kept here: keys with versions, and logs with positions. One small contract that memory, SQLite and
 * Postgres keep alike; `test/stores/contract.ts` holds its sentences. Values are text, by custom JSON; where nothing leaves this process
 * (`memoryObjectStore`) they are objects.
 */
/** A key and its value. An expired entry is absent at once. */
export interface Entry<V = string> {
  /** The key. */
  readonly key: string
  /** The value, as it was written. */
  readonly value: V
  /** Changes with every write. Versions come from one counter per store and are never reused. */
  readonly version: number
  /** When the entry expires, in milliseconds since the epoch. Absent: never. */
  readonly expires?: number
}

/** The position of an entry in its log: 1, 2, 3 … without gaps, also after a trim. */
export type LogPosition = number

/** One entry of a log. */
export interface LogEntry<V = string> {
  /** Its position. Positions increase by one and are never reused. */
  readonly position: LogPosition
  /** The value, as it was appended. */
  readonly value: V
}

/** Options of `scan`. */
export interface ScanOptions {
  /** Only keys greater than this one. Default: from the first key. */
  readonly after?: string
  /** Only keys less than this one. Default: to the last key. */
  readonly before?: string
  /** The most entries. Default and maximum 1,000. */
  readonly limit?: number
}

/** Options of `read`. */
export interface ReadOptions {
  /** Only entries after this position. Default: from the oldest entry. */
  readonly after?: LogPosition
  /** The most entries. Default and maximum 1,000. */
  readonly limit?: number
}

/** One step of a commit. Steps run in order, each sees the effects of those before it, and either all are written or none. */
export type Op<V = string> =
  /** The key has this version; undefined: it is absent. */
  | {
      /** The kind of the step. */
      readonly op: 'check'
      /** The key. */
      readonly key: string
      /** The version that the key must have. Undefined: the key must be absent. */
      readonly version: number | undefined
    }
  | {
      /** The kind of the step. */
      readonly op: 'put'
      /** The key. */
      readonly key: string
      /** The value. */
      readonly value: V
      /** The version that the key must have. Default: any. */
      readonly ifVersion?: number
      /** Whether the key must be absent. Default false. */
      readonly ifAbsent?: boolean
      /** How long the entry lives, in milliseconds. Default: it stays. */
      readonly ttl?: number
    }
  /** Deleting what is absent is no conflict, unless a version was named. */
  | {
      /** The kind of the step. */
      readonly op: 'delete'
      /** The key. */
      readonly key: string
      /** The version that the key must have. Default: any. */
      readonly ifVersion?: number
    }
  /** Counts. An absent key counts from 0, and then takes the time to live; later additions leave it. */
  | {
      /** The kind of the step. */
      readonly op: 'add'
      /** The key. */
      readonly key: string
      /** The number to add; it may be negative. */
      readonly by: number
      /** The smallest sum that is allowed. Default: none. */
      readonly min?: number
      /** The largest sum that is allowed. Default: none. */
      readonly max?: number
      /** How long the entry lives, in milliseconds. Default: it stays. */
      readonly ttl?: number
    }
  /** `at`: the position it must get. */
  | {
      /** The kind of the step. */
      readonly op: 'append'
      /** The name of the log. */
      readonly log: string
      /** The value. */
      readonly value: V
      /** The position that the entry must get. Default: the next one. */
      readonly at?: LogPosition
    }
  /** Forgets the entries before a position; positions go on. */
  | {
      /** The kind of the step. */
      readonly op: 'trim'
      /** The name of the log. */
      readonly log: string
      /** The position of the first entry that stays. */
      readonly before: LogPosition
    }

/** The result of one step of a commit. */
export interface OpResult {
  /** The version that `put` or `add` wrote. */
  readonly version?: number
  /** The position of the appended entry. */
  readonly position?: LogPosition
  /** The value of the counter after `add`. */
  readonly sum?: number
}

/** A commit that was written. */
export interface Committed {
  /** The commit was written. */
  readonly ok: true
  /** One result per step. */
  readonly results: readonly OpResult[]
}

/**
 * A commit that was not written, because a condition of one step did not hold. It is a normal outcome of a race, so it is
 * returned and not thrown.
 */
export interface Conflict {
  /** The commit was not written. */
  readonly ok: false
  /** The index of the step whose condition did not hold. */
  readonly index: number
  /** The condition that did not hold. */
  readonly reason: 'version' | 'present' | 'absent' | 'range' | 'number' | 'position'
}

/** A store of keys and logs. All drivers behave alike. */
export interface Store<V = string> {
  /** The most characters of keys and values, if the store is limited. */
  readonly capacity?: number
  /** Returns the entry of a key. Undefined if there is none or it has expired. */
  get(key: string): Promise<Entry<V> | undefined>
  /**
   * Returns the entries whose keys begin with `prefix`, in the order of their UTF-8 bytes. If there are fewer than `limit`, there
   * are no more.
   */
  scan(prefix: string, options?: ScanOptions): Promise<readonly Entry<V>[]>
  /** The entries of a log after a position, in order. */
  read(log: string, options?: ReadOptions): Promise<readonly LogEntry<V>[]>
  /** Writes all steps or none. When it resolves, the data is as durable as the driver makes it: on disk, or in memory. */
  commit(ops: readonly Op<V>[]): Promise<Committed | Conflict>
  /**
   * Yields when keys or logs with one of the prefixes may have changed, by any process. It is a hint: changes can be combined or
   * missed, so read from your cursor, and look again from time to time.
   */
  watch(prefixes: readonly string[], signal: AbortSignal): AsyncIterable<void>
  /** Closes the store and ends watches. Later calls fail. */
  close(): Promise<void>
}

/** What every driver refuses beyond. */
export const storeLimits = {
  valueBytes: 8 * 1024 * 1024,
  keyBytes: 1024,
  ops: 1000,
  page: 1000,
} as const

/** An error of a store. */
export class StoreError extends Error {
  /** Always `StoreError`. */
  override readonly name = 'StoreError'
  /** `input`: invalid arguments. `full`: no space left. `closed`: the store was closed. `failed`: the driver or its disk failed. */
  readonly kind: 'input' | 'full' | 'closed' | 'failed'

  constructor(kind: StoreError['kind'], message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.kind = kind
  }
}

/** The words of whatever a driver or its database threw. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** Options of `put`. */
export interface PutOptions {
  /** The version that the key must have, else the commit is a conflict. Default: any. */
  readonly ifVersion?: number
  /** Whether the key must be absent, else the commit is a conflict. Default false. */
  readonly ifAbsent?: boolean
  /** How long the entry lives, in milliseconds. Default: it stays. */
  readonly ttl?: number
}

/** Options of `add`. */
export interface AddOptions {
  /** The smallest sum; a smaller one is a conflict. Default: none. */
  readonly min?: number
  /** The largest sum; a larger one is a conflict. Default: none. */
  readonly max?: number
  /** How long a new counter lives, in milliseconds from the first `add`. Default: it stays. */
  readonly ttl?: number
}

/** A step that holds only if the key has this version; undefined: only if it is absent. */
export const check = <V = string>(key: string, version: number | undefined): Op<V> => ({ op: 'check', key, version })
/** A step that writes a value. */
export const put = <V>(key: string, value: V, options?: PutOptions): Op<V> => ({ op: 'put', key, value, ...options })
/** A step that deletes a key; with a version, only that version. Deleting an absent key without a version does not conflict. */
export const remove = <V = string>(key: string, ifVersion?: number): Op<V> =>
  ifVersion === undefined ? { op: 'delete', key } : { op: 'delete', key, ifVersion }
/** A step that adds to a counter, which begins at 0. */
export const add = (key: string, by: number, options?: AddOptions): Op => ({ op: 'add', key, by, ...options })
/** A step that appends to a log; with a position, only at that position. */
export const append = <V>(log: string, value: V, at?: LogPosition): Op<V> =>
  at === undefined ? { op: 'append', log, value } : { op: 'append', log, value, at }
/** A step that removes the entries of a log before a position. Positions continue. */
export const trim = <V = string>(log: string, before: LogPosition): Op<V> => ({ op: 'trim', log, before })

/** All entries of a prefix in the order of their keys, in pages of `limit`. */
export async function* entriesUnder(store: Store, prefix: string, options: ScanOptions = {}): AsyncGenerator<Entry> {
  const { limit = storeLimits.page } = options
  for (let { after } = options; ; ) {
    const page = await store.scan(prefix, { ...options, ...(after !== undefined && { after }) })
    yield* page
    after = page.at(-1)?.key
    if (after === undefined || page.length < limit) return
  }
}

// A part of a store as a store of its own: its keys and logs lie under a prefix, and nobody sees beyond it.

/** Closing it closes nothing: the whole is its owner's. */
export function prefixedStore(store: Store, prefix: string): Store {
  const inside = (entry: Entry): Entry => ({ ...entry, key: entry.key.slice(prefix.length) })
  return {
    get: async key => {
      const entry = await store.get(prefix + key)
      return entry === undefined ? undefined : inside(entry)
    },
    scan: async (start, { after, before, ...rest } = {}) => {
      const bounds = {
        ...rest,
        ...(after === undefined ? {} : { after: prefix + after }),
        ...(before === undefined ? {} : { before: prefix + before }),
      }
      return (await store.scan(prefix + start, bounds)).map(inside)
    },
    read: (log, options) => store.read(prefix + log, options),
    commit: ops => store.commit(ops.map(op => under(op, prefix))),
    watch: (prefixes, signal) =>
      store.watch(
        prefixes.map(each => prefix + each),
        signal,
      ),
    close: () => Promise.resolve(),
  }
}

function under(op: Op, prefix: string): Op {
  return 'log' in op ? { ...op, log: prefix + op.log } : { ...op, key: prefix + op.key }
}
