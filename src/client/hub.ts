/** Announcements of the server as async iterables. Unread ones of the same subject coalesce, so a slow reader holds no queue. */

export class Hub {
  readonly #readers = new Map<string, Set<(value: string) => void>>()

  /** Tells all who wait for `topic`. */
  tell(topic: string, value = ''): void {
    for (const reader of this.#readers.get(topic) ?? []) reader(value)
  }

  /** Runs until the signal aborts or the consumer stops. */
  async *follow(topic: string, signal: AbortSignal): AsyncGenerator<string, void, undefined> {
    const unread = new Set<string>()
    let wake: (() => void) | undefined
    const reader = (value: string): void => {
      unread.add(value)
      wake?.()
    }
    const readers = this.#readers.get(topic) ?? new Set()
    this.#readers.set(topic, readers.add(reader))
    const onAbort = (): void => wake?.()
    signal.addEventListener('abort', onAbort)
    try {
      while (!signal.aborted) {
        const next = unread.values().next()
        if (!next.done) {
          unread.delete(next.value)
          yield next.value
        } else {
          await new Promise<void>((resolve) => {
            wake = resolve
          })
        }
      }
    } finally {
      signal.removeEventListener('abort', onAbort)
      readers.delete(reader)
    }
  }
}
