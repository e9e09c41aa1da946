/**
 * Taking back what a turn did, the last effect first: states of feature sets are set back, calls are undone by the calls that their
 * servers named when they were made, and what neither can do is told as what stays.
 */
import type { Clock } from '../../core/clock.ts'
import { quoted, type Why, why } from '../../core/why.ts'
import { classify } from '../../features/reliability/problem/client.ts'
import { clip } from '../../jsonrpc/limits.ts'
import type { AgreedCalls } from '../policy/agreed-calls.ts'
import type { LoopLimits } from './limits.ts'
import { permission, whyOf } from './permit.ts'
import type { LoopAudit, LoopPolicy, LoopServer, LoopState } from './ports.ts'
import type { Compensation, PlannedCall } from './records.ts'
import type { TurnRecord } from './turn-record.ts'
import type { UndoStep } from './undo-report.ts'

export interface UndoParts {
  readonly clock: Clock
  readonly servers: readonly LoopServer[]
  readonly policy: LoopPolicy
  readonly state: LoopState
  readonly audit: LoopAudit
  readonly limits: LoopLimits
  readonly conversation: string
  readonly agreed?: AgreedCalls | undefined
  /** Turns that came after the undone one and count: nothing of theirs is taken back with it. */
  readonly later: readonly TurnRecord[]
  /** Keeps each step, so that an undo that is cut off does nothing twice. */
  readonly keep: (step: UndoStep) => Promise<void>
}

/** Whether something of an undone turn stays, as far as was found out when it was last tried. */
export function hasLeft({ undone, undoSteps }: TurnRecord): boolean {
  const last = new Map(undoSteps.map(({ call, outcome }) => [call, outcome]))
  return undone && [...last.values()].includes('stays')
}

export async function undoTurn(parts: UndoParts, turn: TurnRecord): Promise<readonly UndoStep[]> {
  const steps: UndoStep[] = []
  const settled = new Map(turn.undoSteps.filter(({ outcome }) => outcome !== 'stays').map(step => [step.call, step]))
  const states = new Map<string, Promise<Why | undefined>>()
  for (const call of turn.calls.toReversed()) {
    const before = settled.get(call.n)
    const step = before ?? { seq: turn.seq, call: call.n, ...facts(call), ...(await undoCall(parts, turn, call, states)) }
    steps.push(step)
    if (before !== undefined) continue
    await parts.keep(step)
    if (step.outcome !== 'nothing') note(parts, turn, step)
  }
  return steps
}

type Fate = Pick<UndoStep, 'outcome' | 'by' | 'why' | 'declined'>

async function undoCall(
  parts: UndoParts,
  turn: TurnRecord,
  call: PlannedCall,
  states: Map<string, Promise<Why | undefined>>,
): Promise<Fate> {
  const outcome = turn.outcomes.get(call.n)
  if (call.server === undefined || call.readOnly) return { outcome: 'nothing' }
  if (outcome === undefined || outcome.status === 'unknown') return { outcome: 'stays', why: unknownEnd(call) }
  if (outcome.rolledBack === true) return { outcome: 'undone', by: 'transaction' }
  if (outcome.status === 'refused') return { outcome: 'nothing', ...(outcome.why && { declined: outcome.why.message }) }
  if (outcome.status !== 'done') return { outcome: 'nothing' }
  if (outcome.state === undefined) {
    // Who says how it is undone has done something, whatever was said no to.
    const { declined, compensation } = outcome
    if (declined !== undefined && compensation?.parameters === undefined)
      return { outcome: 'nothing', declined: `The answer to ${quoted(declined)} was no` }
    return compensate(parts, turn, call, compensation)
  }
  const set = setOf(turn, call) ?? ''
  const place = `${call.server}\u0000${set}`
  const back = states.get(place) ?? setBack(parts, turn, call.server, set)
  states.set(place, back)
  const failed = await back
  if (failed === undefined) return { outcome: 'undone', by: 'rollback' }
  return outcome.compensation === undefined
    ? { outcome: 'stays', why: failed }
    : compensate(parts, turn, call, outcome.compensation)
}

/** A state that other turns have changed since holds their effects too, and is left as it is. */
async function setBack(parts: UndoParts, turn: TurnRecord, server: string, set: string): Promise<Why | undefined> {
  const other = parts.later.find(one => earliest(one, server, set) !== undefined)
  if (other === undefined) return rollBack(parts, server, set, earliest(turn, server, set) ?? null)
  const said = `Turn ${other.seq} changed ${set} of ${server} since`
  return why('STATE_IN_USE', 'undo.rollback', said, `Undo turn ${other.seq} first`)
}

