/**
 * Calling a tool: headers that mirror arguments, questions that come back, tasks that take long, and a checked result. What other
 * features add comes through the extension point `toolCalls`.
 */
import { fewElements } from '../../../core/schema/schema.ts'
import type { SendOptions } from '../../../engine/calls.ts'
import type { ClientSession, RequestOptions } from '../../../engine/client-feature.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { isRecord, type Params } from '../../../jsonrpc/message.ts'
import type { Capabilities, Peer } from '../../../revisions/index.ts'
import type { ClientQuestions, InputRequest } from '../input-required/messages.ts'
import type { ClientTaskProgress, ClientTasks, Task } from '../tasks/messages.ts'
import type { KnownTools } from './client.ts'
import { mirrorHeaders } from './headers.ts'
import {
  type CallDirectives,
  type CallToolResult,
  callTool,
  hasStructuredContent,
  type TaskSupport,
  type ToolAnswer,
  type ToolCallExtension,
  type ToolCallOptions,
} from './messages.ts'
import { type answerMaker, contentText, incompatibleResult, readOutput } from './outcome.ts'

/** What calls of tools are made with, on one connection. */
export interface ToolCaller {
  readonly session: ClientSession
  readonly known: KnownTools
  readonly questions: ClientQuestions
  readonly tasks: ClientTasks
  readonly validateArguments: boolean
  readonly hooks: CallHooks
  send(options: RequestOptions): SendOptions
  /** Reads the list of tools; `anew`: what we know is old. */
  list(anew: boolean, signal: AbortSignal | undefined): Promise<void>
}

/** The extensions of other features by what they do, so that a call looks only at those that take part in it. */
interface CallHooks {
  readonly sends: readonly NonNullable<ToolCallExtension['sends']>[]
  readonly params: readonly NonNullable<ToolCallExtension['params']>[]
  readonly before: readonly NonNullable<ToolCallExtension['before']>[]
  readonly harmless: readonly NonNullable<ToolCallExtension['harmless']>[]
  readonly attempts: ToolCallExtension['attempts']
  readonly after: readonly { readonly extension: string; readonly look: NonNullable<ToolCallExtension['after']> }[]
  readonly answer: ReturnType<typeof answerMaker>
  /** What a call declares to this server; the same object each time, because the engine prepares it once. */
  declares(peer: Peer, withProgress: boolean): Capabilities | undefined
}

const taskKinds = ['task']

/** Makes a call: what features add to it, its attempts, and what came of it. */
export function callToolOn(
  caller: ToolCaller,
  name: string,
  args: Params | undefined,
  options: ToolCallOptions,
  manner?: CallDirectives,
): Promise<ToolAnswer> {
  // Not an async function: each extra promise shows in the cost of a call, and most calls wait for nothing before they are sent.
  try {
    const send = sendOptions(caller, name, options, manner)
    const checks = checked(caller, name, args, send)
    if (checks === undefined) return attempted(caller, name, args, options, send, manner)
    return checks.then(() => attempted(caller, name, args, options, send, manner))
  } catch (error) {
    return Promise.reject(error)
  }
}

/** What is looked at before a call is sent; undefined where that needs no time. */
function checked(caller: ToolCaller, name: string, args: Params | undefined, { signal }: SendOptions): Promise<void> | undefined {
  let checks: Promise<void> | undefined
  for (const before of caller.hooks.before)
    checks = checks === undefined ? before(name, args, signal) : checks.then(() => before(name, args, signal))
  if (!caller.validateArguments) return checks
  return Promise.resolve(checks)
    .then(() => listed(caller, name, signal))
    .then(() => caller.known.checkInput(name, args))
}

function attempted(
  caller: ToolCaller,
  name: string,
  args: Params | undefined,
  options: ToolCallOptions,
  send: SendOptions,
  manner: CallDirectives | undefined,
): Promise<ToolAnswer> {
  const attempt = (): Promise<ToolAnswer> => callOnce(caller, name, args, options, send)
  const { attempts } = caller.hooks
  if (attempts === undefined) return attempt()
  return attempts({
    tool: name,
    attempt,
    harmless: () => manner?.mayRepeat?.() !== false && isHarmless(caller, name, send),
    open: () => !caller.session.opened.conversation.ended,
    signal: send.signal,
  })
}

