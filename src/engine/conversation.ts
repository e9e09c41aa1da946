/**
 * What is remembered between messages of one remote: its revision and capabilities, our own open calls, the exchanges
 * that run, and the lane for what is said unasked. A stateless POST is a conversation of length one. Small on purpose:
 * thousands stay idle at once, so everything that is not always needed is made when first touched.
 */

import { callerAccount } from '../core/accounts.ts'
import { Occupancy, shareText, Tally } from '../core/occupancy.ts'
import type { Caller, Connection, Lane, Outgoing, SendHints } from '../jsonrpc/connection.ts'
import { McpError } from '../jsonrpc/error.ts'
import type { Peer } from '../revisions/index.ts'
import type { Calls } from './calls.ts'
import type { Exchange } from './exchange.ts'
import type { Limits } from './limits.ts'

/** Names a piece of per-conversation state that a feature keeps. */
export interface ConversationSlot<T> {
  readonly make: (conversation: Conversation) => T
  /** Where other processes may go on with the conversation: the name and JSON form of it, */
  readonly key?: string
  save?(value: T): unknown
  /** and how a value becomes what was saved. */
  restore?(value: T, saved: unknown, conversation: Conversation): void
}

/** What is remembered of one remote between its messages. */
export class Conversation {
  /** The id by which an HTTP client names its session; undefined elsewhere. */
  readonly session: string | undefined
  /** Who speaks in it; of a session that is listened to, with the token of whoever listens. */
  caller: Caller
  /** Set by the handshake on session wires. */
  peer: Peer | undefined = undefined
  /** True once the other end has said that it is ready. */
  ready = false
  /** The same, said to this process: `ready` may have been said to another one. */
  announced = false
  /** Where unasked messages go; undefined while nobody listens. */
  push: Lane | undefined
  /** The duplex or client-side connection under it, where there is one. */
  connection: Connection | undefined = undefined
  /** Makes what has changed known to other processes, where any may go on with it: that of a memory, or that it is there. */
  persist: ((memory?: ConversationSlot<unknown>) => Promise<void>) | undefined = undefined
  lastSeen = 0
  /** Something was said in its session after the handshake. */
  spoke = false
  ended = false
  /** Why it ended. */
  reason: Error | undefined = undefined
  calls: Calls | undefined = undefined
  /** Calls in flight: what runs, without the streams among it. */
  inFlight = 0
  #youngest: Exchange | undefined = undefined
  #memory: Map<ConversationSlot<unknown>, unknown> | undefined = undefined
  #onEnd: (() => void)[] | undefined = undefined
  #onQuiet: (() => void)[] | undefined = undefined
  #onHeard: Set<() => void> | undefined = undefined

  constructor(caller: Caller, session: string | undefined, push: Lane | undefined) {
    this.caller = caller
    this.session = session
    this.push = push
  }

  /** State that a feature keeps here, made when first asked for. */
  recall<T>(memory: ConversationSlot<T>): T {
    this.#memory ??= new Map()
    let value = this.#memory.get(memory as ConversationSlot<unknown>) as T | undefined
    if (value === undefined) {
      value = memory.make(this)
      this.#memory.set(memory as ConversationSlot<unknown>, value)
    }
    return value
  }

  /** The same, but only if it has been made. */
  remembered<T>(memory: ConversationSlot<T>): T | undefined {
    return this.#memory?.get(memory as ConversationSlot<unknown>) as T | undefined
  }

  forget(memory: ConversationSlot<unknown>): void {
    this.#memory?.delete(memory)
  }

