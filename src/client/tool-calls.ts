/** Calling a tool: headers that mirror arguments, questions that come back, tasks that take long, and a checked result. */
import type { Schema } from '../core/schema/index.ts'
import { fewElements } from '../core/schema/walk.ts'
import type { Progress, SendOptions } from '../engine/calls.ts'
import { type Answerers, drive, isFinal } from '../features/mcp/input-required/client.ts'
import type { InputRequest } from '../features/mcp/input-required/messages.ts'
import { createdTask, finishTask, stopTask, takesTask, wantsTask } from '../features/mcp/tasks/client.ts'
import type { Task } from '../features/mcp/tasks/messages.ts'
import { mirrorHeaders } from '../features/mcp/tools/headers.ts'
import { type CallToolResult, callTool, type TaskSupport } from '../features/mcp/tools/messages.ts'
import type { CallBudget } from '../features/reliability/cost/client.ts'
import { checkKey, knowsKeys, withKey } from '../features/reliability/idempotency/client.ts'
import { checkArguments, checkResult, hasMedia, saysMedia } from '../features/reliability/media/client.ts'
import { type ToldProgress, toldProgress } from '../features/reliability/streaming/client.ts'
import { McpError } from '../jsonrpc/error.ts'
import { isRecord, type Params } from '../jsonrpc/message.ts'
import { declaring, takingTask } from './declaring.ts'
import { incompatibleResult } from './incompatible-servers.ts'
import type { Live } from './live.ts'
import type { LiveCall } from './live-handlers.ts'
import type { RequestOptions } from './options.ts'
import { outcome, type ToolOutcome, textOf } from './outcome.ts'
import { readOutput } from './output.ts'
import type { Retries } from './retries.ts'
import type { Session } from './session.ts'
import { TaskProgress } from './task-progress.ts'
import type { ToolBook } from './tool-book.ts'

export interface CallToolOptions<S extends Schema = Schema> extends RequestOptions {
  /** What the structured content must be; types the result. */
  readonly output?: S
  /** Told how far the call has come. */
  readonly onProgress?: (progress: ToldProgress) => void
  /**
   * Names this call to a server that knows such keys: made again under the same one it is not done twice. Default: one of the
   * client's own, where the server knows keys and the tool may change something.
   */
  readonly idempotencyKey?: string
  /** The most that it may cost: units, and with `{ units, time }` how long the server may take. What nobody can estimate is not free. */
  readonly budget?: CallBudget
  /** The user has agreed to this very call: the first question about it to `onConfirm` is not asked. */
  readonly confirmed?: boolean
  /** What it is for, in a sentence. Sent only to servers that may hear it (the option `intent` of connect). */
  readonly intent?: string
  /** The call is not made; the server only says what it would suggest for the `intent`. */
  readonly suggestOnly?: boolean
  /** Run it in the background where tool and server allow that, and wait for its end. Default: only where the tool demands it. */
  readonly task?: boolean
  /** State and scope of MCP Live; sent only to servers that are live. */
  readonly live?: LiveCall
}

export interface ToolCaller {
  readonly session: Session
  readonly live: Live | undefined
  readonly book: ToolBook
  readonly answerers: Answerers
  readonly rounds: number
  readonly validateArguments: boolean
  readonly sendOptions: (options: RequestOptions) => SendOptions
  /** Reads the list of tools; `anew`: what we know is old. */
  readonly list: (anew: boolean, signal: AbortSignal | undefined) => Promise<void>
  readonly retries: Retries
  readonly newKey: () => string
  /** Whether a call may be made again as it is, where that does no harm. Default: always. */
  readonly mayRepeat?: () => boolean
  /** Waits for the end of a call that has become a task. */
  readonly finishTask: (task: Task, options: SendOptions, onStatus?: (task: Task) => void) => Promise<CallToolResult>
}

const taskKinds = ['task']

/** The same options, for whoever is to hear of progress in its own words and not in those of the wire. */
export function heard<O extends CallToolOptions>(options: O): O {
  const { onProgress } = options
  return onProgress === undefined ? options : { ...options, onProgress: (step: Progress) => onProgress(toldProgress(step)) }
}

