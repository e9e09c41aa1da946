/** The client's side of problems: read from answers, and calls that failed made again. */

import type { Clock } from '../../../core/clock.ts'
import type { Problem } from '../../../core/problem.ts'
import { pause } from '../../../engine/backoff.ts'
import { defineClientFeature, extend } from '../../../engine/client-feature.ts'
import { declaration } from '../../../engine/extensions.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import type { Awaitable } from '../../../jsonrpc/message.ts'
import { type ToolAttempts, type ToolCallExtension, toolCalls } from '../../mcp/tools/messages.ts'
import { classify } from './classify.ts'
import { type ClientProblems, fromWire, problemExtension, problemsPort } from './messages.ts'

/** What a client does about failed calls. */
export interface ProblemOptions {
  /**
   * How failed tool calls are made again by themselves: only where waiting can help (problems of the categories transient and
   * rate_limited, busy or vanished servers), and only calls that do no harm when repeated. False: never.
   */
  readonly retry?: RetryOptions | false
  /** Told of a failure that the user can do something about, with what that is. */
  readonly onProblem?: OnProblem
  /** Gets the right that a call lacked; true: it is made once more. What HTTP asks for is the matter of `auth`. */
  readonly onAuthRequired?: OnAuthRequired
}

/** Reads problems from answers, and makes failed calls again. */
export const problemClient = defineClientFeature<ProblemOptions, ClientProblems>({
  name: 'problem',
  provides: problemsPort,
  options: { retry: 'any', onProblem: 'function', onAuthRequired: 'function' },
  setup(kit, { retry = {}, onProblem, onAuthRequired }) {
    const retries = new Retries({ retry, clock: kit.clock, random: Math.random, onProblem, onAuthRequired })
    return {
      side: { capabilities: revision => declaration(revision, problemExtension) },
      port: { classify, retry: call => retries.call(call) },
      extensions: [extend(toolCalls, { name: 'problem', attempts: call => retries.call(call), reads })],
    }
  },
})

const reads: NonNullable<ToolCallExtension['reads']> = {
  problem: ({ isError, _meta }) => (isError === true ? problemIn(_meta) : undefined),
}

/** The problem that a result tells of, if it does. */
function problemIn(meta: Readonly<Record<string, unknown>> | undefined): Problem | undefined {
  return meta === undefined ? undefined : fromWire(meta[problemExtension])
}

// Making a call again: only where that can help and does no harm, never earlier than the server asked for, so often and so long
// and no more, and only while not too large a part of all calls are repetitions.

/** How often and how long a failed call is made again. */
interface RetryOptions {
  /** How often a call is made in all. Default 4. */
  readonly attempts?: number
  /** How long after its beginning a call may be made again, in milliseconds. Default 30,000. */
  readonly totalMs?: number
}

/** Told of a problem that the user can do something about. */
type OnProblem = (problem: Problem, call: { readonly tool: string }) => void

/** Gets the right that a call lacked. True: it is made once more. */
type OnAuthRequired = (problem: Problem, call: { readonly tool: string }) => Awaitable<boolean>

/** How calls are repeated over one connection. */
export interface RetriesOptions {
  readonly retry: RetryOptions | false
  readonly clock: Clock
  /** From 0 to below 1. */
  readonly random: () => number
  readonly onProblem?: OnProblem | undefined
  readonly onAuthRequired?: OnAuthRequired | undefined
}

/** What came of an attempt that did not throw. */
interface Attempted {
  readonly problem: Problem | undefined
}

const firstMs = 250
const longestMs = 10_000
/** Repetitions at once, and the part of all calls that they may be in the long run. */
const mostTokens = 10
const tokensPerCall = 0.1
const never = new AbortController().signal

/** The repetitions over one connection. */
export class Retries {
  readonly #options: RetriesOptions
  readonly #attempts: number
  readonly #totalMs: number
  #tokens = mostTokens

  constructor(options: RetriesOptions) {
    const { retry } = options
    this.#options = options
    this.#attempts = retry === false ? 1 : (retry.attempts ?? 4)
    this.#totalMs = retry === false ? 0 : (retry.totalMs ?? 30_000)
  }

  /** Resolves or rejects with what the last attempt did. */
  async call<T extends Attempted>(call: ToolAttempts<T>): Promise<T> {
    const { clock, onAuthRequired } = this.#options
    const until = clock.now() + this.#totalMs
    let asked = false
    this.#tokens = Math.min(mostTokens, this.#tokens + tokensPerCall)
    let before: Ended<T> | undefined
    for (let attempt = 1; ; attempt++) {
      const ended = await settle(call.attempt)
      const { problem } = ended
      if (problem === undefined) return ended.give()
      if (before?.problem !== undefined && saysLess(problem, before.problem)) return this.#surface(before, before.problem, call)
      before = ended
      if (!asked && onAuthRequired !== undefined && lacksRight(problem) && (!wasDone(problem) || (await call.harmless()))) {
        asked = true
        if (await onAuthRequired(problem, call)) continue
      }
      const wait = (await this.#mayRepeat(call, problem, attempt)) ? this.#waitMs(problem, attempt) : undefined
      if (wait === undefined || clock.now() + wait > until) return this.#surface(ended, problem, call)
      this.#tokens--
      await pause(clock, wait, call.signal ?? never)
      if (call.signal?.aborted === true) return this.#surface(ended, problem, call)
    }
  }

  async #mayRepeat(call: ToolAttempts<unknown>, problem: Problem, attempt: number): Promise<boolean> {
    if (!problem.retryable || attempt >= this.#attempts || this.#tokens < 1) return false
    if (call.signal?.aborted === true || !call.open() || isOwnDeadline(problem.cause)) return false
    return call.harmless()
  }

  /** Never before the server wants it; beyond that at random, so that those who failed together do not come again together. */
  #waitMs({ retryAfter = 0 }: Problem, attempt: number): number {
    const most = Math.min(longestMs, firstMs * 2 ** (attempt - 1))
    return retryAfter + this.#options.random() * most
  }

  #surface<T>(ended: Ended<T>, problem: Problem, { tool }: ToolAttempts<T>): T {
    if (problem.actor === 'user') this.#options.onProblem?.(problem, { tool })
    return ended.give()
  }
}

interface Ended<T> {
  readonly problem: Problem | undefined
  /** Gives the outcome, or throws what the attempt threw. */
  give(): T
}

async function settle<T extends Attempted>(attempt: () => Promise<T>): Promise<Ended<T>> {
  try {
    const outcome = await attempt()
    return { problem: outcome.problem, give: () => outcome }
  } catch (error) {
    return {
      problem: classify(error),
      give: () => {
        throw error
      },
    }
  }
}

/** A confirmation is a right too, but not one that signing in gives. */
function lacksRight({ category, code }: Problem): boolean {
  return category === 'auth_required' && code !== 'CONFIRMATION_REQUIRED'
}

/** A call that ran out of time is known by its key as begun, and no more: why it failed was said the first time. */
function saysLess({ code }: Problem, before: Problem): boolean {
  return code === 'OUTCOME_UNKNOWN' && before.code === 'OPERATION_TIMEOUT'
}

/** The right has ended while the call ran: only what came of it is withheld. */
function wasDone({ details }: Problem): boolean {
  return details?.['executed'] === true
}

/** Who set a deadline does not want to wait beyond it. */
function isOwnDeadline(cause: unknown): boolean {
  return cause instanceof McpError && cause.kind === 'timeout'
}
