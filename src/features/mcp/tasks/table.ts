/**
 * Where tasks are kept: on a store, be it that of this process alone or one that others share; then every process answers for them. A task
 * that has ended never changes again, one whose time is over is absent at once, and a full table forgets only what has ended, by the shares
 * in `eviction.ts`. One whose process has gone fails as soon as anybody asks for it, or needs its place.
 */
import type { Clock } from '../../../core/clock.ts'
import type { ProcessLeases } from '../../../core/journal/process-leases.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import type { Awaitable, Params } from '../../../jsonrpc/message.ts'
import type { RevisionId } from '../../../revisions/index.ts'
import { memoryObjectStore } from '../../../stores/memory.ts'
import { put, remove, type Store, storeLimits } from '../../../stores/store.ts'
import { isTerminal } from './messages.ts'
import {
  accountIn,
  evictForBytes,
  evictForOne,
  hasCapacity,
  objectFormat,
  type TableLimits,
  type TaskFormat,
  type TaskIndexEntry,
  type TaskObject,
  type TaskRecord,
  tableLimits,
  taskKeys,
  textFormat,
} from './record.ts'

/** Tasks of one principal, oldest first. */
interface TaskPage {
  readonly records: readonly TaskRecord[]
  /** Give this to the next `list`. Undefined on the last page. */
  readonly next: string | undefined
}

/** The tasks of a server, or of the server that a client is connected to. */
export interface TaskTable {
  /** Other processes, and this one after a restart, see the same tasks. */
  readonly durable: boolean
  /** Rejects with a busy refusal when there is no room. */
  add(record: TaskRecord): Promise<void>
  /** Undefined where there is none, or its time is over. */
  get(id: string): Promise<TaskRecord | undefined>
  /**
   * Replaces a record by what `change` makes of it, in one piece; undefined leaves it. Gives the new record, or undefined when
   * nothing changed: unknown, over, ended before, or left. Rejects with a busy refusal when the new one does not fit.
   */
  change(id: string, change: (record: TaskRecord) => TaskRecord | undefined): Promise<TaskRecord | undefined>
  /** The tasks of one principal on one wire, oldest first. */
  list(
    owner: string,
    revision: RevisionId,
    page: { readonly after?: string | undefined; readonly limit: number },
  ): Promise<TaskPage>
  delete(id: string): Promise<void>
  /** Leaves answers for the process that works on a task, where that is another one. */
  post(id: string, answers: Params): Promise<void>
  /** The answers that were left, each once. */
  take(id: string): Promise<readonly Params[]>
  /** This process works on it no more. */
  left(id: string): void
  /** Calls back for a task that was found to be at work in a process that is gone, and has failed by that. */
  onAbandoned(fn: (record: TaskRecord) => void): void
}

/** Tasks of this process alone, gone with it. */
export function memoryTasks(clock: Clock, limits: TableLimits = tableLimits): TaskTable {
  const store = memoryObjectStore<TaskObject>({ now: clock.now })
  return new StoreTasks({ open: () => store, clock, limits }, objectFormat, false)
}

/** Where tasks are kept for all processes that share a store. */
interface StoreTasksOptions {
  readonly open: () => Promise<Store>
  readonly clock: Clock
  /** Which processes are alive. Without it all are taken to be. */
  readonly runners?: (() => Promise<ProcessLeases>) | undefined
  readonly limits?: TableLimits
}

/** Tasks that last, and that every process knows which has the same store. */
export function storeTasks(options: StoreTasksOptions): TaskTable {
  return new StoreTasks(options, textFormat, true)
}

interface FoundTask {
  readonly record: TaskRecord
  readonly version: number
}

/** How often a change is tried anew because another one was faster. */
const tries = 20
/** How long answers wait. Whoever works on a task looks far more often. */
const answersMs = 60_000
const pageSize = 100

class StoreTasks<V> implements TaskTable {
  readonly durable: boolean
  readonly #open: () => Awaitable<Store<V>>
  readonly #format: TaskFormat<V>
  readonly #clock: Clock
  readonly #limits: TableLimits
  readonly #runners: (() => Promise<ProcessLeases>) | undefined
  /** What this process works on, where others must know that it lives. */
  readonly #held = new Set<string>()
  /** At most so much is kept, where nobody else writes: as long as that is little, nothing has to be counted. */
  #most: { tasks: number; bytes: number }
  #sequence = 0
  #turn: Promise<unknown> = Promise.resolve()
  #abandoned: (record: TaskRecord) => void = () => {}

