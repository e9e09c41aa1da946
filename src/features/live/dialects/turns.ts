/** Inference in both directions: hooks around a turn of the host's, and turns that a server asks for. */
import { clip, echo } from '../../../jsonrpc/limits.ts'
import { isRecord, type Params } from '../../../jsonrpc/message.ts'
import { type BeforeInference, type Injection, type Position, positions } from '../context-hooks/messages.ts'
import {
  type FinishReason,
  finishReasons,
  type InferenceRequest,
  type InferenceResult,
  type InferenceRole,
} from '../inference/messages.ts'
import type { Announced } from './announced.ts'
import { fewOf, readContent } from './content.ts'

interface ReadBefore {
  readonly featureSet: string
  readonly injections: readonly Injection[]
  readonly dropped: readonly string[]
}

/** Undefined: it is no answer to a hook. Of the injections each stands for itself. */
export function readBefore(wire: unknown): ReadBefore | undefined {
  if (!isRecord(wire) || typeof wire['featureSet'] !== 'string') return undefined
  const listed: readonly unknown[] = Array.isArray(wire['contextInjections']) ? wire['contextInjections'] : []
  const injections: Injection[] = []
  const dropped: string[] = []
  for (const one of listed) {
    const read = readInjection(one, dropped)
    if (typeof read === 'string') dropped.push(read)
    else injections.push(read)
  }
  return { featureSet: wire['featureSet'], injections, dropped: fewOf(dropped) }
}

function readInjection(wire: unknown, dropped: string[]): Injection | string {
  if (!isRecord(wire)) return 'an injection that is no object'
  const { namespace, position, metadata } = wire
  if (typeof namespace !== 'string') return 'an injection without a namespace'
  if (!isPosition(position)) return `an injection at "${echo(position)}"; there are ${positions.join(', ')}`
  const { blocks, dropped: unread } = readContent(wire['content'])
  if (blocks.length === 0) return `an injection of "${clip(namespace)}" without content`
  dropped.push(...unread)
  return { namespace, position, content: blocks, ...(isRecord(metadata) ? { metadata } : {}) }
}

function isPosition(value: unknown): value is Position {
  return (positions as readonly unknown[]).includes(value)
}

/** What a hook is told. Some types know no null once a turn is over; who may not look on is not told what was said. */
export function writeTurn<T extends BeforeInference>(turn: T, { nullless }: Announced, over: boolean, observes: boolean): T {
  if (!observes && turn.userMessage !== null) return { ...turn, userMessage: null }
  return over && nullless && turn.userMessage === null ? { ...turn, userMessage: '' } : turn
}

/** Params that were checked, as a request of the canonical model; what it lacks has its default. */
export function readInference(wire: Params): InferenceRequest {
  const { featureSet, conversationId, stream, messages, preferences } = wire
  return {
    featureSet: featureSet as string,
    ...(typeof conversationId === 'string' ? { conversationId } : {}),
    stream: stream === true,
    messages: (messages as readonly Params[]).map(({ role, content }) => ({
      role: role as InferenceRole,
      content: readContent(content).blocks,
    })),
    preferences: (preferences ?? {}) as InferenceRequest['preferences'],
  }
}

/** Only the reasons that the protocol has are said; another one is kept where nobody stumbles over it. */
export function writeInference({ content, model, finishReason, usage }: InferenceResult): Params {
  const { inputTokens, outputTokens } = usage
  const common = { content, model, finishReason, usage: { inputTokens, outputTokens } }
  if ((finishReasons as readonly string[]).includes(finishReason)) return common
  return { ...common, finishReason: 'end_turn' satisfies FinishReason, _meta: { finishReason } }
}
