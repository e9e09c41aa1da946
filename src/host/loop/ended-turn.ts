/** How a turn that runs no more is told of: its answer, its parts, and why there is none. */
import { type Problem, problem } from '../../core/problem.ts'
import { why } from '../../core/why.ts'
import { PartBuffer } from './parts.ts'
import { because } from './permit.ts'
import type { Answer } from './turn.ts'
import type { TurnRecord } from './turn-record.ts'

/** Why a turn that its owner stopped has ended. */
export const cancelledCode = 'TURN_CANCELLED'

/** What a turn that ended well came to. */
export function answerOf({ answer = '', finishReason = 'end_turn', model = '', usage, changes }: TurnRecord): Answer {
  return { text: answer, finishReason, model, usage, changes }
}

/** Of a turn that runs no more. */
export function ended(record: TurnRecord): Promise<Answer> {
  if (record.end === 'done') return Promise.resolve(answerOf(record))
  const said = record.why ?? why('TURN_INTERRUPTED', 'host', 'The host was stopped amid this turn', 'Resume the conversation')
  return Promise.reject(because(said))
}

/** Its parts, as far as they can be told afterwards. */
export function told(record: TurnRecord): PartBuffer {
  const buffer = new PartBuffer()
  for (const report of record.hooks) buffer.push({ type: 'hook', report })
  if (record.prompt !== undefined) buffer.push({ type: 'prompt', prompt: record.prompt })
  for (const call of record.calls) {
    buffer.push({ type: 'call', call })
    const outcome = record.outcomes.get(call.n)
    if (outcome !== undefined) buffer.push({ type: 'result', call, outcome })
  }
  if (record.answer !== undefined) {
    buffer.push({ type: 'text', delta: record.answer })
    buffer.push({ type: 'answer', text: record.answer, changes: record.changes })
  } else if (record.why !== undefined && record.end !== 'done' && record.end !== undefined)
    buffer.push({ type: 'ended', status: record.end, why: record.why })
  buffer.close()
  return buffer
}

/** Somebody stopped it. */
export function cancelled(reason = 'It was stopped'): Problem {
  return problem(cancelledCode, reason, { suggestion: 'Send it again, or undo what it did' })
}

export function tooLong(ms: number): Problem {
  const said = why(
    'TURN_TOO_LONG',
    'limits.turnMs',
    `The turn took longer than ${ms} ms`,
    'Ask for less at once, or raise limits.turnMs',
  )
  return because(said, 'OPERATION_TIMEOUT')
}

/** Whoever started it gave up. */
export function isAbort(error: unknown): boolean {
  return error instanceof Error && (error.name === 'AbortError' || error.name === 'TimeoutError')
}
