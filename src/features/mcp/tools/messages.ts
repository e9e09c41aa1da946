/** Tools on the wire: listing and calling, and what each older wire gets instead of what it does not know. */

import type { Problem } from '../../../core/problem.ts'
import type { Schema } from '../../../core/schema/index.ts'
import type { Progress, SendOptions } from '../../../engine/calls.ts'
import { type ExtensionPoint, extensionPoint, type RequestOptions } from '../../../engine/client-feature.ts'
import { field } from '../../../engine/exchange.ts'
import { everyId, notification, officialIds, request } from '../../../engine/method.ts'
import { type Port, port } from '../../../engine/ports.ts'
import { type Awaitable, isRecord, type Params } from '../../../jsonrpc/message.ts'
import { array, object, optional, record, string } from '../../../jsonrpc/shape.ts'
import type { Icon, Revision, Wire } from '../../../revisions/index.ts'
import { type ContentBlock, changeAt, eachEntry, without, withoutAudio, withoutIcons, withoutLinks } from '../content/messages.ts'
import type { ToolsPort } from './entry.ts'
import { isObjectSchema, withoutHeaderMarks, wrapKey, wrapSchema } from './headers.ts'

/** The longest that the handler of a call may take, where its caller said so. */
export const callDeadlineMs = field<number>()

/** What other features may use of the tools of a server. */
export const toolsPort = port<ToolsPort>('tools')

export type { ToolEntry, ToolExtension, ToolFacts, ToolsPort } from './entry.ts'
export type { Reply } from './result.ts'

/** Hints about what a tool does, as the server claims. */
export interface ToolAnnotations {
  /** The name that people see. */
  readonly title?: string
  /** The tool changes nothing. */
  readonly readOnlyHint?: boolean
  /** The tool may delete or overwrite something. */
  readonly destructiveHint?: boolean
  /** A repeated call with the same arguments changes nothing more. */
  readonly idempotentHint?: boolean
  /** The tool reaches beyond the server, for example to the web. */
  readonly openWorldHint?: boolean
}

/** Whether a call may, must or must not run as a task. */
export type TaskSupport = 'forbidden' | 'optional' | 'required'

/** A tool of a server. */
export interface Tool {
  /** The name of the tool, for `callTool`. */
  readonly name: string
  /** The name that people see. */
  readonly title?: string
  /** What the tool does and when to use it, for the model. */
  readonly description?: string
  /** The JSON Schema of the arguments. */
  readonly inputSchema: Readonly<Record<string, unknown>>
  /** The JSON Schema of the structured content. Absent if the tool returns none. */
  readonly outputSchema?: Readonly<Record<string, unknown>>
  /** Hints about what the tool does. */
  readonly annotations?: ToolAnnotations
  /** Images that clients can show next to its name. */
  readonly icons?: readonly Icon[]
  /** Whether it can run as a task. */
  readonly execution?: {
    /** Whether a call may, must or must not run as a task. */
    readonly taskSupport: TaskSupport
  }
  /** Further facts about it (`_meta` on the wire). Names carry a prefix: `example.com/kind`. */
  readonly _meta?: Readonly<Record<string, unknown>>
}

/** The result of `tools/list`. */
export interface ListToolsResult {
  /** The tools of the page. */
  readonly tools: readonly Tool[]
  /** Absent on the last page. */
  readonly nextCursor?: string
  /** How long the page may be cached, in milliseconds. */
  readonly ttlMs?: number
  /** Who may reuse the cached result: every caller (`public`) or only this one (`private`). */
  readonly cacheScope?: 'public' | 'private'
}

/** The result of `tools/call`. */
export interface CallToolResult {
  /** For the model. */
  readonly content: readonly ContentBlock[]
  /** Any JSON value; undefined alone means that there is none. */
  readonly structuredContent?: unknown
  /** The tool failed, and the content says why. */
  readonly isError?: boolean
  readonly _meta?: Readonly<Record<string, unknown>>
}

/** Before 2025-06-18 a result was content alone. */
export function hasStructuredContent({ id }: Revision): boolean {
  return id !== '2024-11-05' && id !== '2025-03-26'
}

