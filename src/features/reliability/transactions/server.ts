/**
 * Server side of transactions: the option `undo` of tools, `server.transactions`, and the layers around steps. Enabled by the first
 * tool with an `undo`; the runtime is loaded with the first transaction.
 */
import { type Duration, toMilliseconds } from '../../../core/clock.ts'
import type { UndoneParts } from '../../../core/journal/rollback.ts'
import { checkOptions, type KindsOf } from '../../../core/options.ts'
import { type Exchange, retryState } from '../../../engine/exchange.ts'
import { extensionCapability } from '../../../engine/extensions.ts'
import type { GatedHandler } from '../../../engine/plan.ts'
import { defineServerFeature, lazily, provide, type ServerKit } from '../../../engine/server-feature.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import { callTool, toolsPort } from '../../mcp/tools/messages.ts'
import { eventsPort } from '../events/messages.ts'
import {
  beginTransaction,
  commitTransaction,
  getTransaction,
  rollbackTransaction,
  transactionsExtension,
  transactionsPort,
  unitStep,
  type WireRolledBack,
} from './messages.ts'
import { UndoTools } from './undo-tools.ts'

/** A transaction that is being rolled back, or could not be completely. */
export interface StuckTransaction extends WireRolledBack {
  /** The key of the principal that began it. */
  readonly owner: string
}

/** Options of transactions. */
export interface TransactionsOptions {
  /** The default idle timeout. Default 5 min. */
  readonly timeout?: Duration
  /** The longest idle timeout that a client may request. Default 1 h. */
  readonly maxTimeout?: Duration
  /** How long an ended transaction is remembered. Default 24 h. */
  readonly retention?: Duration
  /** Open transactions per caller. Default 100. */
  readonly perOwner?: number
  /** Steps per transaction. Default and maximum 900. */
  readonly steps?: number
  /** Called after each rollback, for whatever reason. Default: not called. */
  readonly onRolledBack?: (report: WireRolledBack) => void
  /** Whether clients can subscribe to `transaction_rolled_back`. Default false. */
  readonly events?: boolean
}

/** The options of `createServer` that this feature reads. */
export interface TransactionsServerOptions {
  /** How transactions are kept. */
  readonly transactions?: TransactionsOptions
}

/** What the feature adds to the server. */
export interface TransactionsApi {
  /** Transactions that need attention. */
  readonly transactions: TransactionsControl
}

/** What an operator can query. */
interface TransactionsControl {
  /** Transactions that could not be rolled back completely, or are being rolled back. */
  stuck(): Promise<readonly StuckTransaction[]>
}

/** The event after a rollback. */
export const rolledBackEvent = 'transaction_rolled_back'

/** After a start, wait for the tools to be registered. */
const startMs = 500

/** The server feature: `undo` and `server.transactions`. */
export const transactionsFeature = defineServerFeature<TransactionsServerOptions, TransactionsApi>({
  name: 'transactions',
  options: { transactions: 'object' },
  setup: (kit, { transactions = {} }) => {
    const reverts: ((wrote: unknown) => Promise<UndoneParts>)[] = []
    const parts: TransactionsParts = {
      ...kit,
      ...transactions,
      timeoutMs: toMilliseconds(transactions.timeout ?? '5m', 'transactions.timeout'),
      maxTimeoutMs: toMilliseconds(transactions.maxTimeout ?? '1h', 'transactions.maxTimeout'),
      retentionMs: toMilliseconds(transactions.retention ?? '24h', 'transactions.retention'),
      revert: async wrote => {
        const [first = { ops: [] }, ...others] = await Promise.all(reverts.map(revert => revert(wrote)))
        return { ...first, ops: [...first.ops, ...others.flatMap(({ ops }) => ops)] }
      },
    }
    const methods = lazily(async () => {
      const [{ TransactionMethods }, journal] = await Promise.all([import('./methods.ts'), kit.journal()])
      return new TransactionMethods(parts, journal)
    })
    const undoers = new UndoTools(kit)
    let used = false
    let start: (() => void) | undefined
    // Starts the sweep; retries while the store is unavailable.
    const look = (): void => {
      methods.open().then(
        ({ runtime }) => runtime.sweep(),
        error => {
          kit.trace('transactions-not-opened', error)
          start = kit.clock.setTimeout(look, 5000, true)
        },
      )
    }
    kit.port(toolsPort).extend({
      kinds: { undo: 'object' },
      // The first tool with an undo enables transactions.
      meta: (name, { undo }: { readonly undo?: unknown }) => {
        const meta = undoMeta(name, undo)
        if (meta !== undefined) undoers.named(name, (undo as UndoFacts).tool)
        if (meta !== undefined && !used) {
          used = true
          // Other processes may have left transactions in a shared store.
          if (kit.shared) start = kit.clock.setTimeout(look, startMs, true)
        }
        return meta
      },
    })
    const method = (name: 'begin' | 'commit' | 'rollback' | 'get'): GatedHandler => ({
      offered: () => used,
      execute: async exchange => (await methods.open())[name](exchange),
    })
    return {
      sides: [
        {
          handlers: [
            [beginTransaction, method('begin')],
            [commitTransaction, method('commit')],
            [rollbackTransaction, method('rollback')],
            [getTransaction, method('get')],
          ],
          layers: [
            {
              // Before replay, so that a stored result of another transaction is not returned.
              stage: 'validate',
              methods: [callTool.name],
              marked: true,
              when: ({ meta }) => meta?.[transactionsExtension] !== undefined,
              run: async (exchange, next) => {
                ;(await import('./step.ts')).transactionOf(exchange)
                return next()
              },
            },
            {
              stage: 'record',
              methods: [callTool.name],
              marked: true,
              when: takesPart,
              run: async (exchange, next) => (await methods.open()).step(exchange, next),
            },
            {
              // Runs inside of tasks, so that their end is seen.
              stage: 'execute',
              methods: [callTool.name],
              marked: true,
              when: exchange => exchange.get(unitStep) !== undefined,
              run: async (exchange, next) => (await methods.open()).finish(exchange, next),
            },
          ],
          capabilities: revision => (used ? extensionCapability(revision, transactionsExtension) : {}),
        },
      ],
      provides: provide(transactionsPort, { revertBy: revert => void reverts.push(revert) }),
      server: { transactions: { stuck: async () => (await methods.open()).stuck() } },
      installed: () => {
        if (transactions.events === true) kit.port(eventsPort).add(rolledBackEvent, rolledBackFacts)
      },
      serves: () => undoers.check(),
      close: async () => {
        start?.()
        ;(await methods.opened())?.runtime.close()
      },
    }
  },
})

