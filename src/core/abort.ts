/** Giving up a wait that cannot be stopped itself: its outcome is then no matter. */

/** What `promise` gives, unless the signal aborts first: then its reason is thrown. */
export function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(signal.reason)
    const settle = <V>(give: (value: V) => void) => {
      return (value: V): void => {
        signal.removeEventListener('abort', stop)
        give(value)
      }
    }
    if (signal.aborted) stop()
    else signal.addEventListener('abort', stop, { once: true })
    promise.then(settle(resolve), settle(reject))
  })
}
