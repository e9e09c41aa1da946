/** Ports: what one feature lets others use. A token names the port and carries its type; who provides it is looked up by the token. */
import type { Caller } from '../jsonrpc/connection.ts'
import type { Awaitable } from '../jsonrpc/message.ts'
import type { Conversation } from './conversation.ts'
import type { Exchange } from './exchange.ts'

/** Names a port. */
export interface Port<T> {
  readonly name: string
  /** Carries the type; never set. */
  readonly type?: T
}

/** Declares a port, in the `messages.ts` of the feature that provides it. */
export function port<T>(name: string): Port<T> {
  return { name }
}

/** The ports that the features of one engine provide. */
export class Ports {
  readonly #provided = new Map<Port<unknown>, unknown>()

  provide<T>(token: Port<T>, value: T): void {
    if (this.#provided.has(token)) throw new Error(`Two features provide the port "${token.name}"`)
    this.#provided.set(token, value)
  }

  /** Throws where nobody provides it: then a feature is missing from the list. */
  get<T>(token: Port<T>): T {
    const value = this.#provided.get(token)
    if (value === undefined) throw new Error(`No feature provides the port "${token.name}"`)
    return value as T
  }

  /** Undefined where nobody provides it. */
  find<T>(token: Port<T>): T | undefined {
    return this.#provided.get(token) as T | undefined
  }
}

// What those above an engine are told of, and what it asks them, where somebody knows more than it does.

/** Gives what stands at an address, to a context of the author's side. */
type UnlistedReader = (variables: never, context: never) => Awaitable<unknown>

type Shows = (caller: Caller, kind: 'tool' | 'resource' | 'event', name: string, payload?: unknown) => boolean

/** What an engine tells those above it, and what it asks them. */
export class Hooks {
  /** What features let others use. Whoever makes the engine of a list of features has made them before. */
  ports = new Ports()
  /** Called for every stream that is opened for what is said unasked in a session. */
  readonly onListen = new Set<(conversation: Conversation) => void>()
  /** Called for every conversation whose other end has said that it is ready. */
  readonly onReady = new Set<(conversation: Conversation) => void>()
  /** Told of each resource that somebody begins to watch, and of each that nobody watches any more. */
  readonly onWatch = new Set<(uri: string, watched: boolean) => void>()
  /** Told of each conversation whose other end says that its folders are others now. */
  readonly onRoots = new Set<(conversation: Conversation) => void>()
  /** Told of each request that fails, and why: also of those that become a result which says so. */
  readonly onFail = new Set<(exchange: Exchange, error: unknown) => void>()
  /** Told of each message that is refused before anybody handles it: its params do not fit the method, as a rule. */
  readonly onRefuse = new Set<(method: string, params: unknown, error: unknown) => void>()
  /** Why something of this kind that was asked for by this name is not there now, where somebody knows more than that. */
  absent: ((kind: 'tool' | 'prompt' | 'resource', name: string) => unknown) | undefined = undefined
  /**
   * Whether a caller is told unasked of something of this name; of an event with its payload, whether of this one. Undefined: each
   * is told of everything.
   */
  shows: Shows | undefined = undefined
  /**
   * Asked when a list is told to be another one: which callers notice the difference. Undefined, itself or its answer: each does.
   */
  listAudience: ((list: 'tools' | 'prompts' | 'resources') => ((caller: Caller) => boolean) | undefined) | undefined = undefined
  /** Who reads what is in no list and was told to this caller all the same. */
  unlisted: ((uri: string, exchange: Exchange) => UnlistedReader | undefined) | undefined = undefined
  readonly #onSessionEnd: ((id: string, forAll: boolean) => void)[] = []

  /** Calls back for every session that ends, for all who serve it or only here, so that carriers let go of what they keep for it. */
  onSessionEnd(fn: (id: string, forAll: boolean) => void): void {
    this.#onSessionEnd.push(fn)
  }

  sessionEnded(id: string, forAll: boolean): void {
    for (const fn of this.#onSessionEnd) fn(id, forAll)
  }
}
