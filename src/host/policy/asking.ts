/** Asking a person: one question for one thing, however many wait for it, and none for ever. */
import { unlessAborted } from '../../core/abort.ts'
import type { Clock } from '../../core/clock.ts'
import { toMilliseconds } from '../../core/duration.ts'
import type { ApprovalAnswer, ApprovalQuestion, OnApproval } from './question.ts'

export interface AskerOptions {
  readonly onApproval: OnApproval | undefined
  readonly clock: Clock
  /** How long an answer is waited for. */
  readonly waitMs: number
}

/** `nobody`: there is nobody to ask; `late`: no answer in time; `failed`: whoever was asked threw. */
export type Answered =
  | { readonly is: 'answered'; readonly answer: Exclude<ApprovalAnswer, boolean> }
  | { readonly is: 'nobody' | 'late' | 'failed'; readonly cause?: unknown }

/** Questions that are open at once; what comes beyond is refused, as by nobody. */
const most = 100

export class Asker {
  readonly #options: AskerOptions
  readonly #open = new Map<string, Promise<Answered>>()

  constructor(options: AskerOptions) {
    this.#options = options
  }

  ask(question: ApprovalQuestion): Promise<Answered> {
    const { onApproval } = this.#options
    const open = this.#open.get(question.digest)
    // A yes that counts only this once is worth one of those that wait; the next of them is asked about by itself.
    if (open !== undefined) return open.then(outcome => (isOnce(outcome) ? this.ask(question) : outcome))
    if (onApproval === undefined || this.#open.size >= most) return Promise.resolve({ is: 'nobody' })
    const asked = this.#ask(question, onApproval).finally(() => this.#open.delete(question.digest))
    this.#open.set(question.digest, asked)
    return asked
  }

  async #ask(question: ApprovalQuestion, onApproval: OnApproval): Promise<Answered> {
    const { clock, waitMs } = this.#options
    const ending = new AbortController()
    const cancel = clock.setTimeout(() => ending.abort(new Error('Nobody answered in time')), waitMs, true)
    try {
      const given = await unlessAborted(
        Promise.resolve().then(() => onApproval(question, { signal: ending.signal })),
        ending.signal,
      )
      return { is: 'answered', answer: typeof given === 'boolean' ? { yes: given } : given }
    } catch (cause) {
      return { is: ending.signal.aborted ? 'late' : 'failed', cause }
    } finally {
      cancel()
    }
  }
}

function isOnce(outcome: Answered): boolean {
  if (outcome.is !== 'answered' || !outcome.answer.yes || outcome.answer.for === undefined) return false
  return toMilliseconds(outcome.answer.for, 'for') === 0
}
