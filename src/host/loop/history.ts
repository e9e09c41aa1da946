/** What a model is told of the turns before: as many of the latest as fit. */
import type { LiveBlock } from '../../features/live/content/messages.ts'
import type { ModelMessage, ModelToolResult } from '../models/model.ts'
import { withoutMarks } from '../models/quoted.ts'
import { messageTokensOf } from '../models/tokens.ts'
import { own } from './blocks.ts'
import { type About, withOwnWords } from './foreign.ts'
import type { CallOutcome, PlannedCall } from './records.ts'
import type { TurnRecord } from './turn-record.ts'

export interface History {
  readonly messages: readonly ModelMessage[]
  readonly tokens: number
  /** Turns that found no room. */
  readonly leftOut: number
}

/** Whole turns, the latest first: half a turn would leave calls without results. */
export function history(turns: readonly TurnRecord[], room: number): History {
  const told: (readonly ModelMessage[])[] = []
  let tokens = 0
  for (const turn of turns.toReversed()) {
    const { messages, tokens: more } = toldOf(turn)
    if (tokens + more > room) break
    told.push(messages)
    tokens += more
  }
  return { messages: told.reverse().flat(), tokens, leftOut: turns.length - told.length }
}

interface Told {
  readonly messages: readonly ModelMessage[]
  readonly tokens: number
}

/** What has ended stays as it is. */
const known = new WeakMap<TurnRecord, Told>()

function toldOf(turn: TurnRecord): Told {
  const kept = known.get(turn)
  if (kept !== undefined) return kept
  const messages = messagesOf(turn)
  const told = { messages, tokens: messages.reduce((sum, message) => sum + messageTokensOf(message), 0) }
  if (turn.end !== undefined) known.set(turn, told)
  return told
}

function messagesOf(turn: TurnRecord): readonly ModelMessage[] {
  if (turn.answer === undefined) return [...turn.messages, ...stepMessages(turn)]
  // What a hook made of an answer is a server's, and must not read as the beginning or the end of a quotation.
  const text = turn.changes.length === 0 ? turn.answer : withoutMarks(turn.answer)
  return [...turn.messages, ...stepMessages(turn), { role: 'assistant', content: [{ type: 'text', text }] }]
}

/** What the model did in a turn so far. A step whose calls have no results yet is not told. */
export function stepMessages({ steps, outcomes }: TurnRecord): readonly ModelMessage[] {
  return steps.flatMap(({ content, calls }): readonly ModelMessage[] => {
    const results = calls.flatMap(call => {
      const outcome = outcomes.get(call.n)
      return outcome === undefined ? [] : [resultOf(call, outcome)]
    })
    if (results.length < calls.length) return []
    return results.length === 0
      ? [{ role: 'assistant', content }]
      : [
          { role: 'assistant', content },
          { role: 'tool', results },
        ]
  })
}

const nothing: readonly LiveBlock[] = [own('(no content)')]

/** Outcomes do not change, and the same ones come back with every step of a turn. */
const results = new WeakMap<CallOutcome, ModelToolResult>()

function resultOf(call: PlannedCall, outcome: CallOutcome): ModelToolResult {
  const kept = results.get(outcome)
  if (kept !== undefined) return kept
  const { content, status } = outcome
  const [kind, about] = sourceOf(call)
  const told = withOwnWords(kind, about, content.length === 0 ? nothing : content)
  const made: ModelToolResult = { id: call.id, content: told, isError: status !== 'done' }
  results.set(outcome, made)
  return made
}

/** A resource that the model read is one, whichever way it came. */
function sourceOf({ server, tool, arguments: args }: PlannedCall): readonly ['resource' | 'tool-result', About] {
  if (server !== undefined || tool !== 'read_resource') return ['tool-result', { server, tool }]
  return ['resource', { server: String(args['server']), uri: String(args['uri']) }]
}
