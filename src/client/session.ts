/**
 * The live link to one server: opens it, sends calls through middleware, and mends it when a session is lost.
 * What is remembered of the server (revision, capabilities) is read through here, because mending may change it.
 */
import type { SendOptions } from '../engine/calls.ts'
import type { Engine } from '../engine/engine.ts'
import type { Method } from '../engine/method.ts'
import { ConnectionError } from '../jsonrpc/connection.ts'
import type { Params } from '../jsonrpc/message.ts'
import { handshake, type Opened, openServer, type ProbeOptions } from './probe.ts'

/** One outgoing call, as middleware sees it. */
export interface OutgoingCall {
  readonly method: string
  readonly params: Params
}

export type ClientMiddleware = (call: OutgoingCall, next: (call: OutgoingCall) => Promise<unknown>) => Promise<unknown>

export class Session {
  readonly engine: Engine
  readonly middleware: ClientMiddleware[] = []
  readonly #probe: ProbeOptions
  #opened: Opened
  #mending: Promise<Opened> | undefined = undefined
  #onOpen: (() => void)[] = []

  private constructor(engine: Engine, probe: ProbeOptions, opened: Opened) {
    this.engine = engine
    this.#probe = probe
    this.#opened = opened
  }

  static async open(probe: ProbeOptions): Promise<Session> {
    return new Session(probe.engine, probe, await openServer(probe))
  }

  get opened(): Opened {
    return this.#opened
  }

  /** Called after each re-opening: what was set up in the old session must be set up again. */
  onReopen(fn: () => void): void {
    this.#onOpen.push(fn)
  }

  request<P, R>(method: Method<P, R>, params: P, options: SendOptions = {}): Promise<R> {
    if (this.middleware.length === 0) return this.#send(method, params as Params, options) as Promise<R>
    const run = (at: number, call: OutgoingCall): Promise<unknown> => {
      const layer = this.middleware[at]
      return layer === undefined ? this.#send(method, call.params, options) : layer(call, (next) => run(at + 1, next))
    }
    return run(0, { method: method.name, params: params as Params }) as Promise<R>
  }

  async #send(method: Method, params: Params, options: SendOptions): Promise<unknown> {
    try {
      return await this.engine.call(this.#opened.conversation, method, params, options)
    } catch (error) {
      // A session that is gone did not run the call: after a new handshake it is safe to send it again, once.
      if (!(error instanceof ConnectionError) || error.kind !== 'session') throw error
      await this.#mend()
      return this.engine.call(this.#opened.conversation, method, params, options)
    }
  }

  #mend(): Promise<Opened> {
    this.#mending ??= handshake(this.#opened.conversation, { ...this.#probe, signal: undefined })
      .then((opened) => {
        this.#opened = opened
        for (const fn of this.#onOpen) fn()
        return opened
      })
      .finally(() => {
        this.#mending = undefined
      })
    return this.#mending
  }

  async close(): Promise<void> {
    await this.#opened.conversation.connection?.close()
    await this.engine.close()
  }
}
