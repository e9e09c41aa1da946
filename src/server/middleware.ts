/** Middleware around every request, in the order in which it was added. */
import type { Exchange } from '../engine/exchange.ts'
import type { Layer } from '../engine/stages.ts'
import type { Awaitable, Params } from '../jsonrpc/message.ts'
import type { Context } from './context.ts'

/** One incoming request, as middleware sees it. */
export interface ServerCall {
  /** The canonical name of the method, whatever the wire calls it. */
  readonly method: string
  readonly params: Params
  readonly context: Context
}

/** Calls `next` with the call (or a changed one) to go on, and may change what comes of it. Lists come as opaque, ready bytes. */
export type ServerMiddleware = (call: ServerCall, next: (call: ServerCall) => Promise<unknown>) => Awaitable<unknown>

export function middlewareLayer(middleware: ServerMiddleware, context: (exchange: Exchange) => Context): Layer {
  return {
    stage: 'enter',
    run: (exchange, next) => {
      const call: ServerCall = { method: exchange.route.method.name, params: exchange.params, context: context(exchange) }
      return middleware(call, async changed => {
        exchange.params = changed.params
        return next()
      })
    },
  }
}
