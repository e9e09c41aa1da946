/**
 * Tasks on a store, so that every process that shares it answers for them. Each ends by itself there: nothing is left behind.
 * One whose process has gone fails as soon as anybody asks for it, or needs its place.
 */
import type { Clock } from '../../../core/clock.ts'
import { digestText } from '../../../core/digest.ts'
import type { Runners } from '../../../core/journal/runners.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import type { Params } from '../../../jsonrpc/message.ts'
import type { RevisionId } from '../../../revisions/index.ts'
import { put, remove, type Store } from '../../../stores/store.ts'
import { type CallToolResult, wraps } from '../tools/messages.ts'
import { hasRoom, type KeptTask, roomForBytes, roomForOne } from './eviction.ts'
import { isTerminal } from './messages.ts'
import { accountIn, type TableLimits, type TaskPage, type TaskRecord, type TaskTable, tableLimits } from './table.ts'

export interface StoreTasksOptions {
  readonly open: () => Promise<Store>
  readonly clock: Clock
  /** Which processes are alive. Without it all are taken to be. */
  readonly runners?: (() => Promise<Runners>) | undefined
  readonly limits?: TableLimits
}

export function storeTasks(options: StoreTasksOptions): TaskTable {
  return new StoreTasks(options)
}

interface Found {
  readonly record: TaskRecord
  readonly version: number
}

/** How often a change is tried anew because another one was faster. */
const tries = 20
const every = 'tasks/of/'

class StoreTasks implements TaskTable {
  readonly durable = true
  readonly #open: () => Promise<Store>
  readonly #clock: Clock
  readonly #limits: TableLimits
  readonly #runners: (() => Promise<Runners>) | undefined
  /** What this process works on. */
  readonly #held = new Set<string>()
  #abandoned: (record: TaskRecord) => void = () => {}

  constructor({ open, clock, runners, limits = tableLimits }: StoreTasksOptions) {
    this.#open = open
    this.#clock = clock
    this.#runners = runners
    this.#limits = limits
  }

