/**
 * Where clients of a proxy or a mock come in: standard input and output for one of them, or a port for many. Over HTTP each session is a
 * connection, and all that names no session shares one.
 */
import { randomUUID } from 'node:crypto'
import type { Readable, Writable } from 'node:stream'
import { subscriptionKey } from '../engine/reserved.ts'
import {
  type Caller,
  type Connection,
  ConnectionError,
  type Door,
  type Lane,
  type Outgoing,
  type SendHints,
  type Sink,
} from '../jsonrpc/connection.ts'
import { failureFrame, type Id, isId, isRecord, notificationFrame } from '../jsonrpc/message.ts'
import { parse } from '../jsonrpc/parse.ts'
import { listenHttp } from '../transports/http/listen.ts'
import { stdioServerConnection } from '../transports/stdio/server.ts'

/** Standard input and output, or a port; by default any that is free. */
export type ClientListenerOptions =
  | { readonly stdio: true; readonly input?: NodeReadable; readonly output?: NodeWritable }
  | { readonly stdio?: false; readonly port?: number; readonly host?: string; readonly path?: string }

/** The longest frame: a recorder stands between others, and lets pass what they do. */
export const listenerFrameBytes = 64 * 1024 * 1024

/** A place that is open for clients. */
export interface ClientListener {
  /** Where it listens; undefined on stdio. */
  readonly url: string | undefined
  /** Settles when no client can come any more: the end of standard input. */
  readonly over: Promise<void>
  close(): Promise<void>
}

