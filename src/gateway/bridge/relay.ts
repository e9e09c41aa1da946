/** Forwards tool calls, reads, prompts and completions to upstreams, and adapts results for the client. The class `Relay` is the bridge's core. */
import { Client } from '../../client/client.ts'
import type { SendOptions } from '../../engine/calls.ts'
import { exchangeOf } from '../../engine/context.ts'
import { type Exchange, retryState } from '../../engine/exchange.ts'
import { type Method, NS } from '../../engine/method.ts'
import { metaWhere } from '../../engine/reserved.ts'
import type { Layer } from '../../engine/stages.ts'
import { type Completion, complete } from '../../features/mcp/completion/messages.ts'
import type { ResourceContents } from '../../features/mcp/content/messages.ts'
import { pagesIn } from '../../features/mcp/elicitation/messages.ts'
import { isFinalResult } from '../../features/mcp/input-required/client.ts'
import type { LogLevel } from '../../features/mcp/logging/messages.ts'
import { wantedLevel } from '../../features/mcp/logging/server.ts'
import { progressToken } from '../../features/mcp/progress/server.ts'
import { type GetPromptResult, getPrompt } from '../../features/mcp/prompts/messages.ts'
import { type ReadResourceResult, readResource } from '../../features/mcp/resources/messages.ts'
import { expandTemplate } from '../../features/mcp/resources/template.ts'
import { relatedTaskKey } from '../../features/mcp/tasks/messages.ts'
import { rawResult } from '../../features/mcp/tools/call.ts'
import type { CallToolResult, Tool } from '../../features/mcp/tools/messages.ts'
import { type Reply, type ReplyParts, RuntimeReply } from '../../features/mcp/tools/result.ts'
import { tellWait } from '../../features/reliability/cost/rates.ts'
import { fromWire, problemExtension } from '../../features/reliability/problem/messages.ts'
import { stateExtension } from '../../features/reliability/session-state/messages.ts'
import { ConnectionError } from '../../jsonrpc/connection.ts'
import { McpError } from '../../jsonrpc/error.ts'
import { isRecord, type Params } from '../../jsonrpc/message.ts'
import { logLevelKey } from '../../revisions/envelope.ts'
import { envelopeKeys } from '../../revisions/index.ts'
import type { Context } from '../../server/api.ts'
import type { ProxiedEntry } from '../proxies.ts'
import type { CallWrapper, GatewayCall } from '../trust/call-wrapper.ts'
import type { Upstreams } from '../upstreams/upstreams.ts'
import { failureAt, upstreamAbsent } from './failures.ts'
import type { ParkedCalls } from './parked-calls.ts'
import { declaredFor, visits } from './questions.ts'
import { plainFor, plainMeta, resultMeta, returned, returnedMessages } from './returns.ts'
import type { UpstreamStateTokens } from './states.ts'
import { UpstreamCall, upstreamCallKey } from './upstream-call.ts'
import type { UpstreamConnection } from './upstream-connection.ts'

/** The client's `_meta` for the upstream; undefined where there is nothing to pass on, which is the most common case. */
function passedMeta({ meta }: Exchange): Params | undefined {
  return meta && metaWhere(meta, isPassed)
}

/** Envelope members and extensions of this package are not passed on. */
function isPassed(key: string): boolean {
  return !(envelopeKeys.has(key) || key === 'progressToken' || key === relatedTaskKey || key.startsWith(NS))
}

/** For upstreams of stateless revisions: adds the log level that the caller wants. A session without a level gets `info`. */
function logMeta(passed: Params | undefined, { peer }: Exchange, wanted: LogLevel | undefined): Params | undefined {
  const level = wanted ?? (peer.revision.logLevelBy === 'session' ? 'info' : undefined)
  if (level === undefined) return passed
  return passed === undefined ? levelMeta(level) : { ...passed, [logLevelKey]: level }
}

const levelMetas = new Map<LogLevel, Params>()

/** One frozen object per level, so that it is serialised once. */
function levelMeta(level: LogLevel): Params {
  const known = levelMetas.get(level) ?? Object.freeze({ [logLevelKey]: level })
  levelMetas.set(level, known)
  return known
}