  /** What runs now, youngest first. */
  get running(): Exchange[] {
    const list: Exchange[] = []
    for (let at = this.#youngest; at !== undefined; at = at.older) list.push(at)
    return list
  }

  /** Whether anything runs. */
  get busy(): boolean {
    return this.#youngest !== undefined
  }

  /** From here on it runs on its own, and can be cancelled. */
  begin(exchange: Exchange): void {
    exchange.enlist(this.#youngest)
    this.#youngest = exchange
    if (exchange.route.method.lasting !== true) this.inFlight++
  }

  /** False when it never ran on its own: it was answered at once. */
  finish(exchange: Exchange): boolean {
    if (!exchange.running) return false
    const older = exchange.delist()
    if (this.#youngest === exchange) this.#youngest = older
    if (exchange.route.method.lasting !== true && --this.inFlight === 0) {
      for (const fn of this.#onQuiet?.splice(0) ?? []) fn()
    }
    return true
  }

  /** Resolves when no call is in flight. */
  quiet(): Promise<void> {
    if (this.inFlight === 0) return Promise.resolve()
    this.#onQuiet ??= []
    const waiting = this.#onQuiet
    return new Promise(resolve => waiting.push(resolve))
  }

  /** Somebody holds a stream open for what is said unasked. */
  get heard(): boolean {
    return this.push !== undefined && !this.push.closed && this.push.attached !== false
  }

  /** Calls back whenever somebody takes up the stream for what is said unasked, until the returned function is called. */
  onHeard(fn: () => void): () => void {
    this.#onHeard ??= new Set()
    const all = this.#onHeard.add(fn)
    return () => all.delete(fn)
  }

  /** The stream for what is said unasked has a reader, perhaps again. */
  takenUp(): void {
    for (const fn of [...(this.#onHeard ?? [])]) fn()
  }

  onEnd(fn: () => void): void {
    if (this.ended) fn()
    else {
      this.#onEnd ??= []
      this.#onEnd.push(fn)
    }
  }

  /** The other end is gone: what runs for it is cancelled, what waits for it is told. */
  end(reason: Error): void {
    if (this.ended) return
    this.ended = true
    this.reason = reason
    for (const exchange of this.running) exchange.leave(reason.message, false)
    this.calls?.failAll(reason)
    if (this.push?.closed === false) this.push.end()
    for (const fn of this.#onEnd ?? []) fn()
  }
}

// How many calls are being handled: per conversation, per user where each call is a conversation of its own, and in all.

/** While so few run it does not matter whose they are. */
const calm = 64

/** Counts the calls that are handled now and refuses those beyond the limits. */
export class InFlight {
  readonly #limits: Limits
  /** Of stateless calls: whatever else one principal sends at once is not held against another one. */
  readonly #users = new Tally<string>()
  /** Of all that began when so many ran already that one network could keep others out. */
  readonly #crowd: Occupancy
  /** In whose share each of them is counted. */
  readonly #shares = new Map<Exchange, string>()
  /** Stateless calls under way: no conversation remembers them. Of callers without a principal only where `keepsAll`. */
  readonly alone = new Set<Exchange>()
  /** Calls that go on when nobody waits for their answer, as tasks or streams, and what ends each of them. */
  readonly detached = new Map<Exchange, (why: Error) => void>()
  /** Somebody looks at all calls under way, whoever made them. */
  keepsAll = false
  #all = 0
  /** Made once: in a flood each would cost more, by its stack, than all the rest of a refusal. */
  readonly #ofConnection: McpError
  readonly #ofPrincipal: McpError
  readonly #ofAll: McpError
  readonly #ofNetwork: McpError

  constructor(limits: Limits) {
    const { callsPerConversation, calls } = limits
    this.#limits = limits
    this.#crowd = new Occupancy(calls)
    this.#ofNetwork = busy(`${shareText(`${calls} calls`)} (calls); wait for one to end, or sign in`)
    this.#ofConnection = tooMany(`${callsPerConversation} calls of this connection`, 'callsPerConversation')
    this.#ofPrincipal = tooMany(`${callsPerConversation} of your calls`, 'callsPerConversation')
    this.#ofAll = tooMany(`${calls} calls`, 'calls')
  }

  /** Running calls are never dropped; new ones are refused while there are too many. */
  refusal({ conversation, route, caller }: Exchange): McpError | undefined {
    if (route.method.lasting === true || route.method.instant === true) return undefined
    const { callsPerConversation, calls } = this.#limits
    if (conversation.inFlight >= callsPerConversation) return this.#ofConnection
    if (caller.principal !== undefined && isAlone(conversation) && this.#users.of(callerAccount(caller)) >= callsPerConversation)
      return this.#ofPrincipal
    if (this.#all >= calls) return this.#ofAll
    // Most of the time there is room for all, and nobody is asked where he comes from.
    return this.#crowd.held > 0 && this.#crowd.refusal(callerAccount(caller)) !== undefined ? this.#ofNetwork : undefined
  }

  enter(exchange: Exchange): void {
    if (this.#all >= calm && exchange.route.method.lasting !== true) {
      const account = callerAccount(exchange.caller)
      this.#shares.set(exchange, account)
      this.#crowd.enter(account)
    }
    if ((exchange.caller.principal !== undefined || this.keepsAll) && isAlone(exchange.conversation)) this.alone.add(exchange)
    this.#count(exchange, 1)
  }

  leave(exchange: Exchange): void {
    const account = this.#shares.size === 0 ? undefined : this.#shares.get(exchange)
    if (account !== undefined) {
      this.#crowd.leave(account)
      this.#shares.delete(exchange)
    }
    this.alone.delete(exchange)
    this.#count(exchange, -1)
  }

  #count({ conversation, route, caller }: Exchange, by: 1 | -1): void {
    if (route.method.lasting === true) return
    this.#all += by
    if (caller.principal !== undefined && isAlone(conversation)) this.#users.add(callerAccount(caller), by)
  }
}

/** Nothing is remembered from one call to the next: who sends them is all that they have in common. */
function isAlone({ connection, session }: Exchange['conversation']): boolean {
  return connection === undefined && session === undefined
}

function tooMany(what: string, limit: keyof Limits): McpError {
  return busy(`${what} are in flight, which is the limit (${limit}); wait for one to end`)
}

function busy(message: string): McpError {
  return new McpError('busy', message, { data: { retryAfterMs: 1000 } })
}

// The lane of a duplex connection: one for its whole life, both for answers and for what is said unasked.

/** The way back on a connection that carries both directions. */
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
