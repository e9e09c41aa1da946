/**
 * The listen requests that are open. What they can ask for is a list of kinds, to which other features add their own:
 * a kind grants what it can of a wish, and then sends to that listener alone, marked with its subscription.
 */
import { callerAccount } from '../../../core/accounts.ts'
import { Occupancy, shareText, Tally } from '../../../core/occupancy.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import type { Id, Params } from '../../../jsonrpc/message.ts'
import { metaOf } from '../../../revisions/index.ts'
import type { GrantedRights } from '../authorization/messages.ts'
import { cancelled } from '../cancellation/messages.ts'
import { acknowledged, answersListen, type GrantedListen, type ListenKind, type Send, subscriptionMeta } from './messages.ts'

/** How many `subscriptions/listen` requests may be open. */
interface ListenerLimits {
  readonly listeners: number
  /** Per principal, else per connection. */
  readonly listenersPerCaller: number
}

interface Listener {
  readonly exchange: Exchange
  readonly meta: Params
  /** Lets the request settle. */
  readonly settle: () => void
}

type Owner = object | string

/** The open `subscriptions/listen` requests, and what each of them wants to hear. */
export class Listeners {
  readonly #limits: ListenerLimits
  readonly #lapsing: GrantedRights['listens'] | undefined
  readonly #kinds: ListenKind[] = []
  readonly #open = new Set<Listener>()
  readonly #owners = new Tally<Owner>()
  readonly #places: Occupancy
  #closed = false

  constructor(limits: ListenerLimits, lapsing?: GrantedRights['listens']) {
    this.#limits = limits
    this.#places = new Occupancy(limits.listeners)
    this.#lapsing = lapsing
  }

  /** How many there are, those included that are just being opened. */
  get size(): number {
    return this.#places.held
  }

  add(kind: ListenKind): void {
    this.#kinds.push(kind)
  }

  /** Answers a listen request: settles only when the subscription ends. */
  async open(exchange: Exchange): Promise<unknown> {
    if (exchange.reply.answerOnly === true)
      throw new McpError('invalid-request', 'A subscription is a stream of events; accept text/event-stream with its request')
    const account = callerAccount(exchange.caller)
    const owner = exchange.caller.principal === undefined ? exchange.caller.connection : account
    this.#take(owner, account)
    const granted: GrantedListen[] = []
    try {
      return await this.#run(exchange, granted)
    } finally {
      for (const grant of granted) grant.close?.()
      this.#leave(owner, account)
    }
  }

  async #run(exchange: Exchange, granted: GrantedListen[]): Promise<unknown> {
    const meta = subscriptionMeta(exchange.id as Id, exchange.peer.revision)
    const notifications = await this.#grant(exchange, meta, granted)
    if (this.#closed) throw closing()
    // Gone meanwhile: an abort that came before anyone waited for it is not told again.
    if (exchange.signal.aborted) return undefined
    exchange.notify(acknowledged, { notifications, _meta: meta })
    for (const grant of granted) grant.start?.()
    let unwatch: (() => void) | undefined
    let told = meta
    await new Promise<void>(settle => {
      const listener: Listener = { exchange, meta, settle }
      this.#open.add(listener)
      exchange.signal.addEventListener('abort', () => this.#settle(listener), { once: true })
      unwatch = this.#lapsing?.(exchange, (reason, more) => {
        for (const grant of granted) grant.lapse?.()
        told = { ...meta, ...more }
        end({ ...listener, meta: told }, reason)
        this.#settle(listener)
      })
    })
    unwatch?.()
    return { _meta: told }
  }

  async #grant(exchange: Exchange, meta: Params, granted: GrantedListen[]): Promise<Record<string, unknown>> {
    const wishes = exchange.params['notifications'] as Params
    const send = sender(exchange, meta)
    const honoured: Record<string, unknown> = {}
    for (const kind of this.#kinds) {
      const wanted = wishes[kind.member]
      const grant = wanted === undefined ? undefined : await kind.open(exchange, wanted, send)
      if (grant === undefined) continue
      granted.push(grant)
      honoured[kind.member] = grant.accepted
    }
    return honoured
  }

  /** Ends every subscription in good order; new ones are refused from here on. */
  close(): void {
    this.#closed = true
    for (const listener of [...this.#open]) {
      end(listener, 'The server is closing')
      this.#settle(listener)
    }
  }

  #settle(listener: Listener): void {
    if (this.#open.delete(listener)) listener.settle()
  }

  #take(owner: Owner, account: string): void {
    const { listeners, listenersPerCaller } = this.#limits
    if (this.#closed) throw closing()
    if (this.#owners.of(owner) >= listenersPerCaller) {
      throw full(
        `You have ${listenersPerCaller} subscriptions open, which is the limit (listenersPerCaller); end one, or ask for more in one request`,
      )
    }
    const refusal = this.#places.refusal(account)
    if (refusal === 'share') throw full(`${shareText(`${listeners} subscriptions`)} (listeners); end one, or sign in`)
    if (refusal !== undefined) throw full(`${listeners} subscriptions are open, which is the limit (listeners); try again later`)
    this.#places.enter(account)
    this.#owners.add(owner, 1)
  }

  #leave(owner: Owner, account: string): void {
    this.#places.leave(account)
    this.#owners.add(owner, -1)
  }
}

function sender(exchange: Exchange, meta: Params): Send {
  return (method, params, merge) => {
    const marked = { ...params, _meta: { ...metaOf(params as Params), ...meta } }
    exchange.notify(method, marked, merge === undefined ? undefined : { merge: `${merge} ${exchange.id}` })
  }
}

/** Where many subscriptions share one connection, the end is told by a message too. */
function end({ exchange, meta }: Listener, reason: string): void {
  const notice = { requestId: exchange.id, reason, _meta: meta }
  if (exchange.conversation.connection !== undefined) exchange.notify(cancelled, notice)
  // At once, not when the handler has settled: by then the connection may be closed.
  if (answersListen(exchange.peer.revision)) exchange.engine.succeed(exchange, { _meta: meta })
  else exchange.cancel(reason)
}

function closing(): McpError {
  return full('The server is closing and accepts no new subscriptions')
}

function full(message: string): McpError {
  return new McpError('busy', message, { data: { retryAfterMs: 10_000 } })
}
