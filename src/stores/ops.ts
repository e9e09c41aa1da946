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

export const check = (key: string, version: number | undefined): Op => ({ op: 'check', key, version })
export const put = (key: string, value: string, options?: PutOptions): Op => ({ op: 'put', key, value, ...options })
export const remove = (key: string, ifVersion?: number): Op =>
  ifVersion === undefined ? { op: 'delete', key } : { op: 'delete', key, ifVersion }
export const add = (key: string, by: number, options?: AddOptions): Op => ({ op: 'add', key, by, ...options })
export const append = (log: string, value: string, at?: Position): Op =>
  at === undefined ? { op: 'append', log, value } : { op: 'append', log, value, at }
export const trim = (log: string, before: Position): Op => ({ op: 'trim', log, before })
