/**
 * Undo of a turn, last effect first: states of feature sets are rolled back, calls are undone by the compensations that their servers
 * named, and the rest is reported as what stays.
 */

import { quoted, type Why, why } from '../../core/suggestion.ts'
import { classify } from '../../features/reliability/problem/classify.ts'
import { clip } from '../../jsonrpc/limits.ts'
import type { Compensation, PlannedCall, TurnRecord } from './conversation-log.ts'
import type { StateUpdate } from './loop.ts'
import { askPermission, whyOf } from './permission.ts'
import type { LoopParts, LoopServer } from './ports.ts'
import type { UndoStep } from './undo-steps.ts'

/** What an undo needs of its conversation and its host. */
export interface UndoParts extends Omit<LoopParts, 'servers'> {
  readonly servers: readonly LoopServer[]
  readonly conversation: string
  /** Later turns that count; their effects must not be undone with it. */
  readonly later: readonly TurnRecord[]
  /** Stores each step, so that an interrupted undo repeats nothing. */
  readonly keep: (step: UndoStep) => Promise<void>
}

/** Whether some effect of an undone turn remained when it was last tried. */
export function isPartlyUndone({ undone, undoSteps }: TurnRecord): boolean {
  const last = new Map(undoSteps.map(step => [stepKey(step), step.outcome]))
  return undone && [...last.values()].includes('stays')
}

/** Undoes the effects of one turn, and returns a step for each call and each state. */
export function undoTurn(parts: UndoParts, turn: TurnRecord): Promise<readonly UndoStep[]> {
  return new TurnUndo(parts, turn).run()
}

class TurnUndo {
  readonly #parts: UndoParts
  readonly #turn: TurnRecord
  readonly #steps: UndoStep[] = []
  /** Rollbacks by state: each is made once, however many calls have changed it. */
  readonly #rollbacks = new Map<string, Promise<Why | undefined>>()

  constructor(parts: UndoParts, turn: TurnRecord) {
    this.#parts = parts
    this.#turn = turn
  }

  async run(): Promise<readonly UndoStep[]> {
    const turn = this.#turn
    const calls = turn.calls.toReversed()
    const resting = calls.filter(call => restsOnUpdates(turn, call))
    for (const call of calls) if (!resting.includes(call)) await this.#step(callFacts(call), () => this.#undoCall(call))
    // After all calls, because a compensation may itself be reported as a state.
    for (const place of reportedStates(turn)) await this.#step(place, async () => stateOutcome(await this.#back(place)))
    for (const call of resting) await this.#step(callFacts(call), () => this.#undoByUpdates(call))
    return this.#steps
  }

  /** Undoes one effect, unless that was settled before, and stores and audits the step. */
  async #step(about: Omit<UndoStep, 'seq' | 'outcome'>, undo: () => Promise<UndoOutcome>): Promise<void> {
    const { seq, undoSteps, inferenceId } = this.#turn
    const key = stepKey(about)
    const before = undoSteps.findLast(step => step.outcome !== 'stays' && stepKey(step) === key)
    if (before !== undefined) {
      this.#steps.push(before)
      return
    }
    const step: UndoStep = { seq, ...about, ...(await undo()) }
    this.#steps.push(step)
    await this.#parts.keep(step)
    const { server = '', featureSet, tool, outcome, why: said } = step
    if (outcome === 'nothing') return
    const detail = tool === undefined ? undefined : clip(tool)
    const facts = { server, featureSet, inferenceId, conversation: this.#parts.conversation, kind: 'undo', detail, why: said }
    this.#parts.audit.note({ ...facts, outcome: outcome === 'undone' ? 'success' : 'failure' })
  }