const text = { type: 'string' } as const

const rolledBackFacts = {
  description: 'One of your transactions was rolled back: on request, after its timeout, or because a grant ended',
  payload: {
    type: 'object',
    properties: { transaction_id: text, status: text, reason: text },
    required: ['transaction_id', 'status'],
  },
} as const

/** What transactions need from the server. */
export interface TransactionsParts
  extends Pick<TransactionsOptions, 'perOwner' | 'steps' | 'onRolledBack'>,
    Pick<ServerKit, 'clock' | 'trace' | 'engine' | 'grants' | 'port'> {
  readonly timeoutMs: number
  readonly maxTimeoutMs: number
  /** How long ended transactions are remembered; as long their compensations are idempotent. */
  readonly retentionMs: number
  /** Reverts what a step wrote beside its effect. */
  readonly revert: (wrote: unknown) => Promise<UndoneParts>
}

const kinds: KindsOf<UndoFacts> = { tool: 'string', arguments: 'function', description: 'string' }

/** The `_meta` of the tool. Throws if `undo` is invalid. */
function undoMeta(name: string, undo: unknown): Readonly<Record<string, unknown>> | undefined {
  if (undo === undefined) return undefined
  const facts = isRecord(undo) ? undo : {}
  const { tool, description } = facts
  if (typeof tool !== 'string')
    throw new TypeError(`The undo of tool "${name}" must name a tool: undo: { tool: 'delete_it', arguments: ({ result }) => … }`)
  checkOptions(`The undo of tool "${name}"`, facts, kinds)
  return { [transactionsExtension]: { compensation: { tool, ...(typeof description === 'string' && { description }) } } }
}

/** Whether a call is a step. Must be fast, because it runs for every call. */
function takesPart(exchange: Exchange): boolean {
  return exchange.get(retryState)?.[transactionsExtension] !== undefined || exchange.meta?.[transactionsExtension] !== undefined
}

/** The call that is undone. */
interface UndoneCall<A = Readonly<Record<string, unknown>>, R = unknown> {
  /** The arguments of the call. */
  readonly args: A
  /** Its structured content or text; undefined if the outcome is unknown. */
  readonly result: R | undefined
  /** Its idempotency key, by which its effect may be found. */
  readonly key: string | undefined
}

/** How a call is undone: by calling another tool. */
export interface UndoFacts<A = Readonly<Record<string, unknown>>, R = unknown> {
  /** The name of the tool that undoes the call. */
  readonly tool: string
  /**
   * The arguments of that call. Called before the call without a result, and again with it. Default: the same arguments. Undefined or
   * an error: it cannot be undone without its result.
   */
  arguments?(call: UndoneCall<A, R>): Readonly<Record<string, unknown>> | undefined
  /** What the undo does, for reports. Default: none. */
  readonly description?: string
}
