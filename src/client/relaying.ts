/**
 * The feature of programs between a server and its clients, such as the gateway: it passes questions of the server on
 * unchanged. Replaces elicitation, sampling and roots, and is loaded only with the option `relay`.
 */
import { defineClientFeature } from '../engine/client-feature.ts'
import type { Exchange } from '../engine/exchange.ts'
import type { Method } from '../engine/method.ts'
import type { Side } from '../engine/plan.ts'
import { elicitationSide } from '../features/mcp/elicitation/client.ts'
import { elicit, elicitationComplete } from '../features/mcp/elicitation/messages.ts'
import type { LogMessage } from '../features/mcp/logging/client.ts'
import { rootsApi, rootsSide } from '../features/mcp/roots/client.ts'
import { listRoots } from '../features/mcp/roots/messages.ts'
import { samplingSide } from '../features/mcp/sampling/client.ts'
import { createMessage } from '../features/mcp/sampling/messages.ts'
import { relatedTask } from '../features/mcp/tasks/messages.ts'
import type { Id, Params } from '../jsonrpc/message.ts'

/** The context of a question. */
export interface AskedFrom {
  readonly signal: AbortSignal
  /** The call on whose stream it arrived, where each call has a stream. */
  readonly within: Id | undefined
  /** The task that it belongs to, if it names one. */
  readonly task: string | undefined
}

/** Receives what the server asks and reports. */
export interface Relaying {
  ask(method: Method, params: Params, from: AskedFrom): Promise<unknown>
  log(message: LogMessage, within: Id | undefined): void
  elicitationDone(elicitationId: string): void
}

/** The handlers below are never called: `execute` replaces them. */
const nobody = (): never => {
  throw new TypeError('The question is relayed to the client')
}
const admit = (): void => {}

/**
 * Declares all kinds of questions in revisions that declare capabilities once per session. In stateless revisions each request
 * declares them, for the client on whose behalf it is made.
 */
export const relayingClient = defineClientFeature<{ readonly relay: Relaying }>({
  name: 'relaying',
  options: { relay: 'object' },
  setup: (kit, { relay }) => ({ client: rootsApi(kit), side: relayingSide(relay) }),
})

function relayingSide(relaying: Relaying): Side {
  const execute = (exchange: Exchange): Promise<unknown> =>
    relaying.ask(exchange.route.method, exchange.params, {
      signal: exchange.signal,
      within: exchange.within,
      task: relatedTask(exchange.meta),
    })
  const sides = [
    elicitationSide({ onElicit: nobody, url: true, admit, onComplete: admit }).side,
    samplingSide({ onSample: nobody, tools: true, context: undefined, admit }).side,
    rootsSide([]).side,
  ]
  return {
    errors: Object.assign({}, ...sides.map(({ errors }) => errors)),
    capabilities: (...about) =>
      about[0].era === 'request' ? {} : Object.assign({}, ...sides.map(({ capabilities }) => capabilities?.(...about))),
    handlers: [
      [elicit, { execute }],
      [createMessage, { execute }],
      [listRoots, { execute }],
      [elicitationComplete, ({ params }: Exchange) => relaying.elicitationDone(params['elicitationId'] as string)],
    ],
  }
}
