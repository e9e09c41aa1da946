/**
 * A model that says what it was told to say: for tests, demonstrations and replay. The same script and seed give the same parts in
 * the same order; latency and failures are injected, and tokens are counted as for any other model.
 */

import { type Clock, pauseFor, realClock, seeded } from '../../core/clock.ts'
import { problem } from '../../core/problem.ts'
import type { ModelInfo } from '../../features/live/model-info/messages.ts'
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
  readonly text?: string
  readonly calls?: readonly { readonly name: string; readonly arguments?: Readonly<Record<string, unknown>> }[]
  /** Default: what the answer looks like. */
  readonly finishReason?: ModelFinish
  /** Thrown after the text, instead of the end. */
  readonly error?: Error
  /** Before the first part. */
  readonly latencyMs?: number
}

/** What comes next: words, a whole answer, or what a function makes of the request. */
export type ScriptStep = string | ScriptedAnswer | ((request: ModelRequest, turn: number) => string | ScriptedAnswer)

/** How a scripted model behaves. */
export interface ScriptedOptions {
  /** What it says of itself. */
  readonly info?: Partial<ModelInfo>
  /** What it is good at, for servers that have wishes. */
  readonly traits?: ModelTraits
  /** For a million tokens. */
  readonly price?: ModelPrice
  /** Default 1. */
  readonly seed?: number
  /** How long each answer takes before its first part: fixed, or between two. Default 0. */
  readonly latencyMs?: number | readonly [least: number, most: number]
  /** Of all answers, how many fail before they begin, from 0 to 1; which ones the seed decides. Default 0. */
  readonly failures?: number
  /** What a failure throws. Default: a Problem, SERVER_UNAVAILABLE. */
  readonly failure?: () => Error
  /** Characters in one delta. Default 24. */
  readonly deltaLength?: number
  /** Begin again when the script has ended. Default: the next request is refused. */
  readonly again?: boolean
  /** By which it waits. Default: the real one. */
  readonly clock?: Clock
}

/** A model that says what it was told to say. */
export interface ScriptedModel extends Model {
  /** Every request, in order. */
  readonly requests: readonly ModelRequest[]
}

const standardInfo: ModelInfo = { id: 'scripted', vendor: 'vivarium', contextWindow: 200_000, capabilities: ['tools'] }

/** @example const model = scripted([{ calls: [{ name: 'add', arguments: { a: 1, b: 2 } }] }, 'It is 3.']) */
export function scripted(script: readonly ScriptStep[] | ScriptStep, options: ScriptedOptions = {}): ScriptedModel {
  const { latencyMs = 0, failures = 0, deltaLength = 24, clock = realClock } = options
  const random = seeded(options.seed ?? 1)
  const requests: ModelRequest[] = []
  const info = { ...standardInfo, ...options.info }
  const next = (): ScriptStep => stepAt(script, requests.length - 1, options.again ?? false)
  return {
    info,
    ...(options.traits === undefined ? {} : { traits: options.traits }),
    ...(options.price === undefined ? {} : { price: options.price }),
    requests,
    async *generate(request, { signal }) {
      signal.throwIfAborted()
      const turn = requests.push(request) - 1
      const step = next()
      const told = typeof step === 'function' ? step(request, turn) : step
      const answer: ScriptedAnswer = typeof told === 'string' ? { text: told } : told
      const [least, most] = typeof latencyMs === 'number' ? [latencyMs, latencyMs] : latencyMs
      // Both are drawn for every answer, so that one more failure does not shift all that follows.
      const [draw, luck] = [random(), random()]
      await pauseFor(clock, answer.latencyMs ?? least + draw * (most - least), signal)
      if (luck < failures) throw options.failure?.() ?? unavailable()
      yield* partsOf(answer, { request, turn, deltaLength, signal, model: info.id })
    },
  }
}

function stepAt(script: readonly ScriptStep[] | ScriptStep, at: number, again: boolean): ScriptStep {
  if (!Array.isArray(script)) return script as ScriptStep
  const step = script[again && script.length > 0 ? at % script.length : at]
  if (step !== undefined) return step
  throw problem('SCRIPT_ENDED', `The script has ${script.length} answers and was asked for number ${at + 1}`, {
    suggestion: 'Add an answer, or give the option again: true',
    actor: 'operator',
  })
}

interface Telling {
  readonly request: ModelRequest
  readonly turn: number
  readonly deltaLength: number
  readonly signal: AbortSignal
  readonly model: string
}

function* partsOf(answer: ScriptedAnswer, telling: Telling): Generator<ModelPart> {
  const { text = '', calls = [], error } = answer
  const { request, turn, deltaLength, signal, model } = telling
  for (let at = 0; at < text.length; at += deltaLength) {
    signal.throwIfAborted()
    yield { type: 'text', delta: text.slice(at, at + deltaLength) }
  }
  if (error !== undefined) throw error
  for (const [at, call] of calls.entries()) {
    yield { type: 'tool_use', id: `call_${turn + 1}_${at + 1}`, name: call.name, arguments: call.arguments ?? {} }
  }
  const said = calls.reduce((sum, { arguments: args = {} }) => sum + estimateTokens(JSON.stringify(args)), estimateTokens(text))
  yield {
    type: 'end',
    finishReason: answer.finishReason ?? (calls.length > 0 ? 'tool_use' : 'end_turn'),
    usage: { inputTokens: requestTokens(request), outputTokens: said },
    model,
  }
}

function unavailable(): Error {
  return problem('SERVER_UNAVAILABLE', 'The scripted model failed, as it was told to', { suggestion: 'Try again' })
}
