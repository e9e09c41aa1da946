/** Sampling in the words of the host's models, and back. */
import type { LiveBlock } from '../../../features/live/content/messages.ts'
import type { SamplingBlock, SamplingMessage, SamplingParams, SamplingResult } from '../../../features/mcp/sampling/messages.ts'
import type { ModelMessage, ModelRequest, ModelToolResult, ToolUse } from '../../models/model.ts'
import { blockOf, text } from '../blocks.ts'
import type { Generation } from '../generate.ts'

export function requestOf(params: SamplingParams, most: number): ModelRequest {
  const { systemPrompt, temperature, stopSequences, tools = [], toolChoice } = params
  return {
    system: systemPrompt === undefined ? [] : [text(systemPrompt)],
    messages: params.messages.map(message => messageOf(message)),
    tools: toolChoice?.mode === 'none' ? [] : tools,
    maxTokens: Math.max(1, Math.min(params.maxTokens, most)),
    ...(temperature !== undefined && { temperature }),
    ...(stopSequences !== undefined && { stop: stopSequences }),
  }
}

function messageOf({ role, content }: SamplingMessage): ModelMessage {
  const blocks: readonly SamplingBlock[] = Array.isArray(content) ? content : [content as SamplingBlock]
  const results = blocks.flatMap((block): readonly ModelToolResult[] =>
    block.type === 'tool_result'
      ? [{ id: block.toolUseId, content: block.content.flatMap(blockOf), isError: block.isError === true }]
      : [],
  )
  if (results.length > 0) return { role: 'tool', results }
  if (role === 'assistant') return { role, content: blocks.flatMap(block => assistantBlock(block)) }
  return { role: 'user', content: blocks.flatMap(block => (isPlain(block) ? blockOf(block) : [])) }
}

function assistantBlock(block: SamplingBlock): readonly (LiveBlock | ToolUse)[] {
  if (block.type === 'tool_use') return [{ type: 'tool_use', id: block.id, name: block.name, arguments: block.input }]
  return isPlain(block) ? blockOf(block) : []
}

function isPlain(block: SamplingBlock): block is Extract<SamplingBlock, { type: 'text' | 'image' | 'audio' }> {
  return block.type === 'text' || block.type === 'image' || block.type === 'audio'
}

const reasons = { end_turn: 'endTurn', max_tokens: 'maxTokens', stop_sequence: 'stopSequence', tool_use: 'toolUse' } as const

export function resultOf({ text: words, uses, model, finishReason }: Generation): SamplingResult {
  const said = { type: 'text' as const, text: words }
  const calls = uses.map(({ id, name, arguments: input }) => ({ type: 'tool_use' as const, id, name, input }))
  const content = calls.length === 0 ? said : words === '' ? calls : [said, ...calls]
  return { role: 'assistant', content, model, stopReason: reasons[finishReason] }
}
