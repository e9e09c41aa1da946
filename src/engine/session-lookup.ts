/** Which conversation a message over HTTP belongs to: a session that its header names, or none but itself. */
import { toBase64Url } from '../core/base64url.ts'
import type { Caller } from '../jsonrpc/connection.ts'
import { McpError } from '../jsonrpc/error.ts'
import type { Params } from '../jsonrpc/message.ts'
import { checkVersionHeader, metaOf, type Revision, type Spoken, versionHeader, versionKey } from '../revisions/index.ts'
import { Conversation } from './conversation.ts'
import type { Exchange } from './exchange.ts'
import { unknownPeer } from './malformed-messages.ts'
import type { Delivery } from './receive.ts'
import type { Sessions } from './sessions.ts'

export const sessionHeader = 'mcp-session-id'

export interface SessionLookupOptions {
  /** False: session wires are served over HTTP without sessions. */
  readonly sessions?: boolean
  /** Makes session ids: at least 128 bits of randomness. */
  readonly newId?: () => string
  readonly onConversation?: (conversation: Conversation) => void
}

export class SessionLookup {
  readonly #spoken: Spoken
  readonly #sessions: Sessions
  readonly #options: SessionLookupOptions
  /** Connections (sockets) whose last handshake was the dialect's: its clients need not know of sessions. */
  readonly #dialect = new WeakSet<object>()

  constructor(spoken: Spoken, sessions: Sessions, options: SessionLookupOptions) {
    this.#spoken = spoken
    this.#sessions = sessions
    this.#options = options
  }

  /** The conversation a message belongs to. A request that names its own version belongs to none but itself. */
  conversationOf(delivery: Delivery, params: Params | undefined): Conversation {
    if (delivery.conversation !== undefined) return delivery.conversation
    const { caller } = delivery
    const named = caller.header?.(sessionHeader)
    if (named === undefined || (this.#spoken.requests.length > 0 && metaOf(params)?.[versionKey] !== undefined)) {
      return this.#alone(caller, named)
    }
    return this.#session(named, caller)
  }

  /** A conversation of one message. Where the dialect was opened and nothing names another wire, the message is the dialect's. */
  #alone(caller: Caller, named: string | undefined): Conversation {
    const conversation = new Conversation(caller, undefined, undefined)
    const { dialect } = this.#spoken
    if (dialect === undefined || named !== undefined || !this.#dialect.has(caller.connection)) return conversation
    if (versionHeader(caller) === undefined) conversation.peer = unknownPeer(dialect)
    return conversation
  }

  /** Session wires need a session once it is open, unless we serve them without. */
  check(conversation: Conversation, revision: Revision, method: string): void {
    if (conversation.connection !== undefined || conversation.session !== undefined || method === 'initialize') return
    if (revision.http.session && revision.id !== 's3' && this.#options.sessions !== false) throw sessionMissing()
  }

  /** The conversation to which a posted response or batch belongs. */
  answering({ caller }: Delivery): Conversation {
    if (this.#stateless(caller)) {
      throw new McpError(
        'invalid-request',
        'On this wire answers are not posted: they go with the repeated request, in inputResponses',
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
    exchange.headers = { [sessionHeader]: id }
    return opened
  }

  /** The session of a caller that wants to listen or leave. */
  sessionOf(caller: Caller): Conversation {
    if (this.#stateless(caller)) throw new McpError('method-not-allowed', 'On this wire only POST is served')
    const named = caller.header?.(sessionHeader)
    if (named !== undefined) {
      const conversation = this.#session(named, caller)
      checkVersionHeader(versionHeader(caller), this.#spoken, conversation.peer?.revision)
      return conversation
    }
    if (this.#options.sessions === false)
      throw new McpError('method-not-allowed', 'This server keeps no sessions; only POST is served')
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
  return new McpError(
    'session-missing',
    'The header Mcp-Session-Id is missing; send the id that the answer to initialize carried',
  )
}
