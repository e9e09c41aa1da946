/**
 * What must last is kept here: keys with versions, and logs with positions. One small contract that memory, SQLite and
 * Postgres keep alike; `test/stores/contract.ts` holds its sentences. Values are text, by custom JSON; where nothing leaves this process
 * (`memoryObjectStore`) they are objects.
 */
/** A key that is there. An expired one is absent at once. */
export interface Entry<V = string> {
  readonly key: string
  /** As it was put. */
  readonly value: V
  /** Changes with every write, comes from one counter per store, and is never given twice. */
  readonly version: number
  /** Milliseconds since the epoch. */
  readonly expires?: number
}

/** The place of an entry in its log: 1, 2, 3 … without gaps, also after a trim. */
export type LogPosition = number

/** One value of a log. */
export interface LogEntry<V = string> {
  /** Counts up by one within its log, and is never given twice. */
  readonly position: LogPosition
  readonly value: V
}

/** Which keys of a prefix to give. */
export interface ScanOptions {
  /** Only keys above this one. */
  readonly after?: string
  /** Only keys below this one. */
  readonly before?: string
  /** Default 1,000, which is also the most. */
  readonly limit?: number
}

/** Which entries of a log to give. */
export interface ReadOptions {
  /** Only entries after this position. */
  readonly after?: LogPosition
  /** Default 1,000, which is also the most. */
  readonly limit?: number
}

/** One step of a commit. Steps run in order, each sees those before it, and all happen or none. */
export type Op<V = string> =
  /** The key has this version; undefined: it is absent. */
  | { readonly op: 'check'; readonly key: string; readonly version: number | undefined }
  | {
      readonly op: 'put'
      readonly key: string
      readonly value: V
      readonly ifVersion?: number
      readonly ifAbsent?: boolean
      /** Milliseconds to live. Without it the entry stays. */
      readonly ttl?: number
    }
  /** Deleting what is absent is no conflict, unless a version was named. */
  | { readonly op: 'delete'; readonly key: string; readonly ifVersion?: number }
  /** Counts. An absent key counts from 0, and then takes the time to live; later additions leave it. */
  | {
      readonly op: 'add'
      readonly key: string
      readonly by: number
      readonly min?: number
      readonly max?: number
      readonly ttl?: number
    }
  /** `at`: the position it must get. */
  | { readonly op: 'append'; readonly log: string; readonly value: V; readonly at?: LogPosition }
  /** Forgets the entries before a position; positions go on. */
  | { readonly op: 'trim'; readonly log: string; readonly before: LogPosition }

/** What came of a step: a version of `put` and `add`, a position of `append`, the sum of `add`. */
export interface OpResult {
  /** Of what a put or an add wrote. */
  readonly version?: number
  /** Of what was appended. */
  readonly position?: LogPosition
  /** What a counter holds after an add. */
  readonly sum?: number
}

/** What a commit that went through gives. */
export interface Committed {
  readonly ok: true
  /** One for each step. */
  readonly results: readonly OpResult[]
}

/** Nothing was written, because one step did not hold. An ordinary outcome of a race, hence no exception. */
export interface Conflict {
  readonly ok: false
  /** Which step. */
  readonly index: number
  /** What did not hold. */
  readonly reason: 'version' | 'present' | 'absent' | 'range' | 'number' | 'position'
}

/** The contract of all drivers. */
export interface Store<V = string> {
  /** Characters of keys and values that it holds, where it holds no more than so many. */
  readonly capacity?: number
  /** Undefined where there is none, or its time is over. */
  get(key: string): Promise<Entry<V> | undefined>
  /** Keys that begin with `prefix`, in the order of their UTF-8 bytes. Fewer than `limit`: there are no more. */
  scan(prefix: string, options?: ScanOptions): Promise<readonly Entry<V>[]>
  /** The entries of a log after a position, in order. */
  read(log: string, options?: ReadOptions): Promise<readonly LogEntry<V>[]>
  /** When it returns, it is as lasting as the driver: on disk, or in memory. */
  commit(ops: readonly Op<V>[]): Promise<Committed | Conflict>
  /**
   * Yields when keys or logs that begin with one of the prefixes may have changed, by anybody. A hint only: several changes
   * may be one, and one may get lost, so readers catch up by cursor and look again now and then.
   */
  watch(prefixes: readonly string[], signal: AbortSignal): AsyncIterable<void>
  /** Ends watches. Whoever uses the store afterwards gets an error. */
  close(): Promise<void>
}

/** What every driver refuses beyond. */
export const storeLimits = {
  valueBytes: 8 * 1024 * 1024,
  keyBytes: 1024,
  ops: 1000,
  page: 1000,
} as const

/** The store cannot do what was asked: closed, full, or asked for what the contract forbids. */
export class StoreError extends Error {
  override readonly name = 'StoreError'
  /** `input`: the caller's mistake; `full`: no room; `closed`: after close(); `failed`: the driver or its disk said no. */
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

/** Steps of a commit, written as words. */
export interface PutOptions {
  /** Only where the key has this version. */
  readonly ifVersion?: number
  /** Only where the key is absent. */
  readonly ifAbsent?: boolean
  /** Milliseconds after which the entry is absent. */
  readonly ttl?: number
}

/** Options of counting: the range that the sum must stay in, and how long a new counter lives. */
export interface AddOptions {
  /** A sum below is a conflict. */
  readonly min?: number
  /** A sum above is a conflict. */
  readonly max?: number
  /** Milliseconds, counted from the first add. */
  readonly ttl?: number
}

/** Holds only if the key has this version; undefined: only if it is absent. */
export const check = <V = string>(key: string, version: number | undefined): Op<V> => ({ op: 'check', key, version })
/** Writes a value. */
export const put = <V>(key: string, value: V, options?: PutOptions): Op<V> => ({ op: 'put', key, value, ...options })
/** Deletes a key; with a version, only that one. */
export const remove = <V = string>(key: string, ifVersion?: number): Op<V> =>
  ifVersion === undefined ? { op: 'delete', key } : { op: 'delete', key, ifVersion }
/** Adds to a counter, which begins at 0. */
export const add = (key: string, by: number, options?: AddOptions): Op => ({ op: 'add', key, by, ...options })
/** Appends to a log; with a position, only there. */
export const append = <V>(log: string, value: V, at?: LogPosition): Op<V> =>
  at === undefined ? { op: 'append', log, value } : { op: 'append', log, value, at }
/** Drops the entries of a log before a position. */
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
