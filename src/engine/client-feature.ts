/**
 * What a feature is on a client: it is set up once for each connection and returns what it answers, what it adds to the `Client` that
 * an application holds, and what other features may use of it. `src/client` lists the features and folds them; it knows none by name.
 */
import type { Clock, Duration } from '../core/clock.ts'
import type { KindsOf } from '../core/options.ts'
import { McpError } from '../jsonrpc/error.ts'
import { type Awaitable, isRecord, type Params } from '../jsonrpc/message.ts'
import type { Capabilities, Implementation, Revision } from '../revisions/index.ts'
import type { SendOptions } from './calls.ts'
import type { Conversation } from './conversation.ts'
import type { Engine, EngineOptions } from './engine.ts'
import type { Method } from './method.ts'
import type { Side } from './plan.ts'
import type { Port } from './ports.ts'

/** What is known of a server once it is open. */
export interface OpenedServer {
  readonly conversation: Conversation
  readonly revision: Revision
  readonly capabilities: Capabilities
  readonly serverInfo: Implementation | undefined
  readonly instructions: string | undefined
}

/** The connection to one server, as features see it. Opening it anew may change what is known of the server. */
export interface ClientSession {
  readonly engine: Engine
  readonly opened: OpenedServer
  /** False from the loss of a session until a new one is open. */
  readonly intact: boolean
  /** Sends a request through the middleware, and once more where the session was lost before it ran. */
  request<P, R>(method: Method<P, R>, params: P, options?: SendOptions): Promise<R>
  /** Called after each re-opening: what was set up in the old session must be set up again. Returns the way to undo it. */
  onReopen(fn: () => void): () => void
  /** With a reason, whoever still waits is told that. */
  close(reason?: Error): Promise<void>
}

/** Options of any request. */
export interface RequestOptions {
  /** The conversation that the request belongs to. Servers keep separate state for each conversation. Default: one for the whole client. */
  readonly conversation?: string
  /** Cancels the request; the server is notified. */
  readonly signal?: AbortSignal
  /** How long to wait for the answer. Default: `timeout` of `connect`. */
  readonly timeout?: Duration
  /** Further members of `_meta`. Default: none. */
  readonly meta?: Readonly<Record<string, unknown>>
}

/** A place where a feature lets others take part: what they add comes in the order of the list of features. */
export interface ExtensionPoint<T> {
  readonly name: string
  /** Only for the compiler: no point has it. */
  readonly type?: T
}

/** Declares an extension point. */
export function extensionPoint<T>(name: string): ExtensionPoint<T> {
  return { name }
}

/** What one feature adds at the extension point of another. */
interface Extension {
  readonly point: ExtensionPoint<unknown>
  readonly value: unknown
}

/** Adds to an extension point. */
export function extend<T>(point: ExtensionPoint<T>, value: T): Extension {
  return { point, value }
}

/** Runs a request of an application: may change its options and look at its answer. */
export type RequestWrapper = <T extends object, O extends RequestOptions>(
  options: O,
  work: (options: O) => Promise<T>,
) => Promise<T>

/** Wraps the requests that read something for an application. Calls of tools have a point of their own. */
export const readRequests: ExtensionPoint<RequestWrapper> = extensionPoint('read-requests')

/** What a feature may use of the client that it is part of. */
export interface ClientKit {
  readonly clock: Clock
  /** Open from the moment at which `opened` is called; before that it throws. */
  readonly session: ClientSession
  /** The server's address; undefined where it runs on this machine as a process. */
  readonly address: URL | undefined
  trace(event: string, detail: unknown): void
  /** What a request of the application is sent with: its own options, and what features add to each. */
  send(options?: RequestOptions): SendOptions
  /** Returns what throws when something is asked for too often. False: it may be asked for as often as wanted. */
  admission(what: string, rate: RequestRate | false): () => void
  port<T>(token: Port<T>): T
  extensions<T>(point: ExtensionPoint<T>): readonly T[]
}

/** A rate limit. */
export interface RequestRate {
  /** The sustained rate per second. */
  readonly perSecond: number
  /** The most at once. Default: `perSecond`, at least 1. */
  readonly burst?: number
}

/** What a feature is made of on one connection. */
export interface ClientParts<P = unknown> {
  /** What it answers, wraps and declares. */
  readonly side?: Side
  /** What other features may use of it. */
  readonly port?: P
  /** Members that it adds to the `Client`; getters stay getters. */
  readonly client?: object
  readonly extensions?: readonly Extension[]
  /** What the engine itself asks a feature for. */
  readonly engine?: Pick<EngineOptions, 'sendCancel'> & { readonly logLevel?: string }
  /** Members of the `_meta` of each request of the application. */
  meta?(): Params | undefined
  /** Right after the handshake. `connect` waits for it, and is given up with the signal. */
  opening?(session: ClientSession, signal: AbortSignal | undefined): Promise<void>
  /** Awaited after each new handshake, before anything else is sent. */
  reopening?(): Promise<void>
  /** The connection is open. */
  opened?(session: ClientSession): Awaitable<void>
  /** A call failed. */
  failed?(error: unknown): void
  /** The server may have said something that nobody heard. */
  unheard?(): void
  /** The server will say nothing more, because it refuses to open the session again. */
  refused?(error: unknown): void
  /** The connection is over: with why it broke, or without a reason where this side closed it. */
  ended?(reason: unknown): void
  /** The application closes the client. */
  closing?(): void
  /** The credentials are others now, and maybe somebody else's. */
  callerChanged?(): void
}

/** A feature's part of the client. `Own`: its options of `connect`; `Seen`: these and others that it reads. */
export interface ClientFeature<Own extends object = object, P = unknown, Seen extends object = Own> {
  readonly name: string
  readonly provides?: Port<P>
  /** Ports of other features; each must be provided by some feature of the list. */
  readonly uses?: readonly Port<unknown>[]
  /** Its options of `connect`, checked before anything is set up. */
  readonly options: KindsOf<Own>
  setup(kit: ClientKit, options: Seen): ClientParts<P>
}

/** Defines a feature's part of the client, for the compiler to check. */
export function defineClientFeature<Own extends object = object, P = unknown, Seen extends object = Own>(
  feature: ClientFeature<Own, P, Seen>,
): ClientFeature<Own, P, Seen> {
  return feature
}

/** Runs a request that reads something for an application, with all that wraps such requests. */
export function wrapRead<T extends object>(
  kit: ClientKit,
  options: RequestOptions,
  work: (options: RequestOptions) => Promise<T>,
): Promise<T> {
  let wrapped = work
  for (const wrap of kit.extensions(readRequests)) {
    const inner = wrapped
    wrapped = sent => wrap(sent, inner)
  }
  return wrapped(options)
}

/** An answer that must hold a list to be of any use. */
export function withArray<T>(result: unknown, method: string, member: string): T {
  if (isRecord(result) && Array.isArray(result[member])) return result as T
  throw new McpError('invalid-result', `The server answered ${method} without an array of ${member}`)
}
