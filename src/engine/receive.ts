/**
 * How a message walks, as code, top to bottom:
 *   frame → message → (a response settles its waiter) → revision → route → checked params → layers and handler → outcome → lane
 */
import type { Caller, Lane } from '../jsonrpc/connection.ts'
import { McpError } from '../jsonrpc/error.ts'
import { clip } from '../jsonrpc/limits.ts'
import { type Id, idLength, isId, isRecord, isThenable, type Params } from '../jsonrpc/message.ts'
import { parse, TooDeep } from '../jsonrpc/parse.ts'
import { checkNameHeader, openEnvelope, type Peer, type Revision, revisionOfMessage } from '../revisions/index.ts'
import { receiveBatch } from './batch.ts'
import type { Conversation } from './conversation.ts'
import type { Engine } from './engine.ts'
import { Exchange } from './exchange.ts'
import { failBroken, failUnread, likelyPeer, readable, requestId, unknownPeer } from './malformed-messages.ts'
import { failureOf } from './outcome.ts'
import { openParams } from './plan.ts'

/** One inbound message with its way back. `conversation` is undefined for an exchange that has not been placed yet. */
export interface Delivery {
  readonly message: unknown
  readonly caller: Caller
  readonly reply: Lane
  readonly conversation: Conversation | undefined
  readonly status?: number | undefined
  /** The request of ours on whose stream it came, where each has one. */
  readonly within?: Id | undefined
  /** Came in an array: its own wire must have those. */
  readonly batched?: boolean
}

/** How long nothing more is read from a server of which too many calls are in flight. */
const busyMs = 20

/** Receives the text of one message, or of one array of them. */
export function receiveFrame(
  engine: Engine,
  text: string,
  caller: Caller,
  reply: Lane,
  conversation?: Conversation,
  status?: number,
  within?: Id,
): void {
  let message: unknown
  try {
    message = parse(text, engine.limits)
  } catch (error) {
    const rest = error instanceof TooDeep ? readable(engine, conversation, text) : undefined
    if (rest !== undefined) return receive(engine, { message: rest, caller, reply, conversation, status, within })
    failUnread(conversation, text, error as McpError)
    return refuseMalformed(engine, reply, undefined, error, likelyPeer(engine, caller, conversation))
  }
  receive(engine, { message, caller, reply, conversation, status, within })
}

/** Receives one message that was parsed. */
export function receive(engine: Engine, delivery: Delivery): void {
  const { message, caller, reply } = delivery
  if (Array.isArray(message)) return receiveBatch(engine, delivery, message)
  let id: Id | undefined
  let revision: Revision | undefined
  let peer: Peer | undefined
  try {
    if (!isRecord(message) || message['jsonrpc'] !== '2.0') {
      const error = malformed('an object with "jsonrpc":"2.0"')
      failBroken(delivery.conversation, message, error)
      throw error
    }
    const method = message['method']
    if (method === undefined) return settle(engine, message, delivery)
    if (typeof method !== 'string') throw malformed('a string as method')
    // A method makes it a request or a notification, a result or an error a response. Nobody may choose for its sender.
    if (message['result'] !== undefined || message['error'] !== undefined)
      throw malformed('either a method, or a result or an error, not both')
    if (message['id'] !== undefined) {
      if (!isId(message['id'])) throw malformed(`an id that is an integer or a string of at most ${idLength} characters`)
      id = message['id']
    }
    const params = message['params']
    // Arrays are legal JSON-RPC, but no method here takes them.
    if (params !== undefined && !isRecord(params)) throw new McpError('invalid-request', 'params must be an object')
    const conversation = engine.sessionLookup.conversationOf(delivery, params)
    revision = revisionOfMessage(method, params, caller, engine.spoken, conversation.peer?.revision)
    if (delivery.batched === true && !revision.batch)
      throw new McpError('invalid-request', `Revision ${revision.id} has no batches`)
    engine.sessionLookup.check(conversation, revision, method)
    // Notifications, and whatever a server sends, carry no envelope.
    const bare = id === undefined || engine.role === 'client' || revision.era === 'session'
    peer = bare ? known(revision, conversation) : openEnvelope(revision, method, params, caller)
    const route = id === undefined ? engine.plan.notificationRoute(revision, method) : engine.plan.route(revision, method)
    // On stateless wires nothing that a server sends is answered.
    const unasked = engine.role === 'client' && id !== undefined && revision.era === 'request'
    if (route === undefined || unasked) return unrouted(engine, method, peer, delivery, id)
    if (revision.era === 'request' && route.method.nameParam !== undefined)
      checkNameHeader(params?.[route.method.nameParam], caller)
    const checked = openParams(route, params)
    dispatch(engine, new Exchange(engine, conversation, caller, reply, route, peer, id, checked, delivery.within))
  } catch (error) {
    const named = isRecord(message) ? message['method'] : undefined
    if (typeof named === 'string') for (const tell of engine.onRefuse) tell(named, (message as Params)['params'], error)
    const unasked = id === undefined && isRecord(message) && typeof message['method'] === 'string' && message['id'] === undefined
    if (unasked && caller.carrier !== 'http') engine.trace('notification-refused', error, caller)
    else
      refuseMalformed(
        engine,
        reply,
        id ?? requestId(message),
        error,
        peer ?? likelyPeer(engine, caller, delivery.conversation, message, revision),
        caller,
      )
  }
}

