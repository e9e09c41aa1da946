/** What the store and its worker thread say to each other: arrays of requests there, arrays of answers back. */
import type { Committed, Conflict, Entry, LogEntry, Op } from '../store.ts'

export type Request =
  | { readonly ask: 'get'; readonly key: string }
  | {
      readonly ask: 'scan'
      readonly prefix: string
      readonly after: string | undefined
      readonly before: string | undefined
      readonly limit: number
    }
  | { readonly ask: 'read'; readonly log: string; readonly after: number; readonly limit: number }
  | { readonly ask: 'commit'; readonly ops: readonly Op[] }
  | { readonly ask: 'pragmas' }

export interface Pragmas {
  readonly journalMode: string
  /** 2 is FULL. */
  readonly synchronous: number
  readonly transactions: number
}

export type Reply = Entry | undefined | readonly Entry[] | readonly LogEntry[] | Committed | Conflict | Pragmas

/** Requests that came together, with the time at which they did. */
export interface Batch {
  readonly now: number
  readonly requests: readonly (readonly [id: number, request: Request])[]
}

export type Answer = { readonly id: number; readonly value: Reply } | { readonly id: number; readonly error: string }

/** The worker says one of these first. */
export type Hello = { readonly ready: true } | { readonly failed: string }