type Use = Extract<ReturnType<Upstreams['use']>, { readonly client: Client }>

/** Everything that one upstream call is made with. */
interface Leg {
  readonly client: Client
  readonly upstreamCall: UpstreamCall
  readonly send: SendOptions
}

/** Methods that only read, so they can be repeated. */
const read: ReadonlySet<string> = new Set([readResource.name, getPrompt.name, complete.name])

/** What the relay needs from the rest of the gateway. */
interface RelayPort {
  /** The name that the gateway gives itself. */
  readonly name: string
  readonly parking: ParkedCalls
  readonly calls: CallWrapper
  readonly states: UpstreamStateTokens
  upstreams(): Upstreams
  /** The address that a client uses for an upstream's resource. */
  address(upstream: string, uri: string, exchange: Exchange): string
  /** Whether a client may read an upstream's resource. */
  readable(upstream: string, uri: string, exchange: Exchange): boolean
}

/** Forwards requests of clients to upstreams and returns their results. */
export class Relay {
  readonly #port: RelayPort
  /** `_meta` of upstream results, for handlers that return only their content. */
  readonly #metas = new WeakMap<Exchange, Params>()

  constructor(port: RelayPort) {
    this.#port = port
  }

  /** The layer that puts the upstream's `_meta` into the result. */
  get layer(): Layer {
    return {
      stage: 'enter',
      methods: [...read],
      run: async (exchange, next) => {
        const result = await next()
        const meta = this.#metas.get(exchange)
        return meta === undefined || !isRecord(result)
          ? result
          : { ...result, _meta: { ...meta, ...(metaOf(result) as Params | undefined) } }
      },
    }
  }

  /** Calls a tool at its upstream, through the trust middleware. */
  async call({ upstream, own, exposed }: ProxiedEntry, tool: Tool, args: Params, ctx: Context): Promise<Reply | string> {
    const exchange = exchangeOf(ctx)
    const client = { name: ctx.client.info?.name, principal: ctx.principal }
    const again = exchange.get(retryState)?.[upstreamCallKey] !== undefined
    const call: GatewayCall = { upstream, tool: own, exposed, args, ctx, client, again }
    const told = await this.#port.calls.wrap(call, () => this.#call(call, tool))
    if (told.isError === true) adviseWait(exchange, told)
    const result = plainFor(exchange.peer, told)
    return (tool.outputSchema === undefined ? plainText(result) : undefined) ?? asReply(result)
  }

