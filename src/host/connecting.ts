/** What a connection to one server is made with: who answers it when it pushes, thinks, wants more, reports, or asks. */

import type { ConnectOptions } from '../client/api.ts'
import { type Why, why } from '../core/suggestion.ts'
import type { LiveHandlers } from '../features/live/client-api.ts'
import type { PushAnswer, PushEvent } from '../features/live/push-events/messages.ts'
import type { OnConfirm } from '../features/reliability/confirmation/client.ts'
import { clip } from '../jsonrpc/limits.ts'
import { bindingDigest } from '../policy/approvals/approvals.ts'
import { type OnApproval, questionText } from '../policy/approvals/question.ts'
import type { Note } from '../policy/audit/book.ts'
import type { SummedNotes } from '../policy/audit/denials.ts'
import type { HostBudgets } from '../policy/budgets/budgets.ts'
import type { Policy } from '../policy/policy.ts'
import type { Asked } from '../policy/rules/rule.ts'
import { elevate } from '../policy/scopes/elevate.ts'
import { AmbientMessages, type ChannelAnswers } from './channels/answers.ts'
import type { ChannelSignals } from './channels/signals.ts'
import type { HostFoundation } from './foundation.ts'
import { askedOf } from './inbox/acceptance.ts'
import type { AcceptOptions, Inbox } from './inbox/options.ts'
import type { Loop } from './loop/loop.ts'
import type { HostRules, Reviewing } from './policy.ts'
import type { Recorder } from './recorder/record.ts'
import type { ServerEvents } from './server-events.ts'

/** All parts of a host that connections to its servers use. */
export interface ConnectingParts extends Reviewing {
  readonly foundation: HostFoundation
  readonly policy: Policy
  /** Where its rules come from. */
  readonly rules: HostRules
  readonly inbox: Inbox
  readonly budgets: HostBudgets
  readonly loop: Loop
  readonly recorder: Recorder | undefined
  /** Notes that a server can bring about as often as it likes. */
  readonly summedNotes: SummedNotes
  readonly onApproval: OnApproval | undefined
  /** Events of servers that are subscribed to. */
  readonly events: ServerEvents
  /** What is said in channels to nobody in particular; undefined where that wakes the model, too. */
  readonly ambient: AmbientMessages | undefined
  readonly answers: ChannelAnswers
  /** What channels are told around answers. */
  readonly signals: ChannelSignals
}

/** The options with which a server is connected: who answers its requests, and who is told of its events. */
export function connectOptions(parts: ConnectingParts, server: string): ConnectOptions {
  const { live, ...answers } = parts.loop.answersFor(server)
  const onConfirm = parts.onApproval === undefined ? undefined : confirmBy(parts, parts.onApproval, server)
  return {
    ...answers,
    ...(onConfirm !== undefined && { onConfirm }),
    ...(parts.recorder && { wrap: parts.recorder.wrap(server) }),
    live: { ...live, ...liveHandlers(parts, server, live.modelInfo) },
  }
}

function liveHandlers(
  parts: ConnectingParts,
  server: string,
  modelInfo: LiveHandlers['modelInfo'],
): Omit<LiveHandlers, 'onInfer'> {
  const { foundation, policy, summedNotes } = parts
  const section = foundation.servers.entry(server)?.live
  /** What a server can bring about as often as it likes is summed up. */
  const note = (about: Omit<Note, 'server'>): void => summedNotes.note({ server, ...about })
  return {
    select: declared => policy.select(server, declared),
    onPush: event => pushed(parts, server, event),
    onElevate: async request => {
      const { featureSet } = request
      let rule: string | undefined
      const answer = await elevate(policy, server, request, by => {
        rule = by
      })
      if (answer.approved) note({ featureSet, kind: 'scope', outcome: 'success', rule })
      else note({ featureSet, kind: 'scope', outcome: 'refused', why: answer.data })
      return answer
    },
    onState: async report => {
      const featureSet = report.featureSet ?? ''
      // At once: it belongs to the calls that run now.
      const reported = parts.loop.stateReported(server)
      const recorded = await foundation.state.record(server, featureSet, report).catch(error => {
        reported(undefined)
        throw error
      })
      const { before, current, whys } = recorded
      reported(current ? { featureSet, after: report.checkpoint, ...(before !== undefined && { before }) } : undefined)
      // What is odd about it is noted by the book of states itself.
      const detail = clip(report.checkpoint)
      if (whys.length === 0)
        note({ featureSet, kind: 'state', outcome: 'success', rule: policy.ruleOfSet(server, featureSet), detail })
    },
    stateOf: (featureSet, checkpoint) => {
      note({ featureSet, kind: 'state.get', outcome: 'success', rule: policy.ruleOfSet(server, featureSet) })
      return foundation.state.report(server, featureSet, checkpoint)
    },
    modelInfo: () => {
      note({ kind: 'model', outcome: 'success', rule: 'model/info is always answered' })
      return modelInfo()
    },
    onRefused: ({ method, featureSet, eventId, why }) =>
      note({ featureSet, eventId, kind: noteKinds.get(method) ?? 'live', outcome: 'refused', why, detail: method }),
    onChanged: declared => parts.review(server, declared),
    onUndeclared: (featureSet, use) => parts.widen(server, featureSet, use),
    onDiagnostic: why => note({ kind: 'live', outcome: 'dropped', why }),
    ...(section !== undefined && {
      hello: {
        ...(section.enable && { enabled: section.enable }),
        ...(section.disable && { disabled: section.disable }),
        ...(section.scopes && { scopes: section.scopes }),
      },
    }),
  }
}

