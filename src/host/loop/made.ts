/** What came of calling a tool, beside its outcome. */
import type { ToolOutcome } from '../../client/api.ts'
import type { Problem } from '../../core/problem.ts'
import type { Compensation } from './records.ts'

export interface Made {
  readonly result: ToolOutcome
  readonly compensation?: Compensation | undefined
}

/** The server has taken a call back whose end was not known. */
export class TakenBack extends Error {
  override readonly name = 'TakenBack'
  readonly problem: Problem

  constructor(problem: Problem) {
    super(problem.message, { cause: problem })
    this.problem = problem
  }
}
