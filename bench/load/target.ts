/** A running server as the load generator sees it, whatever the carrier. */
import type { AnswerCheck } from '../answers.ts'
import type { Work } from '../work.ts'
import type { RoundResult } from './round.ts'

export interface Target {
  readonly pid: number
  /** One request outside any measurement; resolves with the whole response message. */
  ask(method: string, params: object): Promise<Record<string, unknown>>
  /** Keeps so many requests going for `ms`, checks every answer, measures. Over HTTP each has a connection of its own. */
  run(work: Work, check: AnswerCheck, inFlight: number, ms: number): Promise<RoundResult>
  stop(): Promise<void>
}
