/** The reliability features of a server, and how they hang together. The only place that knows them all; each loads its works when first used. */
import type { Catalog } from '../core/catalog.ts'
import type { Clock } from '../core/clock.ts'
import type { Grants } from '../core/grant/grants.ts'
import type { Seal } from '../core/handle.ts'
import type { Runners } from '../core/journal/runners.ts'
import type { Trace } from '../core/log.ts'
import { checkScopes } from '../core/scope.ts'
import type { Engine } from '../engine/engine.ts'
import type { Exchange } from '../engine/exchange.ts'
import { ownerOf } from '../engine/owner.ts'
import type { Side } from '../engine/plan.ts'
import type { Scopes, Aim as Target } from '../features/mcp/authorization/messages.ts'
import type { Explain } from '../features/mcp/tools/failed.ts'
import type { ToolEntry, ToolExtras, ToolFacts } from '../features/mcp/tools/server.ts'
import type { ApprovedCalls } from '../features/reliability/confirmation/approvals.ts'
import {
  type Confirmable,
  confirmFacts,
  confirmMeta,
  isForClients,
  worstRisk,
} from '../features/reliability/confirmation/facts.ts'
import { type ConfirmationServer, confirmationServer } from '../features/reliability/confirmation/server.ts'
import { type Priced, pricedMeta } from '../features/reliability/cost/facts.ts'
import type { CallCost } from '../features/reliability/cost/meter.ts'
import type { CostOptions } from '../features/reliability/cost/server.ts'
import type { EventsServer } from '../features/reliability/events/server.ts'
import { facadeParts } from '../features/reliability/facade/facts.ts'
import { idempotencyServer } from '../features/reliability/idempotency/server.ts'
import { intentServer } from '../features/reliability/intent/server.ts'
import { type Paginated, paginationMeta } from '../features/reliability/manifest/pagination.ts'
import type { ListedKind } from '../features/reliability/permissions/hide.ts'
import { permissionsExtension, presentedIn } from '../features/reliability/permissions/messages.ts'
import { type Aim, type PermissionsServer, permissionsServer, type Scoped } from '../features/reliability/permissions/server.ts'
import type { SessionFacts, Sessions } from '../features/reliability/permissions/sessions.ts'
import { problemOfFailure } from '../features/reliability/problem/failures.ts'
import { explainFailure, explainRefusal, problemMeta, problemServer } from '../features/reliability/problem/server.ts'
import { type StateRule, type StateServer, stateServer } from '../features/reliability/session-state/server.ts'
import { type StreamingServer, streamingServer } from '../features/reliability/streaming/server.ts'
import { type StuckTransaction, transactionsServer } from '../features/reliability/transactions/server.ts'
import type { Op, Store } from '../stores/store.ts'
import type { Server } from './api.ts'
import { artifactKinds, artifactMeta, artifacts, type ContentFacts } from './artifacts.ts'
import type { Context } from './context.ts'
import { approvalOf, type BudgetsControl, costsOf, ownerNamed } from './cost.ts'
import type { ServerEventsParts } from './events.ts'
import { admitByGrant, eventVisibility, type GrantExpiry, grantExpiryOf } from './grant-expiry.ts'
import { rolledBackEvent } from './lifecycle-events.ts'
import type { ServerOptions } from './options.ts'
import { type AuditControl, auditControl, openRecords, type Records } from './records.ts'
import { type ServerReferences, serverReferences } from './references.ts'
import { type LazyStore, lazyStore } from './store.ts'
import { streamingTools, streamsMeta } from './streaming.ts'

/** What the features let an author say of a tool. */
export interface ReliableFacts extends Confirmable, ContentFacts, Paginated, Priced, Scoped, Pick<ToolFacts, 'scopes'> {}

