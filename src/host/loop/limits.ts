/** The bounds of the loop. Every one has a default, and each refusal names the one it hit. */
import type { Clock } from '../../core/clock.ts'
import { unlessAborted } from '../../core/deadlines.ts'

/** The bounds of turns, prompts, tool calls and hooks. */
export interface LoopLimits {
  /** Answers of the model in one turn. */
  readonly steps: number
  /** Tool calls in one turn. */
  readonly toolCalls: number
  /** Tokens of one turn, in and out, over all its steps. */
  readonly turnTokens: number
  /** Milliseconds from the beginning of a turn to its end, questions to the user included. */
  readonly turnMs: number
  /** Tokens of one answer. */
  readonly answerTokens: number
  /** Milliseconds of one tool call. */
  readonly callMs: number
  /** Tool calls at once. */
  readonly parallelCalls: number
  /** Characters of a tool's result that go into the prompt; what is longer becomes a reference. */
  readonly resultLength: number
  /** Characters of a result that are kept to be read in pieces. */
  readonly keptLength: number
  /** Earlier turns that the model is shown, at most; fewer where its window is too small. */
  readonly historyTurns: number
  /** Turns that wait in one conversation. */
  readonly queue: number
  /** Characters that a user may send at once, attachments aside. */
  readonly messageLength: number
  /** Tools that the model is shown. */
  readonly tools: number
  /** Milliseconds for a before-hook, and for an after-hook that may change the answer. */
  readonly beforeMs: number
  /** How long a blocking after-hook may take, in milliseconds. Default 10,000. */
  readonly afterMs: number
  /** Characters of one injection, of all of one server, and of all. */
  readonly injectionLength: number
  /** Characters that one server may inject into a prompt. */
  readonly serverInjections: number
  /** Characters that all servers may inject into a prompt. */
  readonly allInjections: number
  /** Characters that a hook may make of an answer. */
  readonly changedLength: number
  /** How often a failing model is asked again within a turn. */
  readonly retries: number
}

/** The default of each bound. */
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

// A wait that ends: by its work, by its time, or by somebody who gives up. What comes later is no matter.

/** Why a wait was given up when its time was over. */
export class DeadlineExceeded extends Error {
  override readonly name = 'TimeIsUp'
}

/**
 * Runs `work` with a signal that aborts after `ms`, or with the given one. Rejects with `TimeIsUp` in the first case. `graceMs`: how
 * long work that was told to stop may take to do so; what it does until then has happened before this rejects.
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
    if (either.aborted && graceMs > 0) await settled(clock, working, graceMs)
    throw error
  } finally {
    cancel()
  }
}

function settled(clock: Clock, working: Promise<unknown>, ms: number): Promise<void> {
  return new Promise(resolve => {
    const cancel = clock.setTimeout(resolve, ms, true)
    const done = (): void => {
      cancel()
      resolve()
    }
    working.then(done, done)
  })
}
