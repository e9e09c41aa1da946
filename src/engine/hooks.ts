/** What those above an engine are told of, and what it asks them, where somebody knows more than it does. */
import type { Caller } from '../jsonrpc/connection.ts'
import type { Awaitable } from '../jsonrpc/message.ts'
import type { Conversation } from './conversation.ts'
import type { Exchange } from './exchange.ts'

/** Gives what stands at an address, to a context of the author's side. */
export type UnlistedReader = (variables: never, context: never) => Awaitable<unknown>

export class Hooks {
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
  /** Why something that was asked for by this name is not there now, where somebody knows more than that. */
  absent: ((name: string) => unknown) | undefined = undefined
  /** Whether a caller is told unasked of something of this name. Undefined: each is told of everything. */
  shows: ((caller: Caller, kind: 'tool' | 'resource' | 'event', name: string) => boolean) | undefined = undefined
  /** Who reads what is in no list and was told to this caller all the same. */
  unlisted: ((uri: string, exchange: Exchange) => UnlistedReader | undefined) | undefined = undefined
}
