/** Handlers of the transaction methods. A transaction is visible only to its owner. */
import { lifetimeOfSeconds } from '../../../core/clock.ts'
import type { Journal } from '../../../core/journal/journal.ts'
import { findStuckUnits } from '../../../core/journal/rollback.ts'
import { unknownUnit } from '../../../core/journal/units.ts'
import { problemOf } from '../../../core/problem.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import { accountOf, ownerOf, secretName } from '../../../engine/owner.ts'
import type { Next } from '../../../engine/stages.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { StoreError } from '../../../stores/store.ts'
import { keyPattern, keyRule } from '../idempotency/messages.ts'
import type { WireTransaction } from './messages.ts'
import { TransactionsRuntime } from './runtime.ts'
import type { StuckTransaction, TransactionsParts } from './server.ts'
import { finishStep, grantOf, runStep } from './step.ts'
import { wireRolledBack, wireTransaction } from './wire.ts'

/** The longest transaction id. Ids of transactions and steps have the syntax of idempotency keys. */
const transactionIdLength = 128
/** Limit of descriptions and reasons. */
const longestText = 1000

/** The handlers, and the runtime behind them. */
export class TransactionMethods {
  readonly runtime: TransactionsRuntime
  readonly #parts: TransactionsParts

  constructor(parts: TransactionsParts, journal: Journal) {
    this.#parts = parts
    this.runtime = new TransactionsRuntime(parts, journal)
  }

  begin(exchange: Exchange): Promise<WireTransaction> {
    return named(exchange, async (owner, id) => {
      const { description, no_compensation: irreversible = false } = exchange.params
      const timeoutMs = timeoutOf(exchange, this.#parts)
      this.runtime.sweep()
      const unit = await this.runtime.units.begin(owner, secretName(owner, id, transactionIdLength), {
        account: await accountOf(exchange),
        timeoutMs,
        irreversible: irreversible as boolean,
        grant: grantOf(exchange),
        ...(description === undefined ? {} : { description: clip(description as string, longestText) }),
      })
      return wireTransaction({ unit, steps: [] })
    })
  }

  commit(exchange: Exchange): Promise<WireTransaction> {
    return named(exchange, async (owner, id) => {
      const report = await this.runtime.units.commit(owner, id)
      return { ...wireTransaction(report), steps_completed: report.steps.filter(({ status }) => status !== 'failed').length }
    })
  }

  rollback(exchange: Exchange): Promise<WireTransaction> {
    return named(exchange, async (owner, id) => {
      const reason = clip((exchange.params['reason'] as string | undefined) ?? 'The client requested the rollback', longestText)
      return wireRolledBack(await this.runtime.rolledBack(owner, id, reason))
    })
  }

  get(exchange: Exchange): Promise<WireTransaction> {
    return named(exchange, async (owner, id) => {
      const found = await this.runtime.units.get(owner, id)
      if (found === undefined) throw unknownUnit()
      return wireTransaction(found)
    })
  }

  step(exchange: Exchange, next: Next): Promise<unknown> {
    return runStep(this.runtime, exchange, next)
  }

  /** Handles the end of a step's handler. */
  finish(exchange: Exchange, next: Next): Promise<unknown> {
    return finishStep(exchange, next)
  }

  /** Transactions that could not be rolled back completely, or are being rolled back. */
  async stuck(): Promise<readonly StuckTransaction[]> {
    const { units } = this.runtime
    const all = await findStuckUnits(units)
    return Promise.all(
      all.map(async ({ owner, unit }) => ({
        owner,
        ...wireRolledBack({ unit, steps: await units.stepsOf(owner, unit.id) }),
      })),
    )
  }
}

async function named<T>(exchange: Exchange, work: (owner: string, id: string) => Promise<T>): Promise<T> {
  const id = exchange.params['transaction_id'] as string
  if (!keyPattern.test(id)) throw new McpError('invalid-params', `transaction_id must be ${keyRule}`)
  try {
    return await work(await ownerOf(exchange), id)
  } catch (error) {
    // Store errors become problems; details are only logged.
    throw error instanceof StoreError ? problemOf(error) : error
  }
}

function timeoutOf({ params }: Exchange, { timeoutMs, maxTimeoutMs }: TransactionsParts): number {
  const seconds = params['timeout_seconds'] as number | undefined
  if (seconds === undefined) return timeoutMs
  if (seconds < 1) throw new McpError('invalid-params', 'timeout_seconds must be a whole number above 0')
  return lifetimeOfSeconds(seconds, { mostMs: maxTimeoutMs })
}
