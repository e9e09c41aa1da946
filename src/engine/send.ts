/** The outbound path, mirrored: canonical params → steps down → the wire's envelope → one serialise → the carrier. */
import { ConnectionError, type Lane, type Outgoing } from '../jsonrpc/connection.ts'
import { McpError } from '../jsonrpc/error.ts'
import { notificationFrame, type Params, requestFrame } from '../jsonrpc/message.ts'
import { type Revision, stepsDown, stepsUp, type VersionStep } from '../revisions/index.ts'
import { type CallOptions, Calls, type SendOptions } from './calls.ts'
import type { Conversation } from './conversation.ts'
import type { Engine } from './engine.ts'
import { type Method, wireName } from './method.ts'
import { PendingCall } from './pending-calls.ts'

/** What is compiled once per method and wire on the way out. */
interface Outbound {
  readonly name: string
  readonly paramsDown: VersionStep | undefined
  readonly resultUp: VersionStep | undefined
}

const compiled = new WeakMap<Method, (Outbound | undefined)[]>()

/** Compiled when first sent on a wire. */
export function outbound(method: Method, revision: Revision): Outbound {
  let table = compiled.get(method)
  if (table === undefined) {
    table = []
    compiled.set(method, table)
  }
  let entry = table[revision.ordinal]
  if (entry === undefined) {
    entry = {
      name: wireName(method, revision),
      paramsDown: stepsDown(method.paramsDown, revision),
      resultUp: stepsUp(method.resultUp, revision),
    }
    table[revision.ordinal] = entry
  }
  return entry
}

/** Sends a request and waits for its answer. */
export function sendRequest(
  engine: Engine,
  conversation: Conversation,
  revision: Revision,
  method: Method,
  params: Params,
  options: SendOptions,
): Promise<unknown> {
  if (conversation.ended) return Promise.reject(conversation.reason ?? new ConnectionError('lost', 'The connection is closed'))
  if (options.signal?.aborted) return Promise.reject(options.signal.reason)
  if (options.behalf?.cancelled) return Promise.reject(options.behalf.signal.reason)
  if (!method.in.includes(revision.id)) {
    return Promise.reject(new McpError('method-not-found', `Revision ${revision.id} has no method ${method.name}`))
  }
  conversation.calls ??= new Calls(engine.sharing?.base)
  const { calls } = conversation
  const route = outbound(method, revision)
  const id = calls.nextId()
  const wire = route.paramsDown === undefined ? params : route.paramsDown(params)
  const frame = requestFrame(
    id,
    route.name,
    paramsText(wire, engine.requestMeta(revision, options.declares ?? method.declares), options, id),
  )
  const http = conversation.caller.carrier === 'http' && options.lane === undefined
  // A handshake cannot be cancelled (2025-11-25 basic/utilities/cancellation).
  const silent = method.opening === true || options.quiet === true || revision.cancels(conversation.caller.carrier) === 'abort'
  options.onSent?.(id)
  return new Promise<unknown>((resolve, reject) => {
    calls.add(new PendingCall(engine, conversation, method, params, route.resultUp, id, options, silent, resolve, reject))
    const sent = transmit(conversation, frame, http ? over(revision, method, route, wire, options, id) : { id }, options.lane)
    if (sent === true) return
    if (sent === false) return calls.fail(id, unheard())
    sent.then(
      () => {
        // Asked first: an error made for each answered call would be the dearest part of it.
        if (http && calls.has(id)) calls.fail(id, unanswered(method))
      },
      error => calls.fail(id, error),
    )
  })
}

/** What a carrier with headers needs beside the frame. Each call holds an exchange of its own there, which its waiter minds. */
function over(revision: Revision, method: Method, route: Outbound, wire: Params, { headers }: CallOptions, id: number): Outgoing {
  const { session, resume } = revision.http
  if (method.opening === true) return { id, session, resume, minded: true }
  const own = revision.http.headers(route.name, wire, method.nameParam)
  return { id, session, resume, minded: true, headers: headers === undefined ? own : { ...own, ...headers } }
}

/** Params as JSON, with what every request of the wire carries in `_meta`, and the progress token. */
function paramsText(params: Params, meta: Params | undefined, options: CallOptions, id: number): string {
  const own = params['_meta'] as Params | undefined
  if (own === undefined && options.meta === undefined && options.onProgress === undefined) {
    return meta === undefined ? JSON.stringify(params) : withMetaText(JSON.stringify(params), meta)
  }
  if (own === undefined && options.onProgress === undefined && Object.isFrozen(options.meta))
    return withMetaText(JSON.stringify(params), joined(options.meta as Params, meta))
  const token = options.onProgress === undefined ? {} : { progressToken: id }
  return JSON.stringify({ ...params, _meta: { ...own, ...options.meta, ...meta, ...token } })
}

const pairs = new WeakMap<Params, { readonly meta: Params | undefined; readonly both: Params }>()

/** What is frozen goes out with many requests: joined with what all carry, it is the same object for each. */
function joined(more: Params, meta: Params | undefined): Params {
  const known = pairs.get(more)
  if (known !== undefined && known.meta === meta) return known.both
  const both = { ...more, ...meta }
  pairs.set(more, { meta, both })
  return both
}

const texts = new WeakMap<Params, string>()

/** Most requests carry the same `_meta`: it is serialised once, and put in as text. */
function withMetaText(params: string, meta: Params): string {
  let text = texts.get(meta)
  if (text === undefined) {
    text = JSON.stringify(meta)
    texts.set(meta, text)
  }
  return params === '{}' ? `{"_meta":${text}}` : `${params.slice(0, -1)},"_meta":${text}}`
}

/** Sends a notification. False: nobody listens, so it is dropped; a promise settles when the carrier has delivered it. */
export function sendNotification(
  conversation: Conversation,
  revision: Revision,
  method: Method,
  params: Params,
  lane?: Lane,
): boolean | Promise<void> {
  if (conversation.ended || !method.in.includes(revision.id)) return false
  const route = outbound(method, revision)
  const wire = route.paramsDown === undefined ? params : route.paramsDown(params)
  const headers = conversation.caller.carrier === 'http' ? { headers: revision.http.headers(route.name, wire, undefined) } : {}
  return transmit(conversation, notificationFrame(route.name, wire), { session: revision.http.session, ...headers }, lane)
}

function transmit(
  conversation: Conversation,
  frame: string,
  outgoing: Outgoing,
  lane: Lane | undefined,
): boolean | Promise<void> {
  const target = lane ?? (conversation.connection === undefined ? conversation.push : undefined)
  if (target !== undefined) {
    if (target.closed) return false
    target.send(frame)
    return true
  }
  return conversation.connection === undefined ? false : (conversation.connection.send(frame, outgoing) ?? true)
}

function unanswered(method: Method): ConnectionError {
  return new ConnectionError('protocol', `The server closed the stream without a response to ${method.name}`)
}

function unheard(): ConnectionError {
  return new ConnectionError(
    'lost',
    'The message cannot be delivered: the other side has disconnected, or has no stream open for messages of the server',
  )
}
