/** Steps of a commit, written as words. */
import type { Op, Position } from './store.ts'

export interface PutOptions {
  readonly ifVersion?: number
  readonly ifAbsent?: boolean
  readonly ttl?: number
}

export interface AddOptions {
  readonly min?: number
  readonly max?: number
  readonly ttl?: number
}

export const check = <V = string>(key: string, version: number | undefined): Op<V> => ({ op: 'check', key, version })
export const put = <V>(key: string, value: V, options?: PutOptions): Op<V> => ({ op: 'put', key, value, ...options })
export const remove = <V = string>(key: string, ifVersion?: number): Op<V> =>
  ifVersion === undefined ? { op: 'delete', key } : { op: 'delete', key, ifVersion }
export const add = (key: string, by: number, options?: AddOptions): Op => ({ op: 'add', key, by, ...options })
export const append = <V>(log: string, value: V, at?: Position): Op<V> =>
  at === undefined ? { op: 'append', log, value } : { op: 'append', log, value, at }
export const trim = <V = string>(log: string, before: Position): Op<V> => ({ op: 'trim', log, before })
