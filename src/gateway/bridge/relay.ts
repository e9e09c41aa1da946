/** Passing on what a client asks to the upstream that can do it, and what comes of it back. */
import { Client } from '../../client/client.ts'
import { rawResult } from '../../client/tool-calls.ts'
import type { SendOptions } from '../../engine/calls.ts'
import type { Exchange } from '../../engine/exchange.ts'
import type { Method } from '../../engine/method.ts'
import { type Completion, complete } from '../../features/mcp/completion/messages.ts'
import type { ResourceContents } from '../../features/mcp/content/messages.ts'
import { isFinal } from '../../features/mcp/input-required/client.ts'
import { wantedLevel } from '../../features/mcp/logging/server.ts'
import { progressToken } from '../../features/mcp/progress/server.ts'
import { type GetPromptResult, getPrompt } from '../../features/mcp/prompts/messages.ts'
import { type ReadResourceResult, readResource } from '../../features/mcp/resources/messages.ts'
import type { CallToolResult, Tool } from '../../features/mcp/tools/messages.ts'
import { type Reply, type ReplyParts, reply } from '../../features/mcp/tools/result.ts'
import { ConnectionError } from '../../jsonrpc/connection.ts'
import { McpError } from '../../jsonrpc/error.ts'
import { isRecord, type Params } from '../../jsonrpc/message.ts'
import { Context } from '../../server/context.ts'
import type { Proxied } from '../catalog.ts'
import type { Around } from '../trust/around.ts'
import type { GatewayCall } from '../trust/call.ts'
import type { Upstreams, Use } from '../upstreams/upstreams.ts'
import type { Parking } from './desk.ts'
import { absent, failureAt } from './failures.ts'
import { Flight, flightKey } from './flight.ts'
import { logMeta, passedMeta } from './meta.ts'
import { declaredFor } from './questions.ts'

/** What one call of an upstream is made with. */
interface Leg {
  readonly client: Client
  readonly flight: Flight
  readonly send: SendOptions
}

const read: ReadonlySet<string> = new Set([readResource.name, getPrompt.name, complete.name])

export class Relay {
  readonly #upstreams: () => Upstreams
  readonly #parking: Parking
  readonly #around: Around

  constructor(upstreams: () => Upstreams, parking: Parking, around: Around) {
    this.#upstreams = upstreams
    this.#parking = parking
    this.#around = around
  }

  async call({ upstream, own, exposed }: Proxied, tool: Tool, args: Params, ctx: Context): Promise<Reply | string> {
    const [exchange] = Context.parts(ctx)
    const client = { name: ctx.client.info?.name, principal: ctx.principal }
    const again = exchange.carried?.[flightKey] !== undefined
    const call: GatewayCall = { upstream, tool: own, exposed, args, ctx, client, again }
    const result = await this.#around(call, () => this.#call(call, tool))
    return (tool.outputSchema === undefined ? plainText(result) : undefined) ?? asReply(result)
  }

  #call({ upstream, tool: name, args, ctx }: GatewayCall, tool: Tool): Promise<CallToolResult> {
    const { annotations: hints } = tool
    const harmless = hints?.readOnlyHint === true || hints?.idempotentHint === true
    const options = ctx.task === undefined ? plain : asTask
    return this.#through(upstream, ctx, harmless, ({ client, flight, send }) =>
      rawResult(Client.caller(client), name, args, options, send, flight),
    )
  }

  async read({ upstream, own, exposed }: Proxied, ctx: Context): Promise<readonly ResourceContents[]> {
    const [exchange] = Context.parts(ctx)
    const prefix = exposed.slice(0, exposed.length - own.length)
    const uri = (exchange.params['uri'] as string).slice(prefix.length)
    const { contents } = await this.#ask<ReadResourceResult>(upstream, ctx, readResource, { uri })
    return prefix === '' ? contents : contents.map(part => ({ ...part, uri: `${prefix}${part.uri}` }))
  }

  prompt({ upstream, own }: Proxied, values: Readonly<Record<string, string>>, ctx: Context): Promise<GetPromptResult> {
    return this.#ask<GetPromptResult>(upstream, ctx, getPrompt, { name: own, arguments: values })
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
      return answer.completion
    } catch (error) {
      // The first wire cannot say that it has no suggestions.
      if (error instanceof McpError && error.code === -32601) return { values: [] }
      throw error
    }
  }

  #ask<R>(upstream: string, ctx: Context, method: Method, params: Params): Promise<R> {
    return this.#through(upstream, ctx, read.has(method.name), async ({ client, flight, send }) => {
      const { session } = Client.caller(client)
      const again = (more: Params): Promise<unknown> => session.request(method, { ...params, ...more }, send)
      const first = await (flight.begun() ?? session.request(method, params, send))
      return (isFinal(first) ? first : await flight.drive(first, again)) as R
    })
  }

  /** `harmless`: made again it would do no more than made once. */
  async #through<R>(upstream: string, ctx: Context, harmless: boolean, start: (leg: Leg) => Promise<R>): Promise<R> {
    const [exchange] = Context.parts(ctx)
    const parked = exchange.carried?.[flightKey]
    if (parked !== undefined) return this.#rejoin(parked, upstream, ctx, harmless) as Promise<R>
    const use = this.#use(upstream)
    const { line } = use
    const turn = line.turns.enter(exchange.conversation, exchange)
    if (turn !== undefined) await turn
    const flight = new Flight(upstream, ctx, this.#parking, use.waits)
    try {
      const levelled = levelFor(use, exchange)
      if (levelled !== undefined) await levelled
      const made = start(legOf(use, flight, exchange))
      return await (exchange.peer.revision.asks === 'result' ? flight.begin(made, line) : made)
    } catch (error) {
      if (error instanceof ConnectionError) this.#upstreams().doubt(upstream, use.client, error)
      throw failureAt(upstream, error, harmless, exchange)
    } finally {
      if (exchange.peer.revision.asks !== 'result') line.over(flight)
    }
  }

  async #rejoin(name: string, upstream: string, ctx: Context, harmless: boolean): Promise<unknown> {
    try {
      return await this.#parking.rejoin(name, ctx)
    } catch (error) {
      throw failureAt(upstream, error, harmless, Context.parts(ctx)[0])
    }
  }

  /** Why an upstream cannot be called now. It is tried at once. */
  refusal(upstream: string): Error {
    const use = this.#upstreams().use(upstream)
    return absent(upstream, 'client' in use ? undefined : use.why)
  }

  #use(name: string): Use {
    const use = this.#upstreams().use(name)
    if ('client' in use) return use
    throw absent(name, use.why)
  }
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

function legOf({ client, line }: Use, flight: Flight, exchange: Exchange): Leg {
  const stateless = isStateless(client)
  const passed = passedMeta(exchange)
  const meta = stateless ? logMeta(passed, exchange, wantedLevel(exchange)) : passed
  const send: Made<SendOptions> = { behalf: exchange, onSent: id => line.add(id, flight) }
  if (stateless) send.declares = declaredFor(exchange)
  if (meta !== undefined) send.meta = meta
  if (exchange.peer.revision.http.prime) send.onReleased = retryMs => flight.ctx.release(retryMs)
  if (progressToken(exchange) !== undefined) send.onProgress = ({ progress, ...more }) => flight.ctx.progress(progress, more)
  return { client, flight, send }
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
  return reply(given)
}
