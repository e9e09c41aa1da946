/** A task as data: plain, so that any store can hold it. */
import type { RevisionId } from '../../../revisions/index.ts'
import type { InputRequest } from '../input-required/messages.ts'
import type { CallToolResult } from '../tools/messages.ts'
import type { TaskStatus } from './messages.ts'

/** A failure as data: its kind is numbered when it is told. */
export interface TaskFailure {
  readonly kind: string
  readonly message: string
  readonly data?: unknown
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
  readonly status: TaskStatus
  readonly message?: string
  readonly createdAt: number
  /** Tells tasks apart that one process added in the same millisecond: given by the table. */
  readonly sequence?: number
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

/** The account in whose share a task is counted. */
export function accountIn({ account, owner }: Pick<TaskRecord, 'account' | 'owner'>): string {
  return account ?? (owner === undefined ? '@' : `=${owner}`)
}
