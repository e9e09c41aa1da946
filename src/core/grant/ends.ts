/**
 * The ends of grants: whatever was opened under one (a subscription, later a reference) hears when it is over, and why, wherever
 * it was ended. Woken by the store, and looked for now and then, since hints may get lost.
 */
import type { Clock } from '../clock.ts'
import type { Grants } from './grants.ts'

/** How a grant ended: taken away, by its time, or because nobody used it. */
export type GrantEndReason = 'revoked' | 'expired' | 'idle'

interface GrantEndsOptions {
  readonly grants: Grants
  readonly clock: Clock
  /** How often it is looked for ends of which nothing was heard. Default 1 s. */
  readonly lookMs?: number
  /** Told what keeps it from looking. */
  readonly failed?: (error: unknown) => void
}

interface WatchedGrant {
  readonly owner: string
  readonly id: string
  readonly ended: Set<(why: GrantEndReason) => void>
  /** As far as it is known: a record that is gone after that has expired. */
  expires: number
}

const leastMs = 10

/** Calls back when a grant ends, whether it expires, is used up, lies idle or is revoked in any process. */
export class GrantEnds {
  readonly #options: GrantEndsOptions
  readonly #watched = new Map<string, WatchedGrant>()
  #wake: (() => void) | undefined = undefined
  readonly #closing = new AbortController()
  #running = false
  /** Somebody came while it looked, who was not looked at. */
  #added = false

  constructor(options: GrantEndsOptions) {
    this.#options = options
  }

  /** Calls `ended` once, when the grant is over, also where it is so already. Gives what to call when nobody cares any more. */
  on(owner: string, id: string, ended: (why: GrantEndReason) => void): () => void {
    const place = `${owner}/${id}`
    const watched = this.#watched.get(place) ?? { owner, id, ended: new Set(), expires: Number.POSITIVE_INFINITY }
    watched.ended.add(ended)
    this.#watched.set(place, watched)
    this.#added = true
    if (this.#running) this.#wake?.()
    else if (!this.#closing.signal.aborted) void this.#run()
    return () => {
      watched.ended.delete(ended)
      if (watched.ended.size > 0 || this.#watched.get(place) !== watched) return
      this.#watched.delete(place)
      this.#wake?.()
    }
  }

  close(): void {
    this.#closing.abort()
    this.#watched.clear()
    this.#wake?.()
  }

  async #run(): Promise<void> {
    this.#running = true
    const over = new AbortController()
    const signal = AbortSignal.any([over.signal, this.#closing.signal])
    const hints = this.#options.grants.store.watch(['grant/'], signal)[Symbol.asyncIterator]()
    const next = (): Promise<boolean> =>
      hints.next().then(
        ({ done }) => done !== true,
        () => false,
      )
    try {
      // Asked for before each look, so that what ends meanwhile is a hint for the next.
      let hint = next()
      while (this.#watched.size > 0) if (await this.#rest(hint, await this.#look())) hint = next()
    } finally {
      this.#running = false
      over.abort()
    }
  }

  /** Gives when to look again. */
  async #look(): Promise<number> {
    const { clock, lookMs = 1_000, failed } = this.#options
    let next = clock.now() + lookMs
    this.#added = false
    try {
      for (const [place, watched] of [...this.#watched]) {
        const life = await this.#options.grants.lifeOf(watched.owner, watched.id, watched.expires)
        if ('until' in life) {
          watched.expires = life.expires
          next = Math.min(next, life.until)
          continue
        }
        if (this.#watched.get(place) === watched) this.#watched.delete(place)
        for (const ended of watched.ended) ended(life.over)
      }
    } catch (error) {
      if (!this.#closing.signal.aborted) failed?.(error)
    }
    return next
  }

  /** Until there is a hint (true), or it is time, or somebody came or went. A store that gives no more hints never ends it. */
  async #rest(hint: Promise<boolean>, until: number): Promise<boolean> {
    if (this.#watched.size === 0 || this.#added) return false
    const { clock } = this.#options
    const { promise, resolve } = Promise.withResolvers<false>()
    this.#wake = () => resolve(false)
    const cancel = clock.setTimeout(this.#wake, Math.max(leastMs, until - clock.now()), true)
    try {
      return await Promise.race([hint.then(more => more || promise), promise])
    } finally {
      cancel()
      this.#wake = undefined
    }
  }
}

/** In words, for whoever had something under it. */
export function lapseText(why: GrantEndReason): string {
  if (why === 'revoked') return 'The grant that allowed it was revoked'
  return why === 'idle' ? 'The grant that allowed it expired because it was not used' : 'The grant that allowed it has expired'
}
