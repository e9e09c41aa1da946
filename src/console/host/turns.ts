/** Turns of conversations as the contract has them. `whole`: payloads are given too. */
import type { CallOutcome } from '../../host/loop/conversation-log.ts'
import type { InferenceReport } from '../../host/loop/generate.ts'
import type { HookReport } from '../../host/loop/hooks.ts'
import type { AnswerChange } from '../../host/loop/inference-hooks.ts'
import type { PromptSnapshot } from '../../host/loop/prompt.ts'
import type { TurnCall as HostCall, TurnPart as HostPart, Turn } from '../../host/loop/turn.ts'
import { textIn } from '../../host/models/model.ts'
import type {
  TurnAnswerChange,
  TurnCall,
  TurnCallRow,
  TurnCost,
  TurnDetail,
  TurnHook,
  TurnInference,
  TurnPart,
  TurnPrompt,
  TurnRow,
} from '../contract/conversations.ts'
import { whyOf } from './rows.ts'
import type { RunningTurn } from './running-turns.ts'
import { spansOf } from './spans.ts'

const listedText = 4_000
const listedContent = 16_000
const listedResult = 65_536

/** A turn in lists. `preview`: the text of the event that began it. */
export function turnRow(turn: Turn, whole: boolean, running?: RunningTurn, preview?: string): TurnRow {
  const { conversation, seq, inferenceId, from, status, at, endedAt, text, answer, why } = turn
  const isCut = (text?.length ?? 0) > listedText || (answer?.length ?? 0) > listedText
  return {
    ...{ conversation, seq, inferenceId, from, status, at },
    ...(endedAt !== undefined && { ended: endedAt }),
    ...(whole && { text: text === null ? null : text.slice(0, listedText) }),
    ...(whole && preview !== undefined && { preview }),
    ...(whole && answer !== undefined && { answer: answer.slice(0, listedText) }),
    ...(whole && isCut && { cut: true as const }),
    ...(why !== undefined && { why: whyOf(why) }),
    calls: turn.calls.map(call => callRow(call, running)),
    cost: costOf(turn),
    ...(!whole && { reduced: true as const }),
  }
}

/** A turn with all that is known of it. */
export function turnDetail(turn: Turn, whole: boolean, running?: RunningTurn, preview?: string): TurnDetail {
  const { text, answer, prompt, finishReason } = turn
  const { cut: _, ...row } = turnRow(turn, whole, running, preview)
  const inferences = running?.inference === undefined ? turn.inferences : [...turn.inferences, running.inference]
  return {
    ...row,
    ...(whole && { text }),
    ...(whole && answer !== undefined && { answer }),
    ...(whole && running !== undefined && running.partial !== '' && { partial: running.partial }),
    ...(prompt !== undefined && { prompt: promptOf(prompt, whole) }),
    hooks: turn.hooks.map(hookOf),
    inferences: inferences.map(inferenceOf),
    calls: turn.calls.map(call => callOf(call, whole, running)),
    changes: turn.changes.map(change => changeOf(change, whole)),
    ...(finishReason !== undefined && { finishReason }),
    spans: spansOf(turn, running),
  }
}

/** A part as it is streamed. `n`: the number of a hook. */
export function partOf(part: HostPart, whole: boolean, running?: RunningTurn): TurnPart {
  switch (part.type) {
    case 'hook':
      return { type: 'hook', hook: hookOf(part.report) }
    case 'prompt':
      return { type: 'prompt', prompt: promptOf(part.prompt, whole) }
    case 'inference':
      return { type: 'inference', inference: inferenceOf(part.inference) }
    case 'text':
      return { type: 'text', ...(whole && { text: part.delta }) }
    case 'call':
      return { type: 'call', call: callOf({ ...part.call, outcome: undefined }, whole, running) }
    case 'progress': {
      const { n, progress, message } = part
      return { type: 'progress', n, progress, ...(whole && message !== undefined && { message: message.slice(0, listedText) }) }
    }
    case 'result':
      return { type: 'result', call: callOf({ ...part.call, outcome: part.outcome }, whole) }
    case 'answer': {
      const changes = part.changes.map(change => changeOf(change, whole))
      return { type: 'answer', ...(whole && { text: part.text }), changes }
    }
    case 'ended':
      return { type: 'ended', status: part.status, why: whyOf(part.why) }
  }
}

function costOf({ cost }: Turn): TurnCost {
  const { inferences, inputTokens, outputTokens, injected, units, money } = cost
  return {
    ...{ inferences, inputTokens, outputTokens, units },
    ...(money !== undefined && { money }),
    injected: [...injected].map(([server, tokens]) => ({ server, tokens })),
  }
}

function callRow(call: HostCall, running?: RunningTurn): TurnCallRow {
  const { n, name, server, tool, featureSet, readOnly, outcome } = call
  const began = outcome?.began ?? running?.began.get(n)
  return {
    ...{ n, name, tool, readOnly, status: outcome?.status ?? 'planned' },
    ...(server !== undefined && { server }),
    ...(featureSet !== undefined && { featureSet }),
    ...(began !== undefined && { began }),
    ...(outcome !== undefined && { ms: outcome.ms }),
  }
}

/** A call. `longest`: so much of its result is given. */
export function callOf(call: HostCall, whole: boolean, running?: RunningTurn, longest = listedResult): TurnCall {
  const row = callRow(call, running)
  const given = whole ? { arguments: call.arguments } : {}
  return { ...row, ...given, ...(call.outcome !== undefined && outcomeOf(call.outcome, whole, longest)) }
}

function outcomeOf(outcome: CallOutcome, whole: boolean, longest: number): Partial<TurnCall> {
  const { content, why, rule, units, asked, declined, compensation, rolledBack, state } = outcome
  const result = textIn(content)
  return {
    ...(whole && { result: result.slice(0, longest) }),
    length: result.length,
    ...(why !== undefined && { why: whyOf(why) }),
    ...(rule !== undefined && { rule }),
    ...(units !== undefined && { units }),
    ...(asked !== undefined && { asked }),
    ...(whole && declined !== undefined && { declined }),
    ...(compensation !== undefined && { compensation: compensation.tool }),
    ...(rolledBack === true && { rolledBack }),
    ...(state !== undefined && { state }),
  }
}

function hookOf({ why, ...report }: HookReport): TurnHook {
  return { ...report, ...(why !== undefined && { why: whyOf(why) }) }
}

function inferenceOf({ n, model, began, firstMs, ms, usage, calls }: InferenceReport): TurnInference {
  return {
    ...{ n, model, began, calls, inputTokens: usage?.inputTokens ?? 0, outputTokens: usage?.outputTokens ?? 0 },
    ...(firstMs !== undefined && { firstMs }),
    ...(ms !== undefined && { ms }),
  }
}

function promptOf({ model, sections, tokens, leftOut }: PromptSnapshot, whole: boolean): TurnPrompt {
  return {
    ...{ model, tokens, left: leftOut },
    sections: sections.map(({ content, ...section }) => {
      if (content === undefined) return section
      const text = textIn(content)
      return { ...section, ...(whole && { content: text.slice(0, listedContent) }), length: text.length }
    }),
  }
}

function changeOf({ server, featureSet, before, after }: AnswerChange, whole: boolean): TurnAnswerChange {
  return { server, featureSet, ...(whole && { before: before.slice(0, listedResult), after: after.slice(0, listedResult) }) }
}
