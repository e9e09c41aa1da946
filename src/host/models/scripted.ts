/**
 * A scripted model for tests, demonstrations and replay. The same script and seed give the same parts in the same order; latency and
 * failures can be injected, and tokens are counted as for any model.
 */

import { type Clock, pauseFor, realClock, seeded } from '../../core/clock.ts'
import { problem } from '../../core/problem.ts'
import type { ModelInfo } from '../../features/live/model-info/messages.ts'
import { picked } from '../../jsonrpc/message.ts'
import {
  estimateTokens,
  type Model,
  type ModelFinish,
  type ModelPart,
  type ModelPrice,
  type ModelRequest,
  type ModelTraits,
  requestTokens,
} from './model.ts'

/** One answer of a script. */
export interface ScriptedAnswer {
  /** The text of the answer. Default: none. */
  readonly text?: string
  /** Tool calls after the text. */
  readonly calls?: readonly {
    /** The name of the tool. */
    readonly name: string
    /** The arguments of the call. Default: none. */
    readonly arguments?: Readonly<Record<string, unknown>>
  }[]
  /** Default: derived from the answer. */
  readonly finishReason?: ModelFinish
  /** Thrown after the text, instead of the end. */
  readonly error?: Error
  /** The delay before the first part. */
  readonly latencyMs?: number
}

/** The next answer: text, a whole answer, or a function of the request. */
export type ScriptStep = string | ScriptedAnswer | ((request: ModelRequest, turn: number) => string | ScriptedAnswer)

/** Options of a scripted model. */
export interface ScriptedOptions {
  /** Overrides members of `info`. Default: those of the scripted model. */
  readonly info?: Partial<ModelInfo>
  /** Its strengths, by which servers can choose between several models. Default: unknown. */
  readonly traits?: ModelTraits
  /** The price per million tokens. Default: unknown. */
  readonly price?: ModelPrice
  /** Seed of the random numbers. Default 1. */
  readonly seed?: number
  /** The delay before each answer: fixed, or between two values. Default 0. */
  readonly latencyMs?: number | readonly [least: number, most: number]
  /** The share of answers that fail before they start, from 0 to 1; the seed decides which. Default 0. */
  readonly failures?: number
  /** Creates the error of a failure. Default: a Problem, SERVER_UNAVAILABLE. */
  readonly failure?: () => Error
  /** Characters per delta. Default 24. */
  readonly deltaLength?: number
  /** Restarts the script when it has ended. Default: the next request fails. */
  readonly again?: boolean
  /** Default: the real clock. */
  readonly clock?: Clock
}

/** A scripted model that also records its requests. */
export interface ScriptedModel extends Model {
  /** Every request, in order. */
  readonly requests: readonly ModelRequest[]
}

const standardInfo: ModelInfo = { id: 'scripted', vendor: 'vivarium', contextWindow: 200_000, capabilities: ['tools'] }

/**
 * Creates a model that gives prepared answers in order, for tests. The request after the last answer fails, unless `again` is set.
 * @example const model = scripted([{ calls: [{ name: 'add', arguments: { a: 1, b: 2 } }] }, 'It is 3.'])
 */
export function scripted(script: readonly ScriptStep[] | ScriptStep, options: ScriptedOptions = {}): ScriptedModel {
  const { latencyMs = 0, failures = 0, deltaLength = 24, clock = realClock } = options
  const random = seeded(options.seed ?? 1)
  const requests: ModelRequest[] = []
  const info = { ...standardInfo, ...options.info }
  const next = (): ScriptStep => stepAt(script, requests.length - 1, options.again ?? false)
  return {
    info,
    ...picked(options, 'traits', 'price'),
    requests,
    async *generate(request, { signal }) {
      signal.throwIfAborted()
      const turn = requests.push(request) - 1
      const step = next()
      const told = typeof step === 'function' ? step(request, turn) : step
      const answer: ScriptedAnswer = typeof told === 'string' ? { text: told } : told
      const [least, most] = typeof latencyMs === 'number' ? [latencyMs, latencyMs] : latencyMs
      // Both numbers are drawn for every answer, so that a failure does not shift the following ones.
      const [draw, failureDraw] = [random(), random()]
      await pauseFor(clock, answer.latencyMs ?? least + draw * (most - least), signal)
      if (failureDraw < failures) throw options.failure?.() ?? unavailable()
      const { text = '', calls = [], error } = answer
      for (let at = 0; at < text.length; at += deltaLength) {
        signal.throwIfAborted()
        yield { type: 'text', delta: text.slice(at, at + deltaLength) }
      }
      if (error !== undefined) throw error
      for (const [at, { name, arguments: args = {} }] of calls.entries())
        yield { type: 'tool_use', id: `call_${turn + 1}_${at + 1}`, name, arguments: args }
      yield endOf(answer, request, info.id)
    },
  }
}

/** The step at an index; throws where the script has ended. */
function stepAt(script: readonly ScriptStep[] | ScriptStep, at: number, again: boolean): ScriptStep {
  if (!Array.isArray(script)) return script as ScriptStep
  const step = script[again && script.length > 0 ? at % script.length : at]
  if (step !== undefined) return step
  throw problem('SCRIPT_ENDED', `The script has ${script.length} answers, but the model was called ${at + 1} times`, {
    suggestion: 'Add an answer, or set the option again: true',
    actor: 'operator',
  })
}

/** The end of an answer, with estimated usage. */
function endOf({ text = '', calls = [], finishReason }: ScriptedAnswer, request: ModelRequest, model: string): ModelPart {
  const said = calls.reduce((sum, { arguments: args = {} }) => sum + estimateTokens(JSON.stringify(args)), estimateTokens(text))
  return {
    type: 'end',
    finishReason: finishReason ?? (calls.length > 0 ? 'tool_use' : 'end_turn'),
    usage: { inputTokens: requestTokens(request), outputTokens: said },
    model,
  }
}

function unavailable(): Error {
  return problem('SERVER_UNAVAILABLE', 'The scripted model failed, as its script says', { suggestion: 'Try again' })
}
