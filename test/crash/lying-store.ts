/**
 * A store that says "written" before it is: what a crash harness must catch. Writes go to memory, are answered, and reach the
 * real store a little later, unless the process dies first.
 */
import { memoryStore, type Op, type Store } from 'vivarium/stores'

/** Longer than most lives. */
const lateMs = 2_000

export async function lyingStore(store: Store): Promise<Store> {
  const memory = memoryStore()
  for (let after: string | undefined; ; ) {
    const page = await store.scan('', after === undefined ? {} : { after })
    for (const { key, value } of page) await memory.commit([{ op: 'put', key, value }])
    after = page.at(-1)?.key
    if (after === undefined) break
  }
  return {
    get: key => memory.get(key),
    scan: (prefix, options) => memory.scan(prefix, options),
    read: (log, options) => memory.read(log, options),
    watch: (prefixes, signal) => memory.watch(prefixes, signal),
    close: () => store.close(),
    commit: async ops => {
      const outcome = await memory.commit(ops)
      if (outcome.ok) setTimeout(() => store.commit(ops.flatMap(unconditional)).catch(() => {}), lateMs)
      return outcome
    },
  }
}

/** Versions are the memory's own, and mean nothing to the other. */
function unconditional(op: Op): readonly Op[] {
  if (op.op === 'put') return [{ op: 'put', key: op.key, value: op.value, ...(op.ttl === undefined ? {} : { ttl: op.ttl }) }]
  return op.op === 'delete' ? [{ op: 'delete', key: op.key }] : []
}