export async function callToolOn(
  caller: ToolCaller,
  name: string,
  args: Params | undefined,
  options: CallToolOptions,
): Promise<ToolOutcome> {
  const { onProgress } = options
  const { peer } = caller.session.opened.conversation
  const plainly = declaring(caller.sendOptions(options), peer, onProgress !== undefined)
  const key = keyFor(caller, name, options)
  const keyed = key === undefined ? plainly : withKey(plainly, key, options.idempotencyKey === undefined)
  const quietly = caller.live === undefined ? keyed : caller.live.carrying(keyed, options.live, toolNamed(caller, name))
  const send = hearingLate(caller, name, options, onProgress === undefined ? quietly : { ...quietly, onProgress })
  if (hasMedia(peer)) await checkMedia(caller, name, args, send.signal)
  if (caller.validateArguments) {
    await known(caller, name, send.signal)
    caller.book.checkInput(name, args)
  }
  return caller.retries.call({
    tool: name,
    attempt: () => callOnce(caller, name, args, options, send),
    harmless: () => caller.mayRepeat?.() !== false && isHarmless(caller, name, key, send.signal),
    open: () => !caller.session.opened.conversation.ended,
    signal: send.signal,
  })
}

/** What a call has done to a state is done, also where nobody waits for its result any more. */
function hearingLate(caller: ToolCaller, name: string, options: CallToolOptions, send: SendOptions): SendOptions {
  const { live } = caller
  const told = options.live?.onLate
  if (live === undefined || told === undefined) return send
  const onLate = (result: unknown): void => {
    const report = live.reportIn(result as Params, options.live, toolNamed(caller, name))
    if (report !== undefined) told(report)
  }
  return { ...send, onLate }
}

async function callOnce(
  caller: ToolCaller,
  name: string,
  args: Params | undefined,
  options: CallToolOptions,
  first: SendOptions,
): Promise<ToolOutcome> {
  const result = await rawResult(caller, name, args, options, first)
  if (!Array.isArray(result.content) && result.structuredContent === undefined) {
    throw incompatibleResult(result) ?? new McpError('invalid-result', 'The server answered tools/call without content')
  }
  if (caller.book.get(name)?.tool.outputSchema !== undefined && isLarge(result.structuredContent)) await nextTurn()
  caller.book.checkOutput(name, result)
  const { structuredContent, isError } = result
  const tool = caller.book.get(name)?.tool
  const warnings = saysMedia(tool) ? await checkResult(tool, result) : undefined
  const live = caller.live?.reportIn(result as unknown as Params, options.live, toolNamed(caller, name))
  const from = { server: caller.session.opened.serverInfo?.name ?? '', tool: name, warnings, live }
  if (options.output === undefined || isError === true) return outcome(from, result, structuredContent)
  return outcome(from, result, await readOutput(options.output, name, structuredContent ?? fromText(caller.session, result)))
}

/** Answers for the one who made the call, where that is somebody else than who connected. */
export interface Between {
  /** What the call was answered with, where it was made before: it goes on from there. */
  begun(): Promise<unknown> | undefined
  /** Goes on with a result that asks, until there is one that does not. */
  drive(first: unknown, again: (more: Params) => Promise<unknown>): Promise<unknown>
  /** Whether a call that can only be a task may be one. */
  readonly takesTasks: boolean
  /** The call has become a task. */
  tasked(task: Task): Promise<unknown>
  /** Answers what a task asks. */
  answer(request: InputRequest): Promise<unknown>
}

/** The call itself, and what came of it as it came: its questions answered, its task waited for. */
export async function rawResult(
  caller: ToolCaller,
  name: string,
  args: Params | undefined,
  options: CallToolOptions,
  first: SendOptions,
  between?: Between,
): Promise<CallToolResult> {
  const { onProgress } = first
  if (onProgress === undefined) return resultOf(caller, name, args, options, first, between)
  const progress = new TaskProgress(onProgress, () => caller.session.opened.conversation.calls)
  try {
    return await resultOf(caller, name, args, options, { ...first, ...progress.options(first) }, between, progress)
  } finally {
    progress.end()
  }
}

