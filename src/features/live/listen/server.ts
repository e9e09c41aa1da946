/**
 * Server side of the listen binding (`docs/reference/live-binding.md`): keeps listening hosts, delivers messages on their streams, and matches
 * answers to them.
 */

import { callerAccount, isAnonymous } from '../../../core/accounts.ts'
import type { Clock } from '../../../core/clock.ts'
import { Occupancy, shareText } from '../../../core/occupancy.ts'
import type { Conversation } from '../../../engine/conversation.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import type { Method } from '../../../engine/method.ts'
import { secretLength } from '../../../engine/owner.ts'
import type { Side } from '../../../engine/plan.ts'
import { ConnectionError } from '../../../jsonrpc/connection.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { isRecord, type Params } from '../../../jsonrpc/message.ts'
import { liveExtension, type WireSelection } from '../feature-sets/messages.ts'
import type { HostCall, HostDialect, HostSelectionView, LiveHost } from '../hosts/messages.ts'
import {
  answerLive,
  deliverLive,
  type ListenEnd,
  listeningLive,
  listenLive,
  type WireAnswer,
  type WireDelivery,
  type WireListen,
} from './messages.ts'

/** What is stored per listening host. */
interface HostRegistration {
  readonly host: ListenHost
  /** The account whose share of listeners it uses. */
  readonly account: string
  /** Applies a selection. */
  readonly select: (selection: WireSelection) => void
}

interface ListenParts {
  readonly clock: Clock
  readonly limits: () => { readonly listeners: number; readonly listenersPerCaller: number; readonly callTimeoutMs: number }
  /** Determines the dialect of a listening host and creates its selection. */
  readonly registration: (
    exchange: Exchange,
    said: Readonly<Record<string, unknown>>,
  ) => {
    readonly dialect: HostDialect
    readonly selected: HostSelectionView
    readonly select: (selection: WireSelection) => void
  }
  /** Called when a host starts to listen. */
  readonly heard: () => void
  /** Called when the stream of a host has ended, and again when the host is given up. */
  readonly left: () => void
  /** How long a host whose stream ended is kept. */
  readonly lingerMs: number
}

/** Creates the handlers of `live/listen` and `live/answer`. */
export function listenServer(parts: ListenParts) {
  const registrations = new Map<string, HostRegistration>()
  let closed = false
  /** The listening host that sent a request. */
  const find = (exchange: Exchange): HostRegistration | undefined => {
    const { conversation, caller } = exchange
    const live = exchange.meta?.[liveExtension]
    const hostId = exchange.params['hostId'] ?? (isRecord(live) ? live['hostId'] : undefined)
    if (typeof hostId === 'string') {
      const registration = registrations.get(hostId)
      return registration?.host.principal === caller.principal?.id ? registration : undefined
    }
    return [...registrations.values()].find(({ host }) => host.speaksIn(conversation))
  }
  // Finds the host or registers a new one, within the limits.
  const take = (exchange: Exchange): HostRegistration => {
    const found = find(exchange)
    if (found !== undefined) return found
    const { hostId, host: said = {} } = exchange.params as unknown as WireListen
    const name = hostId ?? crypto.randomUUID()
    const { principal } = exchange.caller
    const account = callerAccount(exchange.caller)
    checkName(account, name)
    if (registrations.has(name))
      throw new McpError(
        'invalid-params',
        'params.hostId is already used by another host. Use another value, such as a random UUID',
      )
    const { listeners, listenersPerCaller, callTimeoutMs } = parts.limits()
    const others = [...registrations.values()].filter(registration => principal !== undefined && registration.account === account)
    const refusal = refusalFor(registrations.values(), account, listeners)
    if (closed || refusal === 'limit') throw full('hosts are listening', listeners, 'limits.listeners')
    if (refusal === 'share') throw busy(`${shareText(`${listeners} hosts that may listen`)} (limits.listeners)`)
    if (others.length >= listenersPerCaller)
      throw full('of your hosts are listening', listenersPerCaller, 'limits.listenersPerCaller')
    const { select, ...spoken } = parts.registration(exchange, said)
    const options = { ...spoken, hostId: name, principal: principal?.id, clock: parts.clock, timeoutMs: callTimeoutMs }
    const registration = { host: new ListenHost(options), select, account }
    registrations.set(name, registration)
    return registration
  }
  const leave = ({ host }: HostRegistration): void => {
    host.end()
    registrations.delete(host.hostId)
    parts.left()
  }
  const answer = (exchange: Exchange): { readonly known: boolean } => {
    const mine = find(exchange)
    // An anonymous host may have lost its id; delivery ids are just as hard to guess.
    const all = mine === undefined ? [...registrations.values()] : [mine]
    const said = exchange.params as unknown as WireAnswer
    return { known: all.some(({ host }) => host.principal === exchange.caller.principal?.id && host.answer(said)) }
  }
  const side: Side = {
    handlers: [
      [listenLive, exchange => listen(parts, exchange, take, leave)],
      [answerLive, answer],
    ],
  }
  return {
    side,
    find,
    *hosts(): Iterable<LiveHost> {
      for (const { host } of registrations.values()) yield host
    },
    close: (): void => {
      closed = true
      for (const { host } of registrations.values()) host.end({ reason: 'closing' })
      registrations.clear()
    },
  }
}