export interface ReliabilityParts {
  readonly context: (exchange: Exchange) => Context
  readonly clock: Clock
  readonly trace: Trace
  readonly seal: Seal
  /** How long a call that has asked its caller something may wait for the answer. */
  readonly askMs: number
  readonly tools: () => Catalog<ToolEntry<never>>
  /** The scopes of what a request aims at. */
  readonly needs: (aim: Target) => Scopes
  /** Whether anything has scopes. */
  readonly scoped: () => boolean
  /** The lists of what may have them. */
  readonly lists: readonly ListedKind[]
  /** Called when a feature begins to look at calls. */
  readonly began: () => void
  /** What a tool says of its state. */
  readonly stateRule: (tool: string) => StateRule | undefined
  /** Whether any does. */
  readonly usesState: () => boolean
  readonly engine: () => Engine
  /** Whether there is a tool of that name. */
  readonly offers: (tool: string) => boolean
  /** The writes that take back the events of a step, by its place. */
  readonly undoEvents: (place: string) => Promise<readonly Op[]>
  /** The writes that tell an owner of an event of the runtime, where it is offered. */
  readonly announcing: EventsServer['announcing']
  /** Whether a call will go on as a task before its handler is entered. */
  readonly detaches: (exchange: Exchange) => boolean
}

/** What an author can do about what was granted. */
export interface PermissionsControl {
  /** All that a principal holds, by its id; without one what the owner of this process holds, over stdio and in memory. */
  sessions(principal?: string): Promise<readonly SessionFacts[]>
  /** Gives more to a session that lives; false where it does not. */
  extend(session: string, scopes: readonly string[]): Promise<boolean>
  /** Ends a session now, also for calls that are under way; false where there is none. */
  revoke(session: string): Promise<boolean>
}

export interface Reliability {
  readonly sides: readonly Side[]
  readonly toolExtras: ToolExtras
  readonly confirmations: Server['confirmations']
  readonly permissions: PermissionsControl
  readonly budgets: BudgetsControl
  /** What a call costs, for its handler. */
  readonly cost: (exchange: Exchange) => CallCost
  /** Whether more than the caller's token decides on a request. */
  decides(exchange: Exchange): boolean
  /** Whether a caller may hear of what has these scopes. */
  readonly hears: PermissionsServer['hears']
  /** Ends what was opened under a grant when that is over. */
  readonly lapsing: GrantExpiry
  /** Whether a caller may hear of an event; undefined where its token alone decides. */
  readonly judgeHearing: ServerEventsParts['judge']
  /** A tool is offered. */
  declare(tool: string, facts: ReliableFacts): void
  /** The user behind a call has agreed to calls of a tool. */
  allow(exchange: Exchange, tool: string, approved: ApprovedCalls): Promise<void>
  readonly state: StateServer
  /** Undefined where there are none. */
  readonly references: ServerReferences | undefined
  /** The server's store, given or not. */
  readonly store: () => Promise<Store>
  /** Opens a store that was named, before anybody is let in. */
  readonly ready: () => Promise<void>
  /** Which processes on it are alive. */
  readonly runners: () => Promise<Runners>
  readonly streaming: StreamingServer
  /** The store that was given, for what processes share, and who of them is alive. */
  readonly shared: { readonly store: () => Promise<Store>; readonly runners: () => Promise<Runners> } | undefined
  /** What a failed call's result says of its problem. */
  readonly problemMeta: Explain
  /** The failure that a request is answered with. */
  readonly explain: typeof explainFailure
  /** The failure that is answered where there is no request yet. */
  readonly explainTo: typeof explainRefusal
  readonly transactions: Transactions
  readonly audit: AuditControl
  close(): Promise<void>
}

/** What an author can ask of the transactions of his server. */
export interface Transactions {
  /** Those that could not be taken back whole, as long as they are remembered, and those that are being taken back. */
  stuck(): Promise<readonly StuckTransaction[]>
}

