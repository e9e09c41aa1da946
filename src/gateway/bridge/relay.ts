/** Passing on what a client asks to the upstream that can do it, and what comes of it back. */
import { Client } from '../../client/client.ts'
import type { SendOptions } from '../../engine/calls.ts'
import { exchangeOf } from '../../engine/context.ts'
import { carried, type Exchange } from '../../engine/exchange.ts'
import { type Method, NS } from '../../engine/method.ts'
import { keptOf } from '../../engine/reserved.ts'
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
import type { Proxied } from '../proxies.ts'
import type { CallWrapper, GatewayCall } from '../trust/call-wrapper.ts'
import type { Upstreams, Use } from '../upstreams/upstreams.ts'
import { failureAt, upstreamAbsent } from './failures.ts'
import type { ParkedCalls } from './parked-calls.ts'
import { declaredFor, visits } from './questions.ts'
import { plainFor, plainMeta, resultMeta, returned, returnedMessages, type Told } from './returns.ts'
import type { States } from './states.ts'
import { UpstreamCall, upstreamCallKey } from './upstream-call.ts'
import type { UpstreamConnection } from './upstream-connection.ts'

/** Undefined where there is nothing to pass on, which is the most common. */
function passedMeta({ meta }: Exchange): Params | undefined {
  return meta && keptOf(meta, isPassed)
}

/** Members of the envelope and extensions of ours are not passed on. */
function isPassed(key: string): boolean {
  return !(envelopeKeys.has(key) || key === 'progressToken' || key === relatedTaskKey || key.startsWith(NS))
}

/** Where each request says which log it wants: what this caller wants, and what a session hears that never said. */
function logMeta(passed: Params | undefined, { peer }: Exchange, wanted: LogLevel | undefined): Params | undefined {
  const level = wanted ?? (peer.revision.logLevelBy === 'session' ? 'info' : undefined)
  if (level === undefined) return passed
  return passed === undefined ? levelMeta(level) : { ...passed, [logLevelKey]: level }
}

const levelMetas = new Map<LogLevel, Params>()

/** One object for each level, frozen, so that what is written of it is written once. */
function levelMeta(level: LogLevel): Params {
  const known = levelMetas.get(level) ?? Object.freeze({ [logLevelKey]: level })
  levelMetas.set(level, known)
  return known
}

/** What one call of an upstream is made with. */
interface Leg {
  readonly client: Client
  readonly upstreamCall: UpstreamCall
  readonly send: SendOptions
}

/** What is to be completed of a template. */
interface Completing {
  readonly own: string
  readonly argument: { readonly name: string }
  readonly filled: Readonly<Record<string, string>>
}

const read: ReadonlySet<string> = new Set([readResource.name, getPrompt.name, complete.name])

/** What the relay needs of the gateway. */
interface RelayPort {
  /** The gateway, as it names itself. */
  readonly name: string
  readonly parking: ParkedCalls
  readonly wrap: CallWrapper
  readonly states: States
  upstreams(): Upstreams
  /** The address under which a caller reads what an upstream calls so. */
  address(upstream: string, uri: string, exchange: Exchange): string
  /** Whether a caller may read what an upstream calls so. */
  readable(upstream: string, uri: string, exchange: Exchange): boolean
}

/** Passes calls, reads, prompts and completions on to upstreams, and their results back. */
export class Relay {
  readonly #port: RelayPort
  /** What was said in `_meta` of results whose handlers give their content alone. */
  readonly #metas = new WeakMap<Exchange, Params>()

  constructor(port: RelayPort) {
    this.#port = port
  }

  /** Adds to a result what its server said in `_meta`. */
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

