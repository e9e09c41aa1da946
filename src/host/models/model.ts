/**
 * The interface between a host and a language model, and token estimates. Adapters, scripts and the offline assistant implement `Model`,
 * so nothing else in the host knows providers.
 */
import type { LiveBlock } from '../../features/live/content/messages.ts'
import type { ModelInfo } from '../../features/live/model-info/messages.ts'

/** A tool call that the model wants. */
export interface ModelToolUse {
  readonly type: 'tool_use'
  readonly id: string
  readonly name: string
  readonly arguments: Readonly<Record<string, unknown>>
}

/** The result of a tool call. */
export interface ModelToolResult {
  /** The id of the tool use. */
  readonly id: string
  readonly content: readonly LiveBlock[]
  readonly isError: boolean
}

/** One message of the conversation. */
export type ModelMessage =
  | { readonly role: 'user'; readonly content: readonly LiveBlock[] }
  | { readonly role: 'assistant'; readonly content: readonly (LiveBlock | ModelToolUse)[] }
  | { readonly role: 'tool'; readonly results: readonly ModelToolResult[] }

/** A tool for the model. Names fit every provider: 1 to 64 of A-Z a-z 0-9 _ -. */
export interface ModelTool {
  readonly name: string
  readonly description?: string
  readonly inputSchema: Readonly<Record<string, unknown>>
}

/** A request to a model. */
export interface ModelRequest {
  readonly system: readonly LiveBlock[]
  readonly messages: readonly ModelMessage[]
  readonly tools: readonly ModelTool[]
  readonly maxTokens?: number
  readonly temperature?: number
  /** Stop sequences. */
  readonly stop?: readonly string[]
}

/** The tokens that a request used. */
export interface ModelUsage {
  readonly inputTokens: number
  readonly outputTokens: number
}

/** Why a model stopped. */
export type ModelFinish = 'end_turn' | 'max_tokens' | 'stop_sequence' | 'tool_use'

/** One piece of an answer, as it streams. */
export type ModelPart =
  | { readonly type: 'text'; readonly delta: string }
  | ModelToolUse
  | { readonly type: 'end'; readonly finishReason: ModelFinish; readonly usage: ModelUsage; readonly model?: string }

/** Strengths compared with other models, from 0 to 1; more is better: cheaper, faster, more capable. */
export interface ModelTraits {
  readonly cost?: number
  readonly speed?: number
  readonly intelligence?: number
}

/** Price per million tokens, in the host's currency. */
export interface ModelPrice {
  readonly input: number
  readonly output: number
}

/** A language model. */
/**
 * @example
 * const model: Model = { info, async *generate(request) { yield { type: 'text', delta: 'Hello' }; yield { type: 'end', … } } }
 */
export interface Model {
  readonly info: ModelInfo
  readonly traits?: ModelTraits
  readonly price?: ModelPrice
  /** Streams an answer that ends with one `end` part. Errors are thrown, as a Problem where somebody can act. */
  generate(request: ModelRequest, options: { readonly signal: AbortSignal }): AsyncIterable<ModelPart>
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
