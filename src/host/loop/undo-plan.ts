/** What an undo would do now: the same decisions as `undo.ts`, without asking a server or a person and without changing anything. */
import { quoted, type Why, why } from '../../core/suggestion.ts'
import { clip } from '../../jsonrpc/limits.ts'
import type { Compensation, PlannedCall, TurnRecord } from './conversation-log.ts'
import {
  callFacts,
  noWay,
  reportedStates,
  restsOnUpdates,
  rollbackOf,
  type StateRef,
  setOf,
  stepKey,
  type UndoParts,
  unknownEnd,
  updatesOf,
} from './undo.ts'
import type { UndoStep } from './undo-steps.ts'

/** One step of an undo that was not carried out yet. */
export interface PlannedUndoStep extends Omit<UndoStep, 'outcome'> {
  /** `planned`: it will be undone. `undone`: it is already. `nothing`: there is nothing to undo. `stays`: it cannot be undone; see `why`. */
  readonly outcome: UndoStep['outcome'] | 'planned'
  /** The checkpoint that the state goes back to; null: before the first one. */
  readonly to?: string | null
  /** The compensating call. */
  readonly compensation?: Compensation
  /** The rule that will ask the user before the compensating call. */
  readonly asks?: string
}

/** What an undo would do. */
export interface UndoPlan {
  /** Whether nothing is known to stay. A server may still refuse. */
  readonly complete: boolean
  /** The turns that are removed from the conversation, latest first. */
  readonly turns: readonly number[]
  /** In the order of execution: the last effect first. */
  readonly steps: readonly PlannedUndoStep[]
}

/** What a plan looks at. */
export type UndoPlanParts = Omit<UndoParts, 'keep'>

type PlannedStep = Omit<PlannedUndoStep, 'seq'>

/** Plans the undo of one turn. */
export async function planUndo(parts: UndoPlanParts, turn: TurnRecord): Promise<readonly PlannedUndoStep[]> {
  const steps: PlannedUndoStep[] = []
  const add = async (about: Omit<UndoStep, 'seq' | 'outcome'>, plan: () => Promise<Omit<PlannedStep, keyof typeof about>>) => {
    const key = stepKey(about)
    const before = turn.undoSteps.findLast(step => step.outcome !== 'stays' && stepKey(step) === key)
    steps.push(before ?? { seq: turn.seq, ...about, ...(await plan()) })
  }
  const calls = turn.calls.toReversed()
  const resting = calls.filter(call => restsOnUpdates(turn, call))
  for (const call of calls) if (!resting.includes(call)) await add(callFacts(call), () => planCall(parts, turn, call))
  for (const place of reportedStates(turn)) await add(place, () => planRollback(parts, turn, place))
  for (const call of resting) await add(callFacts(call), () => planUpdates(parts, turn, call))
  return steps
}

async function planCall(parts: UndoPlanParts, turn: TurnRecord, call: PlannedCall): Promise<PlannedStep> {
  const outcome = turn.outcomes.get(call.n)
  if (call.server === undefined || call.readOnly) return { outcome: 'nothing' }
  if (outcome === undefined || outcome.status === 'unknown') return stays(unknownEnd(call))
  if (outcome.rolledBack === true) return { outcome: 'undone', by: 'transaction' }
  if (outcome.status === 'refused') return { outcome: 'nothing', ...(outcome.why && { declined: outcome.why.message }) }
  if (outcome.status !== 'done') return { outcome: 'nothing' }
  const { state, declined, compensation } = outcome
  if (state === undefined) {
    if (declined !== undefined && compensation?.parameters === undefined)
      return { outcome: 'nothing', declined: `The question ${quoted(declined)} was answered with no` }
    return planCompensation(parts, call, compensation)
  }
  const back = await planRollback(parts, turn, { server: call.server, featureSet: setOf(turn, call) ?? '' })
  return back.outcome === 'stays' && compensation !== undefined ? planCompensation(parts, call, compensation) : back
}

/** All states that were reported during a call. */
async function planUpdates(parts: UndoPlanParts, turn: TurnRecord, call: PlannedCall): Promise<PlannedStep> {
  let last: PlannedStep = { outcome: 'planned', by: 'rollback' }
  for (const { featureSet } of updatesOf(turn, call)) {
    last = await planRollback(parts, turn, { server: call.server ?? '', featureSet })
    if (last.outcome === 'stays') return last
  }
  return last
}

async function planRollback(parts: UndoPlanParts, turn: TurnRecord, place: StateRef): Promise<PlannedStep> {
  const { whyStays, to } = rollbackOf(turn, place, parts.later)
  const refused = whyStays ?? (await parts.state.rollbackRefusal?.(place.server, place.featureSet, to))
  return refused === undefined ? { outcome: 'planned', by: 'rollback', to } : { ...stays(refused), to }
}

/** The compensating call, as far as the policy and the state of its server let one say. */
function planCompensation(parts: UndoPlanParts, call: PlannedCall, way: Compensation | undefined): PlannedStep {
  if (way?.parameters === undefined) return stays(noWay(call, way))
  const { server = '' } = call
  const planned = { by: 'compensation', compensation: way } as const
  if (parts.servers.find(({ name }) => name === server)?.client === undefined)
    return {
      ...stays(why('SERVER_UNAVAILABLE', 'servers', `${clip(server)} is down`, `Undo when ${clip(server)} is up`)),
      ...planned,
    }
  const turnFacts = { conversation: parts.conversation, begunBy: { kind: 'user' } } as const
  const asked = { kind: 'tool', server, tool: way.tool, payload: way.parameters, ...turnFacts } as const
  const verdict = parts.policy.explain?.(asked).verdict
  if (verdict?.do === 'deny' || verdict?.do === 'hold') return { ...stays(verdict.why), ...planned }
  return { outcome: 'planned', ...planned, ...(verdict?.do === 'ask' && { asks: verdict.rule }) }
}

function stays(said: Why): PlannedStep {
  return { outcome: 'stays', why: said }
}
