/**
 * How tasks lie on a store: under which keys, and as which values. Beside each task lies its place, which is short: it decides what gives
 * way when there is no room. Stores that others share hold text; one of this process alone holds the objects themselves.
 */
import { digestText } from '../../../core/digest.ts'
import type { Params } from '../../../jsonrpc/message.ts'
import { type CallToolResult, wraps } from '../tools/messages.ts'
import type { EvictionCandidate } from './eviction.ts'
import { isTerminal } from './messages.ts'
import { accountIn, type TaskRecord } from './record.ts'

/** What decides about a task when there is no room: its size, whether it has ended or who works on it, and its account. */
export interface TaskPlace extends EvictionCandidate {
  /** Sorts by age. */
  readonly order: string
  readonly runner: string | undefined
}

/** Makes values of a store, and reads them. */
export interface TaskFormat<V> {
  task(record: TaskRecord): V
  taskIn(value: V): TaskRecord
  place(record: TaskRecord): V
  placeIn(key: string, value: V): TaskPlace
  answers(answers: Params): V
  answersIn(value: V): Params
}

/** JSON. Whether older wires wrap a result is said beside it, because JSON holds no symbols. */
export const textFormat: TaskFormat<string> = {
  task: record => {
    const wrapped = record.result !== undefined && wraps in record.result
    return JSON.stringify({ record, ...(wrapped ? { wrapped } : {}) })
  },
  taskIn: text => {
    const { record, wrapped }: { readonly record: TaskRecord; readonly wrapped?: true } = JSON.parse(text)
    const { owner, result } = record
    if (result === undefined || wrapped !== true) return { ...record, owner }
    const marked: CallToolResult = Object.assign(result, { [wraps]: true })
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
export type TaskObject = { readonly task: TaskRecord } | { readonly place: TaskPlace } | { readonly answers: Params }

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
  throw new TypeError('Something else than a task lies under the key of a task')
}

/** Under this prefix are the places of all tasks. */
export const allPlaces = 'tasks/of/'

/** Whether it can be the id of a task. Ids come from anywhere; what cannot be a key is none of ours. */
export function isTaskId(id: string): boolean {
  return /^[\w-]{1,128}$/.test(id)
}

/** Where a task lies. */
export function taskKey(id: string): string {
  return `tasks/at/${id}`
}

/** Where the answers wait that other processes took for a task. */
export function answersOf(id: string): string {
  return `tasks/answers/${id}/`
}

/** Under this prefix are the places of all tasks of one principal, oldest first. */
export async function taskPlacesPrefix(owner: string | undefined): Promise<string> {
  return `${allPlaces}${owner === undefined ? '~' : (await digestText(JSON.stringify(owner))).slice(0, 22)}/`
}

/** Where the place of a task lies. */
export async function placeKey(record: TaskRecord): Promise<string> {
  return `${await taskPlacesPrefix(record.owner)}${orderOf(record)}/${record.id}`
}

/** A time in a key, so that keys sort by it. */
export function timeKey(ms: number): string {
  return String(ms).padStart(15, '0')
}

function orderOf({ createdAt, sequence }: TaskRecord): string {
  return sequence === undefined ? timeKey(createdAt) : `${timeKey(createdAt)}.${String(sequence).padStart(12, '0')}`
}