/** What the audit calls a message. */
const noteKinds: ReadonlyMap<string, string> = new Map([
  ['push/event', 'push'],
  ['inference/request', 'infer'],
  ['scope/elevate', 'scope'],
  ['model/info', 'model'],
  ['state/update', 'state'],
  ['state/get', 'state.get'],
])

/** What is said in a channel to nobody in particular wakes nobody, where rules let it in at all; any other event goes its way. */
async function pushed(parts: ConnectingParts, server: string, event: PushEvent): Promise<PushAnswer> {
  const { ambient, policy, summedNotes } = parts
  if (ambient === undefined || !AmbientMessages.is(event) || parts.foundation.servers.entry(server) === undefined)
    return taken(parts, server, event)
  const { verdict } = policy.explain(askedOf(server, event))
  if (verdict.do !== 'allow') return taken(parts, server, event)
  ambient.keep(server, event)
  const { featureSet, eventId } = event
  summedNotes.note({ server, featureSet, eventId, kind: 'push', outcome: 'held', rule: verdict.rule, why: unaddressed(event) })
  return { accepted: true }
}

/** Whoever wrote in a channel may see that it was taken in. */
async function taken(parts: ConnectingParts, server: string, event: PushEvent): Promise<PushAnswer> {
  const answer = await push(parts, server, event)
  if (answer.accepted) parts.signals.acknowledge(server, event)
  return answer
}

/** Takes an event in, whichever way it came, and notes what became of it. */
export async function push(
  { foundation, inbox, summedNotes }: Pick<ConnectingParts, 'foundation' | 'inbox' | 'summedNotes'>,
  server: string,
  event: PushEvent,
  options: Pick<AcceptOptions, 'subscription'> = {},
): Promise<PushAnswer> {
  const began = foundation.clock.now()
  // What came before, and gets its answer again, is let in by no rule of now.
  let rule = 'inbox.dedupe'
  const ruled = (by: string): void => {
    rule = by
  }
  // While a connection is being ended, nothing is known under its name: what is to come under it may be another program.
  const isKnown = foundation.servers.entry(server) !== undefined
  const answer = isKnown ? await inbox.accept(server, event, { ...options, ruled }) : unknownServer(server)
  const { featureSet, eventId } = event
  const about = { server, featureSet, eventId, kind: 'push', ms: foundation.clock.now() - began } as const
  if (answer.accepted) void foundation.audit.note({ ...about, outcome: 'success', inferenceId: answer.inferenceId, rule })
  else summedNotes.note({ ...about, outcome: 'refused', why: answer.data })
  return answer
}

function unknownServer(server: string): PushAnswer {
  const message = `The server ${clip(server)} is not in the config any more`
  const data = why('SERVER_ABSENT', 'inbox.server', message, 'Send the event again when the host is connected')
  return { accepted: false, reason: message, data }
}

function unaddressed({ channel }: PushEvent): Why {
  const message = `The message of ${clip(channel?.channelId ?? '')} is tagged chat:ambient: it is meant for nobody, and does not wake the model`
  return why('CHANNEL_AMBIENT', 'ambient', message, "Set the host's option ambient to 'wake' where it should")
}

/** A tool that wants the user's yes gets it from whoever approves everything else. */
function confirmBy({ foundation }: ConnectingParts, onApproval: OnApproval, server: string): OnConfirm {
  return async ({ message, tool, arguments: payload, risk }, { signal }) => {
    const asked = { kind: 'tool', server, tool, payload } as const
    const answer = await onApproval(
      {
        text: confirmationQuestion(asked, message, risk),
        asked,
        about: 'tool',
        scopes: [],
        wider: [],
        rule: 'confirmation',
        // No other answer counts for it, and it counts for nothing else.
        digest: bindingDigest({ confirmation: message, ...asked }),
        lastsMs: 0,
      },
      { signal: signal ?? new AbortController().signal },
    )
    const yes = typeof answer === 'boolean' ? answer : answer.yes
    const detail = `confirmation of ${clip(tool)}`
    const said = yes ? { rule: 'the user, this once' } : { why: declinedBy(server, tool) }
    void foundation.audit.note({ server, kind: 'approval', outcome: yes ? 'success' : 'refused', detail, ...said })
    return yes
  }
}

/** In our words what is asked, by the name that the user gave the server; then what the server says of it, as a quotation. */
function confirmationQuestion(asked: Asked, message: string, risk: string): string {
  const question = questionText(asked, { do: 'ask', rule: 'confirmation', about: 'tool', scopes: [] })
  return `${question} Its server says of the call: "${clip(message, 4_000).replaceAll('"', "'")}", and calls it ${risk}.`
}

function declinedBy(server: string, tool: string): Why {
  const message = `The user declined the call of ${clip(tool)} of ${clip(server)}`
  return why('APPROVAL_REFUSED', 'confirmation', message, 'Ask the user before you call it again')
}
