/** Results that a server allowed us to keep, by method and params, until they expire or it says that they changed. */
import type { Clock } from '../core/clock.ts'
import { isRecord, type Params } from '../jsonrpc/message.ts'

interface Kept {
  readonly method: string
  readonly expires: number
  readonly result: unknown
}

export class ResultCache {
  readonly #kept = new Map<string, Kept>()
  readonly #clock: Clock
  readonly #max: number

  constructor(clock: Clock, max = 256) {
    this.#clock = clock
    this.#max = max
  }

  get(method: string, params: Params): unknown {
    const key = keyOf(method, params)
    const kept = this.#kept.get(key)
    if (kept === undefined) return undefined
    if (kept.expires > this.#clock.now()) return kept.result
    this.#kept.delete(key)
    return undefined
  }

  /** Keeps a result for as long as it says; absent, negative or odd values mean not at all. */
  put(method: string, params: Params, result: unknown): void {
    const ttl = isRecord(result) ? result['ttlMs'] : undefined
    if (typeof ttl !== 'number' || !(ttl > 0)) return
    if (this.#kept.size >= this.#max) this.#kept.delete(this.#kept.keys().next().value as string)
    this.#kept.set(keyOf(method, params), { method, expires: this.#clock.now() + Math.min(ttl, 86_400_000), result })
  }

  /** A change was announced. */
  drop(method: string, uri?: string): void {
    for (const [key, kept] of this.#kept) if (kept.method === method && (uri === undefined || key === keyOf(method, { uri }))) this.#kept.delete(key)
  }

  clear(): void {
    this.#kept.clear()
  }
}

function keyOf(method: string, params: Params): string {
  const { _meta, ...rest } = params
  return `${method} ${JSON.stringify(rest)}`
}
