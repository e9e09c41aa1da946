/**
 * Server side of transactions: the option `undo` of tools, `server.transactions`, and the layers around steps. Enabled by the first
 * tool with an `undo`; the runtime is loaded with the first transaction.
 */
import { type Clock, type Duration, toMilliseconds } from '../../../core/clock.ts'
import type { Grants } from '../../../core/grant/grants.ts'
import type { Journal } from '../../../core/journal/journal.ts'
import type { UndoneParts } from '../../../core/journal/rollback.ts'
import type { Inverse, Step, Unit } from '../../../core/journal/unit.ts'
import type { Trace } from '../../../core/log.ts'
import { checkOptions, type KindsOf } from '../../../core/options.ts'
import type { Problem } from '../../../core/problem.ts'
import type { Engine } from '../../../engine/engine.ts'
import { carried, type Exchange } from '../../../engine/exchange.ts'
import { declaration } from '../../../engine/extensions.ts'
import type { Method } from '../../../engine/method.ts'
import type { GatedHandler, Side } from '../../../engine/plan.ts'
import { defineServerFeature, provide } from '../../../engine/server-feature.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import type { Op } from '../../../stores/store.ts'
import { type CallToolResult, callTool, toolsPort } from '../../mcp/tools/messages.ts'
import { costPort } from '../cost/messages.ts'
import { eventsPort } from '../events/messages.ts'
import { problemPort } from '../problem/messages.ts'
import {
  beginTransaction,
  commitTransaction,
  getTransaction,
  rollbackTransaction,
  stepName,
  transactionsExtension,
  transactionsPort,
  unitStep,
  type WireRolledBack,
  type WireUndo,
} from './messages.ts'
import type { Methods } from './methods.ts'

