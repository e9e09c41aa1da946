/** Promises that nobody need wait for. */

/** A promise that may be left alone: a scenario that has failed meanwhile waits for it no more, and that is nobody's fault. */
export function letGo<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined)
  return promise
}

/** A call whose throw is a rejection, be it asynchronous or not. */
export async function promised<T>(fn: () => T | PromiseLike<T>): Promise<T> {
  return fn()
}
