/** Work that takes longer than a request: one of each kind at a time, followed by events. */
import { randomUUID } from 'node:crypto'
import type { Clock } from '../core/clock.ts'
import { cleanText } from '../core/log.ts'
import type { AuditProof, Job, JobKind } from './contract/jobs.ts'
import { ConsoleFailure } from './failure.ts'

/** What a job does: it reports how far it is, and ends early when its signal is aborted. */
export type JobWork = (progress: (done: number, total: number) => void, signal: AbortSignal) => Promise<AuditProof>

const tellMs = 1_000

/** Runs jobs, and remembers the last one of each kind. */
export class Jobs {
  readonly #clock: Clock
  readonly #tell: (job: Job) => void
  readonly #last = new Map<JobKind, Job>()
  readonly #end = new AbortController()
  readonly #running = new Set<Promise<void>>()

  constructor(clock: Clock, tell: (job: Job) => void) {
    this.#clock = clock
    this.#tell = tell
  }

  /** The last job of a kind. */
  last(kind: JobKind): Job | undefined {
    return this.#last.get(kind)
  }

  /** Starts a job; throws while one of its kind runs. */
  start(kind: JobKind, by: string, work: JobWork): Job {
    const running = this.#last.get(kind)
    if (running?.state === 'running')
      throw new ConsoleFailure('JOB_RUNNING', 'A job of this kind is running.', 'Wait until it ends.', { job: running.id })
    const job: Job = { id: randomUUID(), kind, state: 'running', by, startedAt: this.#clock.now(), done: 0 }
    this.#become(job)
    const done = this.#run(job, work)
    this.#running.add(done)
    void done.then(() => this.#running.delete(done))
    return job
  }

  /** Ends all jobs. */
  async close(): Promise<void> {
    this.#end.abort(new Error('The process is ending'))
    await Promise.all(this.#running)
  }

  async #run(job: Job, work: JobWork): Promise<void> {
    let told = this.#clock.now()
    const progress = (done: number, total: number): void => {
      const now = this.#clock.now()
      const next = { ...(this.#last.get(job.kind) ?? job), done, total }
      this.#last.set(job.kind, next)
      if (now - told < tellMs) return
      told = now
      this.#tell(next)
    }
    const ended = (more: Partial<Job>): void =>
      this.#become({ ...(this.#last.get(job.kind) ?? job), ...more, endedAt: this.#clock.now() })
    try {
      ended({ state: 'done', outcome: await work(progress, this.#end.signal) })
    } catch (error) {
      ended({ state: 'failed', why: cleanText(error instanceof Error ? error.message : String(error)) })
    }
  }

  #become(job: Job): void {
    this.#last.set(job.kind, job)
    this.#tell(job)
  }
}
