/** The reliability features of a server, and how they hang together. The only place that knows them all; each loads its works when first used. */
import type { Clock } from '../core/clock.ts'
import type { Journal } from '../core/journal/journal.ts'
import type { Trace } from '../core/log-trace.ts'
import type { Exchange } from '../engine/exchange.ts'
import type { Side } from '../engine/plan.ts'
import type { Explain } from '../features/mcp/tools/failed.ts'
import { idempotencyServer } from '../features/reliability/idempotency/server.ts'
import { explainFailure, problemMeta, problemServer } from '../features/reliability/problem/server.ts'
import type { ServerOptions } from './options.ts'
import { type LazyStore, lazyStore } from './store.ts'

export interface Reliability {
  readonly sides: readonly Side[]
  /** What a failed call's result says of its problem. */
  readonly problemMeta: Explain
  /** The failure that a request is answered with. */
  readonly explain: (exchange: Exchange, thrown: unknown) => unknown
  close(): Promise<void>
}

export function reliability(options: ServerOptions, clock: Clock, trace: Trace, askMs: number): Reliability {
  const store = lazyStore(options.store, clock)
  const journal = lazyJournal(store, clock, options)
  const idempotency = idempotencyServer({
    ...options.idempotency,
    journal: journal.open,
    declared: options.store !== undefined,
    clock,
    trace,
    askMs,
    problemMeta,
  })
  return {
    sides: [problemServer(), idempotency],
    problemMeta,
    explain: explainFailure,
    close: async () => {
      await journal.close()
      await store.close()
    },
  }
}

/** One journal for all features that write into it, begun with the first record. */
function lazyJournal(store: LazyStore, clock: Clock, { idempotency = {} }: ServerOptions) {
  const { records, length } = idempotency
  let opening: Promise<Journal> | undefined
  const open = async (): Promise<Journal> => {
    const [{ createJournal }, opened] = await Promise.all([import('../core/journal/journal.ts'), store.open()])
    return createJournal({ store: opened, clock, records, length })
  }
  return {
    open: (): Promise<Journal> => {
      opening ??= open().catch(error => {
        opening = undefined
        throw error
      })
      return opening
    },
    close: async (): Promise<void> => {
      const opened = await opening?.catch(() => undefined)
      opened?.close()
    },
  }
}
