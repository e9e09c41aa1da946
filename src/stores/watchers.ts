/** Wakes those who watch prefixes. Wakes that come while a reader is busy become one. */

class Watch implements AsyncIterable<void> {
  readonly prefixes: readonly string[]
  readonly #leave: () => void
  #woken = false
  #ended = false
  #resume: (() => void) | undefined

  constructor(prefixes: readonly string[], leave: () => void) {
    this.prefixes = prefixes
    this.#leave = leave
  }

  wake(): void {
    this.#woken = true
    this.#resume?.()
  }

  end(): void {
    this.#ended = true
    this.#resume?.()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<void> {
    try {
      for (;;) {
        if (!this.#woken && !this.#ended) await new Promise<void>(resolve => (this.#resume = resolve))
        if (this.#ended) return
        this.#woken = false
        yield
      }
    } finally {
      this.#leave()
    }
  }
}

export class Watchers {
  readonly #watches = new Set<Watch>()
  #closed = false

  get size(): number {
    return this.#watches.size
  }

  /** These keys and logs have changed. */
  changed(names: readonly string[]): void {
    for (const watch of this.#watches) {
      if (names.some(name => watch.prefixes.some(prefix => name.startsWith(prefix)))) watch.wake()
    }
  }

  /** Anything may have changed. */
  all(): void {
    for (const watch of this.#watches) watch.wake()
  }

  /** Watches from now on, not from the first `next()`: what happens in between is not lost. */
  watch(prefixes: readonly string[], signal: AbortSignal): AsyncIterable<void> {
    const stop = (): void => {
      this.#watches.delete(watch)
      signal.removeEventListener('abort', stop)
      watch.end()
    }
    const watch = new Watch(prefixes, stop)
    if (signal.aborted || this.#closed) watch.end()
    else {
      this.#watches.add(watch)
      signal.addEventListener('abort', stop)
    }
    return watch
  }

  /** Ends every watch. */
  close(): void {
    this.#closed = true
    for (const watch of this.#watches) watch.end()
    this.#watches.clear()
  }
}
