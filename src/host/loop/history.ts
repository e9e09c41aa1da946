/** What a model is told of the turns before: as many of the latest as fit. */
import type { LiveBlock } from '../../features/live/content/messages.ts'
import type { ModelMessage, ModelToolResult } from '../models/model.ts'
import { messageTokensOf } from '../models/tokens.ts'
import type { CallOutcome } from './records.ts'
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
  const answer: readonly ModelMessage[] =
    turn.answer === undefined ? [] : [{ role: 'assistant', content: [{ type: 'text', text: turn.answer }] }]
  return [...turn.messages, ...stepMessages(turn), ...answer]
}

/** What the model did in a turn so far. A step whose calls have no results yet is not told. */
export function stepMessages({ steps, outcomes }: TurnRecord): readonly ModelMessage[] {
  return steps.flatMap(({ content, calls }): readonly ModelMessage[] => {
    const results = calls.flatMap(({ id, n }) => {
      const outcome = outcomes.get(n)
      return outcome === undefined ? [] : [resultOf(id, outcome)]
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

const nothing: readonly LiveBlock[] = [{ type: 'text', text: '(no content)' }]

function resultOf(id: string, { content, status }: CallOutcome): ModelToolResult {
  return { id, content: content.length === 0 ? nothing : content, isError: status !== 'done' }
}