function sendOptions(
  caller: ToolCaller,
  name: string,
  options: ToolCallOptions,
  manner: CallDirectives | undefined,
): SendOptions {
  const { onProgress } = options
  const { peer } = caller.session.opened.conversation
  let send = caller.send(options)
  if (manner?.answerMs !== undefined) send = { ...send, timeoutMs: manner.answerMs }
  const declares = peer === undefined ? undefined : caller.hooks.declares(peer, onProgress !== undefined)
  if (declares !== undefined) send = { ...send, declares }
  for (const add of caller.hooks.sends) send = add(send, name, options)
  return onProgress === undefined ? send : { ...send, onProgress }
}

async function callOnce(
  caller: ToolCaller,
  name: string,
  args: Params | undefined,
  options: ToolCallOptions,
  first: SendOptions,
): Promise<ToolAnswer> {
  const result = await rawResult(caller, name, args, options, first)
  if (!Array.isArray(result.content) && result.structuredContent === undefined) {
    throw incompatibleResult(result) ?? new McpError('invalid-result', 'The server answered tools/call without content')
  }
  if (caller.known.get(name)?.tool.outputSchema !== undefined && isLarge(result.structuredContent)) await nextTurn()
  caller.known.checkOutput(name, result)
  let found: Record<string, unknown> | undefined
  for (const { extension, look } of caller.hooks.after) {
    const told = look(name, options, result)
    if (told === undefined) continue
    found ??= {}
    found[extension] = await told
  }
  const { structuredContent, isError } = result
  const { answer } = caller.hooks
  const from = { server: caller.session.opened.serverInfo?.name ?? '', tool: name }
  if (options.output === undefined || isError === true) return answer(from, found, result, structuredContent)
  const value = await readOutput(options.output, name, structuredContent ?? fromText(caller.session, result))
  return answer(from, found, result, value)
}

