/** Handlers of the transaction methods. A transaction is visible only to its owner. */
import { lifetimeOfSeconds } from '../../../core/clock.ts'
import type { Journal } from '../../../core/journal/journal.ts'
import { type UnitReport, unknownUnit } from '../../../core/journal/units.ts'
import { problemOf } from '../../../core/problem.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import { accountOf, ownerOf, secretName } from '../../../engine/owner.ts'
import type { Next } from '../../../engine/stages.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { StoreError } from '../../../stores/store.ts'
import {
  idPattern,
  idRule,
  transactionIdLength,
  type WireCommitted,
  type WireRolledBack,
  type WireTransaction,
} from './messages.ts'
import { TransactionsRuntime } from './runtime.ts'
import type { StuckTransaction, TransactionsParts } from './server.ts'
import { finishStep, grantOf, runStep, wireCommitted, wireRolledBack, wireTransaction } from './step.ts'

/** The handlers, and the runtime behind them. */
export interface Methods {
  readonly runtime: TransactionsRuntime
  begin(exchange: Exchange): Promise<WireTransaction>
  commit(exchange: Exchange): Promise<WireCommitted>
  rollback(exchange: Exchange): Promise<WireRolledBack>
  get(exchange: Exchange): Promise<WireTransaction>
  step(exchange: Exchange, next: Next): Promise<unknown>
  /** Handles the end of a step's handler. */
  finish(exchange: Exchange, next: Next): Promise<unknown>
  stuck(): Promise<readonly StuckTransaction[]>
}

interface Times {
  readonly timeoutMs: number
  readonly maxTimeoutMs: number
  readonly retentionMs: number
}

/** Limit of descriptions and reasons. */
const longestText = 1000

/** Creates the handlers. */
export function createMethods(parts: TransactionsParts, times: Times, journal: Journal): Methods {
  const { onRolledBack } = parts
  const told = onRolledBack === undefined ? undefined : (report: UnitReport) => onRolledBack(wireRolledBack(report))
  const runtime = new TransactionsRuntime({ ...parts, retentionMs: times.retentionMs, onRolledBack: told }, journal)
  const { units } = runtime
  return {
    runtime,
    begin: exchange =>
      named(exchange, async (owner, id) => {
        const { description, no_compensation: irreversible = false } = exchange.params
        const timeoutMs = timeoutOf(exchange, times)
        runtime.sweep()
        const unit = await units.begin(owner, secretName(owner, id, transactionIdLength), {
          account: await accountOf(exchange),
          timeoutMs,
          irreversible: irreversible as boolean,
          grant: grantOf(exchange),
          ...(description === undefined ? {} : { description: clip(description as string, longestText) }),
        })
        return wireTransaction({ unit, steps: [] })
      }),
    commit: exchange => named(exchange, async (owner, id) => wireCommitted(await units.commit(owner, id))),
    rollback: exchange =>
      named(exchange, async (owner, id) => {
        const reason = clip((exchange.params['reason'] as string | undefined) ?? 'Its client wanted it', longestText)
        return wireRolledBack(await runtime.rolledBack(owner, id, reason))
      }),
    get: exchange =>
      named(exchange, async (owner, id) => {
        const found = await units.get(owner, id)
        if (found === undefined) throw unknownUnit()
        return wireTransaction(found)
      }),
    step: (exchange, next) => runStep(runtime, exchange, next),
    finish: finishStep,
    stuck: async () => {
      const all = await runtime.stuck()
      return Promise.all(
        all.map(async ({ owner, unit }) => ({
          owner,
          ...wireRolledBack({ unit, steps: await units.stepsOf(owner, unit.id) }),
        })),
      )
    },
  }
}

async function named<T>(exchange: Exchange, work: (owner: string, id: string) => Promise<T>): Promise<T> {
  const id = exchange.params['transaction_id'] as string
  if (!idPattern.test(id)) throw new McpError('invalid-params', `transaction_id must be ${idRule}`)
  try {
    return await work(await ownerOf(exchange), id)
  } catch (error) {
    // Store errors become problems; details are only logged.
    throw error instanceof StoreError ? problemOf(error) : error
  }
}

function timeoutOf({ params }: Exchange, { timeoutMs, maxTimeoutMs }: Times): number {
  const seconds = params['timeout_seconds'] as number | undefined
  if (seconds === undefined) return timeoutMs
  if (seconds < 1) throw new McpError('invalid-params', 'timeout_seconds must be a whole number above 0')
  return lifetimeOfSeconds(seconds, { mostMs: maxTimeoutMs })
}
