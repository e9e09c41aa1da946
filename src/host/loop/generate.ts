/** One answer of the model: reserves its budget, streams it, settles the cost, and retries transient failures. */
import { pauseFor } from '../../core/clock.ts'
import { Problem, problem } from '../../core/problem.ts'
import type { Estimate, Spender } from '../../policy/budgets/budgets.ts'
import {
  estimateTokens,
  type Model,
  type ModelFinish,
  type ModelRequest,
  type ModelToolUse,
  type ModelUsage,
  requestTokens,
} from '../models/model.ts'
import { deniedProblem, isWhy } from './permission.ts'
import type { LoopParts } from './ports.ts'

/** One answer of the model: when it began, and how long it took. */
export interface InferenceReport {
  /** Its number within the turn, from 0. */
  readonly n: number
  /** The model that answered; before it has, the one that is asked. */
  readonly model: string
  /** When it was asked, in milliseconds since the epoch. */
  readonly began: number
  /** From there to the first word, in milliseconds. Absent before, and where there was none. */
  readonly firstMs?: number
  /** How long it took, in milliseconds. Absent while it runs. */
  readonly ms?: number
  /** The tokens that it used. Absent while it runs. */
  readonly usage?: ModelUsage
  /** The numbers of the calls that it asked for. */
  readonly calls: readonly number[]
}

/** A complete answer of a model. */
export interface Generation {
  readonly text: string
  readonly uses: readonly ModelToolUse[]
  readonly finishReason: ModelFinish
  readonly usage: ModelUsage
  readonly model: string
  /** When the model was asked, also if that had to be repeated. */
  readonly began: number
  /** From there to the first word. */
  readonly firstMs?: number
  /** How long it took. */
  readonly ms: number
  /** Settles when the cost is stored; await it together with storing the answer. */
  readonly settled: Promise<unknown>
}

/** What `generate` needs. `payer`: whose budget pays. */
type GenerateParts = Pick<LoopParts, 'clock' | 'budgets' | 'limits'> & { readonly payer: Spender & Pick<Estimate, 'user'> }

/** The pause before the first retry, doubled each time. */
const firstPauseMs = 500
/** A longer wait is not worth it; the error is thrown. */
const longestPauseMs = 60_000

/** Asks a model within the payer's budget. Retries transient failures as long as no text was shown. */
export async function generate(
  parts: GenerateParts,
  model: Model,
  request: ModelRequest,
  signal: AbortSignal,
  onText: (delta: string) => void,
): Promise<Generation> {
  const began = parts.clock.now()
  let first: number | undefined
  const hear = (delta: string): void => {
    first ??= parts.clock.now()
    onText(delta)
  }
  for (let attempt = 0; ; attempt++) {
    try {
      const made = await once(parts, model, request, signal, hear)
      return { ...made, began, ms: parts.clock.now() - began, ...(first !== undefined && { firstMs: first - began }) }
    } catch (error) {
      signal.throwIfAborted()
      // Text that was shown cannot be taken back.
      if (first !== undefined || attempt >= parts.limits.retries || !(error instanceof Problem) || !error.retryable) throw error
      const wait = error.retryAfter ?? firstPauseMs * 2 ** attempt
      if (wait > longestPauseMs) throw error
      await pauseFor(parts.clock, wait, signal)
    }
  }
}

/** One attempt: reserve, stream, settle. */
async function once(
  { budgets, payer }: GenerateParts,
  model: Model,
  request: ModelRequest,
  signal: AbortSignal,
  onText: (delta: string) => void,
): Promise<Omit<Generation, 'began' | 'firstMs' | 'ms'>> {
  const asked = requestTokens(request)
  const most = request.maxTokens ?? 0
  const reserved = await budgets.reserve({ ...payer, tokens: asked + most, requests: 1, ...moneyFor(model, asked, most) })
  if (isWhy(reserved)) throw deniedProblem(reserved)
  let [text, usage]: [string, ModelUsage | undefined] = ['', undefined]
  const uses: ModelToolUse[] = []
  let end: { readonly finishReason: ModelFinish; readonly model?: string } | undefined
  const settle = (): Promise<unknown> => {
    // An answer that broke off costs what was generated until then.
    const { inputTokens, outputTokens } = usage ?? {
      inputTokens: text === '' ? 0 : asked,
      outputTokens: estimateTokens(text),
    }
    const tokens = inputTokens + outputTokens
    const spent = { tokens, requests: tokens === 0 ? 0 : 1, ...moneyFor(model, inputTokens, outputTokens) } as const
    return Promise.resolve(reserved.settle(spent))
  }
  try {
    for await (const part of model.generate(request, { signal })) {
      signal.throwIfAborted()
      if (part.type === 'text') {
        text += part.delta
        if (part.delta !== '') onText(part.delta)
      } else if (part.type === 'tool_use') uses.push(part)
      else [end, usage] = [part, part.usage]
    }
    if (end === undefined || usage === undefined) throw brokeOff(model)
  } catch (error) {
    await settle()
    throw error
  }
  const settled = settle()
  settled.catch(() => undefined)
  return { text, uses, finishReason: end.finishReason, usage, model: end.model ?? model.info.id, settled }
}

/** The stream ended without an `end` part. */
function brokeOff({ info }: Model): Problem {
  return problem('MODEL_BROKE_OFF', `The response of the model ${info.id} is incomplete`, {
    category: 'transient',
    suggestion: 'Try again',
  })
}

/** The price of tokens; nothing where the model has no price. */
export function moneyFor({ price }: Pick<Model, 'price'>, input: number, output: number): { readonly money?: number } {
  return price === undefined ? {} : { money: (input * price.input + output * price.output) / 1_000_000 }
}
