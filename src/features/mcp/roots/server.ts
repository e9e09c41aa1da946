/** The server's side of roots: ask for them, hear that they changed. */
import type { CallOptions } from '../../../engine/calls.ts'
import { type CallContext, exchangeOf, ignoreUnhandledRejection } from '../../../engine/context.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import type { Side } from '../../../engine/plan.ts'
import { defineServerFeature } from '../../../engine/server-feature.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import { isRoots, listRoots, type Root, rootsChanged } from './messages.ts'

/** Asks the client for its roots on behalf of a call. */
export async function askRoots(exchange: Exchange, options: CallOptions & { key?: string } = {}): Promise<readonly Root[]> {
  const { roots } = await exchange.ask(
    listRoots,
    {},
    {
      ...options,
      kind: 'roots',
      requires: { roots: {} },
      allowed: isRecord(exchange.peer.capabilities['roots']),
      accepts: isRoots,
    },
  )
  return roots
}

/** The roots of the client. */
export interface RootsContext {
  /**
   * Asks the client for its roots: the folders that the user works in. Throws if the client has none to declare.
   * @example const folders = (await ctx.roots()).map(({ uri }) => uri)
   */
  roots(
    options?: CallOptions & {
      /** Names the question, if a call asks several in an order that may change. Default: its number. */
      key?: string
    },
  ): Promise<readonly Root[]>
}

/** The folders of clients: `ctx.roots`. */
export const rootsFeature = defineServerFeature<object>({
  name: 'roots',
  context: {
    roots(options) {
      return ignoreUnhandledRejection(askRoots(exchangeOf(this), options))
    },
  } satisfies RootsContext & ThisType<CallContext>,
  setup: () => ({ sides: [rootsServer()] }),
})

function rootsServer(): Side {
  const told = ({ engine, conversation }: Exchange): void => {
    for (const fn of engine.onRoots) fn(conversation)
  }
  return { handlers: [[rootsChanged, told]] }
}
