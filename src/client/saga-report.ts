/** How a saga ended, step by step, with the server of each. */
import type { Step, StepFailure, StepStatus, UnitStatus } from '../core/journal/unit.ts'
import type { UnitReport } from '../core/journal/units.ts'
import { isRecord } from '../jsonrpc/message.ts'

export interface SagaStepReport {
  readonly id: string
  readonly server: string
  readonly tool: string
  /** `indeterminate`: begun, and nobody knows how it ended. `irreversible`: done, and nothing can take it back. */
  readonly status: StepStatus
  readonly error: StepFailure | undefined
}

export interface SagaReport {
  readonly id: string
  /** `partially_rolled_back`: some steps could not be taken back; they say why. */
  readonly status: UnitStatus
  readonly reason: string | undefined
  /** In the order in which they began. */
  readonly steps: readonly SagaStepReport[]
}

export function sagaReport({ unit, steps }: UnitReport): SagaReport {
  return {
    id: unit.id,
    status: unit.status,
    reason: unit.reason,
    steps: steps.map(step => ({
      id: step.id,
      server: stepServer(step),
      tool: step.target,
      status: step.status,
      error: step.failure,
    })),
  }
}

/** Where a step was made, and is taken back. */
export function stepServer({ authority }: Step): string {
  return isRecord(authority) ? String(authority['server']) : ''
}