export function reliability(options: ServerOptions, parts: ReliabilityParts): Reliability {
  const { clock, trace, askMs, seal, engine, offers } = parts
  const store = lazyStore(options.store, clock, trace)
  const { audit, journal, grants, close } = openRecords(options, store, clock, trace)
  const idempotency = idempotencyServer({
    ...options.idempotency,
    journal,
    declared: options.store !== undefined,
    clock,
    trace,
    askMs,
    problemMeta,
    dedupe: tool => parts.tools().get(tool)?.facts.dedupe,
  })
  const confirmation = confirming(options, parts, store, grants, audit)
  const permissions = permitting(options, parts, store, grants)
  const factsOf = (tool: string): ReliableFacts | undefined => parts.tools().get(tool)?.facts
  const costs = costsOf(options, { ...parts, grants, journal, facts: factsOf })
  const intent = intentServer({ options: options.intent, context: parts.context, clock, trace, offers })
  const transactions = transactionsServer({
    ...options.transactions,
    grants,
    revert: async wrote => {
      const [written, given] = await Promise.all([state.revert(wrote), references?.server.revert(wrote)])
      return given === undefined ? written : { ...written, ops: [...written.ops, ...given.ops] }
    },
    journal,
    shared: options.store !== undefined,
    clock,
    trace,
    engine,
    offers,
    problemOf: problemOfFailure,
    rolledBack: (owner, { id, status, reason }) =>
      parts.announcing(rolledBackEvent, { transaction_id: id, status, ...(reason === undefined ? {} : { reason }) }, owner),
    undone: async (owner, step, unit) => {
      const place = `${owner}/${unit.id}/${unit.begunAt}/${step.order}`
      const [refunds, told] = await Promise.all([costs.undone(owner, step, unit), parts.undoEvents(place)])
      return [...refunds, ...told]
    },
  })
  const streaming = streamingServer({
    ...options.streaming,
    ...parts,
    ...streamingTools(parts.tools),
    journal,
    shared: options.store !== undefined,
    audience: options.name,
  })
  const state = stateServer({
    ...options.state,
    store: store.open,
    shared: options.store !== undefined,
    seal,
    audience: options.name,
    clock,
    trace,
    announcing: parts.announcing,
    rule: parts.stateRule,
    used: parts.usesState,
  })
  const sourced = artifacts(options, parts, problemMeta)
  const references = serverReferences(options, {
    store: store.open,
    seal,
    clock,
    trace,
    grants,
    engine,
    admit: exchange => admitByGrant(permissions, exchange),
  })
  const runners = async (): Promise<Runners> => (await journal()).runners
  return {
    references,
    sides: [
      problemServer(),
      streaming.side,
      idempotency,
      permissions.side,
      confirmation.side,
      transactions.side,
      state.side,
      costs.server.side,
      intent,
      ...sourced.sides,
      ...(references === undefined ? [] : [references.server.side]),
    ],
    transactions: { stuck: transactions.stuck },
    audit: auditControl(audit),
    state,
    streaming,
    shared: options.store === undefined ? undefined : { store: store.open, runners },
    runners,
    problemMeta,
    toolExtras: extrasOf(transactions.undoable, options.cost),
    decides: permissions.decides,
    hears: permissions.hears,
    lapsing: grantExpiryOf(permissions, engine),
    judgeHearing: (asker, name, scopes) => {
      const guarded = presentedIn(asker.meta) !== undefined
      return guarded || options.permissions?.grant !== undefined
        ? eventVisibility(permissions, asker, name, scopes, guarded)
        : undefined
    },
    store: store.open,
    ready: store.ready,
    permissions: controlOf(permissions),
    budgets: costs.control,
    cost: costs.server.of,
    declare: (tool, facts) => {
      costs.server.declare(tool, facts)
      confirmation.declare(tool, withApproval(facts, options.cost))
      sourced.declare(facts)
    },
    confirmations: {
      find: async id => (await confirmation.approvals()).find(id),
      approve: async (id, by) => (await confirmation.approvals()).approve(id, by),
      waiting: async () => (await confirmation.approvals()).waiting(),
      refuse: async (id, by) => (await confirmation.approvals()).refuse(id, by),
    },
    allow: async (exchange, tool, approved) => (await confirmation.approvals()).allow(await ownerOf(exchange), tool, approved),
    explain: explainFailure,
    explainTo: explainRefusal,
    close: async () => {
      await streaming.close()
      permissions.close()
      references?.server.close()
      await transactions.close()
      await close()
      await store.close()
    },
  }
}

interface UndoableFacts {
  readonly undo?: unknown
}

type Undoable = (name: string, undo: unknown) => Readonly<Record<string, unknown>> | undefined

