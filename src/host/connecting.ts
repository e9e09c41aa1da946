/** The options of each server's connection: the handlers for what a server pushes, asks and reports, with policy and audit around them. */

import type { ConnectOptions } from '../client/api.ts'
import { type Why, why } from '../core/suggestion.ts'
import type { LiveHandlers } from '../features/live/client-api.ts'
import type { PushAnswer, PushEvent } from '../features/live/push-events/messages.ts'
import type { OnConfirm } from '../features/reliability/confirmation/client.ts'
import { clip } from '../jsonrpc/limits.ts'
import { bindingDigest } from '../policy/approvals/approvals.ts'
import { type OnApproval, questionText } from '../policy/approvals/question.ts'
import type { Note } from '../policy/audit/host-audit.ts'
import type { Asked } from '../policy/rules/rule.ts'
import { elevate } from '../policy/scopes/elevate.ts'
import { AmbientMessages } from './channels/answers.ts'
import type { HostParts } from './create.ts'
import { askedOf } from './inbox/acceptance.ts'

/** The connect options of a server. */
export function connectOptions(parts: HostParts, server: string): ConnectOptions {
  const { live, ...answers } = parts.loop.answers.for(server)
  const onConfirm = parts.onApproval === undefined ? undefined : confirmBy(parts, parts.onApproval, server)
  return {
    ...answers,
    ...(onConfirm !== undefined && { onConfirm }),
    ...(parts.recorder && { wrap: parts.recorder.wrap(server) }),
    live: { ...live, ...liveHandlers(parts, server, live.modelInfo) },
  }
}

/** The handlers for MCP Live. */
function liveHandlers(parts: HostParts, server: string, modelInfo: LiveHandlers['modelInfo']): Omit<LiveHandlers, 'onInfer'> {
  const { foundation, policy, summedNotes } = parts
  const section = foundation.servers.entry(server)?.live
  /** Audits with repeats summed up. */
  const note = (about: Omit<Note, 'server'>): void => summedNotes.note({ server, ...about })
  return {
    select: declared => {
      const selection = policy.select(server, declared)
      const { enabled, disabled, canEnable } = selection
      const undecided = parts.onApproval === undefined ? disabled.filter(canEnable) : []
      parts.notices.selected(server, { declared: [...declared.keys()], enabled, undecided, wanted: wantedSets(parts, server) })
      return selection
    },
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
      // Synchronously, so that the report is attributed to the calls that run now.
      const reported = parts.loop.stateUpdates.reported(server)
      const recorded = await foundation.state.record(server, featureSet, report).catch(error => {
        reported(undefined)
        throw error
      })
      const { before, current, whys } = recorded
      reported(current ? { featureSet, after: report.checkpoint, ...(before !== undefined && { before }) } : undefined)
      // The state book reports irregularities itself.
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
    onChanged: declared => parts.questions.review(server, declared),
    onUndeclared: (featureSet, use) => parts.questions.widen(server, featureSet, use),
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

/** The patterns of `live.enable` in the entry of a server. */
export function wantedSets({ foundation }: Pick<HostParts, 'foundation'>, server: string): readonly string[] {
  return foundation.servers.entry(server)?.live.enable ?? []
}

/** The kind of audit entry for each method. */
const noteKinds: ReadonlyMap<string, string> = new Map([
  ['push/event', 'push'],
  ['inference/request', 'infer'],
  ['scope/elevate', 'scope'],
  ['model/info', 'model'],
  ['state/update', 'state'],
  ['state/get', 'state.get'],
])

/** Handles a pushed event. An ambient channel message that rules allow is kept instead of starting a turn. */
async function pushed(parts: HostParts, server: string, event: PushEvent): Promise<PushAnswer> {
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

/** Accepts an event, and acknowledges it in its channel. */
async function taken(parts: HostParts, server: string, event: PushEvent): Promise<PushAnswer> {
  const answer = await acceptEvent(parts, server, event)
  if (answer.accepted) parts.signals.acknowledge(server, event)
  return answer
}

/** Accepts an event from any source, and audits the result. `subscription`: the event name that the config subscribes to. */
export async function acceptEvent(
  { foundation, inbox, summedNotes, notices }: Pick<HostParts, 'foundation' | 'inbox' | 'summedNotes' | 'notices'>,
  server: string,
  event: PushEvent,
  subscription?: string,
): Promise<PushAnswer> {
  const began = foundation.clock.now()
  // Set where a rule lets the event in; a repeated one gets its earlier answer without.
  let rule: string | undefined
  const ruled = (by: string): void => {
    rule = by
  }
  // Between the removal of an entry and the end of its connection, the name may already belong to another program.
  const isKnown = foundation.servers.entry(server) !== undefined
  const answer = isKnown
    ? await inbox.accept(server, event, { ...(subscription !== undefined && { subscription }), ruled })
    : unknownServer(server)
  if (answer.accepted && !inbox.isOpen) notices.unopened(server)
  const { featureSet, eventId } = event
  const about = { server, featureSet, eventId, kind: 'push', ms: foundation.clock.now() - began } as const
  if (!answer.accepted) summedNotes.note({ ...about, outcome: 'refused', why: answer.data })
  else if (rule !== undefined) void foundation.audit.note({ ...about, outcome: 'success', inferenceId: answer.inferenceId, rule })
  // No push of its own: servers repeat an event until they have an answer, as often as they like.
  else
    summedNotes.note({
      ...about,
      kind: 'inbox',
      outcome: 'success',
      inferenceId: answer.inferenceId,
      rule: 'inbox.dedupe',
      detail: 'the event arrived again, and got its first answer',
    })
  return answer
}

/** The refusal of an event for a server that is no longer configured. */
function unknownServer(server: string): PushAnswer {
  const message = `The server ${clip(server)} is no longer in the config`
  const data = why('SERVER_ABSENT', 'inbox.server', message, 'Send the event again when the host connects')
  return { accepted: false, reason: message, data }
}

/** Why an ambient message does not start a turn. */
function unaddressed({ channel }: PushEvent): Why {
  const message = `The message of ${clip(channel?.channelId ?? '')} is tagged chat:ambient (not addressed to the agent), so it does not start a turn`
  return why('CHANNEL_AMBIENT', 'ambient', message, "To start turns for such messages, set the host's option ambient to 'wake'")
}

/** Answers a tool's confirmation request with the same callback as other approvals. */
function confirmBy({ foundation }: HostParts, onApproval: OnApproval, server: string): OnConfirm {
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
        // Bound to this message, so that the answer applies to nothing else.
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

/** The question in the host's words, followed by the server's text as a quotation. */
function confirmationQuestion(asked: Asked, message: string, risk: string): string {
  const question = questionText(asked, { do: 'ask', rule: 'confirmation', about: 'tool', scopes: [] })
  return `${question} The server describes the call as "${clip(message, 4_000).replaceAll('"', "'")}" and its risk as ${risk}.`
}

/** Why a confirmation was refused. */
function declinedBy(server: string, tool: string): Why {
  const message = `The user declined the call of ${clip(tool)} of ${clip(server)}`
  return why('APPROVAL_REFUSED', 'confirmation', message, 'Ask the user before you repeat the call')
}
