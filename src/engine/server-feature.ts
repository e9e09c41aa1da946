/**
 * What a feature of a server is: how it is set up, and what it adds. `createServer` folds a list of them; the order of the list is the
 * order of their layers within a stage. Features meet by ports alone.
 */
import type { Audit } from '../core/audit/audit.ts'
import type { Catalog } from '../core/catalog.ts'
import type { Clock } from '../core/clock.ts'
import type { Grants } from '../core/grant/grants.ts'
import type { Seal } from '../core/handle.ts'
import type { Journal } from '../core/journal/journal.ts'
import type { ProcessLeases } from '../core/journal/process-leases.ts'
import type { Log, Trace } from '../core/log.ts'
import type { OptionKind } from '../core/options.ts'
import type { Caller } from '../jsonrpc/connection.ts'
import type { Awaitable } from '../jsonrpc/message.ts'
import type { Store } from '../stores/store.ts'
import type { CallContext } from './context.ts'
import type { Engine, EngineOptions } from './engine.ts'
import type { Exchange } from './exchange.ts'
import type { Limits } from './limits.ts'
import type { CacheHint, Paging } from './paging.ts'
import type { Side } from './plan.ts'
import type { Port } from './ports.ts'

/** What a server gives each of its features. */
export interface ServerKit {
  readonly name: string
  readonly version: string
  readonly clock: Clock
  readonly log: Log
  readonly trace: Trace
  readonly seal: Seal
  readonly limits: Limits
  readonly paging: Paging
  /** How long clients may keep lists, unless a feature says otherwise. */
  readonly cache: CacheHint
  /** How long a call that has asked its caller something may wait for the answer. */
  readonly askMs: number
  /** Whether a store was given, which other processes may share. */
  readonly shared: boolean
  /** Whether a session lasts from request to request where its carrier has no connection. */
  readonly sessions: boolean
  /** The server's store, given or not; it and what is kept in it are opened when first needed. */
  readonly store: () => Promise<Store>
  readonly journal: () => Promise<Journal>
  readonly grants: () => Promise<Grants>
  /** Undefined where there is none. */
  readonly audit: () => Promise<Audit | undefined>
  /** Which processes on the store are alive. */
  readonly runners: () => Promise<ProcessLeases>
  /** Not before all features are set up. */
  readonly engine: () => Engine
  /** All that was set up. */
  readonly sides: () => readonly Side[]
  /** Whether an author's middleware may have a say in who sees what. */
  readonly filtered: () => boolean
  /** The author's context of a call. */
  readonly context: (exchange: Exchange) => CallContext
  /** A feature begins to look at calls: the routes are compiled anew. */
  readonly began: () => void
  /** One more side, when more of a feature is used than before. */
  readonly add: (side: Side) => void
  /** What another feature provides. Those that stand earlier in the list can be had in `setup`, the others later. */
  port<T>(token: Port<T>): T
}

/** What a feature adds to a server. */
export interface InstalledFeature<M extends object = object> {
  readonly sides?: readonly Side[]
  /** The port it provides: see `provide`. */
  readonly provides?: ProvidedPort
  /** What the engine itself asks a feature for. */
  readonly engine?: Pick<EngineOptions, 'asking' | 'explain' | 'explainTo' | 'sendCancel'>
  /** Members of the server that its author holds. */
  readonly server?: M
  /** All features are set up, the engine is there: for what needs those that stand later in the list. */
  installed?(): void
  /** What it shows over HTTP. */
  readonly beside?: ExtraRoutes
  /** What has to be waited for before anybody is let in; undefined where there is nothing. */
  loading?(): Promise<unknown> | undefined
  /** The server begins to serve, on whichever way first: for what can be checked only when all is registered. */
  serves?(): void
  /** Where it is reached by others now. */
  listens?(url: string): void
  /** The server closes: the last moment to tell anybody. Those at the end of the list come first. */
  stop?(): Awaitable<void>
  /** All connections are closed. */
  close?(): Awaitable<void>
}

/** What a server shows over HTTP beside its endpoint. */
export interface ExtraRoutes {
  /** A document for whoever may call the server; it may be another one for each. */
  readonly document?: {
    /** Below the address of the endpoint. */
    readonly path: string
    read(caller: Caller): Promise<{
      readonly text: string
      readonly tag: string
      readonly maxAgeMs: number
      readonly cacheScope: 'public' | 'private'
    }>
  }
  /** Contents for whoever has their signed address. */
  readonly downloads?: {
    readonly path: string
    open(asked: {
      readonly method: string
      readonly name: string
      readonly query: URLSearchParams
      header(name: string): string | undefined
    }): Promise<{
      readonly status: number
      readonly headers: string[]
      readonly body: ReadableStream<Uint8Array> | undefined
      over?(): void
    }>
  }
}

/** One feature: static, so that a process knows all of them before any server is made. */
export interface ServerFeature<O = never, M extends object = object> {
  readonly name: string
  /** The kinds of the options of `createServer` that it reads. */
  readonly options?: Readonly<Partial<Record<keyof O, OptionKind>>>
  /** Members of the context of every call. */
  readonly context?: object
  setup(kit: ServerKit, options: O): InstalledFeature<M>
}

/** A port with its value. */
interface ProvidedPort {
  readonly token: Port<unknown>
  readonly value: unknown
}

/** What a feature's `provides` holds. */
export function provide<T>(token: Port<T>, value: T): ProvidedPort {
  return { token, value }
}

/** Declares a feature of servers. Only says which type it has. */
export function defineServerFeature<O, M extends object = object>(feature: ServerFeature<O, M>): ServerFeature<O, M> {
  return feature
}

/** A handle on something that was registered with the server. */
export interface Registration<F> {
  /** Changes the given options; the others stay. Clients are notified that the list has changed. */
  update(facts: Partial<F>): void
  /** Removes it. Clients are notified that the list has changed. */
  remove(): void
}

/** Enters `compile`'s result under its key; the same facts, changed, are compiled anew. */
export function register<F, E>(catalog: Catalog<E>, key: string, facts: F, compile: (facts: F) => E): Registration<F> {
  let current = facts
  catalog.add(compile(facts))
  return {
    update: changes => {
      const next = { ...current, ...changes }
      catalog.update(compile(next))
      current = next
    },
    remove: () => {
      catalog.remove(key)
    },
  }
}

/**
 * Opens something when it is first needed, once for all who ask. What could not be opened now may be there for the next one who asks.
 * `opened` never begins to open it.
 */
export function lazily<T>(make: () => Promise<T>): { open(): Promise<T>; opened(): Promise<T | undefined> } {
  let opening: Promise<T> | undefined
  return {
    open: () => {
      opening ??= make().catch(error => {
        opening = undefined
        throw error
      })
      return opening
    },
    opened: async () => opening?.catch(() => undefined),
  }
}
