/** What is recorded of one operation: enough to answer a repetition of it without doing it twice. */
import { isRecord } from '../../jsonrpc/message.ts'

/**
 * `waiting`: it has asked its caller something, and whoever comes with the answer goes on with it. `indeterminate`: it was begun and
 * nobody knows how it ended. `undone`: it was done, and its effects were taken back.
 * An operation that was refused before it began leaves no record.
 */
export type OperationStatus = 'running' | 'waiting' | 'done' | 'failed' | 'indeterminate' | 'undone'

export interface Operation {
  readonly id: string
  /** What was called: repetitions of the key must call the same. */
  readonly target: string
  /** A digest of what was called, with what, as part of what. */
  readonly fingerprint: string
  readonly status: OperationStatus
  /** The process that runs it, or ran it last. */
  readonly runner: string
  /** Whose share it counts against, where that is not its owner. */
  readonly account?: string
  readonly startedAt: number
  readonly endedAt?: number
  /** Of one that is indeterminate: why nobody knows, where the process that ran it could still say so. */
  readonly lostBy?: string
  /** What came of it; JSON. */
  readonly outcome?: unknown
  /** How long it is remembered once it has ended. */
  readonly ttlMs: number
}

/** Has ended with an outcome that a repetition gets again. */
export function isSettled(operation: Operation): boolean {
  return operation.status === 'done' || operation.status === 'failed'
}

export function writeOperation(operation: Operation): string {
  return JSON.stringify(operation)
}

/** The store is ours, but a record of another version may lie in it: what cannot be read is told, not guessed. */
export function readOperation(text: string): Operation {
  const value: unknown = JSON.parse(text)
  if (
    !isRecord(value) ||
    typeof value.id !== 'string' ||
    typeof value.fingerprint !== 'string' ||
    typeof value.status !== 'string'
  )
    throw new Error('A record of the journal cannot be read: was it written by another program?')
  return value as unknown as Operation
}
