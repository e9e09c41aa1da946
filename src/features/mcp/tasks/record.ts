/** A task as data: plain, so that any store can hold it. */

import { isAnonymous } from '../../../core/accounts.ts'
import { digestText } from '../../../core/digest.ts'
import { Occupancy, shareText } from '../../../core/occupancy.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import type { Params } from '../../../jsonrpc/message.ts'
import type { RevisionId } from '../../../revisions/index.ts'
import type { InputRequest } from '../input-required/messages.ts'
import { type CallToolResult, wrappedOutput } from '../tools/messages.ts'
import { isTerminal, type Task } from './messages.ts'

/** A failure as data: its kind is numbered when it is told. */
interface TaskFailure {
  readonly kind: string
  readonly message: string
  readonly data?: unknown
  /** Where the failure came with a number of its own. */
  readonly code?: number
}

/** What is known of a task. A record never changes: a change makes another one. */
export interface TaskRecord {
  readonly id: string
  /** The principal whose it is. Undefined: whoever knows the id. */
  readonly owner: string | undefined
  /** In whose share it is counted: a user, or the network of whoever did not sign in. Default: its owner. */
  readonly account?: string
  /** The wire that made it; it is known on no other. */
  readonly revision: RevisionId
  readonly status: Task['status']
  /** For people. */
  readonly message?: string
  /** Milliseconds since the epoch. */
  readonly createdAt: number
  /** Tells tasks apart that one process added in the same millisecond: given by the table. */
  readonly sequence?: number
  readonly updatedAt: number
  /** How long it is kept, from its creation on. */
  readonly ttlMs: number
  readonly pollMs: number
  /** Open questions by key, as the task's wire writes them. */
  readonly questions: Readonly<Record<string, InputRequest>>
  /** Canonical. */
  readonly result?: CallToolResult
  /** Why it failed. */
  readonly error?: TaskFailure
  /** The size of the result as JSON text. */
  readonly bytes: number
  /** The process that works on it, where others answer for it too. */
  readonly runner?: string
}

/** The account in whose share a task is counted. */
export function accountIn({ account, owner }: Pick<TaskRecord, 'account' | 'owner'>): string {
  return account ?? (owner === undefined ? '@' : `=${owner}`)
}

// How tasks lie on a store: under which keys, and as which values. Beside each task lies its place, which is short: it decides what gives
// way when there is no room. Stores that others share hold text; one of this process alone holds the objects themselves.

/** What decides about a task when there is no room: its size, whether it has ended or who works on it, and its account. */
export interface TaskIndexEntry extends EvictionCandidate {
  /** Sorts by age. */
  readonly order: string
  /** The process that works on it. */
  readonly runner: string | undefined
}

/** Makes values of a store, and reads them. */
export interface TaskFormat<V> {
  task(record: TaskRecord): V
  taskIn(value: V): TaskRecord
  place(record: TaskRecord): V
  placeIn(key: string, value: V): TaskIndexEntry
  answers(answers: Params): V
  answersIn(value: V): Params
}

/** JSON. Whether older wires wrap a result is said beside it, because JSON holds no symbols. */
export const textFormat: TaskFormat<string> = {
  task: record => {
    const wrapped = record.result !== undefined && wrappedOutput in record.result
    return JSON.stringify({ record, ...(wrapped ? { wrapped } : {}) })
  },
  taskIn: text => {
    const { record, wrapped }: { readonly record: TaskRecord; readonly wrapped?: true } = JSON.parse(text)
    const { owner, result } = record
    if (result === undefined || wrapped !== true) return { ...record, owner }
    const marked: CallToolResult = Object.assign(result, { [wrappedOutput]: true })
    return { ...record, owner, result: marked }
  },
  place: record => {
    const { bytes, status, runner } = record
    const state = isTerminal(status) ? 'ended' : runner === undefined ? 'open' : `open/${runner}`
    return `${bytes} ${state} ${accountIn(record)}`
  },
  placeIn: (key, value) => {
    const [, , owner = '', order = '', id = ''] = key.split('/')
    const [bytes = '0', state = 'open'] = value.split(' ', 2)
    // Written by an older version: its size alone.
    const account = value.slice(bytes.length + state.length + 2) || (owner === '~' ? '@' : `=${owner}`)
    const runner = state.startsWith('open/') ? state.slice('open/'.length) : undefined
    return { id, order, bytes: Number(bytes), ended: state === 'ended', account, runner }
  },
  answers: answers => JSON.stringify(answers),
  answersIn: text => JSON.parse(text),
}

