/**
 * The table of conversations that clients name by a session id (an interface, in memory here), and which conversation an HTTP
 * message belongs to.
 */

import { callerAccount, isAnonymous } from '../core/accounts.ts'
import { toBase64Url } from '../core/base64.ts'
import type { Clock } from '../core/clock.ts'
import { Occupancy, shareText } from '../core/occupancy.ts'
import type { Caller, Lane, ResumeOutcome } from '../jsonrpc/connection.ts'
import { McpError } from '../jsonrpc/error.ts'
import { type Awaitable, isThenable, type Params } from '../jsonrpc/message.ts'
import {
  checkVersionHeader,
  metaOf,
  type Revision,
  type SupportedRevisions,
  versionHeader,
  versionKey,
} from '../revisions/index.ts'
import { Conversation } from './conversation.ts'
import type { Engine } from './engine.ts'
import { answerHeaders, type Exchange } from './exchange.ts'
import type { Limits } from './limits.ts'
import { likelyPeer, unknownPeer } from './malformed-messages.ts'
import { type Delivery, refuseMalformed } from './receive.ts'

/** The table of sessions. */
export interface Sessions {
  /** Another owner's is as unknown as one that never was, and not touched by being asked for. */
  get(id: string, owner: string | undefined): Conversation | undefined
  /** Throws a busy refusal when there is no room. */
  add(conversation: Conversation): void
  delete(id: string): void
  all(): Iterable<Conversation>
  close(): void
}

/** A session of a full table in which nothing was said for so long makes room for a new one, long before its time. */
const unusedMs = 60_000

/** How a session came to its end: for all who serve it; given up here, while others may have it too; or with this process. */
type SessionEnd = 'for all' | 'given up' | 'closing'

/**
 * Idle conversations are swept; a full table first gives up what is idle past its time, then what gives way to the newcomer. `ended`
 * hears of each that is over.
 */
export function memorySessions(
  limits: Limits,
  clock: Clock,
  ended: (conversation: Conversation, how: SessionEnd) => void,
): Sessions {
  const table = new Map<string, Conversation>()
  const places = new Occupancy(limits.sessions)
  let timer: (() => void) | undefined
  const end = (conversation: Conversation, why: string, how: SessionEnd = 'given up'): void => {
    const id = conversation.session as string
    if (table.delete(id)) places.leave(callerAccount(conversation.caller))
    conversation.end(new Error(why))
    ended(conversation, how)
  }
  const sweep = (): void => {
    // Also called out of turn, by a full table: the timer that was set must not go on beside the next one.
    timer?.()
    timer = undefined
    const now = clock.now()
    for (const conversation of table.values()) {
      // Idle is counted from the end of what holds a session open: whoever's stream breaks must have the time to come back.
      if (conversation.busy || conversation.heard) conversation.lastSeen = now
      else if (conversation.lastSeen < now - limits.sessionIdleMs)
        end(conversation, 'The session expired because it was idle for too long')
    }
    plan()
  }
  const plan = (): void => {
    if (timer === undefined && table.size > 0) timer = clock.setTimeout(sweep, Math.max(limits.sessionIdleMs / 10, 1000), true)
  }
  return {
    get: (id, owner) => {
      const conversation = table.get(id)
      if (conversation === undefined || conversation.caller.principal?.id !== owner) return undefined
      conversation.lastSeen = clock.now()
      conversation.spoke = true
      return conversation
    },
    add: conversation => {
      const account = callerAccount(conversation.caller)
      const crowded = (): boolean => !isAnonymous(account) && places.of(account) >= limits.sessionsPerPrincipal
      if (places.refusal(account) !== undefined || crowded()) sweep()
      if (crowded()) throw full(`You have ${limits.sessionsPerPrincipal} sessions open`, 'sessionsPerPrincipal')
      if (places.refusal(account) !== undefined) {
        const idle = yielding(table.values(), places, account, clock.now())
        if (idle !== undefined) end(idle, 'The session was closed to make room for a newer one')
      }
      const refusal = places.refusal(account)
      if (refusal === 'share') throw full(shareText(`${limits.sessions} sessions`), 'sessions')
      if (refusal !== undefined) throw full(`${limits.sessions} sessions are open`, 'sessions')
      conversation.lastSeen = clock.now()
      table.set(conversation.session as string, conversation)
      places.enter(account)
      plan()
    },
    delete: id => {
      const conversation = table.get(id)
      if (conversation !== undefined) end(conversation, 'The session was ended', 'for all')
    },
    all: () => table.values(),
    close: () => {
      timer?.()
      timer = undefined
      for (const conversation of [...table.values()]) end(conversation, 'The server is closing', 'closing')
    },
  }
}

