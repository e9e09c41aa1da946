/**
 * The link to one server: opens it, sends calls through middleware, and opens a new session when the server has lost the old
 * one. Revision and capabilities of the server are read from here, because a new session may change them.
 */
import { unlessAborted } from '../core/deadlines.ts'
import { backoffMs, isFinalError, pause, steadyMs } from '../engine/backoff.ts'
import type { SendOptions } from '../engine/calls.ts'
import type { ClientSession, OpenedServer } from '../engine/client-feature.ts'
import type { Engine } from '../engine/engine.ts'
import type { Method } from '../engine/method.ts'
import { exit, ping, shutdown } from '../features/mcp/lifecycle/messages.ts'
import { ConnectionError } from '../jsonrpc/connection.ts'
import type { Params } from '../jsonrpc/message.ts'
import { handshake } from './handshake.ts'
import { openServer, type ProbeOptions } from './probe.ts'

/** One outgoing call, as middleware sees it. */
export interface OutgoingCall {
  /** The method of the request, for example `tools/call`. */
  readonly method: string
  /** The params of the request. */
  readonly params: Params
}

/** Wraps requests. It can change params and results, or answer without calling `next`. */
export type ClientMiddleware = (call: OutgoingCall, next: (call: OutgoingCall) => Promise<unknown>) => Promise<unknown>

const standard: SendOptions = {}
/** How long the server may take to answer `shutdown`, in revisions that have it. */
const shutdownMs = 1_000

/** One server, across all sessions with it. */
export class Session implements ClientSession, Reconnectable {
  readonly engine: Engine
  readonly middleware: ClientMiddleware[] = []
  /** Awaited after each new handshake, before anything else is sent. */
  reopening: () => Promise<void> = async () => {}
  readonly #onReopen = new Set<() => void>()
  readonly #reconnector: Reconnector
  /** Called when messages of the server may have been missed. */
  #onDoubt: () => void = () => {}
  /** Called when no more messages will come. */
  #onDisconnected: (error: unknown) => void = () => {}
  #opened: OpenedServer
  /** Whether the server has a session that it may forget. */
  #losable: boolean
  /** False from the loss of a session until a new one is open. */
  #intact = true
  /** The attempt to open a new session, shared by all who wait for it. */
  #reopening: Promise<void> | undefined = undefined
  #closing: Promise<void> | undefined = undefined
  /** This side closed the connection. */
  #left = false

  private constructor(engine: Engine, opened: OpenedServer) {
    this.engine = engine
    this.#opened = opened
    this.#losable = isLosable(opened)
    this.#reconnector = new Reconnector(this)
  }

  /** Opens the server, and the stream for its unsolicited messages. */
  static async open(probe: ProbeOptions): Promise<Session> {
    const session = new Session(probe.engine, await openServer(probe))
    session.#listen(true)
    return session
  }

  get opened(): OpenedServer {
    return this.#opened
  }

  /** True if this side ended the connection, so that the end is no failure. */
  get left(): boolean {
    return this.#left
  }

