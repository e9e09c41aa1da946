/**
 * The listen requests that are open. What they can ask for is a list of kinds, to which other features add their own;
 * what is published goes to those who were granted it, marked with their subscription, and to nobody else.
 */
import type { Exchange } from '../../../engine/exchange.ts'
import type { Method } from '../../../engine/method.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import type { Id, Params } from '../../../jsonrpc/message.ts'
import { metaOf } from '../../../revisions/index.ts'
import { cancelled } from '../cancellation/messages.ts'
import { acknowledged, answersListen, subscriptionMeta } from './messages.ts'

/** One member of what a listen may ask for. */
export interface ListenKind<G = unknown> {
  /** Its name in the filter. */
  readonly member: string
  /** What of a wish is granted; undefined: nothing. Throws to refuse the whole request. */
  grant(wish: unknown, exchange: Exchange): G | undefined
  /** The granted part as the acknowledgement shows it. Default: as it is. */
  show?(granted: G): unknown
}

/** Sends to each listener whose granted part fits. `merge`: a later message of the same name may replace this one while it queues. */
export type Publish<G> = <P extends Params>(method: Method<P, undefined>, params: P, fits: (granted: G) => boolean, merge?: string) => void

export interface ListenerLimits {
  readonly listeners: number
  /** Per principal, else per connection. */
  readonly listenersPerCaller: number
}

interface Listener {
  readonly exchange: Exchange
  readonly meta: Params
  readonly granted: ReadonlyMap<ListenKind, unknown>
  readonly owner: object | string
  settle(): void
}

export class Listeners {
  readonly #limits: ListenerLimits
  readonly #kinds: ListenKind[] = []
  readonly #open = new Set<Listener>()
  readonly #perOwner = new Map<object | string, number>()
  #closed = false

  constructor(limits: ListenerLimits) {
    this.#limits = limits
  }

  get size(): number {
    return this.#open.size
  }

  add<G>(kind: ListenKind<G>): Publish<G> {
    this.#kinds.push(kind as ListenKind)
    return (method, params, fits, merge) => {
      for (const listener of this.#open) {
        const granted = listener.granted.get(kind as ListenKind) as G | undefined
        if (granted !== undefined && fits(granted)) say(listener, method, params, merge)
      }
    }
  }

  /** Answers a listen request: settles only when the subscription ends. */
  open(exchange: Exchange): Promise<unknown> {
    const owner = exchange.caller.principal?.id ?? exchange.caller.connection
    this.#admit(owner)
    const wishes = exchange.params['notifications'] as Params
    const granted = new Map<ListenKind, unknown>()
    const shown: Record<string, unknown> = {}
    for (const kind of this.#kinds) {
      const wish = wishes[kind.member]
      const grant = wish === undefined ? undefined : kind.grant(wish, exchange)
      if (grant === undefined) continue
      granted.set(kind, grant)
      shown[kind.member] = kind.show === undefined ? grant : kind.show(grant)
    }
    const meta = subscriptionMeta(exchange.id as Id, exchange.peer.revision)
    exchange.notify(acknowledged, { notifications: shown, _meta: meta })
    return new Promise((resolve) => {
      this.#enter({ exchange, meta, granted, owner, settle: () => resolve({ _meta: meta }) })
    })
  }

  /** Ends every subscription in good order; new ones are refused from here on. */
  close(): void {
    this.#closed = true
    for (const listener of [...this.#open]) {
      end(listener, 'The server is closing')
      this.#leave(listener)
    }
  }

  #admit(owner: object | string): void {
    const { listeners, listenersPerCaller } = this.#limits
    if (this.#closed) throw full('The server is closing; it takes no new subscriptions')
    if ((this.#perOwner.get(owner) ?? 0) >= listenersPerCaller) {
      throw full(`You have ${listenersPerCaller} subscriptions open, which is the limit; end one, or ask for more in one request`)
    }
    if (this.#open.size >= listeners) throw full(`${listeners} subscriptions are open, which is the limit; try again later`)
  }

  #enter(listener: Listener): void {
    const { exchange, owner } = listener
    this.#open.add(listener)
    this.#perOwner.set(owner, (this.#perOwner.get(owner) ?? 0) + 1)
    exchange.signal.addEventListener('abort', () => this.#leave(listener), { once: true })
  }

  #leave(listener: Listener): void {
    if (!this.#open.delete(listener)) return
    const left = (this.#perOwner.get(listener.owner) ?? 1) - 1
    if (left === 0) this.#perOwner.delete(listener.owner)
    else this.#perOwner.set(listener.owner, left)
    listener.settle()
  }
}

function say<P extends Params>({ exchange, meta }: Listener, method: Method<P, undefined>, params: P, merge: string | undefined): void {
  const hints = merge === undefined ? undefined : { merge: `${merge} ${exchange.id}` }
  exchange.notify(method, { ...params, _meta: { ...metaOf(params), ...meta } }, hints)
}

/** Where many subscriptions share one connection, the end is told by a message too. */
function end({ exchange, meta }: Listener, reason: string): void {
  const notice = { requestId: exchange.id, reason, _meta: meta }
  if (exchange.conversation.connection !== undefined) exchange.notify(cancelled, notice)
  if (answersListen(exchange.peer.revision)) exchange.engine.succeed(exchange, { _meta: meta })
  else exchange.cancel(reason)
}

function full(message: string): McpError {
  return new McpError('busy', message, { data: { retryAfterMs: 10_000 } })
}
