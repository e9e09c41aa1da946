/** Writes transactions and their reports for the wire. */
import type { CompensationCall, Step } from '../../../core/journal/unit.ts'
import type { UnitReport } from '../../../core/journal/units.ts'
import type { WireRolledBack, WireStepReport, WireTransaction } from './messages.ts'

/** Writes a transaction. */
export function wireTransaction({ unit, steps }: UnitReport): WireTransaction {
  const { id, status, description, begunAt, timeoutMs, reason } = unit
  return {
    transaction_id: id,
    status: status === 'open' ? 'begun' : status,
    ...(description === undefined ? {} : { description }),
    begun_at: new Date(begunAt).toISOString(),
    timeout_seconds: timeoutMs / 1000,
    ...(reason === undefined ? {} : { reason }),
    steps: steps.map(wireStep),
  }
}

function wireStep({ id, target, status, inverse, failure }: Step): WireStepReport {
  return {
    step_id: id,
    tool: target,
    status: status === 'irreversible' ? 'no_compensation' : status,
    ...(inverse && { compensation: wireCompensation(inverse) }),
    ...(failure && { error: failure }),
  }
}

/** Writes the answer to a rollback. */
export function wireRolledBack(report: UnitReport): WireRolledBack {
  return { ...wireTransaction(report), steps_compensated: report.steps.toReversed().flatMap(compensated) }
}

// Only steps that a rollback has handled.
function compensated({ id, status, failure }: Step): WireRolledBack['steps_compensated'] {
  if (status !== 'compensated' && status !== 'compensation_failed') return []
  return [{ step_id: id, status, ...(failure && { error: failure }) }]
}

/** Writes what takes a step back. */
export function wireCompensation({
  target,
  parameters,
  description,
}: CompensationCall): NonNullable<WireStepReport['compensation']> {
  return {
    tool: target,
    ...(parameters && { parameters }),
    ...(description === undefined ? {} : { description }),
  }
}
