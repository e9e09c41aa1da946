/** `createHost`: validates the options, creates the parts of a host and connects them. */
import { checkOptions, type KindsOf } from '../core/options.ts'
import { clip } from '../jsonrpc/limits.ts'
import { isRecord } from '../jsonrpc/message.ts'
import type { PolicyDecision } from '../policy/approvals/question.ts'
import { SummedNotes } from '../policy/audit/denials.ts'
import type { Note } from '../policy/audit/host-audit.ts'
import { HostBudgets } from '../policy/budgets/budgets.ts'
import type { HeldTool } from '../policy/pins/pins.ts'
import { createPolicy, type Policy } from '../policy/policy.ts'
import { AmbientMessages, ChannelAnswers } from './channels/answers.ts'
import { ChannelSignals } from './channels/signals.ts'
import { connectOptions, wantedSets } from './connecting.ts'
import { type FoundationPort, HostFoundation } from './foundation.ts'
import { Host, type HostOptions } from './host.ts'
import { Inbox } from './inbox/inbox.ts'
import { Loop } from './loop/loop.ts'
import { modelFromEnvironment } from './models/providers.ts'
import { HostNotices } from './notices.ts'
import { FeatureSetQuestions, HostRules } from './policy.ts'
import { openRecorder, recordedOptions } from './recorder/record.ts'
import { ServerEvents } from './server-events.ts'
import { identityOf } from './servers/entry.ts'
import type { HostServer } from './servers/server.ts'
import { waitAtMost } from './waiting.ts'

/**
 * Opens an agent: connects its servers and keeps them connected, answers their requests, and runs conversations with the model.
 * @example
 * await using host = await createHost({ servers: { shop: url }, model: offline() })
 * const turn = await host.conversation('c1').send('How is the project?')
 * console.log((await turn.done).text)
 */
export async function createHost(options: HostOptions = {}): Promise<Host> {
  checkHostOptions(options)
  const foundation = await HostFoundation.open(options)
  try {
    const parts = await join(foundation, options)
    const asking = new Set<Promise<void>>()
    await foundation.start(portOf(parts, asking))
    if (options.onApproval !== undefined) await settlePins(foundation, asking, options.startMs)
    return new Host(parts, options)
  } catch (error) {
    await foundation.close()
    throw error
  }
}

/** The parts of a host. */
export type HostParts = Awaited<ReturnType<typeof join>>

/** Creates the parts. They refer to each other through callbacks, which run only after all exist. */
async function join(foundation: HostFoundation, options: HostOptions) {
  const { store, clock, random, audit, state } = foundation
  const {
    policy: rules = {},
    onApproval,
    extract,
    remember,
    approvalTimeout = options.patience,
    model,
    inbox: taking,
    budgets: limits,
    onBudget,
    record,
    ...rest
  } = options
  const summedNotes = new SummedNotes({ clock, note: note => void audit.note(note) })
  const policy = await createPolicy({
    rules,
    store,
    clock,
    onChange: server => selectAnew(foundation, server),
    onTrouble: error => foundation.impaired(error),
    onDecided: decision => summedNotes.note(noteOfDecision(decision)),
    identityOf: server => identityOf(foundation.servers.entry(server)),
    subscriptionsOf: server => foundation.servers.entry(server)?.events ?? [],
    ...(onApproval && { onApproval }),
    ...(extract && { extract }),
    ...(remember !== undefined && { remember }),
    ...(approvalTimeout !== undefined && { approvalTimeout }),
  })
  const budgets = new HostBudgets({
    store,
    clock,
    ...(limits && { limits }),
    onWarn: (why, spender) => {
      void audit.note({ ...spender, kind: 'budget', outcome: 'success', why })
      onBudget?.(why, spender)
    },
  })
  const inbox = new Inbox({
    ...taking,
    store,
    policy,
    clock,
    random,
    withheld: (server, featureSet) => budgets.usedUp({ server, featureSet }),
    ...(options.onInbox && { onChange: options.onInbox }),
    isConfigured: server => foundation.servers.entry(server) !== undefined,
    onDiagnostic: (server, why, note) => void audit.note({ server, kind: 'inbox', ...note, why }),
  })
  const notices = new HostNotices({
    clock,
    tell: notice => foundation.notice(notice),
    isRun: server => inbox.isRun(server),
  })
  const recorder = record === undefined ? undefined : openRecorder(record, { clock })
  const answering = { ...rest, model: model ?? modelFromEnvironment() }
  const loop = new Loop({
    ...(recorder === undefined ? answering : recordedOptions(recorder, answering)),
    store,
    clock,
    servers: () => foundation.servers.list(),
    policy,
    state,
    budgets,
    audit,
    onVisit: (server, inferenceId) => inbox.visits(server, inferenceId),
  })
  const answers = new ChannelAnswers({
    store,
    clock,
    serverOf: name => foundation.servers.get(name),
    denied: (server, featureSet, payload) => {
      const { verdict } = policy.explain({ kind: 'tool', server, featureSet, tool: 'channels/publish', payload })
      return verdict.do === 'deny' ? verdict.why : undefined
    },
    note: note => void audit.note(note),
    failed: error => foundation.impaired(error),
  })
  return {
    foundation,
    policy,
    /** The source of the policy's rules. */
    rules: new HostRules(policy, rules),
    questions: new FeatureSetQuestions(foundation, policy),
    inbox,
    notices,
    budgets,
    loop,
    recorder,
    /** The audit log for entries that a server can cause in any number; repeats are summed up. */
    summedNotes,
    onApproval,
    /** Subscriptions to events of servers. */
    events: new ServerEvents({ foundation, policy, inbox, summedNotes, notices }),
    /** Ambient messages; undefined where they wake the model like others. */
    ambient: rest.ambient === 'wake' ? undefined : new AmbientMessages(),
    answers,
    /** Signals to channels while an answer is made. */
    signals: new ChannelSignals({ foundation, policy, summedNotes }),
  }
}

