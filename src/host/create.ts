/** `createHost`: puts the rooms of a host together. */
import type { FeatureSetFacts } from '../features/live/feature-sets/messages.ts'
import { SummedNotes } from './audit/summed.ts'
import { createBudgets } from './budgets/budgets.ts'
import { checkHostOptions } from './check-options.ts'
import { configuredRules } from './config/rules.ts'
import { type ConnectingParts, connectOptions } from './connecting.ts'
import { Frame, type FramePort } from './frame.ts'
import { Host } from './host.ts'
import { createInbox } from './inbox/inbox.ts'
import { createLoop } from './loop/loop.ts'
import { modelFromEnvironment } from './models/environment.ts'
import type { HostOptions } from './options.ts'
import { createPolicy, type Policy } from './policy/policy.ts'
import { recorded, recorderFor } from './recorder/recorded-loop.ts'
import type { HeldTool } from './servers/pins.ts'
import type { HostServer } from './servers/server.ts'

/**
 * Connects servers, keeps them connected, and answers what they ask.
 * @example await using host = await createHost({ config: '.mcp.json', store: 'sqlite:.vivarium/host.db' })
 */
export async function createHost(options: HostOptions = {}): Promise<Host> {
  checkHostOptions(options)
  const frame = await Frame.open(options)
  try {
    const parts = await join(frame, options)
    await frame.start(portOf(parts, options))
    return new Host(parts, options)
  } catch (error) {
    await frame.close()
    throw error
  }
}

async function join(frame: Frame, options: HostOptions): Promise<ConnectingParts> {
  const { store, clock, random, audit, state } = frame
  const {
    policy: rules = {},
    onApproval,
    extract,
    remember,
    patience,
    model,
    inbox: taking,
    budgets: limits,
    onBudget,
    record,
    ...rest
  } = options
  const policy = await createPolicy({
    rules,
    store,
    clock,
    onChange: server => selectAnew(frame, server),
    ...(onApproval && { onApproval }),
    ...(extract && { extract }),
    ...(remember !== undefined && { remember }),
    ...(patience !== undefined && { patience }),
  })
  const inbox = createInbox({
    ...taking,
    store,
    policy,
    clock,
    random,
    onDiagnostic: (server, why) =>
      void audit.note({ server, kind: 'inbox', outcome: why.code === 'CHAIN_TOO_DEEP' ? 'held' : 'dropped', why }),
  })
  const budgets = createBudgets({
    store,
    clock,
    ...(limits && { limits }),
    onWarn: (why, spender) => {
      void audit.note({ ...spender, kind: 'budget', outcome: 'success', why })
      onBudget?.(why, spender)
    },
  })
  const recorder = recorderFor(record, clock)
  const loop = createLoop({
    ...rest,
    ...recorded(recorder, { ...rest, model: model ?? modelFromEnvironment() }),
    store,
    clock,
    servers: () => frame.servers.list(),
    policy,
    state,
    budgets,
    audit,
    onVisit: (server, inferenceId) => inbox.visits(server, inferenceId),
  })
  const refusals = new SummedNotes({ clock, note: note => void audit.note(note) })
  return { frame, policy, inbox, budgets, loop, recorder, refusals, onApproval, review: reviewer(frame, policy) }
}

function portOf(parts: ConnectingParts, { policy: rules = {} }: HostOptions): FramePort {
  const { frame, policy } = parts
  return {
    connecting: server => connectOptions(parts, server),
    configured: async servers => void (await policy.update(configuredRules(rules, servers))),
    changed: ({ name, live }) => {
      if (live !== undefined) parts.review(name, live.featureSets)
    },
    held: held => void approveDefinition(parts, policy, held).catch(error => frame.impaired(error)),
  }
}

/** Whoever said no is not asked again while nothing else is declared. */
function reviewer(frame: Frame, policy: Policy): ConnectingParts['review'] {
  const asked = new Map<string, string>()
  const waiting = new Map<string, ReadonlyMap<string, FeatureSetFacts>>()
  const busy = new Set<string>()
  /** One review of a server at a time, and then of what it declares by then. */
  const run = async (server: string): Promise<void> => {
    for (let next = waiting.get(server); next !== undefined; next = waiting.get(server)) {
      waiting.delete(server)
      await policy.review(server, next).catch(error => frame.impaired(error))
    }
    busy.delete(server)
  }
  return (server, declared) => {
    const facts = [...declared].map(([name, { description, uses, scoped, rollback, hostState }]) => {
      return [name, description, uses, scoped, rollback, hostState]
    })
    const now = JSON.stringify(facts)
    if (asked.get(server) === now) return
    asked.set(server, now)
    waiting.set(server, declared)
    if (busy.has(server)) return
    busy.add(server)
    void run(server)
  }
}

/** Another selection may hold from now on: servers that are there are told. */
function selectAnew(frame: Frame, server: string | undefined): void {
  const concerned: readonly HostServer[] =
    server === undefined ? frame.servers.list() : [frame.servers.get(server)].filter(each => each !== undefined)
  for (const { live } of concerned) live?.update().catch(error => frame.impaired(error))
}

async function approveDefinition({ frame }: ConnectingParts, policy: Policy, held: HeldTool): Promise<void> {
  const { server, tool, digest, changes } = held
  const asked = { kind: 'definition', server, tool: tool.name, payload: { digest, changes } } as const
  const verdict = await policy.decide(asked)
  const yes = verdict.do === 'allow' || (verdict.do === 'ask' && (await policy.approve(asked, verdict)).yes)
  if (!yes) return
  await frame.servers.approve(held)
  await frame.audit.note({ server, kind: 'pin', outcome: 'success', detail: tool.name })
}
