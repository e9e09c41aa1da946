/** A host that opened a session: asked by requests on its connection, or on the stream that it holds open. */
import type { Conversation } from '../../../engine/conversation.ts'
import type { Engine } from '../../../engine/engine.ts'
import type { Method } from '../../../engine/method.ts'
import type { Id } from '../../../jsonrpc/message.ts'
import type { HostCall, HostDialect, LiveHost, Selected } from './messages.ts'

export class SessionHost implements LiveHost {
  readonly dialect: HostDialect
  readonly selected: Selected
  readonly #engine: Engine
  readonly #conversation: Conversation
  readonly #chunks = new Map<Id, NonNullable<HostCall['onChunk']>>()

  constructor(engine: Engine, conversation: Conversation, dialect: HostDialect, selected: Selected) {
    this.#engine = engine
    this.#conversation = conversation
    this.dialect = dialect
    this.selected = selected
  }

  get principal(): string | undefined {
    return this.#conversation.caller.principal?.id
  }

  get gone(): boolean {
    return this.#conversation.ended
  }

  get reachable(): boolean {
    const { ready, ended, connection, heard } = this.#conversation
    return ready && !ended && (connection !== undefined || heard)
  }

  async request<P, R>(method: Method<P, R>, params: P, options: HostCall = {}): Promise<R> {
    const { signal, timeoutMs, exchange, onChunk } = options
    const lane = this.#conversation.connection === undefined ? exchange?.aside : undefined
    // What is asked inside a call belongs to its stream, which may break and be taken up again.
    if (lane !== undefined && exchange !== undefined) this.#engine.streaming(exchange)
    let id: Id | undefined
    try {
      return await this.#engine.call(this.#conversation, method, params, {
        ...(signal === undefined ? {} : { signal }),
        ...(timeoutMs === undefined ? {} : { timeoutMs }),
        ...(lane === undefined ? {} : { lane }),
        onSent: sent => {
          id = sent
          if (onChunk !== undefined) this.#chunks.set(sent, onChunk)
        },
      })
    } finally {
      if (id !== undefined) this.#chunks.delete(id)
    }
  }

  notify<P>(method: Method<P, undefined>, params: P): boolean {
    return this.reachable && this.#engine.notify(this.#conversation, method, params)
  }

  /** A part of an answer that is still to come. After the answer nobody waits for it. */
  chunk(id: Id, index: number, delta: string): void {
    if (this.#conversation.calls?.has(id) === true) this.#chunks.get(id)?.(index, delta)
  }
}
