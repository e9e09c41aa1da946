/** Client side of problems: reads them from results, and repeats failed calls if that can help. */

import type { Clock } from '../../../core/clock.ts'
import type { Problem } from '../../../core/problem.ts'
import { pause } from '../../../engine/backoff.ts'
import { defineClientFeature, extend } from '../../../engine/client-feature.ts'
import { extensionCapability } from '../../../engine/extensions.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import type { Awaitable } from '../../../jsonrpc/message.ts'
import { type ToolAttempts, type ToolCallExtension, toolCalls } from '../../mcp/tools/messages.ts'
import { classify } from './classify.ts'
import { type ClientProblems, fromWire, problemExtension, problemsPort } from './messages.ts'

/** Options of `connect` for failed calls. */
export interface ProblemOptions {
  /**
   * How failed tool calls are repeated: only if waiting can help (transient or rate-limited problems, unavailable servers), and
   * only calls that can be repeated safely. False: never. Default: 4 attempts within 30 s.
   */
  readonly retry?: RetryOptions | false
  /** Called for a failure that the user can do something about. Default: not called. */
  readonly onProblem?: OnProblem
  /**
   * Obtains a missing permission. If it returns true, the call is repeated once. HTTP authorization is handled by `auth`.
   * Default: the call fails.
   */
  readonly onAuthRequired?: OnAuthRequired
}

/** The client feature: reads problems, and repeats failed calls. */
export const problemClient = defineClientFeature<ProblemOptions, ClientProblems>({
  name: 'problem',
  provides: problemsPort,
  options: { retry: 'any', onProblem: 'function', onAuthRequired: 'function' },
  setup(kit, { retry = {}, onProblem, onAuthRequired }) {
    const retries = new Retries({ retry, clock: kit.clock, random: Math.random, onProblem, onAuthRequired })
    return {
      side: { capabilities: revision => extensionCapability(revision, problemExtension) },
      port: { classify, retry: call => retries.call(call) },
      extensions: [extend(toolCalls, { name: 'problem', attempts: call => retries.call(call), reads })],
    }
  },
})

const reads: NonNullable<ToolCallExtension['reads']> = {
  problem: ({ isError, _meta }) => (isError === true ? fromWire(_meta?.[problemExtension]) : undefined),
}

// Retries: only if they can help and are safe, never earlier than the server asks, limited in number and time, and limited to a share
// of all calls.

/** Limits of retries. */
interface RetryOptions {
  /** Total number of attempts. Default 4. */
  readonly attempts?: number
  /** Milliseconds after the first attempt in which retries may start. Default 30,000. */
  readonly totalMs?: number
}

/** Called for a problem that the user can act on. */
type OnProblem = (
  problem: Problem,
  call: {
    /** The tool that was called. */
    readonly tool: string
  },
) => void

/** Obtains a missing permission; true: repeat the call. */
type OnAuthRequired = (
  problem: Problem,
  call: {
    /** The tool that was called. */
    readonly tool: string
  },
) => Awaitable<boolean>

/** What retries need. */
interface RetriesOptions {
  readonly retry: RetryOptions | false
  readonly clock: Clock
  /** From 0 to below 1. */
  readonly random: () => number
  readonly onProblem?: OnProblem | undefined
  readonly onAuthRequired?: OnAuthRequired | undefined
}

// Backoff: the first and the longest delay.
const firstMs = 250
const longestMs = 10_000
/** Retry budget: a burst, and a share of all calls. */
const mostTokens = 10
const tokensPerCall = 0.1
const never = new AbortController().signal

/** The retries of one connection. */
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

  /** Runs the attempts; settles as the last one did. */
  async call<T extends { readonly problem: Problem | undefined }>(call: ToolAttempts<T>): Promise<T> {
    const { clock, onAuthRequired } = this.#options
    const until = clock.now() + this.#totalMs
    let asked = false
    this.#tokens = Math.min(mostTokens, this.#tokens + tokensPerCall)
    let before: FailedAttempt<T> | undefined
    for (let attempt = 1; ; attempt++) {
      let ended: FailedAttempt<T>
      try {
        const outcome = await call.attempt()
        if (outcome.problem === undefined) return outcome
        ended = { problem: outcome.problem, give: () => outcome }
      } catch (error) {
        ended = { problem: classify(error), give: () => raise(error) }
      }
      const { problem } = ended
      if (before !== undefined && saysLess(problem, before.problem)) return this.#surface(before, before.problem, call)
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

  // All conditions for another attempt.
  async #mayRepeat(call: ToolAttempts<unknown>, problem: Problem, attempt: number): Promise<boolean> {
    if (!problem.retryable || attempt >= this.#attempts || this.#tokens < 1) return false
    if (call.signal?.aborted === true || !call.open() || isOwnDeadline(problem.cause)) return false
    return call.harmless()
  }

  /** At least the server's wait, plus random jitter, so that clients that failed together do not return together. */
  #waitMs({ retryAfter = 0 }: Problem, attempt: number): number {
    const most = Math.min(longestMs, firstMs * 2 ** (attempt - 1))
    return retryAfter + this.#options.random() * most
  }

  // Reports the problem to the user, and returns the outcome.
  #surface<T>(ended: FailedAttempt<T>, problem: Problem, { tool }: ToolAttempts<T>): T {
    if (problem.actor === 'user') this.#options.onProblem?.(problem, { tool })
    return ended.give()
  }
}

/** An attempt that failed: with an answer that says so, or an error. */
interface FailedAttempt<T> {
  readonly problem: Problem
  /** Returns the answer, or throws the error. */
  give(): T
}

function raise(error: unknown): never {
  throw error
}

/** A missing confirmation cannot be fixed by signing in. */
function lacksRight({ category, code }: Problem): boolean {
  return category === 'auth_required' && code !== 'CONFIRMATION_REQUIRED'
}

/** After a timeout the key only says that the outcome is unknown; the first error is more informative. */
function saysLess({ code }: Problem, before: Problem): boolean {
  return code === 'OUTCOME_UNKNOWN' && before.code === 'OPERATION_TIMEOUT'
}

/** The call was executed, but its result was withheld. */
function wasDone({ details }: Problem): boolean {
  return details?.['executed'] === true
}

/** A client's own deadline ends the retries. */
function isOwnDeadline(cause: unknown): boolean {
  return cause instanceof McpError && cause.kind === 'timeout'
}
