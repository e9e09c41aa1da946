/** A transaction on one server: its calls have one fate. Left without a commit, it is rolled back. */
import { type Duration, toMilliseconds } from '../core/clock.ts'
import { problem } from '../core/problem.ts'
import type { InferOutput, Schema } from '../core/schema/index.ts'
import type { Method } from '../engine/method.ts'
import type { ClientStates } from '../features/reliability/session-state/messages.ts'
import {
  knowsTransactions,
  stepMeta,
  type TransactionReport,
  transactionReport,
} from '../features/reliability/transactions/client.ts'
import {
  beginTransaction,
  commitTransaction,
  getTransaction,
  rollbackTransaction,
  type WireTransaction,
} from '../features/reliability/transactions/messages.ts'
import type { Params } from '../jsonrpc/message.ts'
import type { CallToolOptions, ToolOutcome } from './api.ts'
import type { Session } from './session.ts'

export type { TransactionReport }

/** How a transaction is begun. */
export interface TransactionOptions {
  /** Default: one of the client's own making. */
  readonly id?: string
  /** What it does, for whoever looks at it later. */
  readonly description?: string
  /** Without a step for so long it is rolled back by the server. Default: the server's own. */
  readonly timeout?: Duration
  /** Also tools that cannot be undone may take part; a rollback then reports them. Default false. */
  readonly irreversible?: boolean
}

/** How a step of a transaction is made: as a call of `callTool`. */
export interface StepOptions<S extends Schema = Schema> extends CallToolOptions<S> {
  /** Names the step in reports. Default: its number. */
  readonly step?: string
}

interface TransactionParts {
  readonly session: Session
  readonly request: <P extends Params, R>(method: Method<P, R>, params: P) => Promise<R>
  /** For requests that do and say the same when they are sent twice: sent again where the failure may pass. */
  readonly repeat: <P extends Params, R>(method: Method<P, R>, params: P) => Promise<R>
  readonly states: ClientStates
  readonly call: (name: string, args: Params | undefined, options: CallToolOptions) => Promise<ToolOutcome>
}

/** Calls of tools that stay together or are taken back together; made by `mcp.transaction`. */
export class Transaction {
  readonly id: string
  readonly #parts: TransactionParts
  /** By conversation, the states before its first step here and after its last. */
  readonly #states = new Map<string, { readonly before: string | undefined; last: string | undefined }>()
  #report: TransactionReport | undefined = undefined
  #ending: Promise<TransactionReport> | undefined = undefined

  private constructor(id: string, parts: TransactionParts) {
    this.id = id
    this.#parts = parts
  }

  static async begin(parts: TransactionParts, options: TransactionOptions): Promise<Transaction> {
    const { id = crypto.randomUUID(), description, timeout, irreversible } = options
    if (!knowsTransactions(parts.session.opened.conversation.peer))
      throw problem('UNSUPPORTED', 'The server knows no transactions', {
        suggestion: 'Use saga(), which takes back step by step what was done on any server',
      })
    const seconds = timeout === undefined ? undefined : Math.max(1, Math.ceil(toMilliseconds(timeout, 'timeout') / 1000))
    const begun = await parts.request(beginTransaction, {
      transaction_id: id,
      ...(description === undefined ? {} : { description }),
      ...(seconds === undefined ? {} : { timeout_seconds: seconds }),
      ...(irreversible === undefined ? {} : { no_compensation: irreversible }),
    })
    // A server that does not know us may have completed it to one that nobody can guess.
    return new Transaction(begun.transaction_id, parts)
  }

  /** How it ended; undefined while it has not, or nobody could be asked. */
  get report(): TransactionReport | undefined {
    return this.#report
  }

  /** Calls a tool as a step of the transaction. */
  callTool<S extends Schema>(
    name: string,
    args: Params | undefined,
    options: StepOptions<S> & { readonly output: S },
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
        meta: { ...options.meta, ...stepMeta(this.id, step) },
      })
    } finally {
      const seen = this.#states.get(conversation)
      this.#states.set(conversation, { before: seen === undefined ? before : seen.before, last: states.at(conversation) })
    }
  }

  /** How it stands. */
  async status(): Promise<TransactionReport> {
    return transactionReport(await this.#ask(getTransaction))
  }

  /** Ends it well: what was done stays. Refused while a step runs, or one has an unknown end. */
  commit(): Promise<TransactionReport> {
    return this.#end(commitTransaction)
  }

  /** Takes back what was done, the last step first, and reports on each. */
  rollback(reason?: string): Promise<TransactionReport> {
    return this.#end(rollbackTransaction, reason === undefined ? {} : { reason })
  }

  /** Without a commit it is rolled back. A server that cannot be reached now does so by itself, after its timeout. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#ending?.catch(() => undefined)
    if (this.#report !== undefined) return
    await this.rollback('It was left without a commit').catch(error => this.#parts.session.engine.trace('not-rolled-back', error))
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
