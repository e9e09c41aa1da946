/**
 * One queue of everything that waits for a person, whoever asks: a gateway, a host, a program. The page, a terminal and a program answer it
 * alike. The first answer counts, and it names the digest of what was shown, so that nobody says yes to something else.
 */
import { randomUUID } from 'node:crypto'
import { type Clock, realClock } from '../core/clock.ts'
import { digest } from '../core/digest.ts'
import { answersBeside, type HostAnswers, type LocalAnswers } from './beside.ts'
import type { Answered, Approval, ApprovalAnswer, ApprovalDetail } from './contract/approvals.ts'
import { ConsoleFailure } from './failure.ts'
import { formFault } from './form.ts'

/** Who answers. */
export interface Answerer {
  /** The name for the audit log. */
  readonly by: string
  /** Nobody approves a call of his own. */
  readonly fourEyes?: boolean
}

/** What a program asks a person. The queue adds id, digest and time. */
export type ApprovalRequest = Pick<Approval, 'kind' | 'server' | 'text' | 'rule'> &
  Partial<
    Pick<Approval, 'tool' | 'payload' | 'before' | 'after' | 'changes' | 'risk' | 'client' | 'subject' | 'until' | 'lasts'>
  > &
  Partial<Pick<Approval, 'untilChanged' | 'wider' | 'flaw' | 'scopes' | 'conversation' | 'inferenceId'>>

/** Approvals that are kept elsewhere, such as those of a gateway on its store. */
export interface ApprovalSource {
  /** All that wait, oldest first; long payloads may be left out. */
  list(): Promise<readonly Approval[]>
  /** One of them, whole. */
  find(id: string): Promise<Approval | undefined>
  /** False where it was answered before. */
  answer(id: string, answer: ApprovalAnswer, by: string): Promise<boolean>
  /** Who answered, where that is known. */
  answered(id: string): Promise<Answered | undefined>
  /** One that waited at the last look, though it may be answered by now. */
  last(id: string): Approval | undefined
}

/** Called when an approval is added, and when it is answered. */
export interface ApprovalListener {
  /** Something waits. */
  added?(approval: Approval): void
  /** Something was answered, expired or was withdrawn. */
  answered?(answered: Answered): void
}

/** An answer with the name of who gave it. */
export interface GivenAnswer extends ApprovalAnswer {
  /** Who answered. */
  readonly by: string
}

/** Something that waits in the queue. */
export interface PosedApproval {
  /** As it is shown. */
  readonly approval: Approval
  /** The answer that counts; rejects where the question was withdrawn. */
  readonly answered: Promise<GivenAnswer>
  /** Answers it from within the process. False where somebody was faster. */
  claim(answer: Pick<GivenAnswer, 'yes' | 'by' | 'reason'>): boolean
}

/** The queue as programs use it. Its `onApproval`, `onElicit` and `onSampleReview` are options of `createHost`. */
export interface ApprovalQueue extends HostAnswers {
  /** Asks a person, and settles with the answer that counts; rejects where the signal is aborted before. */
  ask(request: ApprovalRequest, signal?: AbortSignal): Promise<GivenAnswer>
  /** The same, with the way to answer it from within the process: the first answer counts. */
  pose(request: ApprovalRequest, signal?: AbortSignal): Promise<PosedApproval>
  /** Everything that waits, oldest first. Long payloads may be left out. */
  list(): Promise<readonly Approval[]>
  /** One approval, whole; also for some minutes after it was answered. */
  find(id: string): Promise<ApprovalDetail | undefined>
  /** Answers one. Throws where somebody was faster, or where the digest is not that of the approval. */
  answer(id: string, answer: ApprovalAnswer, who: Answerer): Promise<Answered>
  /** Tells of changes; returns the way to stop. */
  subscribe(listener: ApprovalListener): () => void
  /** Withdraws everything that waits, and takes no more: call it before the host is closed, so that no turn waits for an answer. */
  close(): void
  /** The same options for a host whose questions somebody else answers too, such as a terminal: the first answer counts. */
  beside(local: LocalAnswers): HostAnswers
}

interface Asked {
  readonly approval: Approval
  settle(answer: GivenAnswer): void
  withdraw(reason: unknown): void
}

const mostRemembered = 200
const mostAsked = 1_000
const once = ['once']

