/** Asking a person: one question for one thing, however many wait for it, and none for ever. */

import type { Clock } from '../../core/clock.ts'
import { unlessAborted } from '../../core/deadlines.ts'
import { toMilliseconds } from '../../core/duration.ts'
import type { ApprovalAnswer, ApprovalQuestion, OnApproval } from './question.ts'

interface AskerOptions {
  readonly onApproval: OnApproval | undefined
  readonly clock: Clock
  /** How long an answer is waited for. */
  readonly waitMs: number
}

/** `nobody`: there is nobody to ask; `late`: no answer in time; `failed`: whoever was asked threw. */
type ApprovalOutcome =
  | { readonly is: 'answered'; readonly answer: Exclude<ApprovalAnswer, boolean> }
  | { readonly is: 'nobody' | 'late' | 'failed'; readonly cause?: unknown }

/** Questions that are open at once. One server has at most as many as it leaves free; what comes beyond is refused, as by nobody. */
const most = 100

export class ApprovalAsker {
  readonly #options: AskerOptions
  readonly #open = new Map<string, Promise<ApprovalOutcome>>()
  /** How many of those are about each server. */
  readonly #ofServer = new Map<string, number>()

  constructor(options: AskerOptions) {
    this.#options = options
  }

  ask(question: ApprovalQuestion): Promise<ApprovalOutcome> {
    const { onApproval } = this.#options
    const open = this.#open.get(question.digest)
    // A yes that counts only this once is worth one of those that wait; the next of them is asked about by itself.
    if (open !== undefined) return open.then(outcome => (isOnce(outcome) ? this.ask(question) : outcome))
    const { server } = question.asked
    const own = this.#ofServer.get(server) ?? 0
    if (onApproval === undefined || own >= most - this.#open.size) return Promise.resolve({ is: 'nobody' })
    const asked = this.#ask(question, onApproval).finally(() => this.#closed(question.digest, server))
    this.#ofServer.set(server, own + 1)
    this.#open.set(question.digest, asked)
    return asked
  }

  #closed(digest: string, server: string): void {
    this.#open.delete(digest)
    const left = (this.#ofServer.get(server) ?? 1) - 1
    if (left === 0) this.#ofServer.delete(server)
    else this.#ofServer.set(server, left)
  }

  async #ask(question: ApprovalQuestion, onApproval: OnApproval): Promise<ApprovalOutcome> {
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

function isOnce(outcome: ApprovalOutcome): boolean {
  if (outcome.is !== 'answered' || !outcome.answer.yes || outcome.answer.for === undefined) return false
  return toMilliseconds(outcome.answer.for, 'for') === 0
}
