/**
 * Where clients of a proxy or a mock come in: standard input and output for one of them, or a port for many. Over HTTP each session is a
 * connection, and all that names no session shares one.
 */
import { randomUUID } from 'node:crypto'
import type { Readable, Writable } from 'node:stream'
import { subscriptionKey } from '../engine/reserved.ts'
import {
  type Acceptor,
  type Caller,
  type Connection,
  ConnectionError,
  type Lane,
  type Outgoing,
  type SendHints,
  type Sink,
} from '../jsonrpc/connection.ts'
import { failureFrame, type Id, isId, isRecord, notificationFrame, picked } from '../jsonrpc/message.ts'
import { parse } from '../jsonrpc/parse.ts'
import { metaOf } from '../revisions/index.ts'
import { listenHttp } from '../transports/http/listen.ts'
import { stdioServerConnection } from '../transports/stdio/server.ts'
import { messagesOf, tokenOf } from './format.ts'

/** Where clients connect: standard input and output, or a port. Default: any free port. */
export type ClientListenerOptions =
  | {
      /** Whether the client comes on standard input and output. */
      readonly stdio: true
      /** Where to read instead of standard input. */
      readonly input?: NodeReadable
      /** Where to write instead of standard output. */
      readonly output?: NodeWritable
    }
  | {
      /** Whether the client comes on standard input and output. */
      readonly stdio?: false
      /** The port. Default: any that is free. */
      readonly port?: number
      /** The address. Default 127.0.0.1. */
      readonly host?: string
      /** The path of the endpoint. Default `/mcp`. */
      readonly path?: string
    }

/** The longest frame: a recorder stands between others, and lets pass what they do. */
export const listenerFrameBytes = 64 * 1024 * 1024

/** A place where clients can connect. */
export interface ClientListener {
  /** The URL. Undefined on stdio. */
  readonly url: string | undefined
  /** Resolves when no client can connect any more, because standard input has ended. */
  readonly over: Promise<void>
  /** Stops listening and closes all connections. */
  close(): Promise<void>
}

/** Opens a place for clients; `accept` starts each connection that it is given. */
export async function listenForClients(
  options: ClientListenerOptions,
  accept: (connection: Connection) => void,
): Promise<ClientListener> {
  if (options.stdio === true) return listenOnStdio(options, accept)
  const sessions = new HttpSessions(accept)
  const listening = await listenHttp(sessions, {
    limits: { frameBytes: listenerFrameBytes },
    ssePath: '/sse',
    closeMs: 500,
    ...picked(options, 'port', 'host', 'path'),
  })
  return {
    url: listening.url,
    over: new Promise(() => {}),
    close: async () => {
      await sessions.close()
      await listening.close()
    },
  }
}

/** Serves one client on standard input and output. */
function listenOnStdio(
  { input, output }: { input?: NodeReadable; output?: NodeWritable },
  accept: (connection: Connection) => void,
): ClientListener {
  const connection = stdioServerConnection({
    limits: { frameBytes: listenerFrameBytes },
    ...(input && { input: input as Readable }),
    ...(output && { output: output as Writable }),
  })
  const { promise, resolve } = Promise.withResolvers<void>()
  accept({
    carrier: connection.carrier,
    send: (text, outgoing) => connection.send(text, outgoing),
    close: () => connection.close(),
    start: sink =>
      connection.start({
        frame: text => sink.frame(text),
        fault: fault => sink.fault(fault),
        quiet: () => sink.quiet?.() ?? Promise.resolve(),
        closed: reason => {
          sink.closed(reason)
          resolve()
        },
      }),
  })
  return { url: undefined, over: promise, close: () => connection.close() }
}

/** The most sessions at a time: a mock or a recording serves a few. */
const mostSessions = 1_000

/** It knows of the protocol only what tells whose a frame is. */
class HttpSessions implements Acceptor {
  readonly #accept: (connection: Connection) => void
  readonly #sessions = new Map<string, HttpSession>()
  #sessionless: HttpSession | undefined = undefined

  constructor(accept: (connection: Connection) => void) {
    this.#accept = accept
  }

  /** A posted frame: a new session, a known one, or the shared one. */
  deliver(text: string, caller: Caller, reply: Lane): void {
    const value = parsedFrame(text)
    const id = caller.header?.('mcp-session-id')
    const session = opens(value) ? this.#begin() : id === undefined ? this.#shared() : this.#sessions.get(id)
    if (session === undefined)
      return refuse(reply, 404, 'The session in mcp-session-id does not exist. Send initialize to start a new session')
    session.take(text, value, reply)
  }

