/**
 * What a host asks of a model: one method. Adapters, scripts and the offline assistant all look like this, so nothing else in the
 * host knows where words come from.
 */
import type { LiveBlock } from '../../features/live/content/messages.ts'
import type { ModelInfo } from '../../features/live/model-info/messages.ts'

/** A call that the model wants made. */
export interface ModelToolUse {
  readonly type: 'tool_use'
  readonly id: string
  readonly name: string
  readonly arguments: Readonly<Record<string, unknown>>
}

/** What came of a call that a model asked for. */
export interface ModelToolResult {
  readonly id: string
  readonly content: readonly LiveBlock[]
  readonly isError: boolean
}

/** One message of the conversation that a model is given. */
export type ModelMessage =
  | { readonly role: 'user'; readonly content: readonly LiveBlock[] }
  | { readonly role: 'assistant'; readonly content: readonly (LiveBlock | ModelToolUse)[] }
  | { readonly role: 'tool'; readonly results: readonly ModelToolResult[] }

/** Names fit every provider: 1 to 64 of A-Z a-z 0-9 _ -. */
export interface ModelTool {
  readonly name: string
  readonly description?: string
  readonly inputSchema: Readonly<Record<string, unknown>>
}

/** What a model is asked. */
export interface ModelRequest {
  readonly system: readonly LiveBlock[]
  readonly messages: readonly ModelMessage[]
  readonly tools: readonly ModelTool[]
  readonly maxTokens?: number
  readonly temperature?: number
  readonly stop?: readonly string[]
}

/** The tokens that a request took. */
export interface ModelUsage {
  readonly inputTokens: number
  readonly outputTokens: number
}

/** Why a model stopped. */
export type ModelFinish = 'end_turn' | 'max_tokens' | 'stop_sequence' | 'tool_use'

/** One piece of an answer, as it comes. */
export type ModelPart =
  | { readonly type: 'text'; readonly delta: string }
  | ModelToolUse
  | { readonly type: 'end'; readonly finishReason: ModelFinish; readonly usage: ModelUsage; readonly model?: string }

/** How a model stands against others, each from 0 to 1, where more is better: cheaper, faster, more able. */
export interface ModelTraits {
  readonly cost?: number
  readonly speed?: number
  readonly intelligence?: number
}

/** For a million tokens, in whatever currency the host counts. */
export interface ModelPrice {
  readonly input: number
  readonly output: number
}

/**
 * @example
 * const model: Model = { info, async *generate(request) { yield { type: 'text', delta: 'Hello' }; yield { type: 'end', … } } }
 */
export interface Model {
  readonly info: ModelInfo
  readonly traits?: ModelTraits
  readonly price?: ModelPrice
  /** Ends with one part of the type `end`. What goes wrong is thrown, as a Problem where somebody can do something about it. */
  generate(request: ModelRequest, options: { readonly signal: AbortSignal }): AsyncIterable<ModelPart>
}

/** The text of some blocks, without what is no text. */
export function textIn(blocks: readonly (LiveBlock | ModelToolUse)[]): string {
  return blocks.flatMap(block => (block.type === 'text' ? [block.text] : [])).join('\n')
}

// How many tokens a text is, about. No model's own count, but the same for all, so that a host can hold budgets and show who put
// how much into a prompt before any provider has counted.

/** What providers charge for a middling picture, roughly. */
const pictureTokens = 1_200
const messageTokens = 4

/** Latin text has about four characters to a token; scripts without spaces have about one. */
export function estimateTokens(text: string): number {
  let dense = 0
  for (let at = 0; at < text.length; at++) if (text.charCodeAt(at) >= 0x2e80) dense++
  return Math.ceil((text.length - dense) / 4 + dense)
}

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

/** Messages and tools do not change, and the same ones come back with every step of a turn. */
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
