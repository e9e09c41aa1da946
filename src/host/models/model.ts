/**
 * The interface between a host and a language model, and token estimates. Adapters, scripts and the offline assistant implement `Model`,
 * so nothing else in the host knows providers.
 */
import type { LiveBlock } from '../../features/live/content/messages.ts'
import type { ModelInfo } from '../../features/live/model-info/messages.ts'

/** A tool call that the model wants. */
export interface ModelToolUse {
  /** Marks a tool call. */
  readonly type: 'tool_use'
  /** The id of the call, which its result repeats. */
  readonly id: string
  /** The name of the tool. */
  readonly name: string
  /** The arguments of the call. */
  readonly arguments: Readonly<Record<string, unknown>>
}

/** The result of a tool call. */
export interface ModelToolResult {
  /** The id of the tool use. */
  readonly id: string
  /** The content of the result. */
  readonly content: readonly LiveBlock[]
  /** Whether the tool failed. */
  readonly isError: boolean
}

/** One message of the conversation. */
export type ModelMessage =
  | {
      /** Who speaks. */
      readonly role: 'user'
      /** The content of the message. */
      readonly content: readonly LiveBlock[]
    }
  | {
      /** Who speaks. */
      readonly role: 'assistant'
      /** The content of the message. */
      readonly content: readonly (LiveBlock | ModelToolUse)[]
    }
  | {
      /** Who speaks. */
      readonly role: 'tool'
      /** The results of the tool calls of the message before. */
      readonly results: readonly ModelToolResult[]
    }

/** A tool for the model. Names fit every provider: 1 to 64 of A-Z a-z 0-9 _ -. */
export interface ModelTool {
  /** The name of the tool, unique in the request. */
  readonly name: string
  /** What the tool does and when to use it. */
  readonly description?: string
  /** The JSON Schema of its arguments. */
  readonly inputSchema: Readonly<Record<string, unknown>>
}

/** A request to a model. */
export interface ModelRequest {
  /** The system prompt. */
  readonly system: readonly LiveBlock[]
  /** The conversation, oldest first. */
  readonly messages: readonly ModelMessage[]
  /** The tools that the model may call. */
  readonly tools: readonly ModelTool[]
  /** The most tokens of the answer. Default: that of the provider. */
  readonly maxTokens?: number
  /** The sampling temperature. Default: that of the provider. */
  readonly temperature?: number
  /** Stop sequences. */
  readonly stop?: readonly string[]
}

/** The tokens that a request used. */
export interface ModelUsage {
  /** Tokens of the prompt. */
  readonly inputTokens: number
  /** Tokens of the answer. */
  readonly outputTokens: number
}

/** Why a model stopped. */
export type ModelFinish = 'end_turn' | 'max_tokens' | 'stop_sequence' | 'tool_use'

/** One piece of an answer, as it streams. */
export type ModelPart =
  | {
      /** The kind of the part. */
      readonly type: 'text'
      /** The next characters of the answer. */
      readonly delta: string
    }
  | ModelToolUse
  | {
      /** The kind of the part. */
      readonly type: 'end'
      /** Why the model stopped. */
      readonly finishReason: ModelFinish
      /** The tokens that the request used. */
      readonly usage: ModelUsage
      /** The model that actually ran, if it differs from the requested one. */
      readonly model?: string
    }

/** Strengths compared with other models, from 0 to 1; more is better: cheaper, faster, more capable. */
export interface ModelTraits {
  /** How cheap it is, from 0 to 1. */
  readonly cost?: number
  /** How fast it is, from 0 to 1. */
  readonly speed?: number
  /** How capable it is, from 0 to 1. */
  readonly intelligence?: number
}

/** Price per million tokens, in the host's currency. */
export interface ModelPrice {
  /** Price of a million input tokens. */
  readonly input: number
  /** Price of a million output tokens. */
  readonly output: number
}

/**
 * A language model that a host can ask: one of `anthropic`, `openai`, `aiModel`, `offline` and `scripted`, or your own.
 * @example
 * const model: Model = {
 *   info: { id: 'echo', vendor: 'me', contextWindow: 8_000, capabilities: [] },
 *   async *generate() {
 *     yield { type: 'text', delta: 'Hello' }
 *     yield { type: 'end', finishReason: 'end_turn', usage: { inputTokens: 1, outputTokens: 1 } }
 *   },
 * }
 */
export interface Model {
  /** What servers and reports contain about the model. */
  readonly info: ModelInfo
  /** Its strengths, by which servers can choose between several models. Default: unknown. */
  readonly traits?: ModelTraits
  /** Its price, so that turns and budgets count money. Default: unknown. */
  readonly price?: ModelPrice
  /** Streams an answer that ends with one `end` part. Errors are thrown, as a Problem where somebody can act. */
  generate(
    request: ModelRequest,
    options: {
      /** Aborted when the answer is no longer wanted. */
      readonly signal: AbortSignal
    },
  ): AsyncIterable<ModelPart>
}

/** The text of blocks, without other content. */
export function textIn(blocks: readonly (LiveBlock | ModelToolUse)[]): string {
  return blocks.flatMap(block => (block.type === 'text' ? [block.text] : [])).join('\n')
}

// Token estimates: not any model's exact count, but the same for all, so that budgets and prompt sections work before a provider has counted.

/** Tokens of an average image. */
const pictureTokens = 1_200
/** Overhead per message. */
const messageTokens = 4

/** Estimates tokens: about four characters each, one for dense scripts such as Chinese. */
export function estimateTokens(text: string): number {
  let dense = 0
  for (let at = 0; at < text.length; at++) if (text.charCodeAt(at) >= 0x2e80) dense++
  return Math.ceil((text.length - dense) / 4 + dense)
}

/** Estimates the tokens of one block. */
function blockTokens(block: LiveBlock | ModelToolUse): number {
  switch (block.type) {
    case 'text':
      return estimateTokens(block.text)
    case 'tool_use':
      return estimateTokens(block.name) + estimateTokens(JSON.stringify(block.arguments))
    case 'resource_link':
      return estimateTokens(block.uri)
    default:
      return pictureTokens
  }
}

/** Estimates the tokens of some blocks. */
export function blocksTokens(blocks: readonly (LiveBlock | ModelToolUse)[]): number {
  return blocks.reduce((sum, block) => sum + blockTokens(block), 0)
}

/** Cached counts: messages and tools do not change and are needed for every step. */
const counted = new WeakMap<ModelMessage | ModelTool, number>()

function once<T extends ModelMessage | ModelTool>(value: T, count: (value: T) => number): number {
  const known = counted.get(value)
  if (known !== undefined) return known
  const tokens = count(value)
  counted.set(value, tokens)
  return tokens
}

/** Estimates the tokens of a message. */
export function messageTokensOf(message: ModelMessage): number {
  return once(message, told => {
    if (told.role !== 'tool') return messageTokens + blocksTokens(told.content)
    return told.results.reduce((sum, { content }) => sum + messageTokens + blocksTokens(content), 0)
  })
}

/** Estimates the tokens of a tool as the model is told of it. */
export function toolTokens(tool: ModelTool): number {
  return once(tool, ({ name, description = '', inputSchema }) => {
    return estimateTokens(name) + estimateTokens(description) + estimateTokens(JSON.stringify(inputSchema))
  })
}

/** Estimates the tokens of a whole request. */
export function requestTokens({ system, messages, tools }: ModelRequest): number {
  return (
    blocksTokens(system) +
    messages.reduce((sum, message) => sum + messageTokensOf(message), 0) +
    tools.reduce((sum, tool) => sum + toolTokens(tool), 0)
  )
}
