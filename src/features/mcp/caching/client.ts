/**
 * Results that a server allowed the client to keep, by method and params, until they expire or it says that they changed; and lists
 * that page by themselves and end: pages and items are bounded.
 */
import type { SendOptions } from '../../../engine/calls.ts'
import { type ClientKit, defineClientFeature } from '../../../engine/client-feature.ts'
import type { Method } from '../../../engine/method.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { isRecord, type Params } from '../../../jsonrpc/message.ts'
import { isInputRequired } from '../input-required/messages.ts'
import { type CacheKey, type ClientCache, cachePort, type ListSource } from './messages.ts'

/** Limits on the lists of a server. */
export interface ListLimits {
  /** The most pages of one list. Default 64. */
  readonly listPages?: number
  /** The most entries of one list. Default 10,000. */
  readonly listItems?: number
}

interface CachedResult {
  readonly method: string
  readonly uri: unknown
  readonly expires: number
  readonly result: unknown
  /** For whoever asked, by the credentials of then. */
  readonly personal: boolean
}

const dayMs = 86_400_000

const most = 256

class ResultCache implements ClientCache {
  readonly #stored = new Map<string, CachedResult>()
  readonly #kit: ClientKit
  readonly #limits: ListLimits
  #changes = 0
  #callers = 0

  constructor(kit: ClientKit, limits: ListLimits) {
    this.#kit = kit
    this.#limits = limits
  }

  place(method: string, params: Params, meta: Params | undefined): CacheKey {
    const { _meta, ...rest } = params
    const key = `${method} ${JSON.stringify(meta === undefined ? [rest] : [rest, meta])}`
    return { method, key, uri: params['uri'], changes: this.#changes }
  }

  get({ key }: CacheKey): unknown {
    const stored = this.#stored.get(key)
    if (stored === undefined) return undefined
    if (stored.expires > this.#kit.clock.now()) return stored.result
    this.#stored.delete(key)
    return undefined
  }

  /** Keeps a result for as long as it says; absent, negative or odd values mean not at all. */
  put({ method, key, uri, changes }: CacheKey, result: unknown): void {
    const { ttlMs: ttl, cacheScope } = isRecord(result) ? result : {}
    if (typeof ttl !== 'number' || !(ttl > 0) || changes !== this.#changes) return
    if (this.#stored.size >= most) this.#stored.delete(this.#stored.keys().next().value as string)
    this.#stored.set(key, {
      method,
      uri,
      expires: this.#kit.clock.now() + Math.min(ttl, dayMs),
      result,
      personal: cacheScope !== 'public',
    })
  }

  drop(method: string, uri?: string): void {
    this.#changes++
    for (const [key, stored] of this.#stored) {
      if (stored.method === method && (uri === undefined || uri.startsWith(String(stored.uri)))) this.#stored.delete(key)
    }
  }

  get callers(): number {
    return this.#callers
  }

  /** The credentials are others now, and maybe another's: only what the server calls public is still given. */
  changeCaller(): void {
    this.#changes++
    this.#callers++
    for (const [key, { personal }] of this.#stored) if (personal) this.#stored.delete(key)
  }

  clear(): void {
    this.#changes++
    this.#stored.clear()
  }

  async fetch(method: Method, params: Params, send: SendOptions): Promise<unknown> {
    const place = this.place(method.name, params, send.meta)
    const stored = this.get(place)
    if (stored !== undefined) return stored
    const result = await this.#kit.session.request(method, params, send)
    if (!isInputRequired(result)) this.put(place, result)
    return result
  }

  async *list<T>(source: ListSource, send: SendOptions): AsyncGenerator<T, void, undefined> {
    const { listPages: pages = 64, listItems: items = 10_000 } = this.#limits
    const { method, member } = source
    let params: Params = {}
    let count = 0
    for (let page = 0; page < pages; page++) {
      const result = await this.fetch(method as Method, params, send).catch(error => this.#empty(error, source))
      const list = isRecord(result) ? result[member] : undefined
      if (!isRecord(result) || !Array.isArray(list)) {
        throw new McpError('invalid-result', `The server answered ${method.name} without an array of ${member}`)
      }
      for (const item of list) {
        if (++count > items)
          throw new McpError('invalid-result', `The server lists more than ${items} ${member}, which is the limit`)
        yield item
      }
      // Only absence ends the list: an empty cursor is a cursor. Some servers write absence as null.
      const cursor = result['nextCursor']
      if (cursor === undefined || cursor === null) return
      if (typeof cursor !== 'string')
        throw new McpError('invalid-result', `The server's cursor in ${method.name} is not a string`)
      params = { cursor }
    }
    throw new McpError('invalid-result', `The server's list of ${member} has more than ${pages} pages, which is the limit`)
  }

  /**
   * A server that knows no such method has an empty list, whatever it declared: whoever reads one list after the other must not lose
   * the others by it. One that was declared is traced.
   */
  #empty(error: unknown, { method, member, capability, optional }: ListSource): unknown {
    const { capabilities, revision } = this.#kit.session.opened
    if (!(error instanceof McpError && error.code === revision.errors['method-not-found'])) throw error
    if (optional !== true && capabilities[capability] !== undefined)
      this.#kit.trace('list-missing', { method: method.name, capability })
    return { [member]: [] }
  }
}

/** Keeps what the server lets a client keep, until it says that something changed. */
export const cachingClient = defineClientFeature<object, ClientCache, { readonly limits?: ListLimits }>({
  name: 'caching',
  provides: cachePort,
  options: {},
  setup(kit, { limits = {} }) {
    const cache = new ResultCache(kit, limits)
    return { port: cache, unheard: () => cache.clear(), callerChanged: () => cache.changeCaller() }
  },
})