const eachTool = (change: (tool: Wire) => Wire) => eachEntry('tools', change)

/** `tools/list`: the tools of a server, page by page. */
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

/** `tools/call`: runs a tool. */
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

/** `notifications/tools/list_changed`: the list of tools is another one now. */
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

function withObjectOutput(tool: Wire): Wire {
  const schema = tool['outputSchema']
  if (!isRecord(schema) || isObjectSchema(schema)) return tool
  return { ...tool, outputSchema: wrapSchema(schema) }
}

function withoutMirrors(tool: Wire): Wire {
  return { ...tool, inputSchema: withoutHeaderMarks(tool['inputSchema'] as Wire) }
}

/** Below 2025-11-25 schemas do not say of which dialect they are. */
function withoutDialect(tool: Wire): Wire {
  const { inputSchema, outputSchema } = tool as unknown as Tool
  const output = outputSchema === undefined ? {} : { outputSchema: without(outputSchema, '$schema') }
  return { ...tool, inputSchema: without(inputSchema, '$schema'), ...output }
}

/** On the result of a call that failed: why. What the wire says of it is made from this. */
export const failureProblem: unique symbol = Symbol('because')

/** A result as layers see it. */
export interface FailedResult extends CallToolResult {
  readonly [failureProblem]?: Problem
}

/** On a canonical result: its tool's output schema is wrapped for older wires, so its value must be, even if it is an object. */
export const wrappedOutput: unique symbol = Symbol('wraps')
/** On a wrapped result: the value itself, for the dialect, which takes any. */
const unwrapped: unique symbol = Symbol('unwrapped')

interface MarkedResult extends Wire {
  readonly [wrappedOutput]?: boolean
  readonly [unwrapped]?: unknown
}

function withObjectContent(result: MarkedResult): Wire {
  const value = result['structuredContent']
  if (value === undefined || (isRecord(value) && result[wrappedOutput] !== true)) return result
  const marked: MarkedResult = { ...result, structuredContent: { [wrapKey]: value }, [unwrapped]: value }
  return marked
}

/** Where there is no structured content its value must not be lost: without any text it becomes one. */
function withTextOnly(result: MarkedResult): Wire {
  const value = unwrapped in result ? result[unwrapped] : result['structuredContent']
  const content = result['content'] as readonly ContentBlock[]
  if (value === undefined || content.some(block => block.type === 'text')) return without(result, 'structuredContent')
  return { ...without(result, 'structuredContent'), content: [...content, { type: 'text', text: JSON.stringify(value) }] }
}