  /** Resolves when the connection has ended: with the error, or undefined if this side closed it. */
  get ended(): Promise<Error | undefined> {
    const { conversation } = this.#opened
    return new Promise(resolve => conversation.onEnd(() => resolve(this.#left ? undefined : conversation.reason)))
  }

  /** False from the loss of a session until a new one is open. */
  get intact(): boolean {
    return this.#intact
  }

  /**
   * `doubt`: messages of the server may have been missed. `disconnected`: no more will come, because the server refuses a new session.
   */
  whenUnheard(doubt: () => void, disconnected: (error: unknown) => void): void {
    this.#onDoubt = doubt
    this.#onDisconnected = disconnected
  }

  /** Calls back after each new session, to restore what was set up in the old one. Returns a function that unsubscribes. */
  onReopen(fn: () => void): () => void {
    this.#onReopen.add(fn)
    return () => this.#onReopen.delete(fn)
  }

  /** Sends a request through the middleware. */
  request<P, R>(method: Method<P, R>, params: P, options: SendOptions = standard): Promise<R> {
    if (this.middleware.length === 0) return this.#send(method, params as Params, options) as Promise<R>
    const run = (at: number, call: OutgoingCall): Promise<unknown> => {
      const layer = this.middleware[at]
      return layer === undefined ? this.#send(method, call.params, options) : layer(call, next => run(at + 1, next))
    }
    return run(0, { method: method.name, params: params as Params }) as Promise<R>
  }

  /** Sends a request; if its session is lost, once more in a new one. */
  #send(method: Method, params: Params, options: SendOptions): Promise<unknown> {
    const opened = this.#opened
    if (!this.#losable) return this.engine.call(opened.conversation, method, params, options)
    if (!this.#intact) return this.#sendReopened(method, params, options)
    return this.engine.call(opened.conversation, method, params, options).catch(error => {
      // A call in a lost session did not run, so it is safe to send it once more after a new handshake. No other failure is.
      if (!this.#noteLoss(error, opened)) throw error
      return this.#sendReopened(method, params, options)
    })
  }

  /** Sends a request in a new session, without another retry. */
  async #sendReopened(method: Method, params: Params, options: SendOptions): Promise<unknown> {
    if (!this.#intact) await unlessAborted(this.reopen(), options.signal ?? options.behalf?.signal)
    const opened = this.#opened
    try {
      return await this.engine.call(opened.conversation, method, params, options)
    } catch (error) {
      this.#noteLoss(error, opened)
      throw error
    }
  }

  /** Marks the session as lost. Several calls may report the same loss, so only one for the current session counts. */
  #noteLoss(error: unknown, opened: OpenedServer): boolean {
    if (!(error instanceof ConnectionError) || error.kind !== 'session') return false
    if (this.#opened === opened) this.#intact = false
    return true
  }

  /** Opens a new session, once for all who ask for it now. */
  reopen(): Promise<void> {
    this.#reopening ??= this.#reopen().finally(() => {
      this.#reopening = undefined
    })
    return this.#reopening
  }

  async #reopen(): Promise<void> {
    this.#opened = await handshake(this.engine, this.#opened.conversation)
    this.#losable = isLosable(this.#opened)
    await this.reopening()
    this.#intact = true
    this.#reconnector.opened()
    this.#listen(false)
    this.#onDoubt()
    for (const fn of this.#onReopen) fn()
  }

  gaveUp(error: unknown): void {
    this.#onDisconnected(error)
  }

  /** Opens the stream for messages that the server sends unasked, where the revision has one. */
  #listen(first: boolean): void {
    const opened = this.#opened
    let isFirst = first
    const { session, resume, headers } = opened.revision.http
    if (!session) return
    opened.conversation.connection?.listen?.(
      { session, resume, headers: headers(undefined, undefined, undefined) },
      {
        opened: continued => {
          // The first stream directly follows the handshake, so nothing can have been missed before it.
          if (!continued && !isFirst) this.#onDoubt()
          isFirst = false
        },
        lost: error => {
          if (this.#noteLoss(error, opened) && !this.#intact) this.#reconnector.lost()
        },
        absent: () => void this.#verify(opened).catch(error => this.engine.trace('listening-refused', error)),
      },
    )
  }

  /** The stream was answered with 404, which may mean a lost session. A ping finds out, unless another call does before. */
  async #verify(opened: OpenedServer): Promise<void> {
    await pause(this.engine.clock, backoffMs(1), this.#reconnector.signal, true)
    if (this.#intact && this.#opened === opened && !opened.conversation.ended) await this.#send(ping, {}, standard)
  }

  /** Closes the connection. With a reason, pending calls fail with it. */
  close(reason?: Error): Promise<void> {
    this.#closing ??= this.#close(reason)
    return this.#closing
  }

  async #close(reason: Error | undefined): Promise<void> {
    const { conversation, revision } = this.#opened
    this.#left = reason === undefined
    this.#reconnector.close()
    if (reason !== undefined) conversation.end(reason)
    else if (shutdown.in.includes(revision.id) && !conversation.ended) await this.#sendShutdown()
    await this.engine.close()
    await conversation.connection?.close()
  }

  /** Sends `shutdown` and `exit`; failures are only traced. */
  async #sendShutdown(): Promise<void> {
    const { conversation } = this.#opened
    try {
      await this.engine.call(conversation, shutdown, {}, { timeoutMs: shutdownMs })
      await this.engine.tell(conversation, exit, {})
    } catch (error) {
      this.engine.trace('farewell-failed', error)
    }
  }
}

/** Only HTTP sessions can be lost while the connection continues. */
function isLosable({ conversation, revision }: OpenedServer): boolean {
  return revision.http.session && conversation.caller.carrier === 'http'
}

// Opens a lost session without waiting for a call. A restarted server is noticed by the stream of its unsolicited messages;
// otherwise subscribers would receive nothing until somebody makes a call.

/** The part of a session that the reconnector uses. */
interface Reconnectable {
  readonly engine: Engine
  /** True if a call has already opened a new session. */
  readonly intact: boolean
  reopen(): Promise<void>
  /** The server refuses a new session for good. */
  gaveUp(error: unknown): void
}

/** Opens new sessions with backoff. */
class Reconnector {
  readonly #session: Reconnectable
  readonly #stop = new AbortController()
  #openedAt: number
  /** Sessions in a row that were lost shortly after they were opened. */
  #losses = 0
  #busy = false

  constructor(session: Reconnectable) {
    this.#session = session
    this.#openedAt = session.engine.clock.now()
  }

  /** Aborted when the connection closes. */
  get signal(): AbortSignal {
    return this.#stop.signal
  }

  /** A session was opened. */
  opened(): void {
    this.#openedAt = this.#session.engine.clock.now()
  }

  /** The session was lost. */
  lost(): void {
    if (this.#busy) return
    this.#busy = true
    this.#reopen().finally(() => {
      this.#busy = false
    })
  }

  close(): void {
    this.#stop.abort()
  }

  async #reopen(): Promise<void> {
    const { engine } = this.#session
    const { signal } = this
    this.#losses = engine.clock.now() - this.#openedAt > steadyMs ? 0 : this.#losses + 1
    // The first loss is repaired at once; a server that loses sessions repeatedly is asked less and less often.
    if (this.#losses > 1) await pause(engine.clock, backoffMs(this.#losses), signal)
    for (let failures = 1; !signal.aborted && !this.#session.intact; failures++) {
      try {
        await this.#session.reopen()
      } catch (error) {
        engine.trace('mending-failed', error)
        // While a server restarts, a proxy may answer in its place, so only an error of the protocol itself is final.
        if (isFinalError(error) && !(error instanceof ConnectionError)) return this.#session.gaveUp(error)
        await pause(engine.clock, backoffMs(failures), signal)
      }
    }
  }
}