/** A value of a store of objects. */
export type TaskObject = { readonly task: TaskRecord } | { readonly place: TaskIndexEntry } | { readonly answers: Params }

/** The objects as they are: neither written nor read. */
export const objectFormat: TaskFormat<TaskObject> = {
  task: record => ({ task: record }),
  taskIn: value => ('task' in value ? value.task : misplaced()),
  place: record => {
    const { id, bytes, status, runner } = record
    return { place: { id, order: orderOf(record), bytes, ended: isTerminal(status), account: accountIn(record), runner } }
  },
  placeIn: (_, value) => ('place' in value ? value.place : misplaced()),
  answers: answers => ({ answers }),
  answersIn: value => ('answers' in value ? value.answers : misplaced()),
}

function misplaced(): never {
  throw new TypeError('The record under the key of a task is not a task. Another program may have written it')
}

/** Where tasks lie on a store, by their ids and by whose they are. */
export const taskKeys = {
  /** Under this prefix are the places of all tasks. */
  places: 'tasks/of/',
  /** Whether it can be the id of a task. Ids come from anywhere; what cannot be a key is none of ours. */
  isId: (id: string): boolean => /^[\w-]{1,128}$/.test(id),
  task: (id: string): string => `tasks/at/${id}`,
  /** Where the answers wait that other processes took for a task. */
  answers: (id: string): string => `tasks/answers/${id}/`,
  /** Under this prefix are the places of all tasks of one principal, oldest first. */
  placesOf: async (owner: string | undefined): Promise<string> =>
    `${taskKeys.places}${owner === undefined ? '~' : (await digestText(JSON.stringify(owner))).slice(0, 22)}/`,
  /** Where the place of a task lies. */
  place: async (record: TaskRecord): Promise<string> => `${await taskKeys.placesOf(record.owner)}${orderOf(record)}/${record.id}`,
  /** A time in a key, so that keys sort by it. */
  time: (ms: number): string => String(ms).padStart(15, '0'),
}

function orderOf({ createdAt, sequence }: TaskRecord): string {
  return sequence === undefined ? taskKeys.time(createdAt) : `${taskKeys.time(createdAt)}.${String(sequence).padStart(12, '0')}`
}

// Which tasks give way when there is no room for one more. Only what has ended does: first that of callers who did not sign in, and of
// whoever holds most. A user that has all it may have gives up what ended first of its own.

/** How much a table of tasks holds. */
export interface TableLimits {
  /** Tasks in all. */
  readonly tasks: number
  readonly tasksPerPrincipal: number
  /** JSON text of all results together. */
  readonly bytes: number
}

/** Where nothing else is said. */
export const tableLimits: TableLimits = { tasks: 1_000, tasksPerPrincipal: 100, bytes: 64 * 1024 * 1024 }

/** As much of a task as decides. */
interface EvictionCandidate {
  readonly id: string
  /** Whose share it is counted in. */
  readonly account: string
  readonly ended: boolean
  /** What it takes up. */
  readonly bytes: number
}

/** Whether there is a place for a new task of this account, and nothing has to give way. */
export function hasCapacity(stored: readonly EvictionCandidate[], account: string, limits: TableLimits): boolean {
  const { places } = sharesOf(stored, limits)
  return !holdsAll(places, account, limits) && places.refusal(account) === undefined
}

