/** The states that a turn changed: by results of its calls, or by what servers reported while these ran. Each is set back as a whole. */
import { type Why, why } from '../../core/why.ts'
import { classify } from '../../features/reliability/problem/classify.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { whyOf } from './permit.ts'
import type { LoopState } from './ports.ts'
import type { PlannedCall } from './records.ts'
import type { StateUpdate } from './state-updates.ts'
import type { TurnRecord } from './turn-record.ts'

/** A feature set of a server. */
export interface Place {
  readonly server: string
  readonly featureSet: string
}

interface Change extends Place {
  readonly before: string | null
  readonly after: string
  readonly shared: boolean
}

/** Those that servers reported beside results, the last one first. What a result says of the same checkpoint is not told twice. */
export function reportedStates(turn: TurnRecord): readonly Place[] {
  const found = new Map<string, Place>()
  for (const call of turn.calls) {
    for (const { featureSet } of updatesOf(turn, call)) {
      const place = { server: call.server ?? '', featureSet }
      found.set(placeKey(place), place)
    }
  }
  return [...found.values()].toReversed()
}

/** What a server reported while it was called, but for what its result says itself. */
export function updatesOf(turn: TurnRecord, call: PlannedCall): readonly StateUpdate[] {
  const { state, updates = [] } = turn.outcomes.get(call.n) ?? {}
  if (state === undefined) return updates
  return updates.filter(({ featureSet, after }) => featureSet !== setOf(turn, call) && after !== state.after)
}

/** Whose state a call has changed. */
export function setOf(turn: TurnRecord, { n, featureSet }: PlannedCall): string | undefined {
  return turn.outcomes.get(n)?.state?.featureSet ?? featureSet
}

export function placeKey({ server, featureSet }: Place): string {
  return `${server}\u0000${featureSet}`
}

/** Undefined: it is as it was. `later`: turns that came after it and count. A state that they have changed holds their effects, too. */
export async function setBack(
  state: LoopState,
  turn: TurnRecord,
  place: Place,
  later: readonly TurnRecord[],
): Promise<Why | undefined> {
  const { server, featureSet } = place
  const other = later.find(one => changesAt(one, place).length > 0)
  if (other !== undefined) {
    const said = `Turn ${other.seq} changed ${featureSet} of ${server} since`
    return why('STATE_IN_USE', 'undo.rollback', said, `Undo turn ${other.seq} first`)
  }
  const changes = changesAt(turn, place)
  if (changes.some(({ shared }) => shared)) return sharedState(place)
  try {
    const { success, why: said } = await state.rollback(server, featureSet, earliest(changes))
    if (success) return undefined
    const fix = `Set ${featureSet} of ${server} back by hand`
    return said ?? why('ROLLBACK_REFUSED', 'undo.rollback', `${server} did not go back`, fix)
  } catch (error) {
    return whyOf(classify(error), 'undo.rollback')
  }
}

/** What a turn changed there, in the order of its calls. */
function changesAt(turn: TurnRecord, { server, featureSet }: Place): readonly Change[] {
  return turn.calls
    .filter(call => call.server === server)
    .flatMap(call => {
      const { state, updates = [] } = turn.outcomes.get(call.n) ?? {}
      const own: readonly StateUpdate[] = state === undefined ? [] : [{ ...state, featureSet: setOf(turn, call) ?? '' }]
      return [...own, ...updates].map(({ before, shared, ...change }): Change => {
        return { ...change, server, before: before ?? null, shared: shared === true }
      })
    })
    .filter(change => change.featureSet === featureSet)
}

/** Where it was before the first of them; null: there was no state yet. Calls that ran at once are not in the order of their numbers. */
function earliest(changes: readonly Change[]): string | null {
  const first = changes.find(({ before }) => !changes.some(({ after }) => after === before))
  return (first ?? changes[0])?.before ?? null
}

function sharedState({ server, featureSet }: Place): Why {
  const [set, of] = [clip(featureSet), clip(server)]
  const said = `${of} changed ${set} while it was called by several turns: nobody knows which of them that belongs to`
  return why('STATE_SHARED', 'undo.rollback', said, `Look at ${set} of ${of}, and set it back by hand`)
}