/** What the foundation calls while it connects servers. `asking`: open questions about tool definitions. */
function portOf(parts: HostParts, asking: Set<Promise<void>>): FoundationPort {
  const { foundation, policy } = parts
  return {
    connecting: server => connectOptions(parts, server),
    configured: servers => parts.rules.configured(servers),
    changed: server => {
      if (server.live !== undefined) {
        parts.questions.review(server.name, server.live.featureSets)
        void parts.answers.send(server.name)
      } else if (server.status === 'up') parts.notices.notLive(server.name, wantedSets(parts, server.name))
      parts.events.changed(server)
    },
    held: held => {
      const answered = approveDefinition(parts, policy, held)
        .catch(error => foundation.impaired(error))
        .finally(() => asking.delete(answered))
      asking.add(answered)
    },
  }
}

/** Waits for questions about tool definitions, so that tools approved at the start are available in the first turn. */
async function settlePins(foundation: HostFoundation, asking: ReadonlySet<Promise<void>>, startMs = 15_000): Promise<void> {
  // The second listing includes what the answers have approved.
  const settled = async (): Promise<void> => {
    await Promise.allSettled(foundation.servers.list().map(server => server.tools()))
    await Promise.allSettled(asking)
    await Promise.allSettled(foundation.servers.list().map(server => server.tools()))
  }
  await waitAtMost(foundation.clock, startMs, settled())
}

/** Sends an updated feature set selection to one server, or to all. */
function selectAnew(foundation: HostFoundation, server: string | undefined): void {
  const concerned: readonly HostServer[] =
    server === undefined ? foundation.servers.list() : [foundation.servers.get(server)].filter(each => each !== undefined)
  for (const { live } of concerned) live?.update().catch(error => foundation.impaired(error))
}

/** Asks the policy, and where needed the user, about a held tool definition. */
async function approveDefinition({ foundation }: HostParts, policy: Policy, held: HeldTool): Promise<void> {
  const { server, tool, digest, changes } = held
  const asked = { kind: 'definition', server, tool: tool.name, payload: { digest, changes, definition: tool } } as const
  const verdict = await policy.decide(asked)
  const { yes, why, rule } =
    verdict.do === 'ask'
      ? await policy.approve(asked, verdict)
      : 'why' in verdict
        ? { yes: false, why: verdict.why }
        : { yes: verdict.do === 'allow', rule: verdict.rule }
  if (yes) await foundation.servers.approve(held)
  const said = yes ? ({ outcome: 'success', rule } as const) : ({ outcome: 'refused', why } as const)
  await foundation.audit.note({ server, kind: 'pin', detail: tool.name, ...said })
}

/** A decision of the policy as an audit entry. */
function noteOfDecision({ kind, asked, outcome, rule, why, detail, by }: PolicyDecision): Note {
  const { server, featureSet, begunBy, conversation, inferenceId, eventId } = asked
  const cause = begunBy?.kind === 'event' ? begunBy.eventId : undefined
  return { server, featureSet, eventId, inferenceId, conversation, cause, kind, outcome, rule, why, detail, by }
}

// Validation of options for callers without a type checker.

const kinds: KindsOf<HostOptions> = {
  config: 'string',
  onConfig: 'function',
  env: 'object',
  servers: 'object',
  store: 'any',
  pins: 'object',
  audit: 'object',
  startMs: 'number',
  onServer: 'function',
  onConfigFault: 'function',
  onTrouble: 'function',
  onNote: 'function',
  onState: 'function',
  onInbox: 'function',
  onStderr: 'function',
  clock: 'object',
  random: 'function',
  onSampleReview: 'function',
  onElicit: 'function',
  roots: 'list',
  routes: 'object',
  model: 'any',
  system: 'string',
  policy: 'object',
  onApproval: 'function',
  remember: 'any',
  approvalTimeout: 'any',
  patience: 'any',
  budgets: 'list',
  onBudget: 'function',
  extract: 'object',
  inbox: 'object',
  ambient: 'string',
  conversationOf: 'function',
  hooks: 'object',
  limits: 'object',
  onTurn: 'function',
  record: 'string',
  newId: 'function',
}

/** Throws for unknown options and for a model that is none. */
function checkHostOptions(options: HostOptions): void {
  checkOptions('createHost', options, kinds)
  const { model = [] } = options
  for (const one of Array.isArray(model) ? model : [model])
    if (!isRecord(one) || typeof one['generate'] !== 'function') throw new TypeError(`createHost: model ${noModel(one)}`)
}

/** How to write the model option instead. */
function noModel(given: unknown): string {
  const shown = typeof given === 'string' ? ` (got "${clip(given)}")` : ''
  const named = typeof given === 'string' ? `'${clip(given)}'` : "'…'"
  return `must be a model object${shown}. Use anthropic({ model: ${named} }), openai({ model: ${named} }), or an object with info and generate()`
}
