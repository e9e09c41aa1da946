/**
 * The newest of a feed, read once for all who wait for it in this process. They are told as it comes; who fell behind a little
 * finds what he missed here, and who fell behind more reads the feed.
 */
import type { LogPosition } from '../../stores/store.ts'
import { type Feed, lengthOf, type Occurrence } from './feed.ts'

interface TailOptions {
  readonly feed: Feed
  /** Told of what has come, in order; and whether something before it is missing. Must not throw. */
  readonly tell: (occurrences: readonly Occurrence[], truncated: boolean) => void
  /** Told that the feed cannot be read now; it is tried again. */
  readonly failed: (error: unknown) => void
  /** Occurrences held, at least; at times twice as many. Default 1,000. */
  readonly size?: number
  /** Characters of their JSON text, at most, whatever `size` says. Default 8 Mi. */
  readonly length?: number
}

const retryMs = 1_000
/** Occurrences that are read at once. */
const pageSize = 500

/** The last occurrences of a feed in memory, so that many readers at its end share one read of the store. */
export class Tail {
  readonly #options: TailOptions
  readonly #size: number
  readonly #mostLength: number
  #held: Occurrence[] = []
  #length = 0
  /** What is held follows this position without a gap. */
  #from: LogPosition = 0
  #end: LogPosition = 0
  #running: { readonly stop: AbortController; readonly begun: Promise<void> } | undefined = undefined

  constructor(options: TailOptions) {
    this.#options = options
    this.#size = options.size ?? 1_000
    this.#mostLength = options.length ?? 8 * 1024 * 1024
  }

  /** Told is what lies behind this position. */
  get end(): LogPosition {
    return this.#end
  }

  get running(): boolean {
    return this.#running !== undefined
  }

  /** Resolves when whatever is published from now on will be told. */
  start(): Promise<void> {
    this.#running ??= this.#start()
    return this.#running.begun
  }

  stop(): void {
    this.#running?.stop.abort()
    this.#running = undefined
    this.#hold([])
  }

  /** What follows a position; undefined where it is not held any more. */
  after(position: LogPosition, limit: number): readonly Occurrence[] | undefined {
    if (this.#running === undefined || position < this.#from) return undefined
    // Positions have no gaps but where something was too old to be told: then fewer are held than the distance says.
    let at = Math.max(0, this.#held.length - (this.#end - position))
    while (at < this.#held.length && (this.#held[at] as Occurrence).cursor <= position) at++
    return this.#held.slice(at, at + limit)
  }

  #start(): { readonly stop: AbortController; readonly begun: Promise<void> } {
    const stop = new AbortController()
    const begun = this.#options.feed.end().then(end => {
      this.#from = end
      this.#end = end
      if (!stop.signal.aborted) void this.#run(stop.signal)
    })
    begun.catch(() => {
      if (this.#running?.stop === stop) this.#running = undefined
    })
    return { stop, begun }
  }

  async #run(signal: AbortSignal): Promise<void> {
    const { feed, failed } = this.#options
    while (!signal.aborted) {
      try {
        for await (const page of feed.follow(this.#end, signal, { limit: pageSize })) {
          if (signal.aborted) return
          this.#take(page.occurrences, page.cursor, page.truncated)
        }
        return
      } catch (error) {
        if (signal.aborted) return
        failed(error)
        await new Promise<void>(resolve => {
          const done = (): void => {
            cancel()
            signal.removeEventListener('abort', done)
            resolve()
          }
          const cancel = feed.clock.setTimeout(done, retryMs, true)
          signal.addEventListener('abort', done, { once: true })
        })
      }
    }
  }

  #take(occurrences: readonly Occurrence[], end: LogPosition, truncated: boolean): void {
    if (truncated) {
      this.#hold([])
      this.#from = (occurrences[0]?.cursor ?? end + 1) - 1
    }
    for (const occurrence of occurrences) {
      this.#held.push(occurrence)
      this.#length += lengthOf(occurrence)
    }
    this.#shrink()
    this.#end = end
    this.#options.tell(occurrences, truncated)
  }

  /** Twice as many at times, so that nothing is moved for each one. */
  #shrink(): void {
    if (this.#held.length > 2 * this.#size) this.#hold(this.#held.slice(-this.#size))
    if (this.#length > this.#mostLength) {
      let [at, left] = [this.#held.length, this.#mostLength / 2]
      while (at > 0 && left > 0) left -= lengthOf(this.#held[--at] as Occurrence)
      this.#hold(this.#held.slice(at))
    }
  }

  #hold(held: Occurrence[]): void {
    const first = held[0]
    if (first !== undefined) this.#from = first.cursor - 1
    this.#held = held
    this.#length = held.reduce((sum, occurrence) => sum + lengthOf(occurrence), 0)
  }
}
