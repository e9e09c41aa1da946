/** One answer of the model, with a reservation of what it may cost and a few more tries where waiting can help. */
import { type Clock, pauseFor } from '../../core/clock.ts'
import { Problem, problem } from '../../core/problem.ts'
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
import type { LoopBudgets, LoopPayer } from './ports.ts'

/** A whole answer of a model. */
export interface Generation {
  readonly text: string
  readonly uses: readonly ModelToolUse[]
  readonly finishReason: ModelFinish
  readonly usage: ModelUsage
  readonly model: string
  /** What it cost is written. Whoever writes what was said waits for both at once. */
  readonly settled: Promise<unknown>
}

interface GenerateParts {
  readonly clock: Clock
  readonly budgets: LoopBudgets
  readonly retries: number
  /** Whose budget it is. */
  readonly payer: LoopPayer
}

const firstPauseMs = 500
const longestPauseMs = 60_000

/** Asks a model within the budget of the payer. Retries transient failures as long as no text was shown. */
export async function generate(
  parts: GenerateParts,
  model: Model,
  request: ModelRequest,
  signal: AbortSignal,
  onText: (delta: string) => void,
): Promise<Generation> {
  let said = false
  const hear = (delta: string): void => {
    said = true
    onText(delta)
  }
  for (let attempt = 0; ; attempt++) {
    try {
      return await once(parts, model, request, signal, hear)
    } catch (error) {
      signal.throwIfAborted()
      // What somebody has seen cannot be said again.
      if (said || attempt >= parts.retries || !(error instanceof Problem) || !error.retryable) throw error
      const wait = error.retryAfter ?? firstPauseMs * 2 ** attempt
      if (wait > longestPauseMs) throw error
      await pauseFor(parts.clock, wait, signal)
    }
  }
}

async function once(
  { budgets, payer }: GenerateParts,
  model: Model,
  request: ModelRequest,
  signal: AbortSignal,
  onText: (delta: string) => void,
): Promise<Generation> {
  const asked = requestTokens(request)
  const most = request.maxTokens ?? 0
  const reserved = await budgets.reserve({
    ...payer,
    tokens: asked + most,
    requests: 1,
    ...moneyFor(model, asked, most),
  })
  if (isWhy(reserved)) throw deniedProblem(reserved)
  let [text, usage]: [string, ModelUsage | undefined] = ['', undefined]
  const uses: ModelToolUse[] = []
  let end: { readonly finishReason: ModelFinish; readonly model?: string } | undefined
  const settle = (): Promise<unknown> => {
    // What broke off has cost what was said until then.
    const { inputTokens, outputTokens } = usage ?? {
      inputTokens: text === '' ? 0 : asked,
      outputTokens: estimateTokens(text),
    }
    const tokens = inputTokens + outputTokens
    return Promise.resolve(
      reserved.settle({ tokens, requests: tokens === 0 ? 0 : 1, ...moneyFor(model, inputTokens, outputTokens) }),
    )
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

function brokeOff({ info }: Model): Problem {
  return problem('MODEL_BROKE_OFF', `${info.id} ended without an end`, { category: 'transient', suggestion: 'Try again' })
}

/** In the currency of the model's price; nothing where it has none. */
export function moneyFor({ price }: Pick<Model, 'price'>, input: number, output: number): { readonly money?: number } {
  return price === undefined ? {} : { money: (input * price.input + output * price.output) / 1_000_000 }
}
