/**
 * The server side of the HTTP+SSE transport (2024-11-05 basic/transports): a GET opens the stream, its first event names an
 * address, and messages posted there belong to the connection of that stream. It reuses the guard, limits and lanes of
 * Streamable HTTP, and only adds how a POST finds its stream.
 */
import type { IncomingMessage } from 'node:http'
import { type Caller, type Connection, ConnectionError, type Outgoing, type Sink } from '../../jsonrpc/connection.ts'
import type { Endpoint, HttpAcceptor } from '../http/endpoint.ts'
import { endpointText } from '../http/event.ts'
import type { HttpLane } from '../http/lane.ts'
import { NodeExchange, type NodeHttpHandler } from '../http/node.ts'
import type { Refusal } from '../http/refusal.ts'

/** The two request handlers of the transport. */
interface SsePair {
  /** Handles the address that clients connect to (GET). */
  readonly open: NodeHttpHandler
  /** Handles `messagePath` (POST). */
  readonly post: NodeHttpHandler
}

/**
 * Serves the transport on node:http, or in any framework based on it, over an endpoint that several carriers can share.
 * `messagePath`: the path of the second address, as clients reach it.
 */
export function ssePair(shared: Endpoint, messagePath: string): SsePair {
  const connections = new Map<string, SseConnection>()
  const endpoint = { ...shared, answersOnGet: true }

  function listen(caller: Caller, lane: HttpLane): void {
    // Not guessable: whoever knows it can post.
    const session = Buffer.from(crypto.getRandomValues(new Uint8Array(24))).toString('hex')
    const connection = new SseConnection(caller, lane, `${messagePath}?session=${session}`, () => connections.delete(session))
    connections.set(session, connection)
    shared.acceptor.accept(connection)
  }

  /** Answers for the connection of another principal as if it did not exist, so that ids cannot be probed. */
  function deliver(session: string | undefined, text: string, caller: Caller, reply: HttpLane): void {
    const connection = session === undefined ? undefined : connections.get(session)
    if (connection === undefined || connection.caller.principal?.id !== caller.principal?.id) reply.refuse(unknownSession)
    else {
      // 202 first: the answer travels on the stream, not in the response to the POST.
      reply.end()
      connection.receive(text)
    }
  }

  const opening: Endpoint = { ...endpoint, acceptor: { ...refusingAcceptor(getOnly), listen } }
  return {
    open: (req, res, parsedBody) => new NodeExchange(opening, req, res, parsedBody).begin(),
    post: (req, res, parsedBody) => {
      const acceptor: HttpAcceptor = {
        ...refusingAcceptor(postOnly),
        deliver: (text, caller, reply) => deliver(sessionOf(req), text, caller, reply),
      }
      new NodeExchange({ ...endpoint, acceptor }, req, res, parsedBody).begin()
    },
  }
}

/** One client: its open stream, with the messages that it posts. */
class SseConnection implements Connection {
  readonly carrier = 'sse'
  readonly caller: Caller
  readonly #lane: HttpLane
  readonly #address: string
  readonly #forget: () => void
  #sink: Sink | undefined = undefined
  #closed = false

  constructor(caller: Caller, lane: HttpLane, address: string, forget: () => void) {
    const { principal, connection } = caller
    this.caller = { carrier: 'sse', principal, connection, header: name => caller.header?.(name) }
    this.#lane = lane
    this.#address = address
    this.#forget = forget
    lane.onClose(() => this.#end())
  }

  /** Sends the `endpoint` event only now, so that nothing is posted before somebody receives it. */
  start(sink: Sink): void {
    this.#sink = sink
    this.#lane.announce(endpointText(this.#address))
  }

  /** A message was posted for this connection. */
  receive(text: string): void {
    if (!this.#closed) this.#sink?.frame(text)
  }

  send(frame: string, outgoing?: Outgoing): void | Promise<void> {
    if (this.#closed) return Promise.reject(new ConnectionError('lost', 'The client has closed its event stream'))
    const { merge, spare = false } = outgoing ?? {}
    this.#lane.send(frame, merge === undefined ? { spare } : { merge, spare })
  }

  get blocked(): boolean {
    return this.#lane.blocked
  }

  onFree(fn: () => void): void {
    this.#lane.onFree(fn)
  }

  async close(): Promise<void> {
    this.#lane.end()
    this.#end()
  }

  #end(): void {
    if (this.#closed) return
    this.#closed = true
    this.#forget()
    this.#sink?.closed()
  }
}

/** A door that refuses every request; callers override the one method that they serve. */
function refusingAcceptor(refusal: Refusal): HttpAcceptor {
  return {
    deliver: (_text, _caller, reply) => reply.refuse(refusal),
    listen: (_caller, lane) => lane.refuse(refusal),
    leave: (_caller, reply) => reply.refuse(refusal),
    accept: () => undefined,
  }
}

const getOnly: Refusal = {
  status: 405,
  message: 'Open this address with GET; the first event names the address for messages',
  headers: { allow: 'GET' },
}

const postOnly: Refusal = { status: 405, message: 'Send messages to this address with POST', headers: { allow: 'POST' } }

const unknownSession: Refusal = {
  status: 404,
  message: 'No open event stream has this session id. Open one with GET, and send messages to the address in its first event',
}

/** The connection id in the query of a POST. */
function sessionOf(req: IncomingMessage): string | undefined {
  const [, query = ''] = (req.url ?? '').split('?', 2)
  return new URLSearchParams(query).get('session') ?? undefined
}
