/**
 * What a gateway adds to servers that know nothing of it: rules, approvals, budgets, pins, an audit log, who sees what. Most of it is
 * said by the options that an author would write of a tool; this is where it hangs together.
 */
import type { Clock } from '../../core/clock.ts'
import type { Trace } from '../../core/log-trace.ts'
import type { Exchange } from '../../engine/exchange.ts'
import { declaration } from '../../engine/extensions.ts'
import type { Tool } from '../../features/mcp/tools/messages.ts'
import type { SharedQuota } from '../../features/reliability/cost/server.ts'
import { provenanceExtension } from '../../features/reliability/provenance/messages.ts'
import type { Caller } from '../../jsonrpc/connection.ts'
import type { Server } from '../../server/api.ts'
import type { Auth } from '../../server/auth.ts'
import type { ServerOptions } from '../../server/options.ts'
import type { Store } from '../../stores/store.ts'
import { type Approval, approvalsOf } from './approvals.ts'
import { type Around, aroundOf, type KnownTool } from './around.ts'
import { authorizationOf } from './auth.ts'
import { checkTrust } from './check.ts'
import { Clients } from './clients.ts'
import { type ChangedList, UpstreamEvents } from './events.ts'
import { type Explained, type Explaining, explain } from './explain.ts'
import { gateSide } from './gate.ts'
import { type AuditControl, Notes } from './notes.ts'
import { type AddedOptions, toolOptions } from './options.ts'
import { ToolPins } from './pins.ts'
import { Policy, type ToolPolicy, type Verdict } from './policy.ts'
import type { TrustSettings } from './settings.ts'

export interface TrustParts {
  /** The gateway, as it names itself. */
  readonly name: string
  readonly store: Store
  readonly clock: Clock
  readonly trace: Trace
  /** The tools of an upstream should be listed again. */
  relist(upstream: string): void
  /** The server that a prompt or a resource, by the name or address that clients see, is from. */
  upstreamOf(kind: 'prompt' | 'resource', exposed: string): string | undefined
}

/** What whoever runs a gateway can ask and answer. */
export interface TrustControl {
  /** Calls that wait for a yes, and definitions of tools that are not those that were pinned. */
  approvals(): Promise<readonly Approval[]>
  /** False where there is nothing of that name, or it was answered before. */
  approve(id: string): Promise<boolean>
  refuse(id: string): Promise<boolean>
  /** What would become of a call, and by which rule. Counts nothing and asks nobody. */
  explain(call: Explaining): Explained
  /** What was written down, and whether anybody changed it. */
  readonly audit: AuditControl
}

export interface Trust {
  /** For `createServer`. */
  readonly serverOptions: Pick<ServerOptions, 'cost' | 'audit'>
  /** For every way of listening. */
  readonly auth: Auth | undefined
  readonly pins: Pick<ToolPins, 'look' | 'approve'>
  readonly around: Around
  readonly control: TrustControl
  /** The server exists. */
  attach(server: Server): void
  /** What is said of a tool that is offered now. */
  options(upstream: string, tool: Tool, exposed: string): AddedOptions
  /** It is offered no more. */
  forget(exposed: string): void
  updated(upstream: string, uri: string): void
  changed(upstream: string, list: ChangedList): void
  close(): Promise<void>
}

export function createTrust(settings: TrustSettings, parts: TrustParts): Trust {
  checkTrust(settings)
  const { store, clock, trace, name } = parts
  const clients = new Clients(settings.clients)
  const policy = new Policy(settings.rules ?? [], settings.otherwise ?? 'allow', clock)
  const failed = (error: unknown): void => trace('gateway-audit', error)
  const notes = new Notes({ store, clock, audit: settings.audit, failed })
  const policies = new Map<string, ToolPolicy>()
  const tools = new Map<string, KnownTool>()
  const pins = new ToolPins({
    store,
    clock,
    mode: settings.pins ?? 'block',
    held: ({ server, tool, why }) => {
      trace('tool-held', why)
      notes.note({ client: '', upstream: server, tool: tool.name, outcome: 'held', rule: 'pins', code: why.code })
    },
    flagged: (upstream, tool, found) => {
      trace('tool-flagged', { upstream, tool, found })
      notes.note({ client: '', upstream, tool, outcome: 'held', rule: 'invisible-text', code: found })
    },
    relook: parts.relist,
  })
  let face: Server | undefined
  let events: UpstreamEvents | undefined
  const attach = (server: Server): void => {
    face = server
    const refused = (asked: ToolPolicy, { caller, correlated }: Exchange, { by }: Verdict): void =>
      notes.note({
        client: clients.nameOf(caller),
        upstream: asked.upstream,
        tool: asked.tool,
        outcome: 'refused',
        rule: by?.name ?? 'otherwise',
        correlation: correlated,
      })
    const gate = gateSide({ clients, tools: policies, upstreamOf: parts.upstreamOf, refused })
    const declares = settings.provenance !== false
    server.engine.extend({ ...gate, ...(declares && { capabilities: revision => declaration(revision, provenanceExtension) }) })
    if (settings.events !== undefined && settings.events !== false) events = new UpstreamEvents(server, failed)
  }
  return {
    serverOptions: serverOptionsOf(clients),
    auth: authorizationOf(settings.auth),
    pins,
    around: aroundOf({
      name,
      clock,
      clients,
      notes,
      provenance: settings.provenance !== false,
      tool: exposed => tools.get(exposed),
    }),
    control: {
      ...approvalsOf({ pins, notes, confirmations: () => face?.confirmations }),
      explain: call => explain({ clients, policy }, call),
      audit: notes.control,
    },
    attach,
    options: (upstream, tool, exposed) => {
      const own = policy.for(upstream, tool.name)
      const added = toolOptions({ settings, clients }, own, tool)
      const reports = added.cost !== undefined && own.say('cost', undefined) === undefined
      policies.set(exposed, own)
      tools.set(exposed, { upstream, tool: tool.name, reports })
      events?.offer(upstream)
      return added
    },
    forget: exposed => {
      policies.delete(exposed)
      tools.delete(exposed)
    },
    updated: (upstream, uri) => events?.updated(upstream, uri),
    changed: (upstream, list) => events?.changed(upstream, list),
    close: async () => {
      pins.close()
      await notes.close()
    },
  }
}

function serverOptionsOf(clients: Clients): Trust['serverOptions'] {
  const quotas = new Map<string, readonly SharedQuota[]>()
  for (const { name, budgets } of clients.all())
    if (budgets.length > 0)
      quotas.set(
        name,
        budgets.map((budget, i) => ({ ...budget, name: `${name}.${i}` })),
      )
  if (quotas.size === 0) return {}
  const none: readonly SharedQuota[] = []
  return { cost: { quotasFor: (caller: Caller) => quotas.get(clients.nameOf(caller)) ?? none } }
}
