/**
 * Time that passes faster than elsewhere, so that leases and timeouts of seconds are over within a life of a second. All lives of
 * one campaign reckon from the same moment, so that their times fit together.
 */
import type { Entry, Op, Store } from 'vivarium/stores'

export interface FastClock {
  now(): number
  setTimeout(fn: () => void, ms: number, background?: boolean): () => void
}

export const speed = 8

export function fastClock(epoch: number): FastClock {
  return {
    now: () => epoch + (Date.now() - epoch) * speed,
    setTimeout: (fn, ms, background = false) => {
      const timer = setTimeout(fn, ms / speed)
      if (background) timer.unref()
      return () => clearTimeout(timer)
    },
  }
}

/** A database has a clock of its own: what lives for a while in fast time lives shorter in its time. */
export function inFastTime(store: Store, epoch: number): Store {
  const faster = (op: Op): Op =>
    (op.op === 'put' || op.op === 'add') && op.ttl !== undefined ? { ...op, ttl: Math.ceil(op.ttl / speed) } : op
  const timed = (entry: Entry): Entry =>
    entry.expires === undefined ? entry : { ...entry, expires: epoch + (entry.expires - epoch) * speed }
  return {
    get: async key => {
      const entry = await store.get(key)
      return entry === undefined ? undefined : timed(entry)
    },
    scan: async (prefix, options) => (await store.scan(prefix, options)).map(timed),
    read: (log, options) => store.read(log, options),
    watch: (prefixes, signal) => store.watch(prefixes, signal),
    close: () => store.close(),
    commit: ops => store.commit(ops.map(faster)),
  }
}
