/** Plans and reports of undoing as the contract has them. */
import { digest } from '../../core/digest.ts'
import type { Turn } from '../../host/loop/turn.ts'
import type { PlannedUndoStep } from '../../host/loop/undo-plan.ts'
import type { UndoReport as HostReport } from '../../host/loop/undo-steps.ts'
import type { UndoPlan, UndoReport, UndoStep } from '../contract/undo.ts'
import { whyOf } from './rows.ts'

/** What an undo of a turn would do. The digest covers what is left out for sessions that may not see payloads. */
export async function undoPlanOf(turns: readonly Turn[], turn: Turn, whole: boolean): Promise<UndoPlan> {
  const { complete, turns: seqs, steps } = await turn.undoPlan()
  const running = turns.filter(({ seq, status }) => seq >= turn.seq && (status === 'running' || status === 'waiting'))
  const plan = {
    conversation: turn.conversation,
    ...{ turns: seqs, complete, running: running.map(({ seq }) => seq) },
    ...(turn.status === 'undone' && { again: true as const }),
  }
  const full = steps.map(step => stepOf(step, true))
  // Words about a server that is down may change from moment to moment, what happens to which effect does not.
  const decided = full.map(({ why, ...step }) => ({ ...step, why: why?.code }))
  return {
    ...plan,
    steps: whole ? full : steps.map(step => stepOf(step, false)),
    digest: `sha256:${await digest({ ...plan, steps: decided })}`,
  }
}

/** What an undo has done. */
export function undoReportOf({ complete, turns, steps }: HostReport): UndoReport {
  return { complete, turns, steps: steps.map(step => stepOf(step, false)) }
}

function stepOf({ why, compensation, ...step }: PlannedUndoStep, whole: boolean): UndoStep {
  return {
    ...step,
    ...(compensation !== undefined && {
      compensation: { tool: compensation.tool, ...(whole && { arguments: compensation.parameters }) },
    }),
    ...(why !== undefined && { why: whyOf(why) }),
  }
}