/** Answers for the one who made the call, where that is somebody else than who connected. */
export interface CallProxy {
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
export function rawResult(
  caller: ToolCaller,
  name: string,
  args: Params | undefined,
  options: ToolCallOptions,
  first: SendOptions,
  between?: CallProxy,
): Promise<CallToolResult> {
  const { onProgress } = first
  if (onProgress === undefined) return resultOf(caller, name, args, options, first, between)
  return resultWithProgress(caller, name, args, options, first, onProgress, between)
}

async function resultWithProgress(
  caller: ToolCaller,
  name: string,
  args: Params | undefined,
  options: ToolCallOptions,
  first: SendOptions,
  onProgress: NonNullable<SendOptions['onProgress']>,
  between?: CallProxy,
): Promise<CallToolResult> {
  const progress = caller.tasks.progress(onProgress, () => caller.session.opened.conversation.calls)
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
  options: ToolCallOptions,
  first: SendOptions,
  between?: CallProxy,
  progress?: ClientTaskProgress,
): Promise<CallToolResult> {
  let send = first
  // Where the caller decides, the tool must allow it: for that we have to know the tool.
  if (options.task === true && caller.tasks.takes(callTool.name)) await listed(caller, name, signalOf(send))
  let params = paramsFor(caller, name, args, options)
  if (options.task === true) send = withoutLateTask(caller, caller.tasks.allow(send))
  let answer: unknown
  try {
    answer = await (between?.begun() ?? caller.session.request(callTool, params, withHeaders(caller, name, args, send)))
  } catch (error) {
    if (between?.takesTasks === false && caller.tasks.wantedBy(error)) throw error
    // What was refused did not run: where we know better now, it is tried once more.
    send = await secondThoughts(error, caller, name, send)
    params = paramsFor(caller, name, args, options)
    answer = await caller.session.request(callTool, params, withHeaders(caller, name, args, send))
  }
  const result = checkedResult(caller.questions.isFinal(answer) ? answer : await driven(caller, answer, params, send, between))
  const task = caller.tasks.created(result)
  if (task === undefined) return result
  progress?.begun()
  const until = untilEnd(send, options)
  const onStatus = progress === undefined ? undefined : (now: Task): void => progress.looked(now)
  const waiting = { signal: signalOf(until), totalMs: until.totalMs, onStatus }
  if (between === undefined) return checkedResult(await caller.tasks.finish(task, waiting))
  await between.tasked(task).catch(error => {
    caller.tasks.stop(task)
    throw error
  })
  const answerFor: (request: InputRequest) => Promise<unknown> = request => between.answer(request)
  return checkedResult(await caller.tasks.finish(task, { ...waiting, answer: answerFor }))
}

/** A call that was given up may become a task all the same, of which nobody will hear. */
function withoutLateTask(caller: ToolCaller, send: SendOptions): SendOptions {
  const { onLate } = send
  return {
    ...send,
    onLate: result => {
      const task = caller.tasks.created(result)
      if (task === undefined) onLate?.(result)
      else caller.tasks.stop(task)
    },
  }
}

/** Made where something takes long; most calls need none. */
function signalOf({ signal, behalf }: SendOptions): AbortSignal | undefined {
  return signal ?? behalf?.signal
}

/** Reading it took the most of a turn already: whether it is what was promised is looked at in another. */
function isLarge(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !fewElements(value, 5_000)
}

function nextTurn(): Promise<void> {
  return new Promise(done => setTimeout(done))
}

/** Made again it does no more than made once: by what other features sent along, else by what the server says of the tool. */
async function isHarmless(caller: ToolCaller, name: string, send: SendOptions): Promise<boolean> {
  if (caller.hooks.harmless.some(harmless => harmless(send))) return true
  try {
    await listed(caller, name, send.signal)
  } catch {
    // That the list cannot be read now is no news: the call itself has just failed.
    return false
  }
  const hints = caller.known.get(name)?.tool.annotations
  return hints?.readOnlyHint === true || hints?.idempotentHint === true
}

async function listed({ known, list }: ToolCaller, name: string, signal: AbortSignal | undefined): Promise<void> {
  if (known.get(name) === undefined) await list(false, signal)
}

/** What a refusal taught us about how the call must be made; throws it when it taught nothing. */
async function secondThoughts(error: unknown, caller: ToolCaller, name: string, send: SendOptions): Promise<SendOptions> {
  const { session, known, tasks } = caller
  const { errors, era } = session.opened.revision
  const code = error instanceof McpError ? error.code : undefined
  if (tasks.wantedBy(error)) return withoutLateTask(caller, tasks.allow(send))
  // A refused header means that the tool has changed since we listed it.
  if (era === 'request' && code === errors['header-mismatch']) {
    await caller.list(true, signalOf(send))
    return send
  }
  // On wires where the caller decides, a tool that must run as a task is refused like an unknown method.
  if (code === errors['method-not-found'] && known.get(name) === undefined && tasks.takes(callTool.name)) {
    await listed(caller, name, signalOf(send))
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

function supportOf({ known }: ToolCaller, name: string): TaskSupport | undefined {
  return known.get(name)?.tool.execution?.taskSupport
}

function paramsFor(caller: ToolCaller, name: string, args: Params | undefined, options: ToolCallOptions): CallParams {
  const { task: wanted = false } = options
  let params: CallParams = args === undefined ? { name } : { name, arguments: args }
  for (const more of caller.hooks.params) params = { ...params, ...more(name, options) }
  const support = supportOf(caller, name)
  // On wires where the caller decides: when the tool must, or when it may and the caller wants to.
  const asTask = support === 'required' || (wanted && support === 'optional')
  return asTask && caller.tasks.takes(callTool.name) ? { ...params, task: {} } : params
}

function withHeaders({ session, known }: ToolCaller, name: string, args: Params | undefined, send: SendOptions): SendOptions {
  if (session.opened.revision.era !== 'request') return send
  const mirrored = known.get(name)?.mirrored
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
  between: CallProxy | undefined,
): Promise<unknown> {
  const { session, questions } = caller
  if (session.opened.revision.asks !== 'result') return Promise.resolve(answer)
  const options = withHeaders(caller, params.name, params.arguments, send)
  const again = (more: Params): Promise<unknown> => session.request(callTool, { ...params, ...more }, options)
  if (between !== undefined) return between.drive(answer, again)
  return questions.drive(answer, again, { signal: send.signal, kinds: taskKinds })
}

/** Where a result is content only and its text is the JSON of a value, that is the value. */
function fromText({ opened: { revision } }: ClientSession, { content }: CallToolResult): unknown {
  if (hasStructuredContent(revision)) return undefined
  try {
    return JSON.parse(contentText(content ?? []))
  } catch {
    return undefined
  }
}

function checkedResult(result: unknown): CallToolResult {
  if (isRecord(result)) return result as unknown as CallToolResult
  throw new McpError('invalid-result', 'The result of tools/call is not an object')
}