  /** Calls a tool at its upstream. */
  async call({ upstream, own, exposed }: Proxied, tool: Tool, args: Params, ctx: Context): Promise<Reply | string> {
    const exchange = exchangeOf(ctx)
    const client = { name: ctx.client.info?.name, principal: ctx.principal }
    const again = exchange.get(carried)?.[upstreamCallKey] !== undefined
    const call: GatewayCall = { upstream, tool: own, exposed, args, ctx, client, again }
    const told = await this.#port.wrap(call, () => this.#call(call, tool))
    if (told.isError === true) adviseWait(exchange, told)
    const result = plainFor(exchange.peer, told)
    return (tool.outputSchema === undefined ? plainText(result) : undefined) ?? asReply(result)
  }

  async #call({ upstream, tool: name, args, ctx }: GatewayCall, tool: Tool): Promise<CallToolResult> {
    const exchange = exchangeOf(ctx)
    const { states } = this.#port
    const { annotations: hints } = tool
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

  /** Reads a resource, under the address that its upstream has for it. */
  async read({ upstream, own, exposed }: Proxied, ctx: Context): Promise<readonly ResourceContents[]> {
    const exchange = exchangeOf(ctx)
    const prefix = exposed.slice(0, exposed.length - own.length)
    const uri = (exchange.params['uri'] as string).slice(prefix.length)
    const { contents: all } = await this.#ask<ReadResourceResult>(upstream, ctx, readResource, { uri })
    // A folder may hold what is not to be read by itself.
    const contents = all.filter(part => part.uri === uri || this.#port.readable(upstream, part.uri, exchange))
    return prefix === '' ? contents : contents.map(part => ({ ...part, uri: `${prefix}${part.uri}` }))
  }

  /** Gets a prompt from its upstream. */
  async prompt({ upstream, own }: Proxied, values: Readonly<Record<string, string>>, ctx: Context): Promise<GetPromptResult> {
    const exchange = exchangeOf(ctx)
    const result = await this.#ask<GetPromptResult>(upstream, ctx, getPrompt, { name: own, arguments: values })
    const { messages } = result
    if (!Array.isArray(messages)) return result
    return { ...result, messages: returnedMessages(messages, this.#told(upstream, exchange)) }
  }

  async complete(
    { upstream, own }: Proxied,
    kind: 'prompt' | 'template',
    argument: { readonly name: string; readonly value: string },
    filled: Readonly<Record<string, string>>,
    ctx: Context,
  ): Promise<Completion> {
    const ref = kind === 'prompt' ? { type: 'ref/prompt', name: own } : { type: 'ref/resource', uri: own }
    const context = Object.keys(filled).length === 0 ? {} : { context: { arguments: filled } }
    try {
      const answer = await this.#ask<{ completion: Completion }>(upstream, ctx, complete, { ref, argument, ...context })
      return kind === 'template' ? this.#readable(answer.completion, upstream, { own, argument, filled }, ctx) : answer.completion
    } catch (error) {
      // The first wire cannot say that it has no suggestions.
      if (error instanceof McpError && error.code === -32601) return { values: [] }
      throw error
    }
  }

  /** Without values that would name what the caller may not read. */
  #readable(completion: Completion, upstream: string, { own, argument: { name }, filled }: Completing, ctx: Context): Completion {
    const exchange = exchangeOf(ctx)
    const { values } = completion
    if (!Array.isArray(values)) return completion
    const shown = values.filter(value =>
      this.#port.readable(upstream, expandTemplate(own, { ...filled, [name]: String(value) }), exchange),
    )
    // How many there are of what is left out is not told either.
    return shown.length === values.length ? completion : { values: shown }
  }

  /** What this caller is told of addresses in an answer. */
  #told(upstream: string, exchange: Exchange): Told {
    const { address, readable } = this.#port
    return { address: uri => address(upstream, uri, exchange), readable: uri => readable(upstream, uri, exchange) }
  }

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

  /** `harmless`: made again it would do no more than made once. */
  async #through<R>(upstream: string, ctx: Context, harmless: boolean, start: (leg: Leg) => Promise<R>): Promise<R> {
    const exchange = exchangeOf(ctx)
    const parked = exchange.get(carried)?.[upstreamCallKey]
    if (parked !== undefined) return this.#rejoin(parked, upstream, ctx, harmless) as Promise<R>
    const use = this.#use(upstream)
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

  /** The caller comes back with answers to a call that is parked. */
  async #rejoin(name: string, upstream: string, ctx: Context, harmless: boolean): Promise<unknown> {
    try {
      return await this.#port.parking.rejoin(name, ctx)
    } catch (error) {
      throw failureAt(upstream, error, harmless, exchangeOf(ctx))
    }
  }

