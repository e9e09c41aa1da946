/** The waterfall of a turn, from what its record says and what is known of it while it runs. */
import type { CallOutcome, PlannedCall } from '../../host/loop/conversation-log.ts'
import type { InferenceReport } from '../../host/loop/generate.ts'
import type { HookReport } from '../../host/loop/hooks.ts'
import type { Turn } from '../../host/loop/turn.ts'
import type { TurnSpan, TurnSpanStatus } from '../contract/turn-spans.ts'
import type { RunningTurn } from './running-turns.ts'

type About = Pick<TurnSpan, 'conversation' | 'seq'>

/** All spans of a turn, parents first. */
export function spansOf(turn: Turn, running?: RunningTurn): readonly TurnSpan[] {
  const about = aboutOf(turn)
  const hooks = turn.hooks.flatMap((report, n) => hookSpan(about, report, n) ?? [])
  const inferences = [...turn.inferences, ...(running?.inference === undefined ? [] : [running.inference])]
  const calls = turn.calls.flatMap(call => callSpans(about, call, call.outcome, running?.began.get(call.n)))
  const inner = [...hooks, ...inferences.map(each => inferenceSpan(about, each)), ...calls]
  const first = Math.min(...inner.map(({ from }) => from))
  const waited: TurnSpan | undefined =
    first > turn.at && first !== Number.POSITIVE_INFINITY
      ? {
          id: 'waiting',
          parent: 'turn',
          ...about,
          kind: 'waiting',
          lane: 'host',
          name: 'waiting',
          from: turn.at,
          to: first,
          status: 'ok',
        }
      : undefined
  return [turnSpan(turn), ...(waited === undefined ? [] : [waited]), ...inner.sort((one, other) => one.from - other.from)]
}

/** The span of the turn itself. */
export function turnSpan(turn: Turn): TurnSpan {
  const { at, status, endedAt, from } = turn
  const isOpen = status === 'running' || status === 'waiting'
  return {
    id: 'turn',
    ...aboutOf(turn),
    ...{ kind: 'turn', lane: 'host', name: from.kind === 'user' ? 'turn of the user' : `turn of ${from.server}`, from: at },
    ...(endedAt !== undefined && { to: endedAt }),
    status: isOpen ? 'open' : status === 'done' || status === 'undone' ? 'ok' : 'failed',
  }
}

const hookStatuses = { success: 'ok', failure: 'failed', timeout: 'failed', refused: 'refused', dropped: 'refused' } as const

/** The span of a hook; undefined where its beginning is not known. */
export function hookSpan(about: About, report: HookReport, n: number): TurnSpan | undefined {
  const { server, hook, outcome, began, ms, why } = report
  if (began === undefined) return undefined
  return {
    ...{ id: `hook.${n}`, parent: 'turn', ...about, kind: 'hook', lane: server, name: `${server} ${hook}`, n },
    ...{ from: began, to: began + ms, status: hookStatuses[outcome] },
    ...(why !== undefined && { note: why.message }),
  }
}

/** The span of an inference. */
export function inferenceSpan(about: About, { n, model, began, firstMs, ms, usage }: InferenceReport): TurnSpan {
  return {
    ...{ id: `inference.${n}`, parent: 'turn', ...about, kind: 'inference', lane: 'model', name: model, n, from: began },
    ...(ms !== undefined && { to: began + ms }),
    status: ms === undefined ? 'open' : 'ok',
    ...(firstMs !== undefined && { first: began + firstMs }),
    ...(usage !== undefined && { note: `${usage.inputTokens} + ${usage.outputTokens} tokens` }),
  }
}

const callStatuses: Readonly<Record<CallOutcome['status'], TurnSpanStatus>> = {
  done: 'ok',
  failed: 'failed',
  refused: 'refused',
  unknown: 'unknown',
}

/** The spans of a call and of the question before it; none where its beginning is not known. */
export function callSpans(
  about: About,
  { n, server, tool }: PlannedCall,
  outcome: CallOutcome | undefined,
  begun: number | undefined,
): readonly TurnSpan[] {
  const from = outcome?.began ?? begun
  if (from === undefined) return []
  const own: TurnSpan = {
    ...{ id: `call.${n}`, parent: 'turn', ...about, kind: 'call', lane: server ?? 'host', name: tool, n, from },
    ...(outcome !== undefined && { to: from + outcome.ms }),
    status: outcome === undefined ? 'open' : callStatuses[outcome.status],
    ...(outcome?.why !== undefined && { note: outcome.why.message }),
  }
  const asked = outcome?.asked
  if (asked === undefined) return [own]
  const { began, ms, yes, by } = asked
  const question: TurnSpan = {
    ...{ id: `question.${n}`, parent: own.id, ...about, kind: 'question', lane: own.lane, name: 'asked', n },
    ...{ from: began, to: began + ms, status: yes ? 'ok' : 'refused' },
    note: `${yes ? 'yes' : 'no'}${by === undefined ? '' : ` by ${by}`}`,
  }
  return [own, question]
}

/** What all spans of a turn say. */
export function aboutOf({ conversation, seq }: Turn): About {
  return { conversation, seq }
}
