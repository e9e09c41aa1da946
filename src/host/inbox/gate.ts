/** Writes of each server at once: those beyond wait their turn, and beyond that are turned away, so that no server fills the store's queue. */

interface GateOptions {
  /** Writes of one server that are under way. */
  readonly most: number
  /** Those that wait. */
  readonly waiting: number
}

interface Queue {
  under: number
  readonly waiting: (() => void)[]
}

/** Bounds the writes of each server that are under way. */
export class InboxGate {
  readonly #options: GateOptions
  readonly #queues = new Map<string, Queue>()

  constructor(options: GateOptions) {
    this.#options = options
  }

  isFull(server: string): boolean {
    return (this.#queues.get(server)?.waiting.length ?? 0) >= this.#options.waiting
  }

  /** Whether one more would have to wait. */
  isBusy(server: string): boolean {
    return (this.#queues.get(server)?.under ?? 0) >= this.#options.most
  }

  /** Undefined where there is nothing to wait for. Each that came in goes out. */
  enter(server: string): Promise<void> | undefined {
    let queue = this.#queues.get(server)
    if (queue === undefined) {
      queue = { under: 0, waiting: [] }
      this.#queues.set(server, queue)
    }
    if (queue.under < this.#options.most) {
      queue.under++
      return undefined
    }
    const { promise, resolve } = Promise.withResolvers<void>()
    queue.waiting.push(resolve)
    return promise
  }

  leave(server: string): void {
    const queue = this.#queues.get(server)
    if (queue === undefined) return
    const next = queue.waiting.shift()
    // Whoever waited takes the place of the one that leaves.
    if (next !== undefined) return next()
    if (--queue.under === 0) this.#queues.delete(server)
  }
}
