/** The reliability features of a server, and how they hang together. The only place that knows them all; each loads its works when first used. */
import type { Clock } from '../core/clock.ts'
import type { Journal } from '../core/journal/journal.ts'
import type { Trace } from '../core/log-trace.ts'
import type { Engine } from '../engine/engine.ts'
import type { Exchange } from '../engine/exchange.ts'
import type { Side } from '../engine/plan.ts'
import type { Explain } from '../features/mcp/tools/failed.ts'
import type { ToolExtras } from '../features/mcp/tools/server.ts'
import { idempotencyServer } from '../features/reliability/idempotency/server.ts'
import { problemOfFailure } from '../features/reliability/problem/failures.ts'
import { explainFailure, problemMeta, problemServer } from '../features/reliability/problem/server.ts'
import { type StuckTransaction, transactionsServer } from '../features/reliability/transactions/server.ts'
import type { ServerOptions } from './options.ts'
import { type LazyStore, lazyStore } from './store.ts'

export interface Reliability {
  readonly sides: readonly Side[]
  /** What a failed call's result says of its problem. */
  readonly problemMeta: Explain
  /** The failure that a request is answered with. */
  readonly explain: (exchange: Exchange, thrown: unknown) => unknown
  /** What the features let an author say of a tool. */
  readonly extras: ToolExtras
  readonly transactions: Transactions
  close(): Promise<void>
}

/** What an author can ask of the transactions of his server. */
export interface Transactions {
  /** Those that could not be taken back whole, as long as they are remembered, and those that are being taken back. */
  stuck(): Promise<readonly StuckTransaction[]>
}

export interface ReliabilityParts {
  readonly clock: Clock
  readonly trace: Trace
  /** How long a client may take to answer what a call asked. */
  readonly askMs: number
  readonly engine: () => Engine
  /** Whether there is a tool of that name. */
  readonly offers: (tool: string) => boolean
}

export function reliability(options: ServerOptions, { clock, trace, askMs, engine, offers }: ReliabilityParts): Reliability {
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
  const transactions = transactionsServer({
    ...options.transactions,
    journal: journal.open,
    shared: options.store !== undefined,
    clock,
    trace,
    engine,
    offers,
    problemOf: problemOfFailure,
  })
  return {
    sides: [problemServer(), idempotency, transactions.side],
    extras: { kinds: { undo: 'object' }, meta: (name, facts) => transactions.undoable(name, (facts as UndoableFacts).undo) },
    transactions: { stuck: transactions.stuck },
    problemMeta,
    explain: explainFailure,
    close: async () => {
      await transactions.close()
      await journal.close()
      await store.close()
    },
  }
}

interface UndoableFacts {
  readonly undo?: unknown
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
