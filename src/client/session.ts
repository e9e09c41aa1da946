/**
 * The live link to one server: opens it, sends calls through middleware, and mends it when a session is lost.
 * What is remembered of the server (revision, capabilities) is read through here, because mending may change it.
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
  readonly method: string
  readonly params: Params
}

/** Wraps calls: may change the params on the way out and the result on the way back, or not go on at all. */
export type ClientMiddleware = (call: OutgoingCall, next: (call: OutgoingCall) => Promise<unknown>) => Promise<unknown>

const standard: SendOptions = {}
/** How long a server may take over its farewell, where the wire has one. */
const farewellMs = 1_000

/** One server, through all sessions with it. */
export class Session implements ClientSession, Reconnectable {
  readonly engine: Engine
  readonly middleware: ClientMiddleware[] = []
  /** Awaited after each new handshake, before anything else is sent. */
  reopening: () => Promise<void> = async () => {}
  readonly #onReopen = new Set<() => void>()
  readonly #reconnector: Reconnector
  #onDoubt: () => void = () => {}
  #onDeaf: (error: unknown) => void = () => {}
  #opened: OpenedServer
  /** Whether there is a session that the server may forget. */
  #losable: boolean
  #intact = true
  #reopening: Promise<void> | undefined = undefined
  #closing: Promise<void> | undefined = undefined
  #left = false

  private constructor(engine: Engine, opened: OpenedServer) {
    this.engine = engine
    this.#opened = opened
    this.#losable = isLosable(opened)
    this.#reconnector = new Reconnector(this)
  }

  static async open(probe: ProbeOptions): Promise<Session> {
    const session = new Session(probe.engine, await openServer(probe))
    session.#listen(true)
    return session
  }

  get opened(): OpenedServer {
    return this.#opened
  }

  /** Its end is wanted by this side, and no failure. */
  get left(): boolean {
    return this.#left
  }

