/** What a connection to one server is made with: who answers it when it pushes, thinks, wants more, reports, or asks. */
import type { LiveHandlers } from '../client/live-handlers.ts'
import type { ConnectOptions } from '../client/options.ts'
import type { Why } from '../core/why.ts'
import type { FeatureSetFacts } from '../features/live/feature-sets/messages.ts'
import type { PushEvent } from '../features/live/push-events/messages.ts'
import type { OnConfirm } from '../features/reliability/confirmation/client.ts'
import type { NoteOutcome } from './audit/note.ts'
import type { SummedNotes } from './audit/summed.ts'
import type { HostBudgets } from './budgets/budgets.ts'
import type { Frame } from './frame.ts'
import type { Inbox } from './inbox/options.ts'
import type { Loop } from './loop/loop.ts'
import { elevate } from './policy/elevate.ts'
import type { Policy } from './policy/policy.ts'
import { digestOf, type OnApproval } from './policy/question.ts'
import type { Recorder } from './recorder/record.ts'

export interface ConnectingParts {
  readonly frame: Frame
  readonly policy: Policy
  readonly inbox: Inbox
  readonly budgets: HostBudgets
  readonly loop: Loop
  readonly recorder: Recorder | undefined
  /** Refused events, as they are noted. */
  readonly refusals: SummedNotes
  readonly onApproval: OnApproval | undefined
  /** Asks about feature sets that no rule speaks of, once for what they declare. */
  review(server: string, declared: ReadonlyMap<string, FeatureSetFacts>): void
}

export function connectOptions(parts: ConnectingParts, server: string): ConnectOptions {
  const { live, ...answers } = parts.loop.answersFor(server)
  const onConfirm = parts.onApproval === undefined ? undefined : confirmBy(parts.onApproval, server)
  return {
    ...answers,
    ...(onConfirm !== undefined && { onConfirm }),
    ...(parts.recorder && { wrap: parts.recorder.wrap(server) }),
    live: { ...live, ...liveHandlers(parts, server) },
  }
}

function liveHandlers(parts: ConnectingParts, server: string): Omit<LiveHandlers, 'onInfer' | 'modelInfo'> {
  const { frame, policy } = parts
  const section = frame.servers.entry(server)?.live
  const note = (kind: string, outcome: NoteOutcome, why?: Why, featureSet?: string): void =>
    void frame.audit.note({ server, featureSet, kind, outcome, why })
  return {
    select: declared => policy.select(server, declared),
    onPush: event => push(parts, server, event),
    onElevate: async request => {
      const answer = await elevate(policy, server, request)
      note('scope', answer.approved ? 'success' : 'refused', answer.approved ? undefined : answer.data, request.featureSet)
      return answer
    },
    onState: async report => void (await frame.state.record(server, report.featureSet ?? '', report)),
    stateOf: (featureSet, checkpoint) => frame.state.report(server, featureSet, checkpoint),
    onChanged: declared => parts.review(server, declared),
    onDiagnostic: why => note('live', 'dropped', why),
    ...(section !== undefined && {
      hello: {
        ...(section.enable && { enabled: section.enable }),
        ...(section.disable && { disabled: section.disable }),
        ...(section.scopes && { scopes: section.scopes }),
      },
    }),
  }
}

async function push({ frame, inbox, refusals }: ConnectingParts, server: string, event: PushEvent) {
  const began = frame.clock.now()
  const answer = await inbox.accept(server, event)
  const { featureSet, eventId } = event
  const about = { server, featureSet, eventId, kind: 'push', ms: frame.clock.now() - began } as const
  if (answer.accepted) void frame.audit.note({ ...about, outcome: 'success', inferenceId: answer.inferenceId })
  else refusals.note({ ...about, outcome: 'refused', why: answer.data })
  return answer
}

/** A tool that wants the user's yes gets it from whoever approves everything else. */
function confirmBy(onApproval: OnApproval, server: string): OnConfirm {
  return async ({ message, tool, arguments: payload, risk }, { signal }) => {
    const asked = { kind: 'tool', server, tool, payload } as const
    const answer = await onApproval(
      { text: `${message} (${risk})`, asked, about: 'tool', scopes: [], rule: 'confirmation', digest: digestOf(asked) },
      { signal: signal ?? new AbortController().signal },
    )
    return typeof answer === 'boolean' ? answer : answer.yes
  }
}
