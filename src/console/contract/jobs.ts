/** Work that takes longer than a request. */

/** What the job does. */
export type JobKind = 'proof'

/** How far a job is. */
export type JobState = 'running' | 'done' | 'failed'

/** A job: also the payload of the event `job`, which is sent at its beginning, at its end, and at most once a second in between. */
export interface Job {
  /** Names the job. */
  readonly id: string
  /** What it does. */
  readonly kind: JobKind
  /** Whether it runs, is done, or failed. */
  readonly state: JobState
  /** Who asked for it. */
  readonly by: string
  /** When it began. */
  readonly startedAt: number
  /** When it ended. */
  readonly endedAt?: number
  /** Audit entries that were checked so far. */
  readonly done: number
  /** How many there are to check, where that is known. */
  readonly total?: number
  /** The result of a job that is done. */
  readonly outcome?: AuditProof
  /** Why it failed. */
  readonly why?: string
}

/** What a proof of the audit log's hash chain says. */
export type AuditProof =
  | {
      /** No entry was changed. */
      readonly ok: true
      /** Entries that were checked. */
      readonly lines: number
      /** The position up to which entries are chained. */
      readonly chained: number
      /** The hash of the last link: compare it with one that was noted before. */
      readonly head: string
    }
  | {
      /** An entry was changed, dropped or put in. */
      readonly ok: false
      /** Entries up to this position are proven. */
      readonly after: number
      /** What is wrong after it. */
      readonly why: string
    }