async function listen(
  { clock, heard, left, lingerMs }: ListenParts,
  exchange: Exchange,
  take: (exchange: Exchange) => HostRegistration,
  leave: (registration: HostRegistration) => void,
): Promise<ListenEnd | undefined> {
  if (exchange.reply.answerOnly === true)
    throw new McpError('invalid-request', 'The request opens an event stream. Send it with Accept: text/event-stream')
  const registration = take(exchange)
  const { after, policy } = exchange.params as unknown as WireListen
  if (policy !== undefined) registration.select(policy)
  const { signal } = exchange
  const ended = await new Promise<ListenEnd | undefined>(resolve => {
    const end = (result: ListenEnd): void => {
      // Answered at once, not after the handler settles: the connection may be closed by then.
      exchange.engine.succeed(exchange, result)
      resolve(result)
    }
    signal.addEventListener('abort', () => resolve(undefined), { once: true })
    if (signal.aborted) return resolve(undefined)
    registration.host.attach(exchange, after, end)
    // Deferred, because messages sent before the handler has started would be lost.
    queueMicrotask(heard)
  })
  if (registration.host.detach(exchange)) {
    left()
    const waitFor = registration.host
    clock.setTimeout(() => !waitFor.reachable && !waitFor.gone && leave(registration), lingerMs, true)
  }
  return ended
}

/** The longest host id. */
const longestName = 200

/** Without authorization the host id is the only credential, so it must be hard to guess. */
function checkName(account: string, name: string): void {
  const least = isAnonymous(account) ? secretLength : 1
  if (name.length < least || name.length > longestName)
    throw new McpError(
      'invalid-params',
      `params.hostId must have ${least} to ${longestName} characters. Without authorization, hosts are identified by it alone: use a random value, such as a UUID`,
    )
}

function refusalFor(
  registrations: Iterable<HostRegistration>,
  account: string,
  listeners: number,
): 'limit' | 'share' | undefined {
  const places = new Occupancy(listeners)
  for (const registration of registrations) places.enter(registration.account)
  return places.refusal(account)
}

function full(what: string, limit: number, name: string): McpError {
  return busy(`${limit} ${what} (the limit, ${name})`)
}

function busy(why: string): McpError {
  return new McpError('busy', `${why}. Retry in 10 seconds`, { data: { retryAfterMs: 10_000 } })
}

// A listening host: requests are delivered on its stream and kept until answered or timed out.

