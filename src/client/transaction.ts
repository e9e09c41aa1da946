/** A transaction on one server: its calls are committed or rolled back together. Without a commit it is rolled back. */
import { type Duration, toMilliseconds } from '../core/clock.ts'
import { problem } from '../core/problem.ts'
import type { InferOutput, Schema } from '../core/schema/index.ts'
import { declaredSettings } from '../engine/extensions.ts'
import type { Method } from '../engine/method.ts'
import type { ClientStates } from '../features/reliability/session-state/messages.ts'
import { type TransactionReport, transactionReport } from '../features/reliability/transactions/client.ts'
import {
  beginTransaction,
  commitTransaction,
  getTransaction,
  rollbackTransaction,
  transactionsExtension,
  type WireTransaction,
} from '../features/reliability/transactions/messages.ts'
import type { Params } from '../jsonrpc/message.ts'
import type { CallToolOptions, ToolOutcome } from './api.ts'
import type { Session } from './session.ts'

export type { TransactionReport }

/** The options of a transaction. */
export interface TransactionOptions {
  /** The id of the transaction. Default: random. */
  readonly id?: string
  /** What it does, for reports. Default: none. */
  readonly description?: string
  /** The server rolls the transaction back after this time without a step. Default: the server decides. */
  readonly timeout?: Duration
  /** Whether tools that cannot be undone may be called; a rollback then reports them. Default false. */
  readonly irreversible?: boolean
}

/** The options of a step: those of `callTool`, and a name. */
export interface StepOptions<S extends Schema = Schema> extends CallToolOptions<S> {
  /** Names the step in reports. Default: its number. */
  readonly step?: string
}

/** What a transaction needs of its client. */
interface TransactionParts {
  readonly session: Session
  readonly request: <P extends Params, R>(method: Method<P, R>, params: P) => Promise<R>
  /** Sends a request that is safe to repeat; repeats it after a temporary failure. */
  readonly repeat: <P extends Params, R>(method: Method<P, R>, params: P) => Promise<R>
  readonly states: ClientStates
  readonly call: (name: string, args: Params | undefined, options: CallToolOptions) => Promise<ToolOutcome>
}

/** Tool calls that are committed or rolled back together; made by `mcp.transaction`. */
export class Transaction {
  /** The id of the transaction at the server. */
  readonly id: string
  readonly #parts: TransactionParts
  /** Per conversation, the state before its first step here and after its last, to restore after a rollback. */
  readonly #states = new Map<string, { readonly before: string | undefined; last: string | undefined }>()
  #report: TransactionReport | undefined = undefined
  #ending: Promise<TransactionReport> | undefined = undefined

  private constructor(id: string, parts: TransactionParts) {
    this.id = id
    this.#parts = parts
  }

  /**
   * Begins a transaction on the server. Throws if the server does not support transactions.
   * @internal
   */
  static async begin(parts: TransactionParts, options: TransactionOptions): Promise<Transaction> {
    const { id = crypto.randomUUID(), description, timeout, irreversible } = options
    const { peer } = parts.session.opened.conversation
    if (peer === undefined || declaredSettings(peer, transactionsExtension) === undefined)
      throw problem('UNSUPPORTED', 'The server does not support transactions', {
        suggestion:
          'If the server is yours, add undo: { tool: … } to a tool: the first one enables transactions. Otherwise use saga(), which undoes the steps one by one and works with any server',
      })
    const seconds = timeout === undefined ? undefined : Math.max(1, Math.ceil(toMilliseconds(timeout, 'timeout') / 1000))
    const begun = await parts.request(beginTransaction, {
      transaction_id: id,
      ...(description === undefined ? {} : { description }),
      ...(seconds === undefined ? {} : { timeout_seconds: seconds }),
      ...(irreversible === undefined ? {} : { no_compensation: irreversible }),
    })
    // For an anonymous client the server may have extended the id, so that it cannot be guessed.
    return new Transaction(begun.transaction_id, parts)
  }

  /** The final report; undefined while it is open, or if the server could not be reached. */
  get report(): TransactionReport | undefined {
    return this.#report
  }

  /** Calls a tool as a step of the transaction. */
  callTool<S extends Schema>(
    name: string,
    args: Params | undefined,
    options: StepOptions<S> & {
      /** The schema of the structured content. */
      readonly output: S
    },
  ): Promise<ToolOutcome<InferOutput<S>>>
  callTool(name: string, args?: Params, options?: StepOptions): Promise<ToolOutcome>
  async callTool(name: string, args?: Params, { step, ...options }: StepOptions = {}): Promise<ToolOutcome> {
    const { states } = this.#parts
    const { conversation = '' } = options
    const before = states.at(conversation)
    try {
      return await this.#parts.call(name, args, {
        idempotencyKey: crypto.randomUUID(),
        ...options,
        meta: {
          ...options.meta,
          [transactionsExtension]: { transaction_id: this.id, ...(step !== undefined && { step_id: step }) },
        },
      })
    } finally {
      const seen = this.#states.get(conversation)
      this.#states.set(conversation, { before: seen === undefined ? before : seen.before, last: states.at(conversation) })
    }
  }

  /** The current state, from the server. */
  async status(): Promise<TransactionReport> {
    return transactionReport(await this.#ask(getTransaction))
  }

  /** Keeps what was done. Refused while a step runs, or if the outcome of one is unknown. */
  commit(): Promise<TransactionReport> {
    return this.#end(commitTransaction)
  }

  /** Undoes what was done, the last step first, and reports on each. */
  rollback(reason?: string): Promise<TransactionReport> {
    return this.#end(rollbackTransaction, reason === undefined ? {} : { reason })
  }

  /** Rolls back without a commit. If the server cannot be reached, it does so itself after its timeout. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#ending?.catch(() => undefined)
    if (this.#report !== undefined) return
    await this.rollback('The transaction was disposed without a commit').catch(error =>
      this.#parts.session.engine.trace('not-rolled-back', error),
    )
  }

  #end(method: Method<{ transaction_id: string }, WireTransaction>, more: Params = {}): Promise<TransactionReport> {
    this.#ending = this.#ask(method, more).then(told => {
      this.#report = transactionReport(told)
      if (this.#report.status === 'rolled_back')
        for (const [conversation, { last, before }] of this.#states) this.#parts.states.back(conversation, last, before)
      return this.#report
    })
    return this.#ending
  }

  #ask(method: Method<{ transaction_id: string }, WireTransaction>, more: Params = {}): Promise<WireTransaction> {
    return this.#parts.repeat(method, { transaction_id: this.id, ...more })
  }
}