  async add(record: TaskRecord): Promise<void> {
    const runners = await this.#runners?.()
    if (runners === undefined) return this.#add(record)
    this.#held.add(record.id)
    try {
      // Known to be alive before anybody can ask.
      await runners.hold()
      await this.#add({ ...record, runner: runners.id })
    } catch (error) {
      this.left(record.id)
      throw error
    }
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

  async #add(record: TaskRecord): Promise<void> {
    const store = await this.#open()
    const owned = await prefixOf(record.owner)
    for (const { id } of await this.#roomForOne(store, accountIn(record))) await this.delete(id)
    const ttl = this.#remaining(record)
    await store.commit([put(keyOf(record.id), textOf(record), { ttl }), put(placeOf(owned, record), placeText(record), { ttl })])
  }

  /** Where something must give way, tasks of processes that are gone have ended: nobody may ever ask about them. */
  async #roomForOne(store: Store, account: string): Promise<readonly KeptTask[]> {
    const kept = await this.#kept(store)
    if (hasRoom(kept, account, this.#limits) || !(await this.#failAbandoned(store, kept)))
      return roomForOne(kept, account, this.#limits)
    return roomForOne(await this.#kept(store), account, this.#limits)
  }

  /** Whether there were any. One look for each process, however many tasks it had. */
  async #failAbandoned(store: Store, kept: readonly Place[]): Promise<boolean> {
    const runners = await this.#runners?.()
    if (runners === undefined) return false
    const alive = new Map<string | undefined, boolean>([[runners.id, true]])
    let found = false
    for (const { id, ended, runner } of kept) {
      if (ended) continue
      if (runner !== undefined && !alive.has(runner)) alive.set(runner, await runners.isAlive(runner))
      // Where the place does not name its process, the record does.
      if (alive.get(runner) === true) continue
      await this.#find(store, id)
      found = true
    }
    return found
  }

  async get(id: string): Promise<TaskRecord | undefined> {
    return (await this.#find(await this.#open(), id))?.record
  }

  async change(id: string, change: (record: TaskRecord) => TaskRecord | undefined): Promise<TaskRecord | undefined> {
    const store = await this.#open()
    for (let attempt = 0; attempt < tries; attempt++) {
      const found = await this.#find(store, id)
      if (found === undefined || isTerminal(found.record.status)) return undefined
      const after = change(found.record)
      if (after === undefined) return undefined
      if (after.bytes > found.record.bytes) await this.#makeSure(store, found.record, after.bytes - found.record.bytes)
      const ttl = this.#remaining(after)
      const place = placeOf(await prefixOf(after.owner), after)
      const outcome = await store.commit([
        put(keyOf(id), textOf(after), { ifVersion: found.version, ttl }),
        put(place, placeText(after), { ttl }),
      ])
      if (outcome.ok) return after
    }
    throw changedOver()
  }

  async list(
    owner: string,
    revision: RevisionId,
    page: { readonly after?: string | undefined; readonly limit: number },
  ): Promise<TaskPage> {
    const store = await this.#open()
    const owned = await prefixOf(owner)
    const records: TaskRecord[] = []
    for (let after = page.after; ; ) {
      const places = await store.scan(owned, { limit: 100, ...(after === undefined ? {} : { after: owned + after }) })
      for (const { key } of places) {
        const record = (await this.#find(store, key.slice(key.lastIndexOf('/') + 1)))?.record
        if (record?.revision === revision && record.owner === owner) {
          if (records.length === page.limit) return { records, next: after }
          records.push(record)
        }
        after = key.slice(owned.length)
      }
      if (places.length < 100) return { records, next: undefined }
    }
  }

  async delete(id: string): Promise<void> {
    const store = await this.#open()
    const found = await this.#find(store, id)
    if (found === undefined) return
    await store.commit([remove(keyOf(id)), remove(placeOf(await prefixOf(found.record.owner), found.record))])
  }

  async post(id: string, answers: Params): Promise<void> {
    const key = `${lettersOf(id)}${String(this.#clock.now()).padStart(15, '0')}-${crypto.randomUUID()}`
    await (await this.#open()).commit([put(key, JSON.stringify(answers), { ttl: letterMs })])
  }

  async take(id: string): Promise<readonly Params[]> {
    const store = await this.#open()
    const letters = await store.scan(lettersOf(id))
    if (letters.length > 0) await store.commit(letters.map(({ key }) => remove(key)))
    return letters.map(({ value }) => JSON.parse(value))
  }

  async #find(store: Store, id: string): Promise<Found | undefined> {
    // Ids come from anywhere; what cannot be a key is none of ours.
    if (!/^[\w-]{1,128}$/.test(id)) return undefined
    for (let attempt = 0; attempt < tries; attempt++) {
      const entry = await store.get(keyOf(id))
      if (entry === undefined) return undefined
      const record = recordOf(entry.value)
      if (this.#remaining(record) <= 0) return undefined
      const found = { record, version: entry.version }
      if (!(await this.#isAbandoned(record))) return found
      const failed = await this.#fail(store, found)
      if (failed !== undefined) return failed
    }
    throw changedOver()
  }

  async #isAbandoned({ status, runner }: TaskRecord): Promise<boolean> {
    if (runner === undefined || isTerminal(status)) return false
    const runners = await this.#runners?.()
    return runners !== undefined && !(await runners.isAlive(runner))
  }

  /** Undefined where somebody was faster: its end, if it came to one after all, stands. */
  async #fail(store: Store, { record, version }: Found): Promise<Found | undefined> {
    const error = {
      kind: 'task-abandoned',
      message: 'The process that worked on this task has gone. Find out whether it had its effect before doing it again',
    }
    const { message } = error
    const failed: TaskRecord = { ...record, status: 'failed', questions: {}, error, message, updatedAt: this.#clock.now() }
    const ttl = this.#remaining(record)
    const place = placeOf(await prefixOf(record.owner), record)
    const outcome = await store.commit([
      put(keyOf(record.id), textOf(failed), { ifVersion: version, ttl }),
      // From now on it makes room for others.
      put(place, placeText(failed), { ttl }),
    ])
    if (!outcome.ok) return undefined
    this.#abandoned(failed)
    return { record: failed, version: outcome.results[0]?.version ?? 0 }
  }

  #remaining({ createdAt, ttlMs }: TaskRecord): number {
    return createdAt + ttlMs - this.#clock.now()
  }

  async #makeSure(store: Store, record: TaskRecord, more: number): Promise<void> {
    const of = { id: record.id, account: accountIn(record), ended: false, bytes: record.bytes }
    for (const { id } of roomForBytes(await this.#kept(store), of, more, this.#limits.bytes)) await this.delete(id)
  }

  /** What is kept, oldest first. */
  async #kept(store: Store): Promise<readonly Place[]> {
    const found: Place[] = []
    for (let after: string | undefined; ; ) {
      const page = await store.scan(every, after === undefined ? {} : { after })
      for (const { key, value } of page) found.push(keptAt(key, value))
      after = page.at(-1)?.key
      if (after === undefined) return found.sort((one, two) => (one.createdAt < two.createdAt ? -1 : 1))
    }
  }
}

/** A task as it counts when there is no room. */
interface Place extends KeptTask {
  readonly createdAt: string
  readonly runner: string | undefined
}

/** What decides about a task when there is no room: its size, whether it has ended or who works on it, and its account. */
function placeText(record: TaskRecord): string {
  const { bytes, status, runner } = record
  const state = isTerminal(status) ? 'ended' : runner === undefined ? 'open' : `open/${runner}`
  return `${bytes} ${state} ${accountIn(record)}`
}

function keptAt(key: string, value: string): Place {
  const [, , owner = '', createdAt = '', id = ''] = key.split('/')
  const [bytes = '0', state = 'open'] = value.split(' ', 2)
  // Written by an older version: its size alone.
  const account = value.slice(bytes.length + state.length + 2) || (owner === '~' ? '@' : `=${owner}`)
  const runner = state.startsWith('open/') ? state.slice('open/'.length) : undefined
  return { id, createdAt, bytes: Number(bytes), ended: state === 'ended', account, runner }
}

/** Whoever works on a task looks far more often. */
const letterMs = 60_000

function changedOver(): McpError {
  return new McpError('busy', 'The task is changed by others over and over; try again', { data: { retryAfterMs: 1_000 } })
}

function lettersOf(id: string): string {
  return `tasks/answers/${id}/`
}

function keyOf(id: string): string {
  return `tasks/at/${id}`
}

async function prefixOf(owner: string | undefined): Promise<string> {
  return `${every}${owner === undefined ? '~' : (await digestText(JSON.stringify(owner))).slice(0, 22)}/`
}

/** Sorts by age. */
function placeOf(owned: string, { id, createdAt }: TaskRecord): string {
  return `${owned}${String(createdAt).padStart(15, '0')}/${id}`
}

/** Whether older wires wrap a result is said beside it, because JSON holds no symbols. */
interface Kept {
  readonly record: TaskRecord
  readonly wrapped?: true
}

function textOf(record: TaskRecord): string {
  const wrapped = record.result !== undefined && wraps in record.result
  const kept: Kept = { record, ...(wrapped ? { wrapped } : {}) }
  return JSON.stringify(kept)
}

function recordOf(text: string): TaskRecord {
  const { record, wrapped }: Kept = JSON.parse(text)
  const { owner, result } = record
  if (result === undefined || wrapped !== true) return { ...record, owner }
  const marked: CallToolResult = Object.assign(result, { [wraps]: true })
  return { ...record, owner, result: marked }
}