interface Delivery {
  readonly wire: WireDelivery
  readonly seq: number
  readonly onChunk: HostCall['onChunk']
  readonly resolve: (result: unknown) => void
  readonly reject: (error: unknown) => void
}

interface ListenHostOptions {
  readonly hostId: string
  readonly dialect: HostDialect
  readonly selected: HostSelectionView
  readonly principal: string | undefined
  readonly clock: Clock
  readonly timeoutMs: number
}

/** Limits per host: pending deliveries, and notifications kept for a host that comes back. */
const most = 1_000
const stored = 100

class ListenHost implements LiveHost {
  readonly hostId: string
  readonly dialect: HostDialect
  readonly selected: HostSelectionView
  readonly principal: string | undefined
  gone = false
  readonly #options: ListenHostOptions
  readonly #pending = new Map<string, Delivery>()
  readonly #notices: { readonly seq: number; readonly wire: WireDelivery }[] = []
  #stream: { readonly exchange: Exchange; readonly end: (result: ListenEnd) => void } | undefined = undefined
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

  /** Attaches a stream, and repeats unanswered requests and notifications after the cursor. */
  attach(exchange: Exchange, after: string | undefined, end: (result: ListenEnd) => void): void {
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

  /** True if the exchange was its current stream. */
  detach(exchange: Exchange): boolean {
    if (this.#stream?.exchange !== exchange) return false
    this.#stream = undefined
    return true
  }

  /** The host will not come back; all pending requests fail. */
  end(reason?: ListenEnd): void {
    this.gone = true
    if (reason !== undefined) this.#stream?.end(reason)
    this.#stream = undefined
    const error = new ConnectionError('lost', 'The listening host has disconnected')
    for (const { reject } of [...this.#pending.values()]) reject(error)
  }

  request<P, R>(method: Method<P, R>, params: P, options: HostCall = {}): Promise<R> {
    const { signal, onChunk, timeoutMs = this.#options.timeoutMs } = options
    if (this.gone) return Promise.reject(new ConnectionError('lost', 'The listening host has disconnected'))
    if (signal?.aborted) return Promise.reject(signal.reason)
    if (this.#pending.size >= most)
      return Promise.reject(new McpError('busy', `${most} requests already wait for this host (the limit)`))
    const { seq, wire } = this.#made(method, params, true)
    return new Promise<R>((resolve, reject) => {
      const settle = (act: () => void): void => {
        this.#pending.delete(wire.deliveryId)
        stop()
        signal?.removeEventListener('abort', abort)
        act()
      }
      const fail = (error: unknown): void => settle(() => reject(error))
      const abort = (): void => fail(signal?.reason)
      const late = (): void => fail(new McpError('timeout', `No answer to ${method.name} within ${timeoutMs} ms`))
      const stop = this.#options.clock.setTimeout(late, timeoutMs, true)
      signal?.addEventListener('abort', abort, { once: true })
      const done = (result: unknown): void => settle(() => resolve(result as R))
      this.#pending.set(wire.deliveryId, { wire, seq, onChunk, resolve: done, reject: fail })
      this.#stream?.exchange.notify(deliverLive, wire)
    })
  }

  notify<P>(method: Method<P, undefined>, params: P): boolean {
    const notice = this.#made(method, params, false)
    this.#notices.push(notice)
    if (this.#notices.length > stored) this.#notices.shift()
    return this.#stream?.exchange.notify(deliverLive, notice.wire) ?? false
  }

  /** Settles a pending request; false if nobody waits for it. */
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

  // Assigns a sequence number, which is also the cursor.
  #made<P>(method: Method<P, unknown>, params: P, answer: boolean): { readonly seq: number; readonly wire: WireDelivery } {
    const seq = ++this.#seq
    const deliveryId = crypto.randomUUID()
    return { seq, wire: { deliveryId, cursor: `${seq}`, answer, method: method.name, params: params as Params } }
  }
}
