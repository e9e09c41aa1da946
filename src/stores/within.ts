/** A part of a store as a store of its own: its keys and logs lie under a prefix, and nobody sees beyond it. */
import type { Entry, Op, Store } from './store.ts'

/** Closing it closes nothing: the whole is its owner's. */
export function storeWithin(store: Store, prefix: string): Store {
  const inside = (entry: Entry): Entry => ({ ...entry, key: entry.key.slice(prefix.length) })
  return {
    get: async key => {
      const entry = await store.get(prefix + key)
      return entry === undefined ? undefined : inside(entry)
    },
    scan: async (start, { after, before, ...rest } = {}) => {
      const bounds = {
        ...rest,
        ...(after === undefined ? {} : { after: prefix + after }),
        ...(before === undefined ? {} : { before: prefix + before }),
      }
      return (await store.scan(prefix + start, bounds)).map(inside)
    },
    read: (log, options) => store.read(prefix + log, options),
    commit: ops => store.commit(ops.map(op => under(op, prefix))),
    watch: (prefixes, signal) =>
      store.watch(
        prefixes.map(each => prefix + each),
        signal,
      ),
    close: () => Promise.resolve(),
  }
}

function under(op: Op, prefix: string): Op {
  return 'log' in op ? { ...op, log: prefix + op.log } : { ...op, key: prefix + op.key }
}