/** The digest of all that a person is shown. */
export async function approvalDigestOf(
  approval: Omit<Approval, 'digest' | 'length' | 'since' | 'until' | 'lasts'>,
): Promise<string> {
  const { id, kind, server, tool, text, payload, before, after, rule, client, subject, wider, scopes } = approval
  // What only a host gives is left out where it is not there, so that the digests of a gateway stay as they are.
  const more = wider === undefined && scopes === undefined ? [] : [wider, scopes]
  const all = [id, kind, server, tool, text, payload, before, after, rule, client, subject, ...more]
  return `sha256:${await digest(all.map(each => each ?? null))}`
}

/** Makes a queue for approvals of a program, a host or a gateway. */
export function createApprovalQueue(): ApprovalQueue {
  return new SharedApprovals(realClock)
}

/** The queue, with what the console adds: approvals that are kept elsewhere. */
export class SharedApprovals implements ApprovalQueue {
  readonly #clock: Clock
  readonly #asked = new Map<string, Asked>()
  readonly #sources = new Set<ApprovalSource>()
  #closed = false
  readonly #listeners = new Set<ApprovalListener>()
  /** Answers of late, with what they were about. */
  readonly #past = new Map<string, { readonly approval: Approval; readonly answered: Answered }>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Alone: nobody else is asked. */
  readonly #alone = answersBeside((request, signal) => this.pose(request, signal))
  readonly onApproval = this.#alone.onApproval
  readonly onElicit = this.#alone.onElicit
  readonly onSampleReview = this.#alone.onSampleReview

  beside(local: LocalAnswers): HostAnswers {
    return answersBeside((request, signal) => this.pose(request, signal), local)
  }

  async ask(request: ApprovalRequest, signal?: AbortSignal): Promise<GivenAnswer> {
    return (await this.pose(request, signal)).answered
  }