/** Before tools had titles, their annotations did. They have no `_meta`: what hosts of MCP Live look for in it stands beside the name. */
function titleAsAnnotation(tool: Wire): Wire {
  const featureSet = isRecord(tool['_meta']) ? tool['_meta']['featureSet'] : undefined
  const stored = typeof featureSet === 'string' ? { featureSet } : {}
  const plain = { ...without(tool, 'title', 'outputSchema', '_meta'), ...stored }
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

function toDialect(result: MarkedResult): Wire {
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

/** Options of a tool call. */
export interface ToolCallOptions<S extends Schema = Schema> extends RequestOptions {
  /** The schema of the structured content. The result is validated against it and typed. Default: not validated. */
  readonly output?: S
  /** Called with each progress notification of the call. */
  readonly onProgress?: (progress: Progress) => void
  /** Whether the call runs as a task, if tool and server allow that; the result is awaited. Default: only if the tool requires it. */
  readonly task?: boolean
}

/** The result of a tool call. */
export interface ToolAnswer<Failed extends boolean = boolean, T = unknown> {
  /** The content of the result, for the model or the user. */
  readonly content: readonly ContentBlock[]
  /** The text of all text blocks, joined. */
  readonly text: string
  /**
   * The structured content: with the option `output` what the schema made of it, otherwise as the server sent it. Undefined if
   * there is none. Before 2026-07-28 structured content is always an object, so that servers put other values under `result`.
   */
  readonly structured: T
  /** Whether the tool failed. */
  readonly isError: Failed
  /** Why the tool failed, if the server states it as a problem. */
  readonly problem: Failed extends true ? Problem | undefined : undefined
  /** The `_meta` of the result. Undefined if there is none. */
  readonly meta: Readonly<Record<string, unknown>> | undefined
}

/** What one feature tells another of a call, beside the options that the application gave. */
export interface CallDirectives {
  /** How long the server may take to answer. Unlike `timeout` it is no bound for a task. */
  readonly answerMs?: number
  /** Whether the call may be made again as it is, where that does no harm. Default: always. */
  readonly mayRepeat?: () => boolean
  /** The call was begun before, and only goes on: nobody is asked about it again. */
  readonly resumed?: boolean
  /** Progress is wanted as the wire has it. */
  readonly rawProgress?: boolean
}

/** Makes a call of a tool. */
export type CallTool = (
  name: string,
  args: Params | undefined,
  options: ToolCallOptions,
  manner?: CallDirectives,
) => Promise<ToolAnswer>

/** A call that may be attempted several times. */
export interface ToolAttempts<T> {
  readonly tool: string
  /** Sends the call once. */
  readonly attempt: () => Promise<T>
  /** Whether doing it twice does no more than doing it once. */
  readonly harmless: () => Awaitable<boolean>
  /** Whether there is still somebody to send it to. */
  readonly open: () => boolean
  readonly signal: AbortSignal | undefined
}

/** What a view of an answer is made of. */
export interface AnswerFacts {
  readonly server: string
  readonly tool: string
  readonly content: readonly ContentBlock[]
  readonly meta: Params | undefined
  /** What `after` of the same extension has found. */
  readonly found: unknown
}

/** How a feature takes part in calls of tools. A call that needs none of it pays for none. */
export interface ToolCallExtension {
  /** Names it among the extensions: `after` and `views` of one share what was found. */
  readonly name: string
  /** Wraps calls; made once for a client. The later in the list of features, the further outside. */
  around?(next: CallTool): CallTool
  /** An extension that servers speak of only to calls that declare it, on wires where requests do that. */
  readonly declares?: { readonly extension: string; readonly withProgress?: boolean }
  /** Adds to what a call is sent with. */
  sends?(send: SendOptions, tool: string, options: ToolCallOptions): SendOptions
  /** Members of the params beside name and arguments. */
  params?(tool: string, options: ToolCallOptions): Params
  /** Throws where the call must not be sent. */
  before?(tool: string, args: Params | undefined, signal: AbortSignal | undefined): Promise<void> | undefined
  /** Whether a call that is sent so does no more when it is made again. */
  harmless?(send: SendOptions): boolean
  /** Makes a call again where that helps. */
  attempts?<T extends ToolAnswer>(call: ToolAttempts<T>): Promise<T>
  /** Looks at a result; what it finds is for the views of the same extension. */
  after?(tool: string, options: ToolCallOptions, result: CallToolResult): Awaitable<unknown>
  /** Members of the answer that are read at once, by name. */
  readonly reads?: Readonly<Record<string, (result: CallToolResult) => unknown>>
  /** Members of the answer that are read when somebody asks, by name. */
  readonly views?: Readonly<Record<string, (facts: AnswerFacts) => unknown>>
}

/** Where features take part in calls of tools. */
export const toolCalls: ExtensionPoint<ToolCallExtension> = extensionPoint('tool-calls')

/** Tools of a server, for other features of a client. */
export interface ClientTools {
  /** A tool as it was listed; undefined where it was not. */
  known(name: string): Tool | undefined
  /** Reads the list unless the tool is known. */
  learn(name: string, signal: AbortSignal | undefined): Promise<void>
  /** All tools that are fit for use. */
  tools(options?: RequestOptions): AsyncGenerator<Tool, void, undefined>
  readonly call: CallTool
  /** Checks what a tool gave against a schema of the caller, and returns what that makes of it. */
  checked(schema: Schema, tool: string, value: unknown): Promise<unknown>
}

/** The client's tools. */
export const clientToolsPort: Port<ClientTools> = port('tools')
