/**
 * The tools of one connection, as they were last listed. Whoever asks waits for a list only so long: a server that is slow to list its
 * tools, or cannot, keeps nobody else's turn waiting.
 */
import type { Clock } from '../../core/clock.ts'

interface ToolListOptions<T> {
  readonly clock: Clock
  /** Asks the server. */
  readonly list: () => Promise<readonly T[]>
  /** Whether a list stays true until it is said to be stale. */
  readonly holds: (tools: readonly T[]) => boolean
  /** A list is here for which somebody did not wait. */
  readonly late?: () => void
}

/** How long the first list is waited for, and a later one where an earlier is there. */
const firstMs = 10_000
const againMs = 250
/** After a failure it is not asked for so long. */
const failedMs = 5_000

/** The last known list, and the one that is being asked for. */
export class ToolList<T> {
  readonly #options: ToolListOptions<T>
  #last: readonly T[] | undefined = undefined
  #holds = false
  #asking: Promise<readonly T[]> | undefined = undefined
  #askedAt = 0
  #notBefore = 0
  /** Somebody went on without the list that is asked for. */
  #missed = false

  constructor(options: ToolListOptions<T>) {
    this.#options = options
  }

  /** Rejects where the server could not be asked, and was not asked before. */
  get(): Promise<readonly T[]> {
    const now = this.#options.clock.now()
    const last = this.#last
    if (last !== undefined && (this.#holds || (this.#asking === undefined && now < this.#notBefore))) return Promise.resolve(last)
    this.#asking ??= this.#ask(now)
    return this.#within(this.#asking, (last === undefined ? firstMs : againMs) - (now - this.#askedAt), last ?? [])
  }

  /** They may be others now. */
  stale(): void {
    this.#asking = undefined
    this.#holds = false
    this.#notBefore = 0
  }

  #ask(now: number): Promise<readonly T[]> {
    this.#askedAt = now
    const asking: Promise<readonly T[]> = this.#options.list()
    asking.then(
      tools => {
        // What was asked before a change tells nothing of it.
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

  #without(otherwise: readonly T[]): readonly T[] {
    this.#missed = true
    return otherwise
  }

  #within(asking: Promise<readonly T[]>, ms: number, otherwise: readonly T[]): Promise<readonly T[]> {
    if (ms <= 0) return Promise.resolve(this.#without(otherwise))
    return new Promise((resolve, reject) => {
      const cancel = this.#options.clock.setTimeout(() => resolve(this.#without(otherwise)), ms, true)
      asking.then(resolve, reject).finally(cancel)
    })
  }
}

/**
 * Lists of several servers that are shown as one of bounded length, each cut to its share of so many in all, so that none can fill it
 * for the others. Who wants less leaves the rest to the others.
 */
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
