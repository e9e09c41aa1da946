/** Asking the client's model. */
import { officialIds, request } from '../../../engine/method.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import { anything, array, number, object, oneOf, optional, record, string } from '../../../jsonrpc/shape.ts'
import type { Revision, Wire } from '../../../revisions/index.ts'
import {
  type AudioContent,
  type ContentBlock,
  type ImageContent,
  type Role,
  type TextContent,
  without,
} from '../content/messages.ts'

interface ToolUse {
  readonly type: 'tool_use'
  readonly id: string
  readonly name: string
  readonly input: Readonly<Record<string, unknown>>
  readonly _meta?: Readonly<Record<string, unknown>>
}

interface ToolResult {
  readonly type: 'tool_result'
  readonly toolUseId: string
  readonly content: readonly ContentBlock[]
  readonly structuredContent?: unknown
  readonly isError?: boolean
  readonly _meta?: Readonly<Record<string, unknown>>
}

/** One block of a sampling message. */
export type SamplingBlock = TextContent | ImageContent | AudioContent | ToolUse | ToolResult

/** A message for the model, or from it. */
export interface SamplingMessage {
  readonly role: Role
  readonly content: SamplingBlock | readonly SamplingBlock[]
}

/** A type alias, so that it fits where any object is taken. */
type SamplingTool = {
  readonly name: string
  readonly description?: string
  readonly inputSchema: Readonly<Record<string, unknown>>
}

/** What the client's model is asked. */
export interface SamplingParams {
  readonly messages: readonly SamplingMessage[]
  /** The most that the model may write. */
  readonly maxTokens: number
  /** What matters in the choice of a model. The client decides. */
  readonly modelPreferences?: {
    readonly hints?: readonly { readonly name?: string }[]
    readonly costPriority?: number
    readonly speedPriority?: number
    readonly intelligencePriority?: number
  }
  /** The client may change it or leave it out. */
  readonly systemPrompt?: string
  /** Whether the model is to see what this server, or all servers, gave. */
  readonly includeContext?: 'none' | 'thisServer' | 'allServers'
  readonly temperature?: number
  /** The model stops where it would write one of these. */
  readonly stopSequences?: readonly string[]
  /** For the provider of the model. */
  readonly metadata?: Readonly<Record<string, unknown>>
  /** That the model may ask for; the server runs them. */
  readonly tools?: readonly SamplingTool[]
  readonly toolChoice?: { readonly mode?: 'auto' | 'required' | 'none' }
}

/** What the model answered. */
export interface SamplingResult {
  readonly role: Role
  readonly content: SamplingBlock | readonly SamplingBlock[]
  /** The one that answered. */
  readonly model: string
  /** Why it stopped: `endTurn`, `maxTokens`, `toolUse`, or another word. */
  readonly stopReason?: string
}

/** `sampling/createMessage`: asks the client's model. */
export const createMessage = request<SamplingResult>()({
  name: 'sampling/createMessage',
  to: 'client',
  in: officialIds,
  params: object({
    messages: array(object({ role: oneOf('user', 'assistant'), content: anything })),
    maxTokens: number,
    modelPreferences: optional(record),
    systemPrompt: optional(string),
    includeContext: optional(oneOf('none', 'thisServer', 'allServers')),
    temperature: optional(number),
    stopSequences: optional(array(string)),
    metadata: optional(record),
    tools: optional(array(record)),
    toolChoice: optional(record),
  }),
  paramsDown: {
    '2025-06-18': params => singleBlocks(without(params, 'tools', 'toolChoice')),
    '2024-11-05': withoutAudioMessages,
  },
  resultDown: { '2025-06-18': result => ({ ...result, content: firstBlock(result['content']) }) },
})

/** Since 2025-11-25 a client declares whether it takes tools and shares context; before, each was taken to share it. */
export function declaresSamplingDetails({ id, era }: Revision): boolean {
  return era === 'request' || id === '2025-11-25'
}

/** Before 2025-11-25 a message held exactly one block: each block becomes a message of its own. */
function singleBlocks(params: Wire): Wire {
  const messages = (params['messages'] as readonly SamplingMessage[]).flatMap(({ role, content }) =>
    Array.isArray(content) ? content.map(block => ({ role, content: block })) : [{ role, content }],
  )
  return { ...params, messages }
}

function withoutAudioMessages(params: Wire): Wire {
  const messages = (params['messages'] as readonly SamplingMessage[]).map(message =>
    isRecord(message.content) && message.content['type'] === 'audio'
      ? { role: message.role, content: { type: 'text', text: `[audio, ${String(message.content['mimeType'])}]` } }
      : message,
  )
  return { ...params, messages }
}

function firstBlock(content: unknown): unknown {
  return Array.isArray(content) ? (content.find(block => isRecord(block) && block['type'] === 'text') ?? content[0]) : content
}
