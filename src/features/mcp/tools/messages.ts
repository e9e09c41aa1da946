/** Tools on the wire: listing and calling, and what each older wire gets instead of what it does not know. */
import type { Problem } from '../../../core/problem.ts'
import { everyId, notification, officialIds, request } from '../../../engine/method.ts'
import { port } from '../../../engine/ports.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import { array, object, optional, record, string } from '../../../jsonrpc/shape.ts'
import type { Icon, Revision, Wire } from '../../../revisions/index.ts'
import { type ContentBlock, changeAt, without, withoutAudio, withoutIcons, withoutLinks } from '../content/messages.ts'
import type { ToolsPort } from './entry.ts'
import { isObjectSchema, withoutMarks, wrapKey, wrapSchema } from './schemas.ts'

/** What other features may use of the tools of a server. */
export const toolsPort = port<ToolsPort>('tools')

export type { ToolEntry, ToolExtension, ToolFacts, ToolSchemas, ToolsPort } from './entry.ts'
export type { Reply } from './result.ts'

export interface ToolAnnotations {
  readonly title?: string
  readonly readOnlyHint?: boolean
  readonly destructiveHint?: boolean
  readonly idempotentHint?: boolean
  readonly openWorldHint?: boolean
}

/** Whether a call may, must or must not run as a task. */
export type TaskSupport = 'forbidden' | 'optional' | 'required'

export interface Tool {
  readonly name: string
  readonly title?: string
  readonly description?: string
  readonly inputSchema: Readonly<Record<string, unknown>>
  readonly outputSchema?: Readonly<Record<string, unknown>>
  readonly annotations?: ToolAnnotations
  readonly icons?: readonly Icon[]
  readonly execution?: { readonly taskSupport: TaskSupport }
  readonly _meta?: Readonly<Record<string, unknown>>
}

export interface ListToolsResult {
  readonly tools: readonly Tool[]
  readonly nextCursor?: string
  readonly ttlMs?: number
  readonly cacheScope?: 'public' | 'private'
}

export interface CallToolResult {
  readonly content: readonly ContentBlock[]
  /** Any JSON value; undefined alone means that there is none. */
  readonly structuredContent?: unknown
  readonly isError?: boolean
  readonly _meta?: Readonly<Record<string, unknown>>
}

/** All official wires carry content blocks; the dialect has one output. */
export function showsContent(revision: Revision): boolean {
  return revision.id !== 's3'
}

const eachTool =
  (change: (tool: Wire) => Wire) =>
  (result: Wire): Wire =>
    Array.isArray(result['tools']) ? { ...result, tools: result['tools'].map(change) } : result

export const listTools = request<ListToolsResult>()({
  name: 'tools/list',
  to: 'server',
  in: everyId,
  params: object({ cursor: optional(string) }),
  entries: 'tools',
  paramsDown: { s3: () => ({}) },
  resultDown: {
    '2026-07-28': eachTool(tool => (tool['execution'] === undefined ? tool : without(tool, 'execution'))),
    'draft-2026-v1': result => eachTool(withObjectOutput)(without(result, 'ttlMs', 'cacheScope')),
    '2025-11-25': result => eachTool(tool => withoutMirrors(withObjectOutput(tool)))(without(result, 'ttlMs', 'cacheScope')),
    '2025-06-18': eachTool(tool => withoutDialect(without(tool, 'icons', 'execution'))),
    '2025-03-26': eachTool(titleAsAnnotation),
    '2024-11-05': eachTool(tool => without(tool, 'annotations')),
    s3: dialectTools,
  },
  resultUp: {
    s3: result => (Array.isArray(result) ? { tools: result } : result),
  },
})

export const callTool = request<CallToolResult>()({
  name: 'tools/call',
  to: 'server',
  in: everyId,
  names: { s3: 'tools/invoke' },
  params: object({ name: string, arguments: optional(record), _meta: optional(record) }),
  asks: true,
  nameParam: 'name',
  resultDown: {
    'draft-2026-v1': withObjectContent,
    '2025-11-25': withObjectContent,
    '2025-06-18': result => changeAt(result, 'content', withoutIcons),
    '2025-03-26': result => changeAt(withTextOnly(result), 'content', withoutLinks),
    '2024-11-05': result => changeAt(result, 'content', withoutAudio),
    s3: toDialect,
  },
  resultUp: { s3: fromDialect },
  cancelled: { content: [], cancelled: true },
})

/** The dialect's own name is `tools/invoke`, but it takes the common one too. */
export const callToolDialect = { ...callTool, in: ['s3' as const], names: {} }