/**
 * The session that makes room for a new one of this account: first one that said nothing since its handshake, else one that said
 * nothing for longest; of whoever gives way to it, or one that is not used and is its own or of a stranger who holds no less than a
 * stranger who asks. Never one at work or listened to.
 */
function yielding(all: Iterable<Conversation>, places: Occupancy, account: string, now: number): Conversation | undefined {
  let found: Conversation | undefined
  const mine = isAnonymous(account) ? places.weight(account) : 0
  for (const conversation of all) {
    const { spoke, lastSeen, caller } = conversation
    if (conversation.busy || conversation.heard || (spoke && found !== undefined && found.lastSeen <= lastSeen)) continue
    const from = callerAccount(caller)
    const unused = !spoke || lastSeen <= now - unusedMs
    const free = unused && (from === account || (isAnonymous(from) && places.weight(from) >= mine))
    if (!free && !places.yields(from, account)) continue
    // They stand in the order in which they were opened: of those that never spoke the first is the oldest.
    if (!spoke) return conversation
    found = conversation
  }
  return found
}

function full(what: string, limit: keyof Limits): McpError {
  return new McpError('busy', `${what}, which is the limit (${limit}); end one with DELETE or try again later`, {
    data: { retryAfterMs: 10_000 },
  })
}

/** Which conversation a message over HTTP belongs to: a session that its header names, or none but itself. */
export const sessionHeader = 'mcp-session-id'

interface SessionLookupOptions {
  /** False: session wires are served over HTTP without sessions. */
  readonly sessions?: boolean
  /** Makes session ids: at least 128 bits of randomness. */
  readonly newId?: () => string
  readonly onConversation?: (conversation: Conversation) => void
}

/** Finds the conversation that an HTTP message belongs to. */
export class SessionLookup {
  readonly #spoken: SupportedRevisions
  readonly #sessions: Sessions
  readonly #options: SessionLookupOptions
  /** Connections (sockets) whose last handshake was the dialect's: its clients need not know of sessions. */
  readonly #dialect = new WeakSet<object>()

  constructor(spoken: SupportedRevisions, sessions: Sessions, options: SessionLookupOptions) {
    this.#spoken = spoken
    this.#sessions = sessions
    this.#options = options
  }

  /** The conversation a message belongs to. A request that names its own version belongs to none but itself. */
  conversationOf(delivery: Delivery, params: Params | undefined): Conversation {
    if (delivery.conversation !== undefined) return delivery.conversation
    const { caller } = delivery
    const named = caller.header?.(sessionHeader)
    const { requests, dialect } = this.#spoken
    if (named !== undefined && !(requests.length > 0 && metaOf(params)?.[versionKey] !== undefined))
      return this.#session(named, caller)
    const conversation = new Conversation(caller, undefined, undefined)
    // Where the dialect was opened and nothing names another wire, the message is the dialect's.
    if (
      dialect !== undefined &&
      named === undefined &&
      this.#dialect.has(caller.connection) &&
      versionHeader(caller) === undefined
    )
      conversation.peer = unknownPeer(dialect)
    return conversation
  }

