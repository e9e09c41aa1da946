/**
 * Where tasks are kept: plain data, so that a store can hold it; in memory here. A task that has ended never changes again,
 * one whose time is over is absent at once, and a full table forgets only what has ended, by the shares in `eviction.ts`.
 */
import type { Clock } from '../../../core/clock.ts'
import type { Awaitable, Params } from '../../../jsonrpc/message.ts'
import type { RevisionId } from '../../../revisions/index.ts'
import type { InputRequest } from '../input-required/messages.ts'
import type { CallToolResult } from '../tools/messages.ts'
import { type KeptTask, roomForBytes, roomForOne } from './eviction.ts'
import { isTerminal, type TaskStatus } from './messages.ts'

/** A failure as data: its kind is numbered when it is told. */
export interface TaskFailure {
  readonly kind: string
  readonly message: string
  readonly data?: unknown
  readonly code?: number
}

export interface TaskRecord {
  readonly id: string
  /** The principal whose it is. Undefined: whoever knows the id. */
  readonly owner: string | undefined
  /** In whose share it is counted: a user, or the network of whoever did not sign in. Default: its owner. */
  readonly account?: string
  /** The wire that made it; it is known on no other. */
  readonly revision: RevisionId
  readonly status: TaskStatus
  readonly message?: string
  readonly createdAt: number
  readonly updatedAt: number
  readonly ttlMs: number
  readonly pollMs: number
  /** Open questions by key, as the task's wire writes them. */
  readonly questions: Readonly<Record<string, InputRequest>>
  /** Canonical. */
  readonly result?: CallToolResult
  readonly error?: TaskFailure
  /** The size of the result as JSON text. */
  readonly bytes: number
  /** The process that works on it, where others answer for it too. */
  readonly runner?: string
}

export interface TaskPage {
  readonly records: readonly TaskRecord[]
  /** Give this to the next `list`. Undefined on the last page. */
  readonly next: string | undefined
}

export interface TaskTable {
  /** Other processes, and this one after a restart, see the same tasks. */
  readonly durable: boolean
  /** Throws a busy refusal when there is no room. */
  add(record: TaskRecord): Awaitable<void>
  get(id: string): Awaitable<TaskRecord | undefined>
  /**
   * Replaces a record by what `change` makes of it, in one piece; undefined leaves it. Gives the new record, or undefined when
   * nothing changed: unknown, over, ended before, or left. Throws a busy refusal when the new one does not fit.
   */
  change(id: string, change: (record: TaskRecord) => TaskRecord | undefined): Awaitable<TaskRecord | undefined>
  /** The tasks of one principal on one wire, oldest first. */
  list(
    owner: string,
    revision: RevisionId,
    page: { readonly after?: string | undefined; readonly limit: number },
  ): Awaitable<TaskPage>
  delete(id: string): Awaitable<void>
  /** Leaves answers for the process that works on a task, where that may be another one. */
  post?(id: string, answers: Params): Promise<void>
  /** The answers that were left, each once. */
  take?(id: string): Promise<readonly Params[]>
  /** This process works on it no more. */
  left?(id: string): void
  /** Calls back for a task that was found to be at work in a process that is gone, and has failed by that. */
  onAbandoned?(fn: (record: TaskRecord) => void): void
}

export interface TableLimits {
  /** Tasks in all. */
  readonly tasks: number
  readonly tasksPerPrincipal: number
  /** JSON text of all results together. */
  readonly bytes: number
}

export const tableLimits: TableLimits = { tasks: 1_000, tasksPerPrincipal: 100, bytes: 64 * 1024 * 1024 }

export function memoryTasks(clock: Clock, limits: TableLimits = tableLimits): TaskTable {
  return new MemoryTasks(clock, limits)
}

class MemoryTasks implements TaskTable {
  readonly durable = false
  readonly #clock: Clock
  readonly #limits: TableLimits
  /** In the order in which they were added, each with a position that is never given twice. */
  readonly #tasks = new Map<string, { readonly position: number; record: TaskRecord }>()
  #position = 0
  #bytes = 0

  constructor(clock: Clock, limits: TableLimits) {
    this.#clock = clock
    this.#limits = limits
  }

  add(record: TaskRecord): void {
    // With fewer than anybody may have nobody has too many.
    if (this.#tasks.size >= Math.min(this.#limits.tasksPerPrincipal, this.#limits.tasks / 4)) {
      this.#sweep()
      for (const { id } of roomForOne(this.#kept(), accountIn(record), this.#limits)) this.delete(id)
    }
    this.#tasks.set(record.id, { position: ++this.#position, record })
    this.#bytes += record.bytes
  }

  get(id: string): TaskRecord | undefined {
    const record = this.#tasks.get(id)?.record
    return record === undefined || this.#isOver(record) ? undefined : record
  }

  change(id: string, change: (record: TaskRecord) => TaskRecord | undefined): TaskRecord | undefined {
    const entry = this.#tasks.get(id)
    if (entry === undefined || this.#isOver(entry.record) || isTerminal(entry.record.status)) return undefined
    const after = change(entry.record)
    if (after === undefined) return undefined
    const more = after.bytes - entry.record.bytes
    if (more > 0 && this.#bytes + more > this.#limits.bytes)
      for (const each of roomForBytes(this.#kept(), keptTask(entry.record), more, this.#limits.bytes)) this.delete(each.id)
    entry.record = after
    this.#bytes += more
    return after
  }

  list(owner: string, revision: RevisionId, page: { readonly after?: string | undefined; readonly limit: number }): TaskPage {
    const after = page.after === undefined ? 0 : Number(page.after)
    const records: TaskRecord[] = []
    let last = after
    for (const { position, record } of this.#tasks.values()) {
      if (position <= after || record.owner !== owner || record.revision !== revision || this.#isOver(record)) continue
      if (records.length === page.limit) return { records, next: String(last) }
      records.push(record)
      last = position
    }
    return { records, next: undefined }
  }

  delete(id: string): void {
    const entry = this.#tasks.get(id)
    if (entry === undefined) return
    this.#tasks.delete(id)
    this.#bytes -= entry.record.bytes
  }

  #isOver(record: TaskRecord): boolean {
    return record.createdAt + record.ttlMs <= this.#clock.now()
  }

  #sweep(): void {
    for (const { record } of [...this.#tasks.values()]) if (this.#isOver(record)) this.delete(record.id)
  }

  /** Oldest first. */
  #kept(): readonly KeptTask[] {
    return [...this.#tasks.values()].map(({ record }) => keptTask(record))
  }
}

export function accountIn({ account, owner }: Pick<TaskRecord, 'account' | 'owner'>): string {
  return account ?? (owner === undefined ? '@' : `=${owner}`)
}

function keptTask(record: TaskRecord): KeptTask {
  return { id: record.id, account: accountIn(record), ended: isTerminal(record.status), bytes: record.bytes }
}
