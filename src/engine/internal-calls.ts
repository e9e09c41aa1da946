/** Calls that the runtime makes on itself for someone who is not there: through the same layers, with nobody to be answered or asked. */
import type { Caller, Lane } from '../jsonrpc/connection.ts'
import { McpError } from '../jsonrpc/error.ts'
import type { Params } from '../jsonrpc/message.ts'
import type { Capabilities } from '../revisions/index.ts'
import { Conversation } from './conversation.ts'
import type { Engine } from './engine.ts'
import { compensation, Exchange } from './exchange.ts'
import { type Method, wireName } from './method.ts'
import { ownedBy } from './owner.ts'

interface InternalCallOptions {
  /** As whom. */
  readonly caller: Caller
  /** Whose it is, where the caller does not say. */
  readonly owner: string
  /** What was allowed to it beyond, or instead of, what its principal has. */
  readonly scopes?: readonly string[] | undefined
}

/** Nobody hears what is said here. */
const nowhere: Lane = { closed: true, send: () => {}, end: () => {}, onClose: () => {} }

/** What the caller of an exchange would get for another request, made now, on the same wire: canonical, and nobody is told. */
export async function requestInternally<P, R>(
  { engine, conversation, caller, peer }: Pick<Exchange, 'engine' | 'conversation' | 'caller' | 'peer'>,
  method: Method<P, R>,
  params: P,
): Promise<R> {
  const route = engine.plan.route(peer.revision, wireName(method, peer.revision))
  if (route === undefined) throw new McpError('method-not-found', `Method ${method.name} is not available on this server`)
  const inner = new Exchange(engine, conversation, caller, nowhere, route, peer, 0, params as Params)
  return (await route.run(inner)) as R
}

/** The same for a caller who made no request of the protocol: at the newest wire, with these capabilities. */
export function requestAs<P, R>(
  engine: Engine,
  method: Method<P, R>,
  params: P,
  caller: Caller,
  capabilities: Capabilities,
): Promise<R> {
  const peer = { revision: engine.fallback, capabilities, info: undefined, logLevel: undefined }
  return requestInternally({ engine, conversation: new Conversation(caller, undefined, undefined), caller, peer }, method, params)
}

/** Gives what the handler's layers gave; throws what they threw. */
export async function callInternally<P>(
  engine: Engine,
  method: Method<P>,
  params: P,
  { caller, owner, scopes }: InternalCallOptions,
): Promise<{ readonly exchange: Exchange; readonly result: unknown }> {
  const revision = engine.fallback
  const route = engine.plan.route(revision, wireName(method, revision))
  if (route === undefined) throw new McpError('method-not-found', `Method ${method.name} is not available on this server`)
  const conversation = new Conversation(caller, undefined, undefined)
  ownedBy(conversation, owner)
  const peer = { revision, capabilities: {}, info: undefined, logLevel: undefined }
  const exchange = new Exchange(engine, conversation, caller, nowhere, route, peer, 0, params as Params)
  exchange.set(compensation, { scopes })
  const value = await route.run(exchange)
  return { exchange, result: exchange.raw && route.finish !== undefined ? await route.finish(exchange, value) : value }
}
