/**
 * What the store and its worker thread say to each other: arrays of requests there, arrays of answers back. As JSON text, which
 * takes a third of the time that copying the objects would; all of it is JSON already.
 */
import type { Committed, Conflict, Entry, LogEntry, Op } from '../store.ts'

/** What the worker thread is asked for. */
export type WorkerRequest =
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
  | { readonly ask: 'others' }

/** The settings that decide whether a commit that returned is on disk. */
export interface Pragmas {
  readonly journalMode: string
  /** 2 is FULL. */
  readonly synchronous: number
  readonly transactions: number
}

/** What a request gives. */
export type WorkerReply = Entry | undefined | readonly Entry[] | readonly LogEntry[] | Committed | Conflict | Pragmas | number

/** Requests that came together, with the time at which they did. */
export interface Batch {
  readonly now: number
  readonly requests: readonly (readonly [id: number, request: WorkerRequest])[]
}

/** The answer to one request: its value, or why it failed. */
export type WorkerAnswer = { readonly id: number; readonly value: WorkerReply } | { readonly id: number; readonly error: string }

/** Instead of a batch: what was asked before is answered first. */
export const closeWord = 'close'

/** The worker says one of these first. */
export type WorkerStarted = { readonly ready: true } | { readonly failed: string }
