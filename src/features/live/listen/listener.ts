/** A host that listens: what is asked of it is delivered on its stream, and kept until it was answered or its time is over. */
import type { Clock } from '../../../core/clock.ts'
import type { Conversation } from '../../../engine/conversation.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import type { Method } from '../../../engine/method.ts'
import { ConnectionError } from '../../../jsonrpc/connection.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import type { Params } from '../../../jsonrpc/message.ts'
import type { HostCall, HostDialect, LiveHost, Selected } from '../hosts/messages.ts'
import { deliverLive, type Listened, listeningLive, type WireAnswer, type WireDelivery } from './messages.ts'

interface Delivery {
  readonly wire: WireDelivery
  readonly seq: number
  readonly onChunk: HostCall['onChunk']
  readonly resolve: (result: unknown) => void
  readonly reject: (error: unknown) => void
}

interface ListenHostOptions {
  readonly hostId: string | undefined
  readonly dialect: HostDialect
  readonly selected: Selected
  readonly principal: string | undefined
  readonly clock: Clock
  readonly timeoutMs: number
}

/** Deliveries that may wait for one host, and notices that are kept for one that comes back. */
const most = 1_000
const kept = 100

export class ListenHost implements LiveHost {
  readonly hostId: string | undefined
  readonly dialect: HostDialect
  readonly selected: Selected
  readonly principal: string | undefined
  gone = false
  readonly #options: ListenHostOptions
  readonly #pending = new Map<string, Delivery>()
  readonly #notices: { readonly seq: number; readonly wire: WireDelivery }[] = []
  #stream: { readonly exchange: Exchange; readonly end: (result: Listened) => void } | undefined = undefined
  #seq = 0

  constructor(options: ListenHostOptions) {
    this.#options = options
    this.hostId = options.hostId
    this.dialect = options.dialect
    this.selected = options.selected
    this.principal = options.principal
  }

  get reachable(): boolean {
    return !this.gone && this.#stream !== undefined
  }

  /** Whether it listens on this connection. */
  speaksIn(conversation: Conversation): boolean {
    return conversation.connection !== undefined && this.#stream?.exchange.conversation === conversation
  }

  /** Takes up a stream, perhaps again: what is unanswered comes anew, and what was only told after the cursor. */
  attach(exchange: Exchange, after: string | undefined, end: (result: Listened) => void): void {
    this.#stream?.end({ reason: 'replaced' })
    this.#stream = { exchange, end }
    const heard = after === undefined ? Number.NEGATIVE_INFINITY : Number(after)
    const again = [
      ...[...this.#pending.values()].map(({ seq, wire }) => ({ seq, wire })),
      ...(Number.isNaN(heard) ? this.#notices : this.#notices.filter(({ seq }) => seq > heard)),
    ].sort((one, other) => one.seq - other.seq)
    exchange.notify(listeningLive, { cursor: `${this.#seq}`, redelivers: again.length })
    for (const { wire } of again) exchange.notify(deliverLive, wire)
  }

  /** True when it was its stream. */
  detach(exchange: Exchange): boolean {
    if (this.#stream?.exchange !== exchange) return false
    this.#stream = undefined
    return true
  }

  /** It does not come back. */
  end(reason?: Listened): void {
    this.gone = true
    if (reason !== undefined) this.#stream?.end(reason)
    this.#stream = undefined
    const error = new ConnectionError('lost', 'The host that listened has gone')
    for (const { reject } of [...this.#pending.values()]) reject(error)
  }

  request<P, R>(method: Method<P, R>, params: P, options: HostCall = {}): Promise<R> {
    const { signal, onChunk, timeoutMs = this.#options.timeoutMs } = options
    if (this.gone) return Promise.reject(new ConnectionError('lost', 'The host that listened has gone'))
    if (signal?.aborted) return Promise.reject(signal.reason)
    if (this.#pending.size >= most) return Promise.reject(new McpError('busy', `${most} deliveries wait for this host`))
    const { seq, wire } = this.#made(method, params, true)
    return new Promise<R>((resolve, reject) => {
      const settle = (): void => {
        this.#pending.delete(wire.deliveryId)
        stop()
        signal?.removeEventListener('abort', abort)
      }
      const fail = (error: unknown): void => {
        settle()
        reject(error)
      }
      const abort = (): void => fail(signal?.reason)
      const late = (): void => fail(new McpError('timeout', `No answer to ${method.name} within ${timeoutMs} ms`))
      const stop = this.#options.clock.setTimeout(late, timeoutMs, true)
      signal?.addEventListener('abort', abort, { once: true })
      const done = (result: unknown): void => {
        settle()
        resolve(result as R)
      }
      this.#pending.set(wire.deliveryId, { wire, seq, onChunk, resolve: done, reject: fail })
      this.#stream?.exchange.notify(deliverLive, wire)
    })
  }

  notify<P>(method: Method<P, undefined>, params: P): boolean {
    const notice = this.#made(method, params, false)
    this.#notices.push(notice)
    if (this.#notices.length > kept) this.#notices.shift()
    return this.#stream?.exchange.notify(deliverLive, notice.wire) ?? false
  }

  /** False where nobody waits for it. */
  answer({ deliveryId, result, error, chunks = [] }: WireAnswer): boolean {
    const delivery = this.#pending.get(deliveryId)
    if (delivery === undefined) return false
    for (const { index, delta } of chunks) delivery.onChunk?.(index, delta)
    if (error !== undefined)
      delivery.reject(
        new McpError('remote', clip(error.message, 1000), { code: error.code, ...('data' in error ? { data: error.data } : {}) }),
      )
    else if (result !== undefined) delivery.resolve(result)
    return true
  }

  #made<P>(method: Method<P, unknown>, params: P, answer: boolean): { readonly seq: number; readonly wire: WireDelivery } {
    const seq = ++this.#seq
    const deliveryId = crypto.randomUUID()
    return { seq, wire: { deliveryId, cursor: `${seq}`, answer, method: method.name, params: params as Params } }
  }
}