  constructor(
    { open, clock, runners, limits = tableLimits }: Omit<StoreTasksOptions, 'open'> & { open: () => Awaitable<Store<V>> },
    format: TaskFormat<V>,
    durable: boolean,
  ) {
    this.#open = open
    this.#format = format
    this.#clock = clock
    this.#runners = runners
    this.#limits = limits
    this.durable = durable
    const unknown = Number.POSITIVE_INFINITY
    this.#most = durable ? { tasks: unknown, bytes: unknown } : { tasks: 0, bytes: 0 }
  }

  async add(record: TaskRecord): Promise<void> {
    const numbered = { ...record, sequence: ++this.#sequence }
    const runners = await this.#runners?.()
    if (runners === undefined) return this.#inTurn(() => this.#add(numbered))
    this.#held.add(record.id)
    try {
      // Known to be alive before anybody can ask.
      await runners.hold()
      await this.#add({ ...numbered, runner: runners.id })
    } catch (error) {
      this.left(record.id)
      throw error
    }
  }

  async get(id: string): Promise<TaskRecord | undefined> {
    return (await this.#find(await this.#open(), id))?.record
  }

  change(id: string, change: (record: TaskRecord) => TaskRecord | undefined): Promise<TaskRecord | undefined> {
    return this.#inTurn(async () => {
      const store = await this.#open()
      for (let attempt = 0; attempt < tries; attempt++) {
        const found = await this.#find(store, id)
        if (found === undefined || isTerminal(found.record.status)) return undefined
        const after = change(found.record)
        if (after === undefined) return undefined
        const more = after.bytes - found.record.bytes
        if (more > 0) await this.#freeBytes(store, found.record, more)
        if ((await this.#write(store, after, found.version)) === undefined) continue
        this.#most.bytes += more
        return after
      }
      throw changedOver()
    })
  }

  async list(
    owner: string,
    revision: RevisionId,
    page: { readonly after?: string | undefined; readonly limit: number },
  ): Promise<TaskPage> {
    const store = await this.#open()
    const owned = await taskKeys.placesOf(owner)
    const records: TaskRecord[] = []
    for (let after = page.after; ; ) {
      const places = await store.scan(owned, { limit: pageSize, ...(after === undefined ? {} : { after: owned + after }) })
      for (const { key } of places) {
        const record = (await this.#find(store, key.slice(key.lastIndexOf('/') + 1)))?.record
        if (record?.revision === revision && record.owner === owner) {
          if (records.length === page.limit) return { records, next: after }
          records.push(record)
        }
        after = key.slice(owned.length)
      }
      if (places.length < pageSize) return { records, next: undefined }
    }
  }

  delete(id: string): Promise<void> {
    return this.#inTurn(async () => this.#delete(await this.#open(), id))
  }

  async post(id: string, answers: Params): Promise<void> {
    const key = `${taskKeys.answers(id)}${taskKeys.time(this.#clock.now())}-${crypto.randomUUID()}`
    const store = await this.#open()
    await store.commit([put(key, this.#format.answers(answers), { ttl: answersMs })])
  }

  async take(id: string): Promise<readonly Params[]> {
    const store = await this.#open()
    const letters = await store.scan(taskKeys.answers(id))
    if (letters.length > 0) await store.commit(letters.map(({ key }) => remove(key)))
    return letters.map(({ value }) => this.#format.answersIn(value))
  }

  left(id: string): void {
    if (this.#held.delete(id))
      this.#runners?.().then(
        runners => runners.release(),
        () => {},
      )
  }

  onAbandoned(fn: (record: TaskRecord) => void): void {
    this.#abandoned = fn
  }

  /** Where all are in this process, one change after the other: what was counted still holds when it is written. */
  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    if (this.durable) return work()
    const done = this.#turn.then(work)
    this.#turn = done.catch(() => {})
    return done
  }

  async #add(record: TaskRecord): Promise<void> {
    const store = await this.#open()
    for (const { id } of await this.#evictForOne(store, accountIn(record))) await this.#delete(store, id)
    await this.#write(store, record)
    this.#most.tasks++
    this.#most.bytes += record.bytes
  }

  /** The version that it has now; undefined where somebody was faster. */
  async #write(store: Store<V>, record: TaskRecord, ifVersion?: number): Promise<number | undefined> {
    const ttl = this.#remaining(record)
    const outcome = await store.commit([
      put(taskKeys.task(record.id), this.#format.task(record), { ttl, ...(ifVersion === undefined ? {} : { ifVersion }) }),
      put(await taskKeys.place(record), this.#format.place(record), { ttl }),
    ])
    return outcome.ok ? outcome.results[0]?.version : undefined
  }

  async #delete(store: Store<V>, id: string): Promise<void> {
    const found = await this.#find(store, id)
    if (found !== undefined) await store.commit([remove(taskKeys.task(id)), remove(await taskKeys.place(found.record))])
    // Its time is over: it is absent, but its result would still be in memory.
    else if (!this.durable) await store.commit([remove(taskKeys.task(id))])
  }

  async #find(store: Store<V>, id: string): Promise<FoundTask | undefined> {
    if (!taskKeys.isId(id)) return undefined
    for (let attempt = 0; attempt < tries; attempt++) {
      const entry = await store.get(taskKeys.task(id))
      if (entry === undefined) return undefined
      const record = this.#format.taskIn(entry.value)
      if (this.#remaining(record) <= 0) return undefined
      const found = { record, version: entry.version }
      if (record.runner === undefined || !(await this.#isAbandoned(record, record.runner))) return found
      const failed = await this.#fail(store, found)
      if (failed !== undefined) return failed
    }
    throw changedOver()
  }

  async #isAbandoned({ status }: TaskRecord, runner: string): Promise<boolean> {
    if (isTerminal(status)) return false
    const runners = await this.#runners?.()
    return runners !== undefined && !(await runners.isAlive(runner))
  }

  /** Undefined where somebody was faster: its end, if it came to one after all, stands. From now on it makes room for others. */
  async #fail(store: Store<V>, { record, version }: FoundTask): Promise<FoundTask | undefined> {
    const error = {
      kind: 'task-abandoned',
      message: 'The process that ran this task has ended. Check whether the call had its effect before you repeat it',
    }
    const { message } = error
    const failed: TaskRecord = { ...record, status: 'failed', questions: {}, error, message, updatedAt: this.#clock.now() }
    const written = await this.#write(store, failed, version)
    if (written === undefined) return undefined
    this.#abandoned(failed)
    return { record: failed, version: written }
  }

  #remaining({ createdAt, ttlMs }: TaskRecord): number {
    return createdAt + ttlMs - this.#clock.now()
  }

  /** Where something must give way, tasks of processes that are gone have ended: nobody may ever ask about them. */
  async #evictForOne(store: Store<V>, account: string): Promise<ReturnType<typeof evictForOne>> {
    const limits = this.#limits
    // With fewer than anybody may have nobody has too many.
    if (this.#most.tasks < Math.min(limits.tasksPerPrincipal, limits.tasks / 4)) return []
    const stored = await this.#stored(store)
    const isCrowded = this.#runners !== undefined && !hasCapacity(stored, account, limits)
    if (!isCrowded || !(await this.#failAbandoned(store, stored))) return evictForOne(stored, account, limits)
    return evictForOne(await this.#stored(store), account, limits)
  }

  /** Whether there were any. One look for each process, however many tasks it had. */
  async #failAbandoned(store: Store<V>, stored: readonly TaskIndexEntry[]): Promise<boolean> {
    const runners = await this.#runners?.()
    if (runners === undefined) return false
    const alive = new Map<string | undefined, boolean>([[runners.id, true]])
    let found = false
    for (const { id, ended, runner } of stored) {
      if (ended) continue
      if (runner !== undefined && !alive.has(runner)) alive.set(runner, await runners.isAlive(runner))
      // Where the place does not name its process, the record does.
      if (alive.get(runner) === true) continue
      await this.#find(store, id)
      found = true
    }
    return found
  }

  async #freeBytes(store: Store<V>, record: TaskRecord, more: number): Promise<void> {
    if (this.#most.bytes + more <= this.#limits.bytes) return
    const of = { id: record.id, account: accountIn(record), ended: false, bytes: record.bytes }
    for (const { id } of evictForBytes(await this.#stored(store), of, more, this.#limits.bytes)) await this.#delete(store, id)
  }

  /** What is kept, oldest first. */
  async #stored(store: Store<V>): Promise<readonly TaskIndexEntry[]> {
    const found: TaskIndexEntry[] = []
    let bytes = 0
    for (let after: string | undefined; ; ) {
      const page = await store.scan(taskKeys.places, after === undefined ? {} : { after })
      for (const { key, value } of page) {
        const place = this.#format.placeIn(key, value)
        found.push(place)
        bytes += place.bytes
      }
      after = page.at(-1)?.key
      if (page.length < storeLimits.page) break
    }
    if (!this.durable) this.#most = { tasks: found.length, bytes }
    return found.sort((one, two) => (one.order < two.order ? -1 : 1))
  }
}

function changedOver(): McpError {
  return new McpError('busy', 'Other requests keep changing this task; retry in 1 s', { data: { retryAfterMs: 1_000 } })
}