  async pose(request: ApprovalRequest, signal?: AbortSignal): Promise<PosedApproval> {
    signal?.throwIfAborted()
    if (this.#closed) throw closing()
    if (this.#asked.size >= mostAsked) throw new Error(`${mostAsked} approvals wait already`)
    const id = `asked.${randomUUID()}`
    const named = { ...request, id, risk: request.risk ?? 'unknown', lasts: request.lasts ?? once } as const
    const length = JSON.stringify(request.payload ?? null).length
    const approval: Approval = { ...named, length, digest: await approvalDigestOf(named), since: this.#clock.now() }
    const { promise, resolve, reject } = Promise.withResolvers<GivenAnswer>()
    const withdraw = (reason: unknown): void => {
      if (!this.#asked.delete(id)) return
      this.remember(approval, { id, at: this.#clock.now() })
      reject(reason)
    }
    const left = (): void => withdraw(signal?.reason)
    this.#asked.set(id, { approval, settle: resolve, withdraw })
    signal?.addEventListener('abort', left, { once: true })
    for (const { added } of this.#listeners) added?.(approval)
    const answered = promise.finally(() => signal?.removeEventListener('abort', left))
    // Whoever posed it may not have come to wait for it yet.
    answered.catch(() => undefined)
    if (signal?.aborted === true) left()
    return {
      approval,
      answered,
      claim: answer => {
        if (!this.#asked.delete(id)) return false
        resolve({ ...answer, digest: approval.digest })
        this.#answered(approval, { ...answer, digest: approval.digest }, answer.by)
        return true
      },
    }
  }

  async list(): Promise<readonly Approval[]> {
    const lists = await Promise.all([...this.#sources].map(source => source.list()))
    const own = [...this.#asked.values()].map(({ approval }) => approval)
    return [...own, ...lists.flat()].sort((one, other) => one.since - other.since)
  }

  async find(id: string): Promise<ApprovalDetail | undefined> {
    const own = this.#asked.get(id)?.approval
    if (own !== undefined) return { approval: own }
    for (const source of this.#sources) {
      const approval = await source.find(id)
      if (approval !== undefined) return { approval }
    }
    return this.#past.get(id) ?? this.#answeredSinceTheLastLook(id)
  }

  async answer(id: string, answer: ApprovalAnswer, who: Answerer): Promise<Answered> {
    const own = this.#asked.get(id)
    if (own !== undefined) {
      check(own.approval, answer, who)
      // Nothing is awaited between the look and the answer, so the first one counts.
      this.#asked.delete(id)
      own.settle({ ...answer, by: who.by })
      return this.#answered(own.approval, answer, who.by)
    }
    for (const source of this.#sources) {
      const approval = await source.find(id)
      if (approval === undefined) continue
      check(approval, answer, who)
      if (await source.answer(id, answer, who.by)) return this.#answered(approval, answer, who.by)
      throw tooLate(await this.#whoAnswered(id))
    }
    const before = await this.#whoAnswered(id)
    if (before !== undefined) throw tooLate(before)
    throw new ConsoleFailure('NOT_FOUND', 'Nothing waits under this id.', 'It expired, or its caller left. Reload the list.')
  }

  subscribe(listener: ApprovalListener): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  close(): void {
    this.#closed = true
    for (const { withdraw } of [...this.#asked.values()]) withdraw(closing())
  }

  /** Adds approvals that are kept elsewhere; returns the way to take them out again. */
  attach(source: ApprovalSource): () => void {
    this.#sources.add(source)
    return () => void this.#sources.delete(source)
  }

  /** Keeps an answer for a while, and tells of it. */
  remember(approval: Approval, answered: Answered): void {
    if (this.#past.has(approval.id)) return
    // Whoever looks back sees who answered what, and not a megabyte of it.
    const { payload: _, before: __, after: ___, ...rest } = approval
    this.#past.set(approval.id, { approval: approval.length > 65_536 ? rest : approval, answered })
    const [oldest] = this.#past.keys()
    if (this.#past.size > mostRemembered && oldest !== undefined) this.#past.delete(oldest)
    for (const listener of this.#listeners) listener.answered?.(answered)
  }

  /** Forgets an answer: the same question is asked again. */
  reopen(id: string): void {
    this.#past.delete(id)
  }

  #answered(approval: Approval, { yes, reason }: ApprovalAnswer, by: string): Answered {
    const answered = { id: approval.id, yes, by, at: this.#clock.now(), ...(reason !== undefined && { reason }) }
    this.reopen(approval.id)
    this.remember(approval, answered)
    return answered
  }

  /** Not remembered yet: the next look at its source does that, and tells of it. */
  async #answeredSinceTheLastLook(id: string): Promise<ApprovalDetail | undefined> {
    for (const source of this.#sources) {
      const approval = source.last(id)
      if (approval !== undefined) return { approval, answered: (await source.answered(id)) ?? { id, at: this.#clock.now() } }
    }
    return undefined
  }

  async #whoAnswered(id: string): Promise<Answered | undefined> {
    const known = this.#past.get(id)?.answered
    if (known?.yes !== undefined) return known
    for (const source of this.#sources) {
      const found = await source.answered(id)
      if (found !== undefined) return found
    }
    return known
  }
}

function closing(): Error {
  return new Error('The queue of approvals is closed')
}

/** What counts as a yes: to exactly what was shown, by somebody who may give it. A no only has to be about the same thing. */
function check(approval: Approval, answer: ApprovalAnswer, { by, fourEyes }: Answerer): void {
  if (answer.digest !== approval.digest)
    throw new ConsoleFailure('DIGEST_MISMATCH', 'What waits is not what was shown.', 'Read it again, then answer.', {
      digest: approval.digest,
    })
  if (!answer.yes) return
  if (approval.refuseOnly !== undefined) throw new ConsoleFailure('REFUSE_ONLY', approval.refuseOnly, 'Refuse it.')
  if (!approval.lasts.includes(answer.for ?? 'once'))
    throw new ConsoleFailure('INVALID_INPUT', 'The answer cannot last that long.', `Give one of ${approval.lasts.join(', ')}.`, {
      member: 'for',
    })
  if (answer.covers !== undefined && approval.wider?.some(({ covers }) => covers === answer.covers) !== true)
    throw new ConsoleFailure('INVALID_INPUT', 'The answer cannot reach that far.', 'Give one of wider, or leave covers out.', {
      member: 'covers',
    })
  const wrong = approval.kind === 'form' ? formFault(approval.payload, answer.content) : undefined
  if (wrong !== undefined)
    throw new ConsoleFailure('INVALID_INPUT', wrong, 'Give content that fits the schema.', { member: 'content' })
  if (fourEyes !== true || approval.kind !== 'call') return
  if (approval.subject === undefined || approval.subject === by || approval.client === by)
    throw new ConsoleFailure(
      'FOUR_EYES',
      approval.subject === undefined ? 'Nobody knows whose call it is.' : 'It is your own call.',
      'Somebody else has to approve it.',
    )
}

function tooLate(answered: Answered | undefined): ConsoleFailure {
  const { yes, by } = answered ?? {}
  const what =
    yes === undefined
      ? 'It was answered or withdrawn before.'
      : `It was ${yes ? 'approved' : 'refused'} before${by === undefined ? '' : ` by ${by}`}.`
  return new ConsoleFailure('ALREADY_ANSWERED', what, 'Nothing is left to do.', answered === undefined ? {} : { ...answered })
}
