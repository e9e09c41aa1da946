/** A store whose user can be cut off from it, as by its end. */
import type { Store } from '../src/stores/store.ts'

export function mortal(store: Store): { readonly store: Store; die(): void; revive(): void } {
  let dead = false
  const alive = (): void => {
    if (dead) throw new Error('Cut off')
  }
  const through = <A extends unknown[], R>(fn: (...args: A) => Promise<R>) => {
    return async (...args: A): Promise<R> => {
      alive()
      return fn(...args)
    }
  }
  return {
    store: {
      get: through(store.get.bind(store)),
      scan: through(store.scan.bind(store)),
      read: through(store.read.bind(store)),
      commit: through(store.commit.bind(store)),
      watch: (prefixes, signal) => store.watch(prefixes, signal),
      close: async () => {},
    },
    die: () => {
      dead = true
    },
    revive: () => {
      dead = false
    },
  }
}