/** A transaction that is being rolled back, or could not be completely. */
export interface StuckTransaction extends WireRolledBack {
  /** The owner key. */
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
  /** Called after each rollback, for whatever reason. */
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
const rolledBackEvent = 'transaction_rolled_back'

/** The server feature: `undo` and `server.transactions`. */
export const transactionsFeature = defineServerFeature<TransactionsServerOptions, TransactionsApi>({
  name: 'transactions',
  options: { transactions: 'object' },
  setup: (kit, { transactions = {} }) => {
    const tools = kit.port(toolsPort)
    const reverts: ((wrote: unknown) => Promise<UndoneParts>)[] = []
    const { side, undoable, stuck, close } = transactionsServer({
      ...kit,
      ...transactions,
      revert: async wrote => {
        const [first = { ops: [] }, ...others] = await Promise.all(reverts.map(revert => revert(wrote)))
        return { ...first, ops: [...first.ops, ...others.flatMap(({ ops }) => ops)] }
      },
      offers: tool => tools.catalog.get(tool) !== undefined,
      problemOf: thrown => kit.port(problemPort).of(thrown),
      rolledBack: (owner, { id, status, reason }) => {
        const payload = { transaction_id: id, status, ...(reason === undefined ? {} : { reason }) }
        return kit.port(eventsPort).announcing(rolledBackEvent, payload, owner)
      },
      undone: async (owner, step, unit) => {
        const place = `${owner}/${unit.id}/${unit.begunAt}/${step.order}`
        const [refunds, told] = await Promise.all([
          kit.port(costPort).undone(`${owner}/${stepName(step.order, unit.id)}`),
          kit.port(eventsPort).undo(place),
        ])
        return [...refunds, ...told]
      },
    })
    tools.extend({ kinds: { undo: 'object' }, meta: (name, { undo }: { readonly undo?: unknown }) => undoable(name, undo) })
    return {
      sides: [side],
      provides: provide(transactionsPort, { revertBy: revert => void reverts.push(revert) }),
      server: { transactions: { stuck } },
      installed: () => {
        if (transactions.events === true) kit.port(eventsPort).add(rolledBackEvent, rolledBackFacts)
      },
      close,
    }
  },
})

const text = { type: 'string' } as const

const rolledBackFacts = {
  description: 'A transaction of yours was rolled back: because you said so, because nobody touched it, or because a right ended',
  payload: {
    type: 'object',
    properties: { transaction_id: text, status: text, reason: text },
    required: ['transaction_id', 'status'],
  },
} as const

/** What transactions need from the server. */
export interface TransactionsParts extends TransactionsOptions {
  readonly journal: () => Promise<Journal>
  /** Whether the store is shared; other processes may have left transactions there. */
  readonly shared: boolean
  readonly clock: Clock
  readonly trace: Trace
  readonly engine: () => Engine
  readonly offers: (tool: string) => boolean
  readonly problemOf: (thrown: unknown) => Problem
  /** Reverts what a step wrote beside its effect. */
  readonly revert: (wrote: unknown) => Promise<UndoneParts>
  /** A transaction ends with the grant that it was opened under. */
  readonly grants: () => Promise<Grants>
  /** Further store operations at the end of a rollback. */
  readonly rolledBack?: (owner: string, unit: Unit) => Promise<readonly Op[]>
  /** Further store operations when a step is compensated. */
  readonly undone?: (owner: string, step: Step, unit: Unit) => Promise<readonly Op[]>
}

interface TransactionsServer {
  readonly side: Side
  /** The `_meta` of a tool with an undo; the first one enables transactions. */
  undoable(name: string, undo: unknown): Readonly<Record<string, unknown>> | undefined
  stuck(): Promise<readonly StuckTransaction[]>
  close(): Promise<void>
}

/** After a start, wait for the tools to be registered. */
const startMs = 500

function transactionsServer(parts: TransactionsParts): TransactionsServer {
  const times = {
    timeoutMs: toMilliseconds(parts.timeout ?? '5m', 'transactions.timeout'),
    maxTimeoutMs: toMilliseconds(parts.maxTimeout ?? '1h', 'transactions.maxTimeout'),
    retentionMs: toMilliseconds(parts.retention ?? '24h', 'transactions.retention'),
  }
  let loading: Promise<Methods> | undefined
  let used = false
  let start: (() => void) | undefined
  const open = async (): Promise<Methods> => {
    const [{ createMethods }, journal] = await Promise.all([import('./methods.ts'), parts.journal()])
    return createMethods(parts, times, journal)
  }
  const load = (): Promise<Methods> => {
    loading ??= open().catch(error => {
      loading = undefined
      throw error
    })
    return loading
  }
  // Starts the sweep; retries while the store is unavailable.
  const look = (): void => {
    load().then(
      methods => methods.runtime.sweep(),
      error => {
        parts.trace('transactions-not-opened', error)
        start = parts.clock.setTimeout(look, 5000, true)
      },
    )
  }
  const method = (answer: (methods: Methods, exchange: Exchange) => Promise<unknown>): GatedHandler => ({
    offered: () => used,
    execute: async exchange => answer(await load(), exchange),
  })
  const handlers: (readonly [Method, GatedHandler])[] = [
    [beginTransaction, method((methods, exchange) => methods.begin(exchange))],
    [commitTransaction, method((methods, exchange) => methods.commit(exchange))],
    [rollbackTransaction, method((methods, exchange) => methods.rollback(exchange))],
    [getTransaction, method((methods, exchange) => methods.get(exchange))],
  ]
  return {
    side: {
      handlers,
      layers: [
        {
          // Before replay, so that a stored result of another transaction is not returned.
          stage: 'validate',
          methods: [callTool.name],
          marked: true,
          when: ({ meta }) => meta !== undefined && Object.hasOwn(meta, transactionsExtension),
          run: async (exchange, next) => {
            ;(await import('./compensate.ts')).transactionOf(exchange)
            return next()
          },
        },
        {
          stage: 'record',
          methods: [callTool.name],
          marked: true,
          when: takesPart,
          run: async (exchange, next) => (await load()).step(exchange, next),
        },
        {
          // Runs inside of tasks, so that their end is seen.
          stage: 'execute',
          methods: [callTool.name],
          marked: true,
          when: exchange => exchange.get(unitStep) !== undefined,
          run: async (exchange, next) => (await load()).finish(exchange, next),
        },
      ],
      capabilities: revision => (used ? declaration(revision, transactionsExtension) : {}),
    },
    undoable: (name, undo) => {
      const meta = undoMeta(name, undo)
      if (meta !== undefined && !used) {
        used = true
        if (parts.shared) start = parts.clock.setTimeout(look, startMs, true)
      }
      return meta
    },
    stuck: async () => (await load()).stuck(),
    close: async () => {
      start?.()
      const methods = await loading?.catch(() => undefined)
      methods?.runtime.close()
    },
  }
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
  const meta: WireUndo = { compensation: { tool, ...(typeof description === 'string' ? { description } : {}) } }
  return { [transactionsExtension]: meta }
}

/** Whether a call is a step. Must be fast, because it runs for every call. */
function takesPart(exchange: Exchange): boolean {
  const { meta } = exchange
  if (exchange.get(carried)?.[transactionsExtension] !== undefined) return true
  return meta !== undefined && Object.hasOwn(meta, transactionsExtension)
}

/** The call that is to be undone. */
interface UndoneCall<A = Readonly<Record<string, unknown>>, R = unknown> {
  readonly args: A
  /** Its structured content or text; undefined if the outcome is unknown. */
  readonly result: R | undefined
  /** Its idempotency key, by which its effect may be found. */
  readonly key: string | undefined
}

/** How a call is undone: by calling another tool. */
export interface UndoFacts<A = Readonly<Record<string, unknown>>, R = unknown> {
  readonly tool: string
  /**
   * The arguments of that call. Called before the call without a result, and again with it. Default: the same arguments. Undefined or
   * an error: it cannot be undone without its result.
   */
  arguments?(call: UndoneCall<A, R>): Readonly<Record<string, unknown>> | undefined
  /** Shown in reports. */
  readonly description?: string
}

/** The part of a tool's definition that matters here. */
export interface UndoableTool {
  readonly name: string
  readonly facts: { readonly undo?: UndoFacts; readonly annotations?: { readonly readOnlyHint?: boolean } }
}

/** The compensation, as far as it is known before the call. */
export function inverseOf(undo: UndoFacts, args: Readonly<Record<string, unknown>>, key: string | undefined): Inverse {
  const { tool, description } = undo
  const parameters = tried(() => parametersOf(undo, { args, key, result: undefined }))
  return {
    target: tool,
    ...(parameters === undefined ? {} : { parameters }),
    ...(description === undefined ? {} : { description }),
  }
}

/** The compensation's arguments, from the result. Throws what the author's code throws. */
export function parametersOf(undo: UndoFacts, call: UndoneCall): Readonly<Record<string, unknown>> | undefined {
  const given = undo.arguments === undefined ? call.args : undo.arguments(call)
  if (given === undefined) return undefined
  if (!isRecord(given)) throw new TypeError(`The arguments of ${undo.tool} must be an object`)
  return JSON.parse(JSON.stringify(given))
}

/** What the handler returned, as far as the result shows it. */
export function givenIn({ structuredContent, content }: CallToolResult): unknown {
  if (structuredContent !== undefined) return structuredContent
  const texts = content.flatMap(block => (block.type === 'text' ? [block.text] : []))
  return texts.join('\n')
}

/** Before the call there is no result, so an error here is expected. */
function tried<T>(fn: () => T): T | undefined {
  try {
    return fn()
  } catch {
    return undefined
  }
}
