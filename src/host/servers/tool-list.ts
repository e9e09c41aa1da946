/**
 * The tools of one connection, cached. A caller waits for a list only for a limited time, so that a slow server does not delay the turns of
 * others. Also `fairLists`, which shares a bounded list between servers.
 */
import type { Clock } from '../../core/clock.ts'

interface ToolListOptions<T> {
  readonly clock: Clock
  /** Lists the tools. */
  readonly list: () => Promise<readonly T[]>
  /** Whether a list stays valid until `stale`. */
  readonly holds: (tools: readonly T[]) => boolean
  /** Called when a list arrives that a caller did not wait for. */
  readonly late?: () => void
}

/** How long the first list is waited for. */
const firstMs = 10_000
/** How long a later one is waited for. */
const againMs = 250
/** The pause after a failure. */
const failedMs = 5_000

/** The last list, and the request for the next. */
export class ToolList<T> {
  readonly #options: ToolListOptions<T>
  #last: readonly T[] | undefined = undefined
  #holds = false
  #asking: Promise<readonly T[]> | undefined = undefined
  #askedAt = 0
  #notBefore = 0
  /** A caller went on without the current request. */
  #missed = false

  constructor(options: ToolListOptions<T>) {
    this.#options = options
  }

  /** The tools. Rejects only where the first listing fails. */
  get(): Promise<readonly T[]> {
    const now = this.#options.clock.now()
    const last = this.#last
    if (last !== undefined && (this.#holds || (this.#asking === undefined && now < this.#notBefore))) return Promise.resolve(last)
    this.#asking ??= this.#ask(now)
    return this.#within(this.#asking, (last === undefined ? firstMs : againMs) - (now - this.#askedAt), last ?? [])
  }

  /** Invalidates the list. */
  stale(): void {
    this.#asking = undefined
    this.#holds = false
    this.#notBefore = 0
  }

  /** Requests a list. */
  #ask(now: number): Promise<readonly T[]> {
    this.#askedAt = now
    const asking: Promise<readonly T[]> = this.#options.list()
    asking.then(
      tools => {
        // A list requested before `stale` may be outdated.
        if (this.#asking !== asking) return
        this.#asking = undefined
        this.#last = tools
        this.#holds = this.#options.holds(tools)
        if (this.#missed) this.#options.late?.()
        this.#missed = false
      },
      () => {
        if (this.#asking !== asking) return
        this.#asking = undefined
        this.#last ??= []
        this.#notBefore = this.#options.clock.now() + failedMs
      },
    )
    return asking
  }

  /** Returns the fallback, and remembers that a caller did not wait. */
  #without(otherwise: readonly T[]): readonly T[] {
    this.#missed = true
    return otherwise
  }

  /** Waits for a list for a limited time. */
  #within(asking: Promise<readonly T[]>, ms: number, otherwise: readonly T[]): Promise<readonly T[]> {
    if (ms <= 0) return Promise.resolve(this.#without(otherwise))
    return new Promise((resolve, reject) => {
      const cancel = this.#options.clock.setTimeout(() => resolve(this.#without(otherwise)), ms, true)
      asking.then(resolve, reject).finally(cancel)
    })
  }
}

/** Cuts several lists to a total length with fair shares: a list that needs less leaves the rest to the others. */
export function fairLists<T>(lists: readonly (readonly T[])[], most: number): readonly (readonly T[])[] {
  const shares = new Map<readonly T[], number>()
  let left = most
  for (const list of lists.toSorted((a, b) => a.length - b.length)) {
    const share = Math.min(list.length, Math.floor(left / (lists.length - shares.size)))
    shares.set(list, share)
    left -= share
  }
  return lists.map(list => list.slice(0, shares.get(list)))
}
