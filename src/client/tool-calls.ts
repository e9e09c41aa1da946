/** Calling a tool: headers that mirror arguments, questions that come back, tasks that take long, and a checked result. */
import { compileSchema, type InferOutput, type Schema } from '../core/schema/index.ts'
import type { Progress, SendOptions } from '../engine/calls.ts'
import type { ContentBlock } from '../features/mcp/content/messages.ts'
import { type Answerers, drive } from '../features/mcp/input-required/client.ts'
import { createdTask, takesTasks } from '../features/mcp/tasks/client.ts'
import type { Task } from '../features/mcp/tasks/messages.ts'
import { mirrorHeaders } from '../features/mcp/tools/headers.ts'
import { type CallToolResult, callTool } from '../features/mcp/tools/messages.ts'
import { McpError } from '../jsonrpc/error.ts'
import { isRecord, type Params } from '../jsonrpc/message.ts'
import type { RequestOptions } from './options.ts'
import type { Session } from './session.ts'
import { readOutput, type ToolBook } from './tool-book.ts'

export interface CallToolOptions<S extends Schema = Schema> extends RequestOptions {
  /** What the structured content must be; types the result. */
  readonly output?: S
  readonly onProgress?: (progress: Progress) => void
  /** Run it in the background where tool and server allow that, and wait for its end. Default: only where the tool demands it. */
  readonly task?: boolean
}

export interface ToolOutcome<T = unknown> {
  readonly content: readonly ContentBlock[]
  /** All text blocks, joined. */
  readonly text: string
  readonly structured: T
  readonly isError: boolean
  readonly meta: Readonly<Record<string, unknown>> | undefined
}

export interface ToolCaller {
  readonly session: Session
  readonly book: ToolBook
  readonly answerers: Answerers
  readonly rounds: number
  readonly validateArguments: boolean
  /** Reads the list anew: a header was refused, so what we know of the tool is old. */
  readonly relist: () => Promise<void>
  /** Waits for the end of a call that has become a task. */
  readonly finishTask: (task: Task, options: SendOptions) => Promise<CallToolResult>
}

const never = new AbortController().signal

export async function callToolOn<S extends Schema>(
  caller: ToolCaller,
  name: string,
  args: Params | undefined,
  options: CallToolOptions<S>,
  send: SendOptions,
): Promise<ToolOutcome<InferOutput<S>>> {
  if (caller.validateArguments) await caller.book.checkInput(name, args)
  const params = { name, ...(args === undefined ? {} : { arguments: args }), ...(asTask(caller, name, options.task) ? { task: {} } : {}) }
  const result = await tryTwice(caller, params, send)
  const { structuredContent, isError, content, _meta } = result
  await caller.book.checkOutput(name, result)
  const structured = options.output === undefined || isError === true ? structuredContent : await readOutput(compileSchema(options.output), name, result)
  return { content: content ?? [], text: textOf(content ?? []), structured: structured as InferOutput<S>, isError: isError === true, meta: _meta }
}

/** On wires where the caller decides: when it wants to and the tool may, or when the tool must. */
function asTask({ session, book }: ToolCaller, name: string, wanted = false): boolean {
  if (!takesTasks(session.opened.conversation)) return false
  const support = book.get(name)?.tool.execution?.taskSupport
  return support === 'required' || (wanted && support === 'optional')
}

/** A refused header means that the tool has changed since we listed it: look again, then try once more. */
async function tryTwice(caller: ToolCaller, params: Params, send: SendOptions): Promise<CallToolResult> {
  try {
    return await once(caller, params, send)
  } catch (error) {
    const { revision } = caller.session.opened
    if (!(error instanceof McpError) || error.code !== revision.errors['header-mismatch'] || revision.era !== 'request') throw error
    await caller.relist()
    return once(caller, params, send)
  }
}

async function once(caller: ToolCaller, params: Params, send: SendOptions): Promise<CallToolResult> {
  const { session, answerers, rounds } = caller
  const mirrored = session.opened.revision.era === 'request' ? caller.book.get(params['name'] as string)?.mirrored : undefined
  const headers = mirrored === undefined || mirrored.length === 0 ? send : { ...send, headers: mirrorHeaders(mirrored, params['arguments'] as Params | undefined) }
  const request = (next: Params): Promise<unknown> => session.request(callTool, next as never, headers)
  const result = session.opened.revision.asks === 'result' ? await drive(params, request, { answerers, rounds, signal: send.signal ?? never }) : await request(params)
  if (!isRecord(result)) throw new McpError('invalid-result', 'The server answered tools/call with something else than an object')
  const task = createdTask(result)
  if (task !== undefined) return caller.finishTask(task, send)
  if (!Array.isArray(result['content']) && result['structuredContent'] === undefined) {
    throw new McpError('invalid-result', 'The server answered tools/call without content')
  }
  return result as unknown as CallToolResult
}

function textOf(content: readonly ContentBlock[]): string {
  return content
    .filter((block) => block?.type === 'text')
    .map((block) => block.text)
    .join('\n')
}
