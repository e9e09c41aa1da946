/** The bounds of the loop. Every one has a default, and each refusal names the one it hit. */

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