  /** The call itself, with state tokens exchanged in both directions. */
  async #call({ upstream, tool: name, args, ctx }: GatewayCall, tool: Tool): Promise<CallToolResult> {
    const exchange = exchangeOf(ctx)
    const { states } = this.#port
    const { annotations: hints } = tool
    // Annotations are hints of the server; they only decide how a lost connection is explained.
    const harmless = hints?.readOnlyHint === true || hints?.idempotentHint === true
    const options = ctx.task === undefined ? plain : asTask
    const state = states.given(upstream, exchange)
    const given = state === undefined ? undefined : await state
    const raw = await this.#through(upstream, ctx, harmless, ({ client, upstreamCall, send }) =>
      rawResult(Client.caller(client), name, args, options, given === undefined ? send : adding(send, given), upstreamCall),
    )
    const result = returned(raw, this.#told(upstream, exchange))
    const { _meta: said } = result
    if (said === undefined || !Object.hasOwn(said, stateExtension)) return result
    return { ...result, _meta: await states.returned(upstream, said, exchange) }
  }

  /** Reads a resource by the upstream's own address. */
  async read({ upstream, own, exposed }: ProxiedEntry, ctx: Context): Promise<readonly ResourceContents[]> {
    const exchange = exchangeOf(ctx)
    const prefix = exposed.slice(0, exposed.length - own.length)
    const uri = (exchange.params['uri'] as string).slice(prefix.length)
    const { contents: all } = await this.#ask<ReadResourceResult>(upstream, ctx, readResource, { uri })
    // Reading a folder may return members that the client may not read.
    const contents = all.filter(part => part.uri === uri || this.#port.readable(upstream, part.uri, exchange))
    return prefix === '' ? contents : contents.map(part => ({ ...part, uri: `${prefix}${part.uri}` }))
  }

  /** Gets a prompt from its upstream. */
  async prompt(
    { upstream, own }: ProxiedEntry,
    values: Readonly<Record<string, string>>,
    ctx: Context,
  ): Promise<GetPromptResult> {
    const exchange = exchangeOf(ctx)
    const result = await this.#ask<GetPromptResult>(upstream, ctx, getPrompt, { name: own, arguments: values })
    const { messages } = result
    if (!Array.isArray(messages)) return result
    return { ...result, messages: returnedMessages(messages, this.#told(upstream, exchange)) }
  }

  /** Completes an argument of a prompt or a template variable. */
  async complete(
    { upstream, own }: ProxiedEntry,
    kind: 'prompt' | 'template',
    argument: { readonly name: string; readonly value: string },
    filled: Readonly<Record<string, string>>,
    ctx: Context,
  ): Promise<Completion> {
    const ref = kind === 'prompt' ? { type: 'ref/prompt', name: own } : { type: 'ref/resource', uri: own }
    const context = Object.keys(filled).length === 0 ? {} : { context: { arguments: filled } }
    try {
      const { completion } = await this.#ask<{ completion: Completion }>(upstream, ctx, complete, { ref, argument, ...context })
      const { values } = completion
      if (kind === 'prompt' || !Array.isArray(values)) return completion
      // Values that would name a resource which the client may not read are left out.
      const filledWith = (value: unknown): string => expandTemplate(own, { ...filled, [argument.name]: String(value) })
      const shown = values.filter(value => this.#port.readable(upstream, filledWith(value), exchangeOf(ctx)))
      // `total` would reveal how many values were removed.
      return shown.length === values.length ? completion : { values: shown }
    } catch (error) {
      // 2024-11-05 has no capability for completions, so an unsupported method means no suggestions.
      if (error instanceof McpError && error.code === -32601) return { values: [] }
      throw error
    }
  }

  /** How addresses in a result are shown to this client. */
  #told(upstream: string, exchange: Exchange) {
    const { address, readable } = this.#port
    return {
      address: (uri: string) => address(upstream, uri, exchange),
      readable: (uri: string) => readable(upstream, uri, exchange),
    }
  }

  /** A request without tool semantics: read, prompt or completion. Answers questions that arrive in results. */
  async #ask<R extends object>(upstream: string, ctx: Context, method: Method, params: Params): Promise<R> {
    const result = await this.#through(upstream, ctx, read.has(method.name), async ({ client, upstreamCall, send }) => {
      const { session } = Client.caller(client)
      const again = (more: Params): Promise<unknown> => session.request(method, { ...params, ...more }, send)
      const first = await (upstreamCall.begun() ?? session.request(method, params, send))
      return (isFinalResult(first) ? first : await upstreamCall.drive(first, again)) as R
    })
    const exchange = exchangeOf(ctx)
    const meta = plainMeta(exchange.peer, resultMeta(metaOf(result), this.#port.name))
    if (meta !== undefined) this.#metas.set(exchange, meta)
    return result
  }

  /** Takes a slot, makes the call and explains failures. `harmless`: repeating the call has no further effect. */
  async #through<R>(upstream: string, ctx: Context, harmless: boolean, start: (leg: Leg) => Promise<R>): Promise<R> {
    const exchange = exchangeOf(ctx)
    const parked = exchange.get(retryState)?.[upstreamCallKey]
    // The client continues a parked call: the upstream is not called again.
    if (parked !== undefined)
      return this.#port.parking.rejoin(parked, ctx).catch(error => {
        throw failureAt(upstream, error, harmless, exchange)
      }) as Promise<R>
    const use = this.#port.upstreams().use(upstream)
    if (!('client' in use)) throw upstreamAbsent(upstream, use.why)
    const { line } = use
    const turn = line.enter(exchange)
    if (turn !== undefined) await turn
    const upstreamCall = new UpstreamCall(upstream, ctx, this.#port.parking, use.waits)
    try {
      const levelled = levelFor(use, exchange)
      if (levelled !== undefined) await levelled
      const made = madeBy(start, legOf(use, upstreamCall, exchange), line)
      return await upstreamCall.begin(made, line)
    } catch (error) {
      if (error instanceof ConnectionError) this.#port.upstreams().doubt(upstream, use.client, error)
      throw failureAt(upstream, error, harmless, exchange)
    }
  }

  /** Why an upstream cannot be called now. Also starts a reconnect attempt. */
  refusal(upstream: string): Error {
    const use = this.#port.upstreams().use(upstream)
    return upstreamAbsent(upstream, 'client' in use ? undefined : use.why)
  }
}

