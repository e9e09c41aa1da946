/**
 * Where clients of a proxy or a mock come in: standard input and output for one of them, or a port for many. Over HTTP each session is a
 * connection, and all that names no session shares one.
 */
import { randomUUID } from 'node:crypto'
import type { Readable, Writable } from 'node:stream'
import type { Caller, Connection, Door, Lane } from '../jsonrpc/connection.ts'
import { isRecord } from '../jsonrpc/message.ts'
import { failureFrame } from '../jsonrpc/serialize.ts'
import { listenHttp } from '../transports/http/listen.ts'
import { stdioServerConnection } from '../transports/stdio/server.ts'
import { HttpSession, parsedFrame } from './http-session.ts'

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

  deliver(text: string, caller: Caller, reply: Lane): void {
    const value = parsedFrame(text)
    const id = caller.header?.('mcp-session-id')
    const session = opens(value) ? this.#begin() : id === undefined ? this.#shared() : this.#sessions.get(id)
    if (session === undefined) return refuse(reply, 404, 'There is no such session. Send initialize to begin one')
    session.take(text, value, reply)
  }

  listen(caller: Caller, lane: Lane): void {
    const session = this.#sessions.get(caller.header?.('mcp-session-id') ?? '')
    if (session === undefined) return refuse(lane, 405, 'A stream is opened within a session. Send initialize to begin one')
    session.hear(lane)
  }

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