export const toolsChanged = notification({
  name: 'notifications/tools/list_changed',
  to: 'client',
  in: officialIds,
  params: record,
})

/** The dialect says what came and went. */
export const toolsChangedDialect = notification({
  name: 'tools/changed',
  to: 'client',
  in: ['s3'],
  params: object({ added: optional(array(record)), removed: optional(array(string)) }),
})

export const toolErrors = {
  'unknown-tool': { default: -32602 },
  'invalid-arguments': { default: -32602, s3: 4001 },
}

function withObjectOutput(tool: Wire): Wire {
  const schema = tool['outputSchema']
  if (!isRecord(schema) || isObjectSchema(schema)) return tool
  return { ...tool, outputSchema: wrapSchema(schema) }
}

function withoutMirrors(tool: Wire): Wire {
  return { ...tool, inputSchema: withoutMarks(tool['inputSchema'] as Wire) }
}

/** Below 2025-11-25 schemas do not say of which dialect they are. */
function withoutDialect(tool: Wire): Wire {
  const { inputSchema, outputSchema } = tool as unknown as Tool
  const output = outputSchema === undefined ? {} : { outputSchema: without(outputSchema, '$schema') }
  return { ...tool, inputSchema: without(inputSchema, '$schema'), ...output }
}

/** On the result of a call that failed: why. What the wire says of it is made from this. */
export const because: unique symbol = Symbol('because')

/** A result as layers see it. */
export interface FailedResult extends CallToolResult {
  readonly [because]?: Problem
}

/** On a canonical result: its tool's output schema is wrapped for older wires, so its value must be, even if it is an object. */
export const wraps: unique symbol = Symbol('wraps')
/** On a wrapped result: the value itself, for the dialect, which takes any. */
const unwrapped: unique symbol = Symbol('unwrapped')

interface Marked extends Wire {
  readonly [wraps]?: boolean
  readonly [unwrapped]?: unknown
}

function withObjectContent(result: Marked): Wire {
  const value = result['structuredContent']
  if (value === undefined || (isRecord(value) && result[wraps] !== true)) return result
  const marked: Marked = { ...result, structuredContent: { [wrapKey]: value }, [unwrapped]: value }
  return marked
}

/** Where there is no structured content its value must not be lost: without any text it becomes one. */
function withTextOnly(result: Marked): Wire {
  const value = unwrapped in result ? result[unwrapped] : result['structuredContent']
  const content = result['content'] as readonly ContentBlock[]
  if (value === undefined || content.some(block => block.type === 'text')) return without(result, 'structuredContent')
  return { ...without(result, 'structuredContent'), content: [...content, { type: 'text', text: JSON.stringify(value) }] }
}

/** Before tools had titles, their annotations did. They have no `_meta`: what hosts of MCP Live look for in it stands beside the name. */
function titleAsAnnotation(tool: Wire): Wire {
  const featureSet = isRecord(tool['_meta']) ? tool['_meta']['featureSet'] : undefined
  const kept = typeof featureSet === 'string' ? { featureSet } : {}
  const plain = { ...without(tool, 'title', 'outputSchema', '_meta'), ...kept }
  if (tool['title'] === undefined) return plain
  return { ...plain, annotations: { title: tool['title'], ...(tool['annotations'] as object | undefined) } }
}

function dialectTools(result: Wire): Wire {
  const tools = result['tools'] as readonly Tool[]
  return tools.map(({ name, description, inputSchema }) => ({
    name,
    description: description ?? '',
    inputSchema,
  })) as unknown as Wire
}

function toDialect(result: Marked): Wire {
  if (result['cancelled'] === true) return { status: 'cancelled', output: null }
  const status = result['isError'] === true ? 'error' : 'success'
  const content = result['content'] as readonly ContentBlock[]
  const structured = unwrapped in result ? result[unwrapped] : result['structuredContent']
  if (structured !== undefined) return { status, output: structured }
  const only = content.length === 1 ? content[0] : undefined
  return { status, output: only?.type === 'text' ? only.text : { content } }
}

function fromDialect(result: Wire): Wire {
  if (Array.isArray(result['content'])) return result
  const output = result['output']
  const text = typeof output === 'string' ? output : JSON.stringify(output ?? null)
  return {
    content: [{ type: 'text', text }],
    ...(output === undefined || typeof output === 'string' ? {} : { structuredContent: output }),
    ...(result['status'] === 'success' ? {} : { isError: true }),
  }
}
