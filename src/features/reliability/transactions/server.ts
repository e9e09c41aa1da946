/** Offering transactions: switched on by the first tool that says how it is undone. What that takes is loaded with the first one. */
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

/** A transaction that could not be taken back whole, or is being taken back. */
export interface StuckTransaction extends WireRolledBack {
  /** The key of whose it is. */
  readonly owner: string
}

/** What an author may say of it. */
export interface TransactionsOptions {
  /** After how long without activity a transaction is rolled back, where its client does not say. Default 5 min. */
  readonly timeout?: Duration
  /** The longest that a client may say. Default 1 h. */
  readonly maxTimeout?: Duration
  /** How long one that has ended is remembered. Default 24 h. */
  readonly retention?: Duration
  /** Open ones of one caller. Default 100. */
  readonly perOwner?: number
  /** Steps of one. Default, and at most, 900. */
  readonly steps?: number
  /** Told of each that was rolled back, for whatever reason. */
  readonly onRolledBack?: (report: WireRolledBack) => void
  /** Clients can subscribe to the event `transaction_rolled_back` and hear of their own. Default false. */
  readonly events?: boolean
}

/** The options of `createServer` for it. */
export interface TransactionsServerOptions {
  /** How transactions are kept. There are some as soon as a tool has an `undo`. */
  readonly transactions?: TransactionsOptions
}

/** What it adds to the server of an author. */
export interface TransactionsApi {
  /** What has become of transactions that somebody should look at. */
  readonly transactions: TransactionsControl
}

/** What an author can ask of the transactions of his server. */
interface TransactionsControl {
  /** Those that could not be taken back whole, as long as they are remembered, and those that are being taken back. */
  stuck(): Promise<readonly StuckTransaction[]>
}

/** The event of a transaction that was rolled back, whoever did that. */
const rolledBackEvent = 'transaction_rolled_back'

/** The option `undo` of tools; `server.transactions`. */
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

/** What transactions need of the server. */
export interface TransactionsParts extends TransactionsOptions {
  readonly journal: () => Promise<Journal>
  /** Others may have left something in the store that has to be ended here. */
  readonly shared: boolean
  readonly clock: Clock
  readonly trace: Trace
  readonly engine: () => Engine
  readonly offers: (tool: string) => boolean
  readonly problemOf: (thrown: unknown) => Problem
  /** How what a step wrote beside its effect is taken back. */
  readonly revert: (wrote: unknown) => Promise<UndoneParts>
  /** What is let in by a grant is rolled back with its end. */
  readonly grants: () => Promise<Grants>
  /** Further writes that go with the end of a rollback. */
  readonly rolledBack?: (owner: string, unit: Unit) => Promise<readonly Op[]>
  /** Further writes that go with a step's being taken back. */
  readonly undone?: (owner: string, step: Step, unit: Unit) => Promise<readonly Op[]>
}

interface TransactionsServer {
  readonly side: Side
  /** What a list of tools says of a tool that has an undo: with the first such tool there are transactions. */
  undoable(name: string, undo: unknown): Readonly<Record<string, unknown>> | undefined
  stuck(): Promise<readonly StuckTransaction[]>
  close(): Promise<void>
}

/** After a start, time for the tools to be registered. */
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
          // Before anything is given again: what was said under the same key otherwise is no answer to this.
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
          // Inside of what makes tasks of calls: the end of a step that has become one is seen here.
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

/** What a list of tools says of it. Throws where it makes no sense. */
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

/** Whether a call takes part in a transaction. Cheap: every call is asked. */
function takesPart(exchange: Exchange): boolean {
  const { meta } = exchange
  if (exchange.get(carried)?.[transactionsExtension] !== undefined) return true
  return meta !== undefined && Object.hasOwn(meta, transactionsExtension)
}

/** What a call was, for whoever has to say how it is undone. */
interface UndoneCall<A = Readonly<Record<string, unknown>>, R = unknown> {
  readonly args: A
  /** What it gave: its structured content, else its text. Undefined where nobody knows how it ended. */
  readonly result: R | undefined
  /** The idempotency key under which it was made, if any: what it left behind may be found by that. */
  readonly key: string | undefined
}

/** How a call of a tool is taken back: by a call of another one. */
export interface UndoFacts<A = Readonly<Record<string, unknown>>, R = unknown> {
  readonly tool: string
  /**
   * The arguments of that call. Asked before the call is made, without a result, and again with it; what it gives is kept.
   * Default: those of the call itself. Undefined, or an error: it cannot be undone without its result.
   */
  arguments?(call: UndoneCall<A, R>): Readonly<Record<string, unknown>> | undefined
  /** In words, for the report. */
  readonly description?: string
}

/** Of a tool only what matters here. */
export interface UndoableTool {
  readonly name: string
  readonly facts: { readonly undo?: UndoFacts; readonly annotations?: { readonly readOnlyHint?: boolean } }
}

/** What is known of the inverse before the call is made. */
export function inverseOf(undo: UndoFacts, args: Readonly<Record<string, unknown>>, key: string | undefined): Inverse {
  const { tool, description } = undo
  const parameters = tried(() => parametersOf(undo, { args, key, result: undefined }))
  return {
    target: tool,
    ...(parameters === undefined ? {} : { parameters }),
    ...(description === undefined ? {} : { description }),
  }
}

/** The parameters that the result gives. Throws what the author's code throws. */
export function parametersOf(undo: UndoFacts, call: UndoneCall): Readonly<Record<string, unknown>> | undefined {
  const given = undo.arguments === undefined ? call.args : undo.arguments(call)
  if (given === undefined) return undefined
  if (!isRecord(given)) throw new TypeError(`The arguments of ${undo.tool} must be an object`)
  return JSON.parse(JSON.stringify(given))
}

/** What a handler gave, as far as its result shows it. */
export function givenIn({ structuredContent, content }: CallToolResult): unknown {
  if (structuredContent !== undefined) return structuredContent
  const texts = content.flatMap(block => (block.type === 'text' ? [block.text] : []))
  return texts.join('\n')
}

/** Authors write for the result; that there is none yet is no mistake of theirs. */
function tried<T>(fn: () => T): T | undefined {
  try {
    return fn()
  } catch {
    return undefined
  }
}
