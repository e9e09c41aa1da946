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

/** What roots add to the context of a call. */
export interface RootsContext {
  /** Asks which folders the client works in. */
  roots(options?: CallOptions & { key?: string }): Promise<readonly Root[]>
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