/** What the session remembers of the other end. */
function known(revision: Revision, { peer }: Conversation): Peer {
  return peer?.revision === revision ? peer : unknownPeer(revision)
}

/** A method that the wire does not have, or a request where a notification belongs. */
function unrouted(engine: Engine, method: string, peer: Peer, { reply }: Delivery, id: Id | undefined): void {
  if (id === undefined) {
    engine.trace('unknown-notification', clip(method))
    return reply.end()
  }
  const error = new McpError('method-not-found', `Method "${clip(method)}" is not available at revision ${peer.revision.id}`)
  refuseMalformed(engine, reply, id, error, peer)
}

function notified(engine: Engine, exchange: Exchange): void {
  const failed = (error: unknown): void => engine.trace('notification-failed', error, exchange.caller)
  try {
    Promise.resolve(exchange.route.run(exchange)).catch(failed)
  } catch (error) {
    failed(error)
  }
  exchange.reply.end()
}

/** Runs the handler; what answers at once is not made to wait a tick. */
function dispatch(engine: Engine, exchange: Exchange): void {
  if (exchange.id === undefined) return notified(engine, exchange)
  const refusal = engine.inFlight.refusal(exchange)
  if (refusal !== undefined) {
    // A server that asks more than can be answered is read more slowly: a client has others to listen to.
    if (engine.role === 'client') exchange.conversation.connection?.rest?.(busyMs)
    return engine.fail(exchange, refusal)
  }
  try {
    const result = exchange.route.run(exchange)
    if (!isThenable(result)) return finish(engine, exchange, result)
    engine.began(exchange)
    result.then(
      value => finish(engine, exchange, value),
      error => failureResult(engine, exchange, error),
    )
  } catch (error) {
    failureResult(engine, exchange, error)
  }
}

/** What the handler gave becomes the result, unless layers have seen to that. */
function finish(engine: Engine, exchange: Exchange, value: unknown): void {
  const { finish } = exchange.route
  if (!exchange.raw || finish === undefined) return engine.succeed(exchange, value)
  exchange.raw = false
  try {
    const result = finish(exchange, value)
    if (!isThenable(result)) return engine.succeed(exchange, result)
    engine.began(exchange)
    result.then(
      done => engine.succeed(exchange, done),
      error => engine.fail(exchange, error),
    )
  } catch (error) {
    engine.fail(exchange, error)
  }
}

function failureResult(engine: Engine, exchange: Exchange, error: unknown): void {
  const { failureResult } = exchange.route
  if (!exchange.raw || failureResult === undefined) return engine.fail(exchange, error)
  exchange.raw = false
  try {
    engine.succeed(exchange, failureResult(exchange, error))
  } catch (still) {
    engine.fail(exchange, still)
  }
}

function settle(engine: Engine, message: Readonly<Record<string, unknown>>, delivery: Delivery): void {
  const conversation = delivery.conversation ?? engine.sessionLookup.answering(delivery)
  if (conversation.calls?.settle(message, delivery.status) !== true) {
    if (!('result' in message) && !('error' in message)) throw malformed('a method, a result or an error')
    if (engine.sharing !== undefined && conversation.session !== undefined)
      return engine.sharing.passOn(conversation, message, delivery.reply)
    engine.trace('answer-to-nothing', isId(message['id']) ? clip(String(message['id'])) : typeof message['id'])
  }
  delivery.reply.end()
}

/** Refuses what has become no exchange: before its method is known, its parameters are read, or its call is begun. */
export function refuseMalformed(
  engine: Engine,
  reply: Lane,
  id: Id | undefined,
  error: unknown,
  peer: Peer,
  caller?: Caller,
): void {
  refuse(engine, reply, id, engine.explainTo(peer, error), peer.revision, caller)
}

/** Answers with a failure, where the wire has an answer for it. */
export function refuse(
  engine: Engine,
  reply: Lane,
  id: Id | undefined,
  error: unknown,
  revision: Revision,
  caller?: Caller,
  about?: Readonly<Record<string, unknown>>,
  advice?: Readonly<Record<string, string>>,
): void {
  const failure = failureOf(error)
  if (failure.kind === 'internal') {
    const cause = failure.cause ?? failure
    engine.trace('internal', about === undefined ? cause : { ...about, error: cause }, caller)
  }
  // On stateless wires only clients ask, and nothing that a server sends is answered.
  if (engine.role === 'client' && (id === undefined || revision.era === 'request')) {
    engine.trace('message-refused', failure, caller)
    return reply.end()
  }
  const status = engine.outcome.status(failure, revision, caller)
  const hints = advice === undefined ? status : { ...status, headers: { ...advice, ...status.headers } }
  // What nobody reads an answer to is refused by the status, or not at all.
  const unread = id === undefined && hints.status === undefined
  reply.send(engine.outcome.failure(id, failure, revision), unread ? { ...hints, status: 400 } : hints)
}

function malformed(expected: string): McpError {
  return new McpError('invalid-request', `Not a JSON-RPC message: expected ${expected}`)
}
