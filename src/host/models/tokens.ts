/**
 * How many tokens a text is, about. No model's own count, but the same for all, so that a host can hold budgets and show who put
 * how much into a prompt before any provider has counted.
 */
import type { LiveBlock } from '../../features/live/content/messages.ts'
import type { ModelMessage, ModelRequest, ModelTool, ModelToolUse } from './model.ts'

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
