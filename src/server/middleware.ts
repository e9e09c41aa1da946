/** Middleware around every request, in the order in which it was added. */

import type { CallContext } from '../engine/context.ts'
import type { Exchange } from '../engine/exchange.ts'
import type { Layer } from '../engine/stages.ts'
import type { ListPromptsResult } from '../features/mcp/prompts/messages.ts'
import type { ListResourcesResult, ListResourceTemplatesResult } from '../features/mcp/resources/messages.ts'
import type { ListToolsResult } from '../features/mcp/tools/messages.ts'
import type { Awaitable, Params } from '../jsonrpc/message.ts'
import type { Context } from './context.ts'

/** What comes of the requests that a server answers, by their canonical names. Lists are the same on every wire. */
export interface ServerResults {
  'tools/list': ListToolsResult
  'tools/call': unknown
  'prompts/list': ListPromptsResult
  'prompts/get': unknown
  'resources/list': ListResourcesResult
  'resources/templates/list': ListResourceTemplatesResult
  'resources/read': unknown
  'resources/subscribe': unknown
  'resources/unsubscribe': unknown
  'completion/complete': unknown
  'subscriptions/listen': unknown
  'logging/setLevel': unknown
  'tasks/get': unknown
  'tasks/list': unknown
  'tasks/update': unknown
  'tasks/result': unknown
  'tasks/cancel': unknown
  'tasks/input_response': unknown
  initialize: unknown
  'server/discover': unknown
  ping: unknown
  shutdown: unknown
}

/** One incoming request, as middleware sees it. */
export type ServerCall = { [M in keyof ServerResults]: CallOf<M> }[keyof ServerResults]

interface CallOf<M extends keyof ServerResults> {
  /** The canonical name of the method, whatever the wire calls it. */
  readonly method: M
  readonly params: Params
  readonly context: Context
}

/**
 * Calls `next` with the call (or a changed one) to go on, and may change what comes of it.
 *
 * @example
 * server.use(async (call, next) => {
 *   if (call.method !== 'tools/list') return next(call)
 *   const page = await next(call)
 *   return { ...page, tools: page.tools.filter(({ name }) => mayCall(call.context.principal, name)) }
 * })
 */
export type ServerMiddleware = (
  call: ServerCall,
  next: <C extends ServerCall>(call: C) => Promise<ServerResults[C['method']]>,
) => Awaitable<unknown>

export function middlewareLayer(middleware: ServerMiddleware, context: (exchange: Exchange) => CallContext): Layer {
  return {
    stage: 'enter',
    run: (exchange, next) => {
      const { params } = exchange
      // The routes that a server has are those of its features: the type above names them all.
      const method = exchange.route.method.name as ServerCall['method']
      const call = { method, params, context: context(exchange) as Context } as ServerCall
      return middleware(call, async <C extends ServerCall>(changed: C) => {
        exchange.params = changed.params
        return (await next()) as ServerResults[C['method']]
      })
    },
  }
}