/** The tasks to forget for a new one of this account, of those that are kept, oldest first. Throws a busy refusal when there are none. */
export function evictForOne(
  stored: readonly EvictionCandidate[],
  account: string,
  limits: TableLimits,
): readonly EvictionCandidate[] {
  const { tasks, tasksPerPrincipal } = limits
  const { places, shares } = sharesOf(stored, limits)
  const own = shares.get(account)?.oldest
  if (holdsAll(places, account, limits)) {
    if (own !== undefined) return [own]
    throw full(`${tasksPerPrincipal} of your tasks are kept`)
  }
  const refusal = places.refusal(account)
  if (refusal === undefined) return []
  const other = yielding(shares.values(), places, account)
  if (other !== undefined) return [other]
  // Its share is used up, or it holds as much as anybody: then what it forgets is its own.
  if (own !== undefined) return [own]
  throw refusal === 'share' ? full(`${shareText(`${tasks} tasks`)}`) : full(`${tasks} tasks are kept`)
}

/** What one account holds. */
interface AccountShare {
  readonly account: string
  tasks: number
  /** The oldest of its tasks that has ended, and how many tasks are older than that one. */
  oldest: EvictionCandidate | undefined
  older: number
}

/** Many tasks are of few accounts: each is counted once, and what follows looks at accounts. */
function sharesOf(
  stored: readonly EvictionCandidate[],
  limits: TableLimits,
): { readonly places: Occupancy; readonly shares: ReadonlyMap<string, AccountShare> } {
  const shares = new Map<string, AccountShare>()
  let share: AccountShare | undefined
  for (let older = 0; older < stored.length; older++) {
    const task = stored[older] as EvictionCandidate
    if (share?.account !== task.account) share = shares.get(task.account)
    if (share === undefined) {
      share = { account: task.account, tasks: 0, oldest: undefined, older: 0 }
      shares.set(task.account, share)
    }
    share.tasks++
    if (share.oldest !== undefined || !task.ended) continue
    share.oldest = task
    share.older = older
  }
  const places = new Occupancy(limits.tasks)
  for (const { account, tasks } of shares.values()) places.enter(account, tasks)
  return { places, shares }
}

/** Whether a user has all that one may have. */
function holdsAll(places: Occupancy, account: string, { tasksPerPrincipal }: TableLimits): boolean {
  return !isAnonymous(account) && places.of(account) >= tasksPerPrincipal
}

/** The tasks to forget for a result of so many bytes. Never one of the same account: what it has not fetched yet would go unread. */
export function evictForBytes(
  stored: readonly EvictionCandidate[],
  of: EvictionCandidate,
  more: number,
  limit: number,
): readonly EvictionCandidate[] {
  const sizes = new Map<string, number>()
  let total = more
  for (const { account, bytes } of stored) {
    sizes.set(account, (sizes.get(account) ?? 0) + bytes)
    total += bytes
  }
  const mine = (sizes.get(of.account) ?? 0) + more
  const forgotten: EvictionCandidate[] = []
  for (const task of stored) {
    if (total <= limit) break
    const { account, bytes, ended } = task
    const [anonymous, other] = [isAnonymous(account), isAnonymous(of.account)]
    const yields = anonymous === other ? (sizes.get(account) ?? 0) > mine : anonymous
    if (!ended || bytes === 0 || account === of.account || !yields) continue
    forgotten.push(task)
    sizes.set(account, (sizes.get(account) ?? 0) - bytes)
    total -= bytes
  }
  if (total <= limit) return forgotten
  throw full(`Results of ${total - more} bytes are kept`)
}

/** The oldest that has ended, of who did not sign in if there is one, and of the account that holds most. */
function yielding(shares: Iterable<AccountShare>, places: Occupancy, account: string): EvictionCandidate | undefined {
  let found: AccountShare | undefined
  for (const share of shares) {
    if (share.oldest === undefined || !places.yields(share.account, account)) continue
    if (found === undefined || precedes(share, found, places)) found = share
  }
  return found?.oldest
}

function precedes(share: AccountShare, found: AccountShare, places: Occupancy): boolean {
  const [anonymous, other] = [isAnonymous(share.account), isAnonymous(found.account)]
  if (anonymous !== other) return anonymous
  const more = places.weight(share.account) - places.weight(found.account)
  return more === 0 ? share.older < found.older : more > 0
}

/** The refusal of one task, or result, too many. */
function full(what: string): McpError {
  return new McpError('busy', `${what}, which is the limit; wait until some have expired`, { data: { retryAfterMs: 10_000 } })
}
