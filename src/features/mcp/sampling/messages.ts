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

/** A tool call that the model wants. */
interface ToolUse {
  /** Marks a tool call. */
  readonly type: 'tool_use'
  /** The id of the call, which its result repeats. */
  readonly id: string
  /** The name of the tool. */
  readonly name: string
  /** The arguments of the call. */
  readonly input: Readonly<Record<string, unknown>>
  /** Further facts about it (`_meta` on the wire). Names carry a prefix: `example.com/kind`. */
  readonly _meta?: Readonly<Record<string, unknown>>
}

/** The result of a tool call, for the model. */
interface ToolResult {
  /** Marks the result of a tool call. */
  readonly type: 'tool_result'
  /** The id of the call. */
  readonly toolUseId: string
  /** The content of the result. */
  readonly content: readonly ContentBlock[]
  /** The structured result, if there is one. */
  readonly structuredContent?: unknown
  /** Whether the tool failed. Default false. */
  readonly isError?: boolean
  /** Further facts about it (`_meta` on the wire). Names carry a prefix: `example.com/kind`. */
  readonly _meta?: Readonly<Record<string, unknown>>
}

/** One block of a sampling message. */
export type SamplingBlock = TextContent | ImageContent | AudioContent | ToolUse | ToolResult

/** A message to or from the model. */
export interface SamplingMessage {
  /** Who speaks. */
  readonly role: Role
  /** The content of the message: one block or several. */
  readonly content: SamplingBlock | readonly SamplingBlock[]
}

/** A tool that the model may call. */
type SamplingTool = {
  /** The name of the tool. */
  readonly name: string
  /** What the tool does and when to use it. */
  readonly description?: string
  /** The JSON Schema of its arguments. */
  readonly inputSchema: Readonly<Record<string, unknown>>
}

/** A request to the model of the client. */
export interface SamplingParams {
  /** The conversation, in order. */
  readonly messages: readonly SamplingMessage[]
  /** The most tokens of the answer. */
  readonly maxTokens: number
  /** Preferences for the choice of a model. The client decides. Default: none. */
  readonly modelPreferences?: {
    /** Names of suitable models, best first. */
    readonly hints?: readonly {
      /** The name of a model, or a part of it, for example `sonnet`. */
      readonly name?: string
    }[]
    /** How important low cost is, from 0 to 1. */
    readonly costPriority?: number
    /** How important speed is, from 0 to 1. */
    readonly speedPriority?: number
    /** How important capability is, from 0 to 1. */
    readonly intelligencePriority?: number
  }
  /** The system prompt. The client may change it or leave it out. Default: none. */
  readonly systemPrompt?: string
  /** Whether the model should see the conversation with this server, or with all servers. Default `none`. */
  readonly includeContext?: 'none' | 'thisServer' | 'allServers'
  /** The sampling temperature. Default: the client decides. */
  readonly temperature?: number
  /** Texts at which the model stops. Default: none. */
  readonly stopSequences?: readonly string[]
  /** Further settings for the provider of the model. Default: none. */
  readonly metadata?: Readonly<Record<string, unknown>>
  /** Tools that the model may call. Your code executes them and sends the results in another request. Default: none. */
  readonly tools?: readonly SamplingTool[]
  /** Whether the model may call tools. Default: it may. */
  readonly toolChoice?: {
    /** `auto`: the model decides. `required`: it must call a tool. `none`: it must not. */
    readonly mode?: 'auto' | 'required' | 'none'
  }
}

/** The answer of the model. */
export interface SamplingResult {
  /** Who speaks, usually `assistant`. */
  readonly role: Role
  /** The answer: one block or several. */
  readonly content: SamplingBlock | readonly SamplingBlock[]
  /** The name of the model that answered. */
  readonly model: string
  /** Why the model stopped: `endTurn`, `maxTokens`, `toolUse`, or another word. */
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