/** The checkpoint before the first call of the turn on the same state; null: there was none yet. Undefined without such a call. */
function earliest(turn: TurnRecord, server: string, set: string): string | null | undefined {
  const first = turn.calls.find(
    call => call.server === server && turn.outcomes.get(call.n)?.state !== undefined && (setOf(turn, call) ?? '') === set,
  )
  return first === undefined ? undefined : (turn.outcomes.get(first.n)?.state?.before ?? null)
}

/** Whose state a call has changed. */
function setOf(turn: TurnRecord, { n, featureSet }: PlannedCall): string | undefined {
  return turn.outcomes.get(n)?.state?.featureSet ?? featureSet
}

async function rollBack(parts: UndoParts, server: string, set: string, checkpoint: string | null): Promise<Why | undefined> {
  const fix = `Set ${set} of ${server} back by hand`
  try {
    const { success, why: said } = await parts.state.rollback(server, set, checkpoint)
    if (success) return undefined
    return said ?? why('ROLLBACK_REFUSED', 'undo.rollback', `${server} did not go back`, fix)
  } catch (error) {
    return whyOf(classify(error), 'undo.rollback')
  }
}

async function compensate(parts: UndoParts, turn: TurnRecord, call: PlannedCall, way: Compensation | undefined): Promise<Fate> {
  if (way?.parameters === undefined) return { outcome: 'stays', why: noWay(call, way) }
  const { server = '' } = call
  const client = parts.servers.find(({ name }) => name === server)?.client
  if (client === undefined)
    return { outcome: 'stays', why: why('SERVER_UNAVAILABLE', 'servers', `${server} is down`, `Undo again when ${server} is up`) }
  // The user takes it back, whoever began the turn.
  const turnFacts = { conversation: parts.conversation, begunBy: { kind: 'user' } } as const
  const asked = { kind: 'tool', server, tool: way.tool, payload: way.parameters, ...turnFacts } as const
  const given = await permission(parts.policy, asked)
  if (given.why !== undefined) return { outcome: 'stays', why: given.why }
  // Who has agreed to this call a moment ago is not asked by the tool once more.
  const forget = given.asked ? parts.agreed?.add({ server, tool: way.tool, payload: way.parameters }) : undefined
  try {
    const result = await client.callTool(way.tool, way.parameters, {
      idempotencyKey: undoKey(turn, call),
      conversation: parts.conversation,
      timeout: parts.limits.callMs,
    })
    if (!result.isError) return { outcome: 'undone', by: 'compensation' }
    return {
      outcome: 'stays',
      why: why('UNDO_FAILED', 'undo.compensation', `${way.tool} failed: ${clip(result.text, 200)}`, `Undo ${call.tool} by hand`),
    }
  } catch (error) {
    return { outcome: 'stays', why: whyOf(classify(error), 'undo.compensation') }
  } finally {
    forget?.()
  }
}

/** The same while nobody knows how it ended; another after a failure, which the server would only repeat. */
function undoKey({ undoSteps }: TurnRecord, { n, key }: PlannedCall): string {
  const failures = undoSteps.filter(step => step.call === n && step.why?.code === 'UNDO_FAILED').length
  return failures === 0 ? `undo-${key}` : `undo-${key}-${failures}`
}

function facts({ server, tool, featureSet }: PlannedCall): Pick<UndoStep, 'server' | 'tool' | 'featureSet'> {
  return { tool, ...(server !== undefined && { server }), ...(featureSet !== undefined && { featureSet }) }
}

function note(parts: UndoParts, turn: TurnRecord, { server = '', featureSet, tool, outcome, why: said }: UndoStep): void {
  parts.audit.note({
    server,
    ...(featureSet !== undefined && { featureSet }),
    inferenceId: turn.inferenceId,
    conversation: parts.conversation,
    kind: 'undo',
    outcome: outcome === 'undone' ? 'success' : 'failure',
    ...(tool !== undefined && { detail: clip(tool) }),
    ...(said && { why: said }),
  })
}

function unknownEnd({ server = '', tool }: PlannedCall): Why {
  return why('OUTCOME_UNKNOWN', 'undo', `Nobody knows whether ${tool} was done`, `Look at ${server} and set right what is there`)
}

function noWay({ server = '', tool }: PlannedCall, way: Compensation | undefined): Why {
  const said =
    way === undefined
      ? `${server} does not say how ${tool} is undone`
      : `${server} says that ${way.tool} undoes ${tool}, but not with what`
  return why('NO_WAY_BACK', 'undo.compensation', said, `Undo ${tool} by hand`)
}
