/** The lane of a duplex connection: one for its whole life, both for answers and for what is said unasked. */
import type { Connection, Lane, Outgoing, SendHints } from '../jsonrpc/connection.ts'
import type { Conversation } from './conversation.ts'

export class DuplexLane implements Lane {
  readonly #connection: Connection
  readonly #failed: (error: unknown) => void
  conversation: Conversation | undefined = undefined

  constructor(connection: Connection, failed: (error: unknown) => void) {
    this.#connection = connection
    this.#failed = failed
  }

  get closed(): boolean {
    return this.conversation?.ended === true
  }

  send(frame: string, hints?: SendHints): void {
    if (this.closed) return
    const sent = this.#connection.send(frame, this.#outgoing(hints))
    if (sent !== undefined) sent.catch(this.#failed)
  }

  get blocked(): boolean {
    return this.#connection.blocked === true
  }

  onFree(fn: () => void): void {
    this.#connection.onFree?.(fn)
  }

  end(): void {}

  onClose(fn: () => void): void {
    this.conversation?.onEnd(fn)
  }

  #outgoing(hints: SendHints | undefined): Outgoing | undefined {
    if (this.#connection.carrier === 'http') {
      const http = this.conversation?.peer?.revision.http
      return { session: http?.session === true, headers: http?.headers(undefined, undefined, undefined) ?? {} }
    }
    return hints?.merge === undefined && hints?.spare !== true ? undefined : hints
  }
}
