/**
 * One question, two places: the queue, where a page answers, and somebody who asks within the process, such as a terminal. The first answer
 * counts; the other side is told who gave it.
 */
import type { OnServerQuestion } from '../host/loop/answers/answers.ts'
import type { OnSampleReview } from '../host/loop/answers/sampling.ts'
import type { Awaitable } from '../jsonrpc/message.ts'
import type { OnApproval } from '../policy/approvals/question.ts'
import type { ApprovalRequest, GivenAnswer, PosedApproval } from './approvals.ts'
import {
  approvalRequestOf,
  elicitRequestOf,
  elicitResultOf,
  policyAnswerOf,
  sampleRequestOf,
  sampleReviewedOf,
} from './questions.ts'

/** The options of `createHost` that answer questions. */
export interface HostAnswers {
  /** The option `onApproval` of `createHost`. */
  readonly onApproval: OnApproval
  /** The option `onElicit` of `createHost`. */
  readonly onElicit: OnServerQuestion
  /** The option `onSampleReview` of `createHost`. */
  readonly onSampleReview: OnSampleReview
}

/** Who else is asked. */
export interface LocalAnswers extends Partial<HostAnswers> {
  /** The name of the user there, for the audit log and the page. */
  readonly by: string
}

/** The reason of a signal that withdraws a question, because somebody else has answered it. */
export class AnsweredElsewhere extends Error {
  /** Tells it from other errors. */
  override readonly name = 'AnsweredElsewhere'
  /** The answer that counts. */
  readonly answer: GivenAnswer

  constructor(answer: GivenAnswer) {
    super(`${answer.yes ? 'Approved' : 'Refused'} by ${answer.by}`)
    this.answer = answer
  }
}

/** Puts a question into the queue. */
export type Pose = (request: ApprovalRequest, signal?: AbortSignal) => Promise<PosedApproval>

/** How two places are asked. */
interface BothOptions<T> {
  /** Who answers within the process. */
  readonly by: string
  readonly signal: AbortSignal | undefined
  /** Asks within the process. */
  here(signal: AbortSignal): Awaitable<T>
  isYes(answer: T): boolean
  /** The answer of the queue. */
  read(given: GivenAnswer): T
}

/** Asks both, and gives the first answer. */
export async function askBoth<T>(posed: PosedApproval, { by, signal, here, isYes, read }: BothOptions<T>): Promise<T> {
  const elsewhere = new AbortController()
  let local: { readonly answer: T } | undefined
  const ours = signal === undefined ? elsewhere.signal : AbortSignal.any([signal, elsewhere.signal])
  const asking = Promise.resolve()
    .then(() => here(ours))
    .then(answer => {
      // Nothing is awaited between the claim and the note of it.
      if (posed.claim({ yes: isYes(answer), by })) local = { answer }
    })
  // Who asks within the process and fails leaves the question to the queue.
  asking.catch(() => undefined)
  const given = await posed.answered
  if (local !== undefined) return local.answer
  elsewhere.abort(new AnsweredElsewhere(given))
  return read(given)
}

/** Answers of the queue and of somebody else. */
export function answersBeside(pose: Pose, local?: LocalAnswers): HostAnswers {
  const by = local?.by ?? ''
  return {
    onApproval: async (question, { signal }) => {
      const posed = await pose(approvalRequestOf(question), signal)
      const { onApproval } = local ?? {}
      const read = (given: GivenAnswer) => policyAnswerOf(question, given)
      if (onApproval === undefined) return read(await posed.answered)
      return askBoth(posed, {
        ...{ by, signal, read },
        here: async inner => {
          const answer = await onApproval(question, { signal: inner })
          return { by, ...(typeof answer === 'boolean' ? { yes: answer } : answer) }
        },
        isYes: ({ yes }) => yes,
      })
    },
    onElicit: async (question, { signal }) => {
      const posed = await pose(elicitRequestOf(question), signal)
      const { onElicit } = local ?? {}
      const read = (given: GivenAnswer) => elicitResultOf(question, given)
      if (onElicit === undefined) return read(await posed.answered)
      return askBoth(posed, {
        ...{ by, signal, read },
        here: inner => onElicit(question, { signal: inner }),
        isYes: ({ action }) => action === 'accept',
      })
    },
    onSampleReview: async (review, { signal }) => {
      const posed = await pose(sampleRequestOf(review), signal)
      const { onSampleReview } = local ?? {}
      if (onSampleReview === undefined) return sampleReviewedOf(await posed.answered)
      return askBoth(posed, {
        ...{ by, signal, read: sampleReviewedOf },
        here: inner => onSampleReview(review, { signal: inner }),
        isYes: ({ yes }) => yes,
      })
    },
  }
}
