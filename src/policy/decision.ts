/** Decisions that are no verdict of a rule: what somebody answered, what was granted or revoked, which feature sets are on. */
import { type Why, why } from '../core/why.ts'
import { clip } from '../jsonrpc/limits.ts'
import type { NoteOutcome } from './audit/book.ts'
import { allowFix, wordsFor } from './judge.ts'
import { begunByText } from './rules/begun-by.ts'
import type { Asked } from './rules/rule.ts'

/** `approval`: an answer to a question; `grant`: given or revoked by the program; `set`: a feature set went on or off; `rules`: others. */
export interface PolicyDecision {
  readonly kind: 'approval' | 'grant' | 'set' | 'rules'
  /** What it was about. */
  readonly asked: Pick<Asked, 'server' | 'featureSet' | 'begunBy' | 'conversation' | 'inferenceId' | 'eventId'>
  readonly outcome: Extract<NoteOutcome, 'success' | 'refused' | 'timeout' | 'failure'>
  /** What allowed it: a rule, or the approval that was kept. */
  readonly rule?: string | undefined
  readonly why?: Why | undefined
  /** A few words: never arguments. */
  readonly detail: string
}

/** How a question ended that got no yes. */
export function outcomeOf(said: Why | undefined): PolicyDecision['outcome'] {
  if (said?.code === 'APPROVAL_TIMEOUT') return 'timeout'
  return said?.code === 'APPROVAL_FAILED' ? 'failure' : 'refused'
}

/** Feature sets as they were last told, so that only changes are decisions. */
export class ToldSets {
  readonly #on = new Map<string, ReadonlyMap<string, boolean>>()

  /** The sets that are on or off otherwise than before, or new; undefined for those that are no longer declared. */
  changed(server: string, now: ReadonlyMap<string, boolean>): readonly (readonly [name: string, on: boolean | undefined])[] {
    const before = this.#on.get(server) ?? new Map<string, boolean>()
    this.#on.set(server, now)
    const gone = [...before.keys()].filter(name => !now.has(name))
    return [...[...now].filter(([name, on]) => before.get(name) !== on), ...gone.map(name => [name, undefined] as const)]
  }
}

/** That a feature set went on or off, or is gone: that is nobody's decision, and all that rested on it is over. */
export function ofSet(asked: Asked, rule: string, on: boolean | undefined): PolicyDecision {
  if (on === undefined) return { kind: 'set', asked, outcome: 'success', detail: 'gone', rule: 'no longer declared' }
  if (on) return { kind: 'set', asked, outcome: 'success', detail: 'on', rule }
  const message = `The feature set ${clip(asked.featureSet ?? '')} of ${clip(asked.server)} is not enabled`
  return { kind: 'set', asked, outcome: 'refused', detail: 'off', why: why('SET_NOT_ENABLED', rule, message, allowFix(asked)) }
}

/** Why there is no yes where nobody gave an answer. */
export function unanswered(how: 'nobody' | 'late' | 'failed', asked: Asked, rule: string): Why {
  const what = `${wordsFor(asked)}${begunByText(asked.begunBy)}`
  if (how === 'nobody') return why('NO_APPROVER', rule, `${what} has to be approved, and there is nobody to ask`, allowFix(asked))
  if (how === 'late') return why('APPROVAL_TIMEOUT', rule, `Nobody answered whether to allow ${what}`, allowFix(asked))
  return why(
    'APPROVAL_FAILED',
    rule,
    `Whether to allow ${what} could not be asked`,
    'Look at what onApproval threw, and try again',
  )
}