  /** Resolves when it is over: with why it broke, or with nothing where this side closed it. */
  get ended(): Promise<Error | undefined> {
    const { conversation } = this.#opened
    return new Promise(resolve => conversation.onEnd(() => resolve(this.#left ? undefined : conversation.reason)))
  }

  /** False from the loss of a session until a new one is open. */
  get intact(): boolean {
    return this.#intact
  }

  /**
   * `doubt`: the server may have said something that nobody heard. `deaf`: it will say nothing more, because it refuses to
   * open the session again.
   */
  whenUnheard(doubt: () => void, deaf: (error: unknown) => void): void {
    this.#onDoubt = doubt
    this.#onDeaf = deaf
  }

  /** Called after each re-opening: what was set up in the old session must be set up again. Gives the way to undo it. */
  onReopen(fn: () => void): () => void {
    this.#onReopen.add(fn)
    return () => this.#onReopen.delete(fn)
  }

  request<P, R>(method: Method<P, R>, params: P, options: SendOptions = standard): Promise<R> {
    if (this.middleware.length === 0) return this.#send(method, params as Params, options) as Promise<R>
    const run = (at: number, call: OutgoingCall): Promise<unknown> => {
      const layer = this.middleware[at]
      return layer === undefined ? this.#send(method, call.params, options) : layer(call, next => run(at + 1, next))
    }
    return run(0, { method: method.name, params: params as Params }) as Promise<R>
  }

  #send(method: Method, params: Params, options: SendOptions): Promise<unknown> {
    const opened = this.#opened
    if (!this.#losable) return this.engine.call(opened.conversation, method, params, options)
    if (!this.#intact) return this.#sendMended(method, params, options)
    return this.engine.call(opened.conversation, method, params, options).catch(error => {
      // A session that is gone did not run the call: after a new handshake it is safe to send it again, once. Nothing else is.
      if (!this.#noteLoss(error, opened)) throw error
      return this.#sendMended(method, params, options)
    })
  }

  async #sendMended(method: Method, params: Params, options: SendOptions): Promise<unknown> {
    if (!this.#intact) await unlessAborted(this.mend(), options.signal ?? options.behalf?.signal)
    const opened = this.#opened
    try {
      return await this.engine.call(opened.conversation, method, params, options)
    } catch (error) {
      this.#noteLoss(error, opened)
      throw error
    }
  }

  /** Calls that were under way together learn of it one after the other; only the first loses what is open now. */
  #noteLoss(error: unknown, opened: OpenedServer): boolean {
    if (!(error instanceof ConnectionError) || error.kind !== 'session') return false
    if (this.#opened === opened) this.#intact = false
    return true
  }

  /** Opens a lost session anew, once for all who want that now. */
  mend(): Promise<void> {
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
    this.#onDeaf(error)
  }

  /** Opens the stream for what the server says unasked, where the wire has one. */
  #listen(first: boolean): void {
    const opened = this.#opened
    let quietly = first
    const { session, resume, headers } = opened.revision.http
    if (!session) return
    opened.conversation.connection?.listen?.(
      { session, resume, headers: headers(undefined, undefined, undefined) },
      {
        opened: continued => {
          // The very first one follows the handshake at once, and tells nobody to look at what he has not seen yet.
          if (!continued && !quietly) this.#onDoubt()
          quietly = false
        },
        lost: error => {
          if (this.#noteLoss(error, opened) && !this.#intact) this.#reconnector.lost()
        },
        absent: () => void this.#verify(opened).catch(error => this.engine.trace('listening-refused', error)),
      },
    )
  }

  /** Any call finds out whether the session is gone, and then opens a new one; one is made if nobody else does soon. */
  async #verify(opened: OpenedServer): Promise<void> {
    await pause(this.engine.clock, backoffMs(1), this.#reconnector.signal, true)
    if (this.#intact && this.#opened === opened && !opened.conversation.ended) await this.#send(ping, {}, standard)
  }

  /** With a reason, whoever still waits is told that. */
  close(reason?: Error): Promise<void> {
    this.#closing ??= this.#close(reason)
    return this.#closing
  }

  async #close(reason: Error | undefined): Promise<void> {
    const { conversation, revision } = this.#opened
    this.#left = reason === undefined
    this.#reconnector.close()
    if (reason !== undefined) conversation.end(reason)
    else if (shutdown.in.includes(revision.id) && !conversation.ended) await this.#farewell()
    await this.engine.close()
    await conversation.connection?.close()
  }

  async #farewell(): Promise<void> {
    const { conversation } = this.#opened
    try {
      await this.engine.call(conversation, shutdown, {}, { timeoutMs: farewellMs })
      await this.engine.tell(conversation, exit, {})
    } catch (error) {
      this.engine.trace('farewell-failed', error)
    }
  }
}

function isLosable({ conversation, revision }: OpenedServer): boolean {
  return revision.http.session && conversation.caller.carrier === 'http'
}

// Opening a lost session anew although nobody calls. A server that was restarted is met again by the stream on which it
// speaks unasked; without this, those who follow its changes would stay deaf until somebody happened to make a call.

interface Reconnectable {
  readonly engine: Engine
  /** True: somebody who calls was quicker. */
  readonly intact: boolean
  mend(): Promise<void>
  /** The server will not have us again. */
  gaveUp(error: unknown): void
}

class Reconnector {
  readonly #session: Reconnectable
  readonly #stop = new AbortController()
  #openedAt: number
  /** Sessions in a row that were lost as soon as they were open. */
  #losses = 0
  #busy = false

  constructor(session: Reconnectable) {
    this.#session = session
    this.#openedAt = session.engine.clock.now()
  }

  /** Aborted when nothing is to be mended any more. */
  get signal(): AbortSignal {
    return this.#stop.signal
  }

  /** A session is open. */
  opened(): void {
    this.#openedAt = this.#session.engine.clock.now()
  }

  /** It was lost. */
  lost(): void {
    if (this.#busy) return
    this.#busy = true
    this.#mend().finally(() => {
      this.#busy = false
    })
  }

  close(): void {
    this.#stop.abort()
  }

  async #mend(): Promise<void> {
    const { engine } = this.#session
    const { signal } = this
    this.#losses = engine.clock.now() - this.#openedAt > steadyMs ? 0 : this.#losses + 1
    // The first is made good at once; a server that forgets us again and again is asked less and less often.
    if (this.#losses > 1) await pause(engine.clock, backoffMs(this.#losses), signal)
    for (let failures = 1; !signal.aborted && !this.#session.intact; failures++) {
      try {
        await this.#session.mend()
      } catch (error) {
        engine.trace('mending-failed', error)
        // While it starts, whatever stands before a server may answer in its place: only its own word counts.
        if (isFinalError(error) && !(error instanceof ConnectionError)) return this.#session.gaveUp(error)
        await pause(engine.clock, backoffMs(failures), signal)
      }
    }
  }
}
