/** What is told of a transaction on the wire. */
import type { Inverse, Step, UnitStatus } from '../../../core/journal/unit.ts'
import type { UnitReport } from '../../../core/journal/units.ts'
import type {
  WireCommitted,
  WireCompensation,
  WireRolledBack,
  WireStepReport,
  WireTransaction,
  WireTransactionStatus,
} from './messages.ts'

export function wireTransaction({ unit, steps }: UnitReport): WireTransaction {
  const { id, status, description, begunAt, timeoutMs, reason } = unit
  return {
    transaction_id: id,
    status: wireStatus(status),
    ...(description === undefined ? {} : { description }),
    begun_at: new Date(begunAt).toISOString(),
    timeout_seconds: timeoutMs / 1000,
    ...(reason === undefined ? {} : { reason }),
    steps: steps.map(wireStep),
  }
}

export function wireCommitted(report: UnitReport): WireCommitted {
  return { ...wireTransaction(report), steps_completed: report.steps.filter(({ status }) => status !== 'failed').length }
}

export function wireRolledBack(report: UnitReport): WireRolledBack {
  return { ...wireTransaction(report), steps_compensated: report.steps.toReversed().flatMap(compensated) }
}

function compensated({ id, status, failure }: Step): WireRolledBack['steps_compensated'] {
  if (status !== 'compensated' && status !== 'compensation_failed') return []
  return [{ step_id: id, status, ...(failure === undefined ? {} : { error: failure }) }]
}

export function wireCompensation({ target, parameters, description }: Inverse): WireCompensation {
  return {
    tool: target,
    ...(parameters === undefined ? {} : { parameters }),
    ...(description === undefined ? {} : { description }),
  }
}

function wireStep({ id, target, status, inverse, failure }: Step): WireStepReport {
  return {
    step_id: id,
    tool: target,
    status: status === 'irreversible' ? 'no_compensation' : status,
    ...(inverse === undefined ? {} : { compensation: wireCompensation(inverse) }),
    ...(failure === undefined ? {} : { error: failure }),
  }
}

function wireStatus(status: UnitStatus): WireTransactionStatus {
  return status === 'open' ? 'begun' : status
}
