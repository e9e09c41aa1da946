/** How long a result may be kept, and for whom (2026-07-28 server/utilities/caching): servers stamp it, older wires lack it. */
import { type Duration, toMilliseconds } from '../../../core/clock.ts'
import type { SendOptions } from '../../../engine/calls.ts'
import type { Method } from '../../../engine/method.ts'
import type { CacheHint } from '../../../engine/paging.ts'
import { type Port, port } from '../../../engine/ports.ts'
import type { Params } from '../../../jsonrpc/message.ts'
import type { Wire } from '../../../revisions/index.ts'
import { without } from '../content/messages.ts'

/** How long, and for whom, clients may cache a result. */
export interface CacheOptions {
  /** How long a client may use the result without asking again. Default: not at all. */
  readonly ttl?: Duration
  /** `public`: the result is the same for every caller, so that a shared cache may serve it. Default `private`. */
  readonly scope?: 'public' | 'private'
}

/** For what must not be used again: a result that came of questions is for its own call only. */
export const noCache: CacheHint = { ttlMs: 0, cacheScope: 'private' }

/** What is stamped on a result: whole milliseconds, as the wire wants them. */
export function cacheHint(options: CacheOptions | undefined, standard: CacheHint = noCache): CacheHint {
  const { ttl, scope } = options ?? {}
  return {
    ttlMs: ttl === undefined ? standard.ttlMs : Math.round(toMilliseconds(ttl, 'cache.ttl')),
    cacheScope: scope ?? standard.cacheScope,
  }
}

/** The step down to wires that have no caching. */
export function withoutCacheHint(result: Wire): Wire {
  return without(result, 'ttlMs', 'cacheScope')
}

/** Names a question to the server: what was asked, and when in the course of announced changes. */
export interface CacheKey {
  readonly method: string
  readonly key: string
  readonly uri: unknown
  readonly changes: number
}

/** One list of a server, and the capability that promises it; an optional one may be missing without a word about it. */
export interface ListSource {
  readonly method: Method<{ readonly cursor?: string | undefined }, object>
  /** The member of the result that holds the items. */
  readonly member: string
  /** Without which the server has no such list. */
  readonly capability: 'tools' | 'prompts' | 'resources'
  readonly optional?: boolean
}

/** What a client keeps of a server's results, as long as the server allows it. */
export interface ClientCache {
  /** Taken before asking: a change that is announced until the answer comes makes that stale. */
  place(method: string, params: Params, meta: Params | undefined): CacheKey
  /** What is kept and not too old. */
  get(place: CacheKey): unknown
  put(place: CacheKey, result: unknown): void
  /** A change was announced: of a list, or of the resource at `uri` or something below it. */
  drop(method: string, uri?: string): void
  /** How often credentials were replaced: what was kept under another number may be somebody else's. */
  readonly callers: number
  /** From the cache if it may be, else from the server. */
  fetch(method: Method, params: Params, send: SendOptions): Promise<unknown>
  /** All entries of a list, page by page, up to the limits of the client. */
  list<T>(source: ListSource, send: SendOptions): AsyncGenerator<T, void, undefined>
}

/** The client's cache, for all features that read from the server. */
export const cachePort: Port<ClientCache> = port('cache')