/** The same tool, where its cost needs a yes too. */
function withApproval(facts: ReliableFacts, cost: CostOptions | undefined): Confirmable {
  const confirm = facts.cost === undefined ? facts.confirm : approvalOf(facts, cost)
  return confirm === undefined ? {} : { confirm }
}

const extrasOf = (undoable: Undoable, cost: CostOptions | undefined): ToolExtras => ({
  kinds: {
    confirm: 'any',
    scopesFor: 'function',
    undo: 'object',
    pagination: 'object',
    cost: 'object',
    latency: 'string',
    quota: 'object',
    ...artifactKinds,
  },
  meta: (name, facts: ReliableFacts & UndoableFacts, schemas, streams) => {
    const undo = undoable(name, facts.undo)
    const obliged = approvalOf(facts, cost)
    const confirm = obliged !== undefined && isForClients(obliged) ? obliged : undefined
    const needs = facts.scopes === undefined ? undefined : { [permissionsExtension]: { required_scopes: facts.scopes } }
    const pages = paginationMeta(name, facts, schemas)
    const priced = pricedMeta(facts, cost?.unitLabel)
    const media = artifactMeta(name, facts)
    const streamed = streams ? streamsMeta : undefined
    if ((undo ?? confirm ?? needs ?? pages ?? priced ?? media) === undefined) return streamed
    return { ...needs, ...(confirm && confirmMeta(confirm)), ...undo, ...pages, ...priced, ...media, ...streamed }
  },
  annotations: (facts: ReliableFacts) => {
    const confirm = confirmFacts(facts)
    return confirm === undefined || confirm.when !== undefined
      ? undefined
      : { destructiveHint: worstRisk(confirm) === 'destructive' }
  },
})

function confirming(
  { name, facade, cost }: ServerOptions,
  { tools, ...parts }: ReliabilityParts,
  store: LazyStore,
  grants: () => Promise<Grants>,
  audit: Records['audit'],
): ConfirmationServer {
  const { clock } = parts
  const factsOf = (tool: string): ReliableFacts | undefined => tools().get(tool)?.facts
  return confirmationServer({
    ...parts,
    server: name,
    toEveryone: facadeParts(facade).has('confirmation'),
    problemMeta,
    grants,
    audit,
    store: store.open,
    spending: async () => {
      const [{ Spending }, opened] = await Promise.all([import('../core/spending.ts'), store.open()])
      return new Spending({ store: opened, clock })
    },
    facts: tool => {
      const facts = factsOf(tool)
      return facts === undefined ? undefined : approvalOf(facts, cost)
    },
    definition: tool => tools().digestOf(tool),
  })
}

function permitting(
  { permissions }: ServerOptions,
  { seal, clock, trace, tools, needs, scoped, lists }: ReliabilityParts,
  store: LazyStore,
  grants: () => Promise<Grants>,
): PermissionsServer {
  const tool = (name: string): Aim | undefined => {
    const facts: ReliableFacts | undefined = tools().get(name)?.facts
    return facts === undefined ? undefined : { name, scopes: facts.scopes, scopesFor: facts.scopesFor }
  }
  const guarded = (target: Target): Aim | undefined => {
    const [kind, name] = target
    if (kind !== 'tool') {
      const scopes = needs(target)
      return scopes === undefined ? undefined : { name, scopes, scopesFor: undefined }
    }
    // Every call is asked: what needs nothing is told by one look.
    const facts: ReliableFacts | undefined = tools().get(name)?.facts
    return facts?.scopes === undefined && facts?.scopesFor === undefined ? undefined : tool(name)
  }
  return permissionsServer({
    ...permissions,
    seal,
    clock,
    trace,
    store: store.open,
    grants,
    guarded,
    tool,
    offered: scoped,
    lists,
  })
}

function controlOf({ rights }: PermissionsServer): PermissionsControl {
  const sessions = async (): Promise<Sessions> => (await rights()).sessions
  return {
    sessions: async principal => (await sessions()).list(await ownerNamed(principal)),
    extend: async (session, scopes) => {
      checkScopes(scopes, 'permissions.extend')
      return (await sessions()).extend(session, scopes)
    },
    revoke: async session => (await sessions()).revoke(session),
  }
}
