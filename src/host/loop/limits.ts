/** The limits of the loop with their defaults, and `withDeadline`, which enforces time limits. */
import type { Clock } from '../../core/clock.ts'
import { unlessAborted } from '../../core/deadlines.ts'
import { waitAtMost } from '../waiting.ts'

/** The limits of turns, prompts, tool calls and hooks. Each refusal names the limit that it hit. */
export interface LoopLimits {
  /** Model answers per turn. */
  readonly steps: number
  /** Tool calls per turn. */
  readonly toolCalls: number
  /** Tokens per turn, input and output of all steps. */
  readonly turnTokens: number
  /** The longest turn in milliseconds, including questions to the user. */
  readonly turnMs: number
  /** Tokens per answer. */
  readonly answerTokens: number
  /** The longest tool call, in milliseconds. */
  readonly callMs: number
  /** Concurrent tool calls. */
  readonly parallelCalls: number
  /** Characters of a tool result in the prompt; the rest becomes a reference. */
  readonly resultLength: number
  /** Characters of a result that are stored. */
  readonly keptLength: number
  /** Earlier turns in the prompt; fewer where the context window is too small. */
  readonly historyTurns: number
  /** Waiting turns per conversation. */
  readonly queue: number
  /** Characters of a user's message, without attachments. */
  readonly messageLength: number
  /** Tools that the model is shown. */
  readonly tools: number
  /** Time limit of a before-hook, in milliseconds. */
  readonly beforeMs: number
  /** How long a blocking after-hook may take, in milliseconds. Default 10,000. */
  readonly afterMs: number
  /** Characters of one injection. */
  readonly injectionLength: number
  /** Characters that one server may inject into a prompt. */
  readonly serverInjections: number
  /** Characters that all servers may inject into a prompt. */
  readonly allInjections: number
  /** Characters of an answer that a hook has changed. */
  readonly changedLength: number
  /** Retries of a failing model per answer. */
  readonly retries: number
}

/** The default limits. */
export const loopLimits: LoopLimits = {
  steps: 20,
  toolCalls: 50,
  turnTokens: 1_000_000,
  turnMs: 600_000,
  answerTokens: 4_096,
  callMs: 60_000,
  parallelCalls: 8,
  resultLength: 20_000,
  keptLength: 8_000_000,
  historyTurns: 100,
  queue: 16,
  messageLength: 200_000,
  tools: 512,
  beforeMs: 5_000,
  afterMs: 10_000,
  injectionLength: 16_000,
  serverInjections: 48_000,
  allInjections: 128_000,
  changedLength: 1_000_000,
  retries: 2,
}

// Deadlines. The result of work that ends after its deadline is ignored.

/** The error after a deadline. */
export class DeadlineExceeded extends Error {
  override readonly name = 'TimeIsUp'
}

/**
 * Runs `work` with a signal that aborts after `ms` or with the given signal. Rejects with `DeadlineExceeded` in the first case. `graceMs`:
 * how long aborted work may take to end before this rejects.
 */
export async function withDeadline<T>(
  clock: Clock,
  ms: number,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
  graceMs = 0,
): Promise<T> {
  const over = new AbortController()
  const cancel = clock.setTimeout(() => over.abort(new DeadlineExceeded(`It took longer than ${ms} ms`)), ms, true)
  const either = AbortSignal.any([signal, over.signal])
  const working = work(either)
  try {
    return await unlessAborted(working, either)
  } catch (error) {
    if (either.aborted && graceMs > 0) await waitAtMost(clock, graceMs, working.then(ignored, ignored))
    throw error
  } finally {
    cancel()
  }
}

/** The outcome of work that is no longer waited for is no matter. */
function ignored(): void {}