/** How often one call may send its client to pages. */
const mostVisits = 4

/** Makes a call; repeats it after the client visited the pages that the upstream required, because nothing was executed before. */
async function madeBy<R>(start: (leg: Leg) => Promise<R>, leg: Leg, line: UpstreamConnection): Promise<R> {
  for (let visited = 0; ; visited++) {
    try {
      return await start(leg)
    } catch (error) {
      const pages = pagesIn(error)
      if (pages === undefined) throw error
      line.sent(leg.upstreamCall, pages)
      if (visited === mostVisits || !(await visits(leg.upstreamCall, pages))) throw error
    }
  }
}

/** Copies the upstream's advice to wait into the `Retry-After` header, where the carrier has headers. */
function adviseWait(exchange: Exchange, { _meta }: CallToolResult): void {
  const waitMs = fromWire(_meta?.[problemExtension])?.retryAfter
  if (waitMs !== undefined) tellWait(exchange, waitMs)
}

/** The `_meta` of a result. */
function metaOf(result: object): unknown {
  return '_meta' in result ? result._meta : undefined
}

function adding(send: SendOptions, meta: Params): SendOptions {
  return { ...send, meta: { ...send.meta, ...meta } }
}

const plain = {}
const asTask = { task: true }

/** Whether the upstream speaks a revision without sessions. */
function isStateless(client: Client): boolean {
  return Client.caller(client).session.opened.revision.era === 'request'
}

/** For upstreams with sessions: sets the log level before the call. */
function levelFor({ client, line }: Use, exchange: Exchange): Promise<void> | undefined {
  const wanted = wantedLevel(exchange)
  return wanted === undefined || isStateless(client) ? undefined : line.level(client, wanted)
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] }

/** The leg of one call. Only members that matter are set, so that most calls stay small. */
function legOf({ client, line }: Use, upstreamCall: UpstreamCall, exchange: Exchange): Leg {
  const stateless = isStateless(client)
  const passed = passedMeta(exchange)
  const meta = stateless ? logMeta(passed, exchange, wantedLevel(exchange)) : passed
  const send: Mutable<SendOptions> = { behalf: exchange, onSent: id => line.add(id, upstreamCall) }
  if (stateless) send.declares = declaredFor(exchange)
  if (meta !== undefined) send.meta = meta
  if (exchange.peer.revision.http.prime) send.onReleased = retryMs => upstreamCall.ctx.release(retryMs)
  if (progressToken(exchange) !== undefined)
    send.onProgress = ({ progress, ...more }) => upstreamCall.ctx.progress(progress, more)
  return { client, upstreamCall, send }
}

/** The text of a result that is a single text block and nothing else; it is serialised on a faster path. */
function plainText(result: CallToolResult): string | undefined {
  const { content, structuredContent, isError, _meta } = result
  if (structuredContent !== undefined || isError !== undefined || _meta !== undefined) return undefined
  if (!Array.isArray(content) || content.length !== 1) return undefined
  const [block] = content
  if (!isRecord(block) || block['type'] !== 'text' || typeof block['text'] !== 'string') return undefined
  for (const name in block) if (name !== 'type' && name !== 'text') return undefined
  return block['text']
}

/** Any other result as a reply. */
function asReply({ content, structuredContent, isError, _meta }: CallToolResult): Reply {
  const given: Mutable<ReplyParts> = { content: Array.isArray(content) ? content : [] }
  if (structuredContent !== undefined) given.structured = structuredContent
  if (isError !== undefined) given.isError = isError
  if (_meta !== undefined) given.meta = _meta
  // `_meta` was filtered before, so the checks for author-made replies are not needed.
  return new RuntimeReply(given)
}