  /** Session wires need a session once it is open, unless we serve them without. */
  check(conversation: Conversation, revision: Revision, method: string): void {
    if (conversation.connection !== undefined || conversation.session !== undefined || method === 'initialize') return
    if (revision.http.sessionRequired && this.#options.sessions !== false) throw sessionMissing()
  }

  /** The conversation to which a posted response or batch belongs. */
  answering({ caller }: Delivery): Conversation {
    if (this.#stateless(caller)) {
      throw new McpError(
        'invalid-request',
        'Responses are not accepted by POST at this revision; repeat the request with the answers in inputResponses',
      )
    }
    const named = caller.header?.(sessionHeader)
    if (named !== undefined) return this.#session(named, caller)
    if (this.#options.sessions !== false) throw sessionMissing()
    return new Conversation(caller, undefined, undefined)
  }

  /** The session that a caller names, if it is one: for whoever has been refused already. */
  known(caller: Caller): Conversation | undefined {
    const named = caller.header?.(sessionHeader)
    return named === undefined ? undefined : this.#sessions.get(named, caller.principal?.id)
  }

  /** Gives the conversation of a handshake over HTTP its session. */
  open(exchange: Exchange): Conversation {
    const { conversation, caller, peer } = exchange
    if (peer.revision !== this.#spoken.dialect) this.#dialect.delete(caller.connection)
    else if (caller.ephemeral !== true) this.#dialect.add(caller.connection)
    if (conversation.connection !== undefined || this.#options.sessions === false) return conversation
    const id = (this.#options.newId ?? newId)()
    // Only who calls is remembered: the exchange that brought the handshake is not kept alive by its session.
    const opened = new Conversation(rememberedCaller(caller), id, undefined)
    this.#sessions.add(opened)
    this.#options.onConversation?.(opened)
    exchange.set(answerHeaders, { [sessionHeader]: id })
    return opened
  }

  /** The session of a caller that wants to listen or leave. */
  sessionOf(caller: Caller): Conversation {
    if (this.#stateless(caller)) throw new McpError('method-not-allowed', 'Only POST is supported at this revision')
    const named = caller.header?.(sessionHeader)
    if (named !== undefined) {
      const conversation = this.#session(named, caller)
      checkVersionHeader(versionHeader(caller), this.#spoken, conversation.peer?.revision)
      return conversation
    }
    if (this.#options.sessions === false)
      throw new McpError('method-not-allowed', 'This server keeps no sessions; only POST is supported')
    throw sessionMissing()
  }

  #stateless(caller: Caller): boolean {
    if (this.#spoken.sessions.length === 0 && this.#spoken.dialect === undefined) return true
    const version = versionHeader(caller)
    return version !== undefined && this.#spoken.byWire(version)?.era === 'request'
  }

  #session(id: string, caller: Caller): Conversation {
    // Another's session is answered exactly like one that never was.
    const conversation = this.#sessions.get(id, caller.principal?.id)
    if (conversation === undefined) {
      throw new McpError('session-unknown', 'This session does not exist or has ended; send initialize without a session id')
    }
    return conversation
  }
}

/** As much of a caller as its session remembers: who it is, and from where. Not the socket, which may be gone with the next message. */
export function rememberedCaller({ carrier, principal, connection }: Caller): Caller {
  const { remoteAddress } = connection as { readonly remoteAddress?: string }
  return { carrier, principal, connection: remoteAddress === undefined ? {} : { remoteAddress } }
}

function newId(): string {
  return toBase64Url(crypto.getRandomValues(new Uint8Array(24)))
}

function sessionMissing(): McpError {
  return new McpError('session-missing', 'The header Mcp-Session-Id is missing; send the id from the response to initialize')
}

// Callers that open a stream for what is said unasked, come back to one that broke, or end their session.

/** Settles when the lane may be opened, if it was not refused. */
export function openServerStream(engine: Engine, caller: Caller, lane: Lane): Awaitable<void> {
  const refused = (error: unknown): void => refuseMalformed(engine, lane, undefined, error, likelyPeer(engine, caller, undefined))
  try {
    const conversation = engine.sessionLookup.sessionOf(caller)
    // What it hears is decided by the token with which it listens, not by that of the handshake.
    conversation.caller = { ...conversation.caller, principal: caller.principal }
    const last = caller.header?.('last-event-id')
    if (last === undefined || !httpOf(conversation).resume) return hear(engine, conversation, lane)
    const resumed = lane.resume?.(conversation.session as string, last) ?? false
    if (!isThenable(resumed)) return goneOn(engine, conversation, lane, resumed)
    return resumed.then(how => goneOn(engine, conversation, lane, how), unread).then(undefined, refused)
  } catch (error) {
    refused(error)
  }
}

/** Ends the session that a caller names. */
export function endSession(engine: Engine, caller: Caller, reply: Lane): void {
  try {
    const conversation = engine.sessionLookup.sessionOf(caller)
    const { session = '' } = conversation
    engine.sessions.delete(session)
    if (engine.sharing === undefined) reply.end({ status: 200 })
    else engine.sharing.end(session, caller, reply)
  } catch (error) {
    refuseMalformed(engine, reply, undefined, error, likelyPeer(engine, caller, undefined))
  }
}

function hear(engine: Engine, conversation: Conversation, lane: Lane): void {
  if (conversation.push !== undefined && !conversation.push.closed) conversation.push.end()
  conversation.push = lane
  const http = httpOf(conversation)
  if (http.resume) lane.keep?.(conversation.session as string, http.prime)
  takenUp(engine, conversation)
}

function goneOn(engine: Engine, conversation: Conversation, lane: Lane, how: ResumeOutcome): void {
  if (how === false)
    throw new McpError('invalid-request', 'No stream of this session sent the event id in Last-Event-ID; open a new stream')
  if (how === true) return takenUp(engine, conversation)
  if (conversation.ended) lane.end()
  else hear(engine, conversation, lane)
}

/** Somebody reads what is said unasked, perhaps again. */
function takenUp(engine: Engine, conversation: Conversation): void {
  for (const fn of engine.onListen) fn(conversation)
  conversation.takenUp()
}

function unread(cause: unknown): never {
  throw new McpError('busy', 'The streams of this session cannot be loaded because the store is unavailable; retry in 1 s', {
    cause,
    data: { retryAfterMs: 1_000 },
  })
}

function httpOf({ peer }: Conversation): Revision['http'] {
  return (peer as { revision: Revision }).revision.http
}
