/** Results that a server allowed us to keep, by method and params, until they expire or it says that they changed. */
import type { Clock } from '../core/clock.ts'
import { isRecord, type Params } from '../jsonrpc/message.ts'

interface Kept {
  readonly method: string
  readonly uri: unknown
  readonly expires: number
  readonly result: unknown
  /** For whoever asked, by the credentials of then. */
  readonly personal: boolean
}

/** Names a question: what was asked, and when in the course of announced changes. */
export interface Place {
  readonly method: string
  readonly key: string
  readonly uri: unknown
  readonly changes: number
}

const dayMs = 86_400_000

export class ResultCache {
  readonly #kept = new Map<string, Kept>()
  readonly #clock: Clock
  readonly #max: number
  #changes = 0
  #callers = 0

  constructor(clock: Clock, max = 256) {
    this.#clock = clock
    this.#max = max
  }

  /** To be taken before asking: what is announced until the answer comes makes that stale. */
  place(method: string, params: Params, meta: Params | undefined): Place {
    const { _meta, ...rest } = params
    const key = `${method} ${JSON.stringify(meta === undefined ? [rest] : [rest, meta])}`
    return { method, key, uri: params['uri'], changes: this.#changes }
  }

  get({ key }: Place): unknown {
    const kept = this.#kept.get(key)
    if (kept === undefined) return undefined
    if (kept.expires > this.#clock.now()) return kept.result
    this.#kept.delete(key)
    return undefined
  }

  /** Keeps a result for as long as it says; absent, negative or odd values mean not at all. */
  put({ method, key, uri, changes }: Place, result: unknown): void {
    const { ttlMs: ttl, cacheScope } = isRecord(result) ? result : {}
    if (typeof ttl !== 'number' || !(ttl > 0) || changes !== this.#changes) return
    if (this.#kept.size >= this.#max) this.#kept.delete(this.#kept.keys().next().value as string)
    this.#kept.set(key, {
      method,
      uri,
      expires: this.#clock.now() + Math.min(ttl, dayMs),
      result,
      personal: cacheScope !== 'public',
    })
  }

  /** A change was announced: of a list, or of the resource at `uri` or something below it. */
  drop(method: string, uri?: string): void {
    this.#changes++
    for (const [key, kept] of this.#kept) {
      if (kept.method === method && (uri === undefined || uri.startsWith(String(kept.uri)))) this.#kept.delete(key)
    }
  }

  /** How often credentials were replaced: what was kept under another number may be somebody else's. */
  get callers(): number {
    return this.#callers
  }

  /** The credentials are others now, and maybe another's: only what the server calls public is still given. */
  changeCaller(): void {
    this.#changes++
    this.#callers++
    for (const [key, { personal }] of this.#kept) if (personal) this.#kept.delete(key)
  }

  clear(): void {
    this.#changes++
    this.#kept.clear()
  }
}