/** Opens a place for clients; `accept` starts each connection that it is given. */
export async function listenForClients(
  options: ClientListenerOptions,
  accept: (connection: Connection) => void,
): Promise<ClientListener> {
  if (options.stdio === true) return listenOnStdio(options, accept)
  const { port, host, path } = options
  const door = new HttpSessions(accept)
  const listening = await listenHttp(door, {
    limits: { frameBytes: listenerFrameBytes },
    ssePath: '/sse',
    closeMs: 500,
    ...(port !== undefined && { port }),
    ...(host !== undefined && { host }),
    ...(path !== undefined && { path }),
  })
  return {
    url: listening.url,
    over: new Promise(() => {}),
    close: async () => {
      await door.close()
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
    ...delegate(connection),
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

function delegate(connection: Connection): Connection {
  return {
    carrier: connection.carrier,
    start: sink => connection.start(sink),
    send: (text, outgoing) => connection.send(text, outgoing),
    close: () => connection.close(),
  }
}

/** The most sessions at a time: a mock or a recording serves a few. */
const mostSessions = 1_000

/** It knows of the protocol only what tells whose a frame is. */
class HttpSessions implements Door {
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
    if (session === undefined) return refuse(reply, 404, 'There is no such session. Send initialize to begin one')
    session.take(text, value, reply)
  }

  /** A stream for unsolicited messages. */
  listen(caller: Caller, lane: Lane): void {
    const session = this.#sessions.get(caller.header?.('mcp-session-id') ?? '')
    if (session === undefined) return refuse(lane, 405, 'A stream is opened within a session. Send initialize to begin one')
    session.hear(lane)
  }

  /** The client ends its session. */
  leave(caller: Caller, reply: Lane): void {
    const id = caller.header?.('mcp-session-id') ?? ''
    const session = this.#sessions.get(id)
    if (session === undefined) return refuse(reply, 404, 'There is no such session')
    this.#sessions.delete(id)
    void session.close()
    reply.end({ status: 200 })
  }

  accept(connection: Connection): void {
    this.#accept(connection)
  }

  async close(): Promise<void> {
    const all = [...this.#sessions.values(), ...(this.#sessionless === undefined ? [] : [this.#sessionless])]
    await Promise.all(all.map(session => session.close()))
  }

  /** Starts a session; at the limit the oldest ends. */
  #begin(): HttpSession | undefined {
    const [oldest] = this.#sessions
    if (this.#sessions.size >= mostSessions && oldest !== undefined) {
      this.#sessions.delete(oldest[0])
      void oldest[1].close()
    }
    const id = randomUUID()
    const session = new HttpSession(id)
    this.#sessions.set(id, session)
    session.onClose(() => this.#sessions.delete(id))
    this.#accept(session)
    return session
  }

  /** The connection shared by all requests without a session. */
  #shared(): HttpSession {
    const open = this.#sessionless
    if (open !== undefined && !open.ended) return open
    const session = new HttpSession(undefined)
    this.#sessionless = session
    this.#accept(session)
    return session
  }
}

function opens(value: unknown): boolean {
  return Array.isArray(value) ? value.some(opens) : isRecord(value) && value['method'] === 'initialize'
}

function refuse(lane: Lane, status: number, message: string): void {
  lane.send(failureFrame(null, { code: -32600, message }), { final: true, status })
}

/**
 * As much of Node's streams as signatures have to name, so that our types can be read without those of Node. What is given is the
 * real thing, of `node:stream`.
 */
interface NodeReadable {
  readonly readable: boolean
  pause(): unknown
  resume(): unknown
  destroy(): unknown
}

interface NodeWritable {
  readonly writable: boolean
  write(chunk: string | Uint8Array): boolean
  end(): unknown
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
  readonly #closers: (() => void)[] = []
  #listener: Lane | undefined = undefined
  #sink: Sink | undefined = undefined
  #renamed = 0
  #opening = true
  ended = false

  constructor(session: string | undefined) {
    this.#session = session
  }

  start(sink: Sink): void {
    this.#sink = sink
  }

  onClose(fn: () => void): void {
    this.#closers.push(fn)
  }

  /** A posted body, and the way back. */
  take(text: string, value: unknown, lane: Lane): void {
    const requests = (Array.isArray(value) ? value : [value]).filter(isRequest)
    const exchange: Exchange = { lane, open: new Map(), tokens: new Set(requests.map(tokenOf)) }
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
    if (this.ended) return Promise.reject(new ConnectionError('lost', 'The client has left'))
    const value = parsedFrame(text)
    if (value === undefined) return this.#spoilt(text, outgoing?.id)
    const parts = Array.isArray(value) ? value : [value]
    const answered = parts.find(part => isRecord(part) && part['method'] === undefined && isId(part['id']))
    if (isRecord(answered)) return this.#answer(text, value, parts)
    const [first] = parts
    const lane = this.#related(first) ?? this.#open(this.#listener) ?? this.#newest()
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
    for (const fn of this.#closers) fn()
    this.#sink?.closed()
  }

  /** Sends a response on the stream of its request, under the client's id. */
  #answer(text: string, value: unknown, parts: readonly unknown[]): void {
    const names = new Map<Id, Id>()
    let exchange: Exchange | undefined
    for (const part of parts) {
      if (!isRecord(part) || part['method'] !== undefined || !isId(part['id'])) continue
      const found = this.#exchanges.get(part['id'])
      const given = found?.open.get(part['id'])
      if (found === undefined || given === undefined) continue
      exchange = found
      found.open.delete(part['id'])
      this.#exchanges.delete(part['id'])
      if (given !== part['id']) names.set(part['id'], given)
    }
    if (exchange === undefined) return
    const final = exchange.open.size === 0
    exchange.lane.send(names.size === 0 ? text : renamed(value, names), { final, ...this.#hints() })
  }

  /** Sends a frame that is no JSON, as a fault, to the exchange of the id. */
  #spoilt(text: string, id: Id | undefined): void {
    const exchange = id === undefined ? undefined : this.#exchanges.get(id)
    if (exchange === undefined || id === undefined) return
    exchange.open.delete(id)
    this.#exchanges.delete(id)
    exchange.lane.send(text, { final: exchange.open.size === 0, ...this.#hints() })
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
    const meta = isRecord(params['_meta']) ? params['_meta'] : {}
    const subscription = meta[subscriptionKey]
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
        this.#sink?.frame(notificationFrame('notifications/cancelled', { requestId: id, reason: 'The client hung up' }))
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

function tokenOf({ params }: { params?: unknown }): unknown {
  return isRecord(params) && isRecord(params['_meta']) ? params['_meta']['progressToken'] : undefined
}

/** The frame with other ids. */
function renamed(value: unknown, names: ReadonlyMap<Id, Id>): string {
  const one = (part: unknown): unknown =>
    isRecord(part) && isId(part['id']) ? { ...part, id: names.get(part['id']) ?? part['id'] } : part
  return JSON.stringify(Array.isArray(value) ? value.map(one) : one(value))
}