  /** Undoes one call: by its state, otherwise by its compensation. */
  async #undoCall(call: PlannedCall): Promise<UndoOutcome> {
    const outcome = this.#turn.outcomes.get(call.n)
    if (call.server === undefined || call.readOnly) return { outcome: 'nothing' }
    if (outcome === undefined || outcome.status === 'unknown') return stays(unknownEnd(call))
    if (outcome.rolledBack === true) return { outcome: 'undone', by: 'transaction' }
    if (outcome.status === 'refused') return { outcome: 'nothing', ...(outcome.why && { declined: outcome.why.message }) }
    if (outcome.status !== 'done') return { outcome: 'nothing' }
    if (outcome.state === undefined) {
      // A call with a compensation has done something, even if the user declined a question.
      const { declined, compensation } = outcome
      if (declined !== undefined && compensation?.parameters === undefined)
        return { outcome: 'nothing', declined: `The question ${quoted(declined)} was answered with no` }
      return this.#compensate(call, compensation)
    }
    const failed = await this.#back({ server: call.server, featureSet: setOf(this.#turn, call) ?? '' })
    if (failed === undefined || outcome.compensation === undefined) return stateOutcome(failed)
    return this.#compensate(call, outcome.compensation)
  }

  /** Rolls back all states that were reported during a call. */
  async #undoByUpdates(call: PlannedCall): Promise<UndoOutcome> {
    for (const { featureSet } of updatesOf(this.#turn, call)) {
      const failed = await this.#back({ server: call.server ?? '', featureSet })
      if (failed !== undefined) return stateOutcome(failed)
    }
    return stateOutcome(undefined)
  }

  /** Rolls back a state once, and returns why it cannot be rolled back. */
  #back(place: StateRef): Promise<Why | undefined> {
    const back = this.#rollbacks.get(stateKey(place)) ?? this.#setBack(place)
    this.#rollbacks.set(stateKey(place), back)
    return back
  }

  /** Rolls a state back; returns why it cannot. */
  async #setBack(place: StateRef): Promise<Why | undefined> {
    const { server, featureSet } = place
    const { whyStays, to } = rollbackOf(this.#turn, place, this.#parts.later)
    if (whyStays !== undefined) return whyStays
    try {
      const { success, why: said } = await this.#parts.state.rollback(server, featureSet, to)
      if (success) return undefined
      const fix = `Restore ${featureSet} of ${server} manually`
      return said ?? why('ROLLBACK_REFUSED', 'undo.rollback', `${server} refused the rollback`, fix)
    } catch (error) {
      return whyOf(classify(error), 'undo.rollback')
    }
  }

  /** Makes the compensating call, with the policy's permission. */
  async #compensate(call: PlannedCall, way: Compensation | undefined): Promise<UndoOutcome> {
    if (way?.parameters === undefined) return stays(noWay(call, way))
    const { conversation, servers, limits } = this.#parts
    const { server = '' } = call
    const client = servers.find(({ name }) => name === server)?.client
    if (client === undefined)
      return stays(why('SERVER_UNAVAILABLE', 'servers', `${server} is down`, `Repeat the undo when ${server} is up`))
    // An undo is the user's request, whoever started the turn.
    const turnFacts = { conversation, begunBy: { kind: 'user' } } as const
    const asked = { kind: 'tool', server, tool: way.tool, payload: way.parameters, ...turnFacts } as const
    const given = await askPermission(this.#parts.policy, asked)
    if (given.why !== undefined) return stays(given.why)
    try {
      const result = await client.callTool(way.tool, way.parameters, {
        idempotencyKey: undoKey(this.#turn, call),
        conversation,
        timeout: limits.callMs,
        confirmed: given.asked,
      })
      if (!result.isError) return { outcome: 'undone', by: 'compensation' }
      const said = `${way.tool} failed: ${clip(result.text, 200)}`
      return stays(why('UNDO_FAILED', 'undo.compensation', said, `Undo ${call.tool} manually`))
    } catch (error) {
      return stays(whyOf(classify(error), 'undo.compensation'))
    }
  }
}

/** Identifies a step: a call, or a whole state. */
export function stepKey({ call, server, featureSet }: Omit<UndoStep, 'seq' | 'outcome'>): string {
  return call === undefined ? `state ${JSON.stringify([server, featureSet])}` : `call ${call}`
}

/** Whether the only known effects of a call are the states that its server reported meanwhile. */
export function restsOnUpdates(turn: TurnRecord, call: PlannedCall): boolean {
  const { status, state, compensation, declined, updates = [] } = turn.outcomes.get(call.n) ?? {}
  if (status !== 'done' || call.readOnly || updates.length === 0) return false
  return state === undefined && compensation?.parameters === undefined && declined === undefined
}

/** The outcome of one undo step. */
type UndoOutcome = Pick<UndoStep, 'outcome' | 'by' | 'why' | 'declined'>

/** The outcome of a state rollback. */
function stateOutcome(failed: Why | undefined): UndoOutcome {
  return failed === undefined ? { outcome: 'undone', by: 'rollback' } : stays(failed)
}

function stays(said: Why): UndoOutcome {
  return { outcome: 'stays', why: said }
}