async function resultOf(
  caller: ToolCaller,
  name: string,
  args: Params | undefined,
  options: CallToolOptions,
  first: SendOptions,
  between?: Between,
  progress?: TaskProgress,
): Promise<CallToolResult> {
  let send = first
  // Where the caller decides, the tool must allow it: for that we have to know the tool.
  if (options.task === true && takesTask(caller.session.opened.conversation.peer, callTool.name))
    await known(caller, name, signalOf(send))
  let params = paramsFor(caller, name, args, options)
  if (options.task === true) send = withoutLateTask(caller, takingTask(send))
  let answer: unknown
  try {
    answer = await (between?.begun() ?? caller.session.request(callTool, params, withHeaders(caller, name, args, send)))
  } catch (error) {
    if (between?.takesTasks === false && wantsTask(error)) throw error
    // What was refused did not run: where we know better now, it is tried once more.
    send = await secondThoughts(error, caller, name, send)
    params = paramsFor(caller, name, args, options)
    answer = await caller.session.request(callTool, params, withHeaders(caller, name, args, send))
  }
  const result = checkedResult(isFinal(answer) ? answer : await driven(caller, answer, params, send, between))
  const task = createdTask(result)
  if (task === undefined) return result
  progress?.begun()
  const until = untilEnd(send, options)
  const onStatus = progress === undefined ? undefined : (now: Task): void => progress.looked(now)
  if (between === undefined) return checkedResult(await caller.finishTask(task, until, onStatus))
  await between.tasked(task).catch(error => {
    endTask(caller, task)
    throw error
  })
  const answered = {
    signal: signalOf(until),
    totalMs: until.totalMs,
    answer: (request: InputRequest): Promise<unknown> => between.answer(request),
    onStatus,
  }
  return checkedResult(await finishTask(caller.session.tasks, task, answered))
}

/** A call that was given up may become a task all the same, of which nobody will hear. */
function withoutLateTask(caller: ToolCaller, send: SendOptions): SendOptions {
  const { onLate } = send
  return {
    ...send,
    onLate: result => {
      const task = createdTask(result)
      if (task === undefined) onLate?.(result)
      else endTask(caller, task)
    },
  }
}

/** Whether the server hears of it changes nothing for whoever has given it up. */
function endTask({ session }: ToolCaller, { taskId }: Task): void {
  stopTask(session.tasks, taskId).catch(lost => session.engine.trace('task-not-cancelled', lost))
}

/** Made where something takes long; most calls need none. */
function signalOf({ signal, behalf }: SendOptions): AbortSignal | undefined {
  return signal ?? behalf?.signal
}

/** What is not taken is not sent. A list that cannot be read is no ground to stay silent: the server looks by itself. */
async function checkMedia(
  caller: ToolCaller,
  name: string,
  args: Params | undefined,
  signal: AbortSignal | undefined,
): Promise<void> {
  await known(caller, name, signal).catch(() => {})
  const tool = caller.book.get(name)?.tool
  if (saysMedia(tool)) await checkArguments(tool, args)
}

/** Reading it took the most of a turn already: whether it is what was promised is looked at in another. */
function isLarge(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !fewElements(value, 5_000)
}

function nextTurn(): Promise<void> {
  return new Promise(done => setTimeout(done))
}

/** Read-only calls need none: they can be repeated as they are. */
function keyFor({ session, book, newKey }: ToolCaller, name: string, { idempotencyKey }: CallToolOptions): string | undefined {
  if (idempotencyKey !== undefined) {
    checkKey(idempotencyKey)
    return idempotencyKey
  }
  if (!knowsKeys(session.opened.conversation.peer) || book.get(name)?.tool.annotations?.readOnlyHint === true) return undefined
  return newKey()
}

/** Made again it does no more than made once: by its key, else by what the server says of the tool. */
async function isHarmless(
  caller: ToolCaller,
  name: string,
  key: string | undefined,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  if (key !== undefined && knowsKeys(caller.session.opened.conversation.peer)) return true
  try {
    await known(caller, name, signal)
  } catch {
    // That the list cannot be read now is no news: the call itself has just failed.
    return false
  }
  const hints = caller.book.get(name)?.tool.annotations
  return hints?.readOnlyHint === true || hints?.idempotentHint === true
}

