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
import { type Reply, reply } from '../../features/mcp/tools/result.ts'
import { ConnectionError } from '../../jsonrpc/connection.ts'
import { McpError } from '../../jsonrpc/error.ts'
import type { Params } from '../../jsonrpc/message.ts'
import { Context } from '../../server/context.ts'
import type { Proxied } from '../catalog.ts'
import type { Around } from '../trust/around.ts'
import type { GatewayCall } from '../trust/call.ts'
import type { Upstreams, Use } from '../upstreams/upstreams.ts'
import type { Parking } from './desk.ts'
import { absent, failureAt } from './failures.ts'
import { Flight, flightKey } from './flight.ts'
import type { Line } from './line.ts'
import { logMeta, passedMeta } from './meta.ts'
import { declaredFor } from './questions.ts'

/** What one call of an upstream is made with. */
interface Leg {
  readonly client: Client
  readonly line: Line
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

  async call({ upstream, own, exposed }: Proxied, tool: Tool, args: Params, ctx: Context): Promise<Reply> {
    const [exchange] = Context.parts(ctx)
    const client = { name: ctx.client.info?.name, principal: ctx.principal }
    const again = exchange.carried?.[flightKey] !== undefined
    const call: GatewayCall = { upstream, tool: own, exposed, args, ctx, client, again }
    return asReply(await this.#around(call, () => this.#call(call, tool)))
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
    const turn = line.turns.enter(exchange.conversation, exchange.signal)
    if (turn !== undefined) await turn
    const flight = new Flight(upstream, ctx, this.#parking, use.waits)
    try {
      const leg = await legOf(use, flight, exchange, ctx)
      if (exchange.peer.revision.asks !== 'result') return await start(leg)
      return await flight.begin(() => start(leg).finally(() => over(line, flight)))
    } catch (error) {
      if (error instanceof ConnectionError) this.#upstreams().doubt(upstream, use.client, error)
      throw failureAt(upstream, error, harmless, exchange)
    } finally {
      if (exchange.peer.revision.asks !== 'result') over(line, flight)
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

function over(line: Line, flight: Flight): void {
  line.remove(flight)
  line.turns.leave(flight.owner)
}

async function legOf({ client, line }: Use, flight: Flight, exchange: Exchange, ctx: Context): Promise<Leg> {
  const onSent = (id: string | number): void => line.add(id, flight)
  const wanted = wantedLevel(exchange)
  const stateless = Client.caller(client).session.opened.revision.era === 'request'
  if (!stateless && wanted !== undefined) await line.level(client, wanted)
  const passed = passedMeta(exchange)
  const meta = stateless ? logMeta(passed, exchange, wanted) : passed
  const send: SendOptions = {
    signal: exchange.signal,
    onSent,
    ...(meta !== undefined && { meta }),
    ...(stateless && { declares: declaredFor(exchange) }),
    ...(exchange.peer.revision.http.prime && { onReleased: retryMs => flight.ctx.release(retryMs) }),
    ...(progressToken(exchange) !== undefined && {
      onProgress: ({ progress, ...more }) => (flight.ctx ?? ctx).progress(progress, more),
    }),
  }
  return { client, line, flight, send }
}

function asReply({ content, structuredContent, isError, _meta }: CallToolResult): Reply {
  return reply({
    content: Array.isArray(content) ? content : [],
    ...(structuredContent !== undefined && { structured: structuredContent }),
    ...(isError !== undefined && { isError }),
    ...(_meta !== undefined && { meta: _meta }),
  })
}