  /** A stream for unsolicited messages. */
  listen(caller: Caller, lane: Lane): void {
    const session = this.#sessions.get(caller.header?.('mcp-session-id') ?? '')
    if (session === undefined)
      return refuse(lane, 405, 'A GET stream needs a session in mcp-session-id. Send initialize to start a session')
    session.hear(lane)
  }

  /** The client ends its session. */
  leave(caller: Caller, reply: Lane): void {
    const id = caller.header?.('mcp-session-id') ?? ''
    const session = this.#sessions.get(id)
    if (session === undefined) return refuse(reply, 404, 'The session in mcp-session-id does not exist')
    void session.close()
    reply.end({ status: 200 })
  }

  accept(connection: Connection): void {
    this.#accept(connection)
  }

  async close(): Promise<void> {
    await Promise.all([...this.#sessions.values(), this.#sessionless].map(session => session?.close()))
  }

  /** Starts a session; at the limit the oldest ends. */
  #begin(): HttpSession | undefined {
    const [oldest] = this.#sessions.values()
    if (this.#sessions.size >= mostSessions) void oldest?.close()
    const id = randomUUID()
    const session = new HttpSession(id, () => this.#sessions.delete(id))
    this.#sessions.set(id, session)
    this.#accept(session)
    return session
  }

  /** The connection shared by all requests without a session. */
  #shared(): HttpSession {
    if (this.#sessionless !== undefined && !this.#sessionless.ended) return this.#sessionless
    this.#sessionless = new HttpSession(undefined, () => {})
    this.#accept(this.#sessionless)
    return this.#sessionless
  }
}

function opens(value: unknown): boolean {
  return Array.isArray(value) ? value.some(opens) : isRecord(value) && value['method'] === 'initialize'
}

function refuse(lane: Lane, status: number, message: string): void {
  lane.send(failureFrame(null, { code: -32600, message }), { final: true, status })
}

/** The part of a readable Node stream that signatures name. */
interface NodeReadable {
  /** Whether more can be read. */
  readonly readable: boolean
  /** Stops the flow of data. */
  pause(): unknown
  /** Continues the flow of data. */
  resume(): unknown
  /** Closes the stream. */
  destroy(): unknown
}

/** The part of a Node stream for writing that signatures name. */
interface NodeWritable {
  /** Whether more can be written. */
  readonly writable: boolean
  /** Writes a chunk. */
  write(chunk: string | Uint8Array): boolean
  /** Ends the stream. */
  end(): unknown
  /** Closes the stream. */
  destroy(): unknown
}

// One session over HTTP, seen as a duplex connection: answers find the exchange that asked. What is sent unasked goes on the stream of the
// exchange that it names, else on the one kept open for it, else it waits.

interface Exchange {
  readonly lane: Lane
  /** The ids under which its answers are awaited here, each with the one that the client gave. */
  readonly open: Map<Id, Id>
  readonly tokens: Set<unknown>
}

/** The most frames that wait for a stream to be opened. */
const mostWaiting = 100

/** A session, or all that names none. */
class HttpSession implements Connection {
  readonly carrier = 'http'
  readonly #session: string | undefined
  readonly #exchanges = new Map<Id, Exchange>()
  readonly #waiting: string[] = []
  readonly #closed: () => void
  #listener: Lane | undefined = undefined
  #sink: Sink | undefined = undefined
  #renamed = 0
  #opening = true
  ended = false

  constructor(session: string | undefined, closed: () => void) {
    this.#session = session
    this.#closed = closed
  }

  start(sink: Sink): void {
    this.#sink = sink
  }

  /** A posted body, and the way back. */
  take(text: string, value: unknown, lane: Lane): void {
    const requests = messagesOf(value).filter(isRequest)
    const exchange: Exchange = { lane, open: new Map(), tokens: new Set(requests.map(({ params }) => tokenOf(params))) }
    const names = new Map<Id, Id>()
    for (const { id } of requests) {
      // Clients that share a session know nothing of each other's ids.
      const own: Id = this.#exchanges.has(id) ? `${id}#${++this.#renamed}` : id
      if (own !== id) names.set(id, own)
      exchange.open.set(own, id)
      this.#exchanges.set(own, exchange)
    }
    lane.onClose(() => this.#left(exchange))
    this.#sink?.frame(names.size === 0 ? text : renamed(value, names))
    if (requests.length === 0) lane.end()
  }

  /** A stream for what is said unasked; a second one takes the place of the first. */
  hear(lane: Lane): void {
    this.#listener?.end()
    this.#listener = lane
    for (const frame of this.#waiting.splice(0)) lane.send(frame)
  }

  /** `outgoing.id` says whose answer it is, where that cannot be read from it. */
  send(text: string, outgoing?: Outgoing): void | Promise<void> {
    if (this.ended) return Promise.reject(new ConnectionError('lost', 'The client has disconnected'))
    const value = parsedFrame(text)
    if (value === undefined) return this.#answer(text, value, [outgoing?.id])
    const answered = messagesOf(value).flatMap(({ method, id }) => (method === undefined && isId(id) ? [id] : []))
    if (answered.length > 0) return this.#answer(text, value, answered)
    const lane = this.#related(Array.isArray(value) ? value[0] : value) ?? this.#open(this.#listener) ?? this.#newest()
    if (lane !== undefined) lane.send(text, this.#hints())
    else if (this.#waiting.length < mostWaiting) this.#waiting.push(text)
  }

  async close(): Promise<void> {
    if (this.ended) return
    this.ended = true
    const gone = { status: 502, headers: { connection: 'close' } }
    for (const { lane } of new Set(this.#exchanges.values())) lane.end(gone)
    this.#exchanges.clear()
    this.#listener?.end()
    this.#closed()
    this.#sink?.closed()
  }

  /** Sends responses on the stream of their requests, under the ids of the client; what is no JSON as it is. */
  #answer(text: string, value: unknown, ids: readonly (Id | undefined)[]): void {
    const names = new Map<Id, Id>()
    let exchange: Exchange | undefined
    for (const id of ids) {
      const found = id === undefined ? undefined : this.#exchanges.get(id)
      const given = id === undefined ? undefined : found?.open.get(id)
      if (id === undefined || found === undefined || given === undefined) continue
      exchange = found
      found.open.delete(id)
      this.#exchanges.delete(id)
      if (given !== id) names.set(id, given)
    }
    if (exchange === undefined) return
    const final = exchange.open.size === 0
    const put = value === undefined || names.size === 0 ? text : renamed(value, names)
    exchange.lane.send(put, { final, ...this.#hints() })
  }

  /** The first thing that is sent names the session. */
  #hints(): SendHints {
    if (!this.#opening || this.#session === undefined) return {}
    this.#opening = false
    return { headers: { 'mcp-session-id': this.#session } }
  }

  /** The exchange that it names: by its progress token, or as the subscription that it belongs to. */
  #related(frame: unknown): Lane | undefined {
    if (!isRecord(frame) || !isRecord(frame['params'])) return undefined
    const { params } = frame
    const subscription = metaOf(params)?.[subscriptionKey]
    if (isId(subscription)) return this.#open(this.#exchanges.get(subscription)?.lane)
    const token = params['progressToken']
    if (token === undefined) return undefined
    for (const { tokens, lane } of this.#exchanges.values()) if (tokens.has(token)) return this.#open(lane)
    return undefined
  }

  /** The most recent open exchange. */
  #newest(): Lane | undefined {
    return this.#open([...this.#exchanges.values()].at(-1)?.lane)
  }

  #open(lane: Lane | undefined): Lane | undefined {
    return lane === undefined || lane.closed || lane.answerOnly === true ? undefined : lane
  }

  /** The client closed the stream of an exchange. */
  #left(exchange: Exchange): void {
    for (const id of exchange.open.keys()) {
      this.#exchanges.delete(id)
      // Where there are no sessions, whoever hangs up has cancelled; a pipe has to be told so.
      if (this.#session === undefined && !this.ended)
        this.#sink?.frame(
          notificationFrame('notifications/cancelled', { requestId: id, reason: 'The client closed the connection' }),
        )
    }
    exchange.open.clear()
  }
}

/** Undefined for what is no JSON, or too deep. */
function parsedFrame(text: string): unknown {
  try {
    return parse(text)
  } catch {
    return undefined
  }
}

function isRequest(value: unknown): value is { id: Id; params?: unknown } {
  return isRecord(value) && typeof value['method'] === 'string' && isId(value['id'])
}

/** The frame with other ids. */
function renamed(value: unknown, names: ReadonlyMap<Id, Id>): string {
  const one = (part: unknown): unknown =>
    isRecord(part) && isId(part['id']) ? { ...part, id: names.get(part['id']) ?? part['id'] } : part
  return JSON.stringify(Array.isArray(value) ? value.map(one) : one(value))
}
