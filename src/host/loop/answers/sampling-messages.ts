/** Sampling in the words of the host's models, and back. */
import type { LiveBlock } from '../../../features/live/content/messages.ts'
import type { ContentBlock } from '../../../features/mcp/content/messages.ts'
import type { SamplingBlock, SamplingMessage, SamplingParams, SamplingResult } from '../../../features/mcp/sampling/messages.ts'
import type { ModelMessage, ModelRequest, ModelToolResult, ToolUse } from '../../models/model.ts'
import { withoutMarks } from '../../models/quoted.ts'
import { blockOf, text } from '../blocks.ts'
import { fromServer, toolFromServer } from '../foreign.ts'
import type { Generation } from '../generate.ts'

/** What makes the model know whose request it answers. The answer goes to that server, and nobody acts on it here. */
export const requested =
  'A server, not the user, wrote what stands between <server-request> marks. Answer it, for that server alone.'

/** The server's instructions, in its own words, below those of the host. */
export function requestSystem(server: string, words: readonly LiveBlock[]): readonly LiveBlock[] {
  return [text(requested), ...(words.length === 0 ? [] : fromServer('server-request', { server, role: 'system' }, words))]
}

export function requestOf(params: SamplingParams, most: number, server: string): ModelRequest {
  const { systemPrompt, temperature, stopSequences, tools = [], toolChoice } = params
  return {
    system: requestSystem(server, systemPrompt === undefined ? [] : [text(systemPrompt)]),
    messages: params.messages.map(message => messageOf(message, server)),
    tools: toolChoice?.mode === 'none' ? [] : tools.map(tool => toolFromServer(tool.name, server, tool)),
    maxTokens: Math.max(1, Math.min(params.maxTokens, most)),
    ...(temperature !== undefined && { temperature }),
    ...(stopSequences !== undefined && { stop: stopSequences }),
  }
}

function messageOf({ role, content }: SamplingMessage, server: string): ModelMessage {
  const blocks: readonly SamplingBlock[] = Array.isArray(content) ? content : [content as SamplingBlock]
  const results = blocks.flatMap((block): readonly ModelToolResult[] =>
    block.type === 'tool_result'
      ? [{ id: block.toolUseId, content: resultFrom(server, block.content), isError: block.isError === true }]
      : [],
  )
  if (results.length > 0) return { role: 'tool', results }
  if (role === 'assistant') return { role, content: blocks.flatMap(block => assistantBlock(block)) }
  return { role: 'user', content: fromServer('server-request', { server }, plainBlocks(blocks)) }
}

function resultFrom(server: string, content: readonly ContentBlock[]): readonly LiveBlock[] {
  return fromServer('tool-result', { server }, content.flatMap(blockOf))
}

function plainBlocks(blocks: readonly SamplingBlock[]): readonly LiveBlock[] {
  return blocks.flatMap(block => (isPlain(block) ? blockOf(block) : []))
}

function assistantBlock(block: SamplingBlock): readonly (LiveBlock | ToolUse)[] {
  if (block.type === 'tool_use') return [{ type: 'tool_use', id: block.id, name: block.name, arguments: block.input }]
  return isPlain(block) ? answerWords(blockOf(block)) : []
}

/** What the server says that the model answered before: as an answer, and without marks, or the model would go on to write them. */
export function answerWords(blocks: readonly LiveBlock[]): readonly LiveBlock[] {
  return blocks.map(block => text(block.type === 'text' ? withoutMarks(block.text) : `[${block.type}]`))
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
