/** The limits of the loop with their defaults, and `withDeadline`, which enforces time limits. */
import type { Clock } from '../../core/clock.ts'
import { unlessAborted } from '../../core/deadlines.ts'
import { waitAtMost } from '../waiting.ts'

/** Limits of turns, prompts, tool calls and hooks. A refusal names its limit. */
export interface LoopLimits {
  /** The most model answers per turn. Default 20. */
  readonly steps: number
  /** The most tool calls per turn. Default 50. */
  readonly toolCalls: number
  /** The most tokens per turn, input and output of all steps. Default 1,000,000. */
  readonly turnTokens: number
  /** The longest turn, including questions to the user, in milliseconds. Default 600,000. */
  readonly turnMs: number
  /** The most tokens per answer. Default 4,096. */
  readonly answerTokens: number
  /** The longest tool call, in milliseconds. Default 60,000. */
  readonly callMs: number
  /** The most tool calls at the same time. Default 8. */
  readonly parallelCalls: number
  /** The most characters of a tool result in the prompt; the rest becomes a reference. Default 20,000. */
  readonly resultLength: number
  /** The most characters of a result that are stored. Default 8,000,000. */
  readonly storedLength: number
  /** The most earlier turns in the prompt; fewer if the context window is too small. Default 100. */
  readonly historyTurns: number
  /** The most waiting turns per conversation. Default 16. */
  readonly queue: number
  /** The most characters of a user's message, without attachments. Default 200,000. */
  readonly messageLength: number
  /** The most tools that the model sees. Default 512. */
  readonly tools: number
  /** How long a hook before an inference may take, in milliseconds. Default 5,000. */
  readonly beforeMs: number
  /** How long a blocking hook after an inference may take, in milliseconds. Default 10,000. */
  readonly afterMs: number
  /** The most characters of one injection. Default 16,000. */
  readonly injectionLength: number
  /** The most characters that one server may inject into a prompt. Default 48,000. */
  readonly serverInjections: number
  /** The most characters that all servers may inject into a prompt. Default 128,000. */
  readonly allInjections: number
  /** The most characters of an answer that a hook has changed. Default 1,000,000. */
  readonly changedLength: number
  /** How often a failing model is asked again for one answer. Default 2. */
  readonly retries: number
}

/** Limits as they are given, also under names of earlier versions. */
export interface GivenLoopLimits extends Partial<LoopLimits> {
  /**
   * The former name of `storedLength`.
   * @deprecated Use `storedLength`.
   */
  readonly keptLength?: number
}

/** All limits: the given ones, and the defaults of the others. */
export function loopLimitsOf({ keptLength, ...given }: GivenLoopLimits = {}): LoopLimits {
  return { ...loopLimits, ...(keptLength !== undefined && { storedLength: keptLength }), ...given }
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
  storedLength: 8_000_000,
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
  const cancel = clock.setTimeout(
    () => over.abort(new DeadlineExceeded(`The operation took longer than ${ms} ms (the limit)`)),
    ms,
    true,
  )
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