/** The idempotency key of a compensation: a new one after a failure, because the server would repeat the failed result. */
function undoKey({ undoSteps }: TurnRecord, { n, key }: PlannedCall): string {
  const failures = undoSteps.filter(step => step.call === n && step.why?.code === 'UNDO_FAILED').length
  return failures === 0 ? `undo-${key}` : `undo-${key}-${failures}`
}

/** What a step says of its call. */
export function callFacts({ n, server, tool, featureSet }: PlannedCall): Omit<UndoStep, 'seq' | 'outcome'> {
  return { call: n, tool, ...(server !== undefined && { server }), ...(featureSet !== undefined && { featureSet }) }
}

/** Why a call with an unknown outcome stays. */
export function unknownEnd({ server = '', tool }: PlannedCall): Why {
  return why('OUTCOME_UNKNOWN', 'undo', `The outcome of ${tool} is unknown`, `Check ${server}, and correct its state manually`)
}

/** Why a call without a usable compensation stays. */
export function noWay({ server = '', tool }: PlannedCall, way: Compensation | undefined): Why {
  const said =
    way === undefined
      ? `${server} names no compensation for ${tool}`
      : `${server} names ${way.tool} as the compensation for ${tool}, but gives no arguments for it`
  return why('NO_WAY_BACK', 'undo.compensation', said, `Undo ${tool} manually`)
}

/** A feature set of a server. */
export interface StateRef {
  readonly server: string
  readonly featureSet: string
}

/** States that servers reported beside results, last one first. */
export function reportedStates(turn: TurnRecord): readonly StateRef[] {
  const places = turn.calls.flatMap(call =>
    updatesOf(turn, call).map(({ featureSet }) => ({ server: call.server ?? '', featureSet })),
  )
  return [...new Map(places.map(place => [stateKey(place), place])).values()].toReversed()
}

/** Reports during a call, without the one that its own result contains. */
export function updatesOf(turn: TurnRecord, call: PlannedCall): readonly StateUpdate[] {
  const { state, updates = [] } = turn.outcomes.get(call.n) ?? {}
  if (state === undefined) return updates
  return updates.filter(({ featureSet, after }) => featureSet !== setOf(turn, call) && after !== state.after)
}

/** The feature set whose state a call has changed. */
export function setOf(turn: TurnRecord, { n, featureSet }: PlannedCall): string | undefined {
  return turn.outcomes.get(n)?.state?.featureSet ?? featureSet
}

/** A map key for a state. */
function stateKey({ server, featureSet }: StateRef): string {
  return `${server}\u0000${featureSet}`
}

/** A turn's changes of one state, in call order. */
function changesAt(turn: TurnRecord, { server, featureSet }: StateRef): readonly StateUpdate[] {
  return turn.calls
    .filter(call => call.server === server)
    .flatMap((call): readonly StateUpdate[] => {
      const { state, updates = [] } = turn.outcomes.get(call.n) ?? {}
      return state === undefined ? updates : [{ ...state, featureSet: setOf(turn, call) ?? '' }, ...updates]
    })
    .filter(change => change.featureSet === featureSet)
}

/** The checkpoint before the first change; null: no state. Found by linkage, because concurrent calls are not in numeric order. */
function earliest(changes: readonly StateUpdate[]): string | null {
  const first = changes.find(({ before }) => !changes.some(({ after }) => after === before))
  return (first ?? changes[0])?.before ?? null
}

/** Where an undo of a turn takes a state, or why it stays. A state that later turns have changed contains their effects. */
export function rollbackOf(
  turn: TurnRecord,
  place: StateRef,
  later: readonly TurnRecord[],
): { readonly whyStays?: Why; readonly to: string | null } {
  const changes = changesAt(turn, place)
  const to = earliest(changes)
  const other = later.find(one => changesAt(one, place).length > 0)
  if (other !== undefined) {
    const said = `Turn ${other.seq} changed ${place.featureSet} of ${place.server} later`
    return { whyStays: why('STATE_IN_USE', 'undo.rollback', said, `Undo turn ${other.seq} first`), to }
  }
  return changes.some(({ shared }) => shared === true) ? { whyStays: sharedState(place), to } : { to }
}

/** Why a state stays that several turns have changed at the same time. */
function sharedState({ server, featureSet }: StateRef): Why {
  const [set, of] = [clip(featureSet), clip(server)]
  const said = `${of} changed ${set} while several turns called it, so the change cannot be assigned to one turn`
  return why('STATE_SHARED', 'undo.rollback', said, `Check ${set} of ${of}, and restore it manually`)
}