  /** Why an upstream cannot be called now. It is tried at once. */
  refusal(upstream: string): Error {
    const use = this.#port.upstreams().use(upstream)
    return upstreamAbsent(upstream, 'client' in use ? undefined : use.why)
  }

  /** The connection to an upstream. Throws where it is down. */
  #use(name: string): Use {
    const use = this.#port.upstreams().use(name)
    if ('client' in use) return use
    throw upstreamAbsent(name, use.why)
  }
}

/** So often a caller is sent to pages for one call. */
const mostVisits = 4

/** Makes a call, and once more when its caller goes to the pages that its server wants visited first: nothing was done before. */
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

/** Who is told by its server to wait reads it in a header too, where there are some. */
function adviseWait(exchange: Exchange, { _meta }: CallToolResult): void {
  const waitMs = fromWire(_meta?.[problemExtension])?.retryAfter
  if (waitMs !== undefined) tellWait(exchange, waitMs)
}

/** What a result says beside itself. */
function metaOf(result: object): unknown {
  return '_meta' in result ? result._meta : undefined
}

function adding(send: SendOptions, meta: Params): SendOptions {
  return { ...send, meta: { ...send.meta, ...meta } }
}

const plain = {}
const asTask = { task: true }

function isStateless(client: Client): boolean {
  return Client.caller(client).session.opened.revision.era === 'request'
}

/** Where the log has a level for the whole session, it is told before the call. */
function levelFor({ client, line }: Use, exchange: Exchange): Promise<void> | undefined {
  const wanted = wantedLevel(exchange)
  return wanted === undefined || isStateless(client) ? undefined : line.level(client, wanted)
}

type Made<T> = { -readonly [K in keyof T]: T[K] }

/** Only members that matter are set, so that most calls carry few. */
function legOf({ client, line }: Use, upstreamCall: UpstreamCall, exchange: Exchange): Leg {
  const stateless = isStateless(client)
  const passed = passedMeta(exchange)
  const meta = stateless ? logMeta(passed, exchange, wantedLevel(exchange)) : passed
  const send: Made<SendOptions> = { behalf: exchange, onSent: id => line.add(id, upstreamCall) }
  if (stateless) send.declares = declaredFor(exchange)
  if (meta !== undefined) send.meta = meta
  if (exchange.peer.revision.http.prime) send.onReleased = retryMs => upstreamCall.ctx.release(retryMs)
  if (progressToken(exchange) !== undefined)
    send.onProgress = ({ progress, ...more }) => upstreamCall.ctx.progress(progress, more)
  return { client, upstreamCall, send }
}

/** The most common result is a text and nothing else, which is written by a shorter way. */
function plainText(result: CallToolResult): string | undefined {
  const { content, structuredContent, isError, _meta } = result
  if (structuredContent !== undefined || isError !== undefined || _meta !== undefined) return undefined
  if (!Array.isArray(content) || content.length !== 1) return undefined
  const [block] = content
  if (!isRecord(block) || block['type'] !== 'text' || typeof block['text'] !== 'string') return undefined
  for (const name in block) if (name !== 'type' && name !== 'text') return undefined
  return block['text']
}

function asReply({ content, structuredContent, isError, _meta }: CallToolResult): Reply {
  const given: Made<ReplyParts> = { content: Array.isArray(content) ? content : [] }
  if (structuredContent !== undefined) given.structured = structuredContent
  if (isError !== undefined) given.isError = isError
  if (_meta !== undefined) given.meta = _meta
  // What the gateway adds is in it, and what the upstream said was filtered before.
  return new RuntimeReply(given)
}