async function known({ book, list }: ToolCaller, name: string, signal: AbortSignal | undefined): Promise<void> {
  if (book.get(name) === undefined) await list(false, signal)
}

/** What a refusal taught us about how the call must be made; throws it when it taught nothing. */
async function secondThoughts(error: unknown, caller: ToolCaller, name: string, send: SendOptions): Promise<SendOptions> {
  const { session, book } = caller
  const { errors, era } = session.opened.revision
  const code = error instanceof McpError ? error.code : undefined
  if (wantsTask(error)) return withoutLateTask(caller, takingTask(send))
  // A refused header means that the tool has changed since we listed it.
  if (era === 'request' && code === errors['header-mismatch']) {
    await caller.list(true, signalOf(send))
    return send
  }
  // On wires where the caller decides, a tool that must run as a task is refused like an unknown method.
  if (
    code === errors['method-not-found'] &&
    book.get(name) === undefined &&
    takesTask(session.opened.conversation.peer, callTool.name)
  ) {
    await known(caller, name, signalOf(send))
    if (supportOf(caller, name) === 'required') return withoutLateTask(caller, send)
  }
  throw error
}

/** A deadline that the caller gave holds for the task too; without one, the task's own does. */
function untilEnd(send: SendOptions, { timeout }: RequestOptions): SendOptions {
  return timeout === undefined || send.timeoutMs === undefined ? send : { ...send, totalMs: send.timeoutMs }
}

interface CallParams {
  readonly name: string
  readonly arguments?: Params
  readonly task?: Params
}

function toolNamed({ book }: ToolCaller, name: string): Params | undefined {
  return book.get(name)?.tool as Params | undefined
}

function supportOf({ book }: ToolCaller, name: string): TaskSupport | undefined {
  return book.get(name)?.tool.execution?.taskSupport
}

function paramsFor(caller: ToolCaller, name: string, args: Params | undefined, options: CallToolOptions): CallParams {
  const { task: wanted = false } = options
  const plain = args === undefined ? { name } : { name, arguments: args }
  const params = caller.live === undefined ? plain : { ...plain, ...caller.live.members(options.live, toolNamed(caller, name)) }
  const support = supportOf(caller, name)
  // On wires where the caller decides: when the tool must, or when it may and the caller wants to.
  const asTask = support === 'required' || (wanted && support === 'optional')
  return asTask && takesTask(caller.session.opened.conversation.peer, callTool.name) ? { ...params, task: {} } : params
}

function withHeaders({ session, book }: ToolCaller, name: string, args: Params | undefined, send: SendOptions): SendOptions {
  if (session.opened.revision.era !== 'request') return send
  const mirrored = book.get(name)?.mirrored
  return mirrored === undefined || mirrored.length === 0
    ? send
    : { ...send, headers: { ...send.headers, ...mirrorHeaders(mirrored, args) } }
}

/** The server asks, on wires where it does that inside results. */
function driven(
  caller: ToolCaller,
  answer: unknown,
  params: CallParams,
  send: SendOptions,
  between: Between | undefined,
): Promise<unknown> {
  const { session, answerers, rounds } = caller
  if (session.opened.revision.asks !== 'result') return Promise.resolve(answer)
  const options = withHeaders(caller, params.name, params.arguments, send)
  const again = (more: Params): Promise<unknown> => session.request(callTool, { ...params, ...more }, options)
  if (between !== undefined) return between.drive(answer, again)
  return drive(answer, again, { answerers, rounds, signal: send.signal, kinds: taskKinds })
}

/** Before 2025-06-18 a result was text only; where it is the JSON of a value, that is the value. */
function fromText({ opened: { revision } }: Session, { content }: CallToolResult): unknown {
  if (revision.id !== '2024-11-05' && revision.id !== '2025-03-26') return undefined
  try {
    return JSON.parse(textOf(content ?? []))
  } catch {
    return undefined
  }
}

function checkedResult(result: unknown): CallToolResult {
  if (isRecord(result)) return result as unknown as CallToolResult
  throw new McpError('invalid-result', 'The server answered tools/call with something else than an object')
}
