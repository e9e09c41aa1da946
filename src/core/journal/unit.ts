/** A unit of work: steps with one fate, each with its inverse as data, so that any process can take them back. */
import { isRecord } from '../../jsonrpc/message.ts'
import { digestText } from '../digest.ts'
import type { Category } from '../problem.ts'

/** The states of a unit of work. */
export type UnitStatus = 'open' | 'committed' | 'rolling_back' | 'rolled_back' | 'partially_rolled_back'

/** The record of a unit of work. */
export interface Unit {
  readonly id: string
  readonly status: UnitStatus
  /** What it is for, as whoever began it says. */
  readonly description?: string
  /** Milliseconds since the epoch. */
  readonly begunAt: number
  /** Whose share it and its steps count against, where that is not its owner. */
  readonly account?: string
  /** When a step last began or ended: the wait for the next one counts from here. */
  readonly activeAt: number
  /** Untouched for so long, it is rolled back. */
  readonly timeoutMs: number
  /** Steps that cannot be taken back may take part. */
  readonly irreversible: boolean
  /** How many steps have begun. */
  readonly steps: number
  /** Why it was rolled back. */
  readonly reason?: string
  /** The owner's grants that let in its beginning or its steps: when one is over, it is rolled back. */
  readonly grants?: readonly UnitGrant[]
}

/** A grant that let a step in; the unit ends with it. */
export interface UnitGrant {
  readonly id: string
  /** Milliseconds since the epoch. */
  readonly expires: number
}

/** What takes a step back: a call, as data. Without parameters where the step's result would have given them. */
export interface CompensationCall {
  /** What is called to undo the step. */
  readonly target: string
  /** With what; absent where the end of the step is not known. */
  readonly parameters?: Readonly<Record<string, unknown>>
  readonly description?: string
}

/** The states of a step. `indeterminate`: it began, and its outcome is unknown. `irreversible`: it was done and cannot be undone. */
export type StepStatus = 'running' | 'ok' | 'failed' | 'indeterminate' | 'compensated' | 'compensation_failed' | 'irreversible'

/** Why a step failed, or could not be undone. */
export interface StepFailure {
  /** The code of the problem. */
  readonly code: string
  /** What failed, in a sentence. */
  readonly message: string
}

/** The record of one step of a unit: what was called, how it ended, and how it is undone. */
export interface Step {
  readonly id: string
  /** Steps begin in this order, from 1, and are taken back in the reverse. */
  readonly order: number
  /** What was called. */
  readonly target: string
  readonly status: StepStatus
  /** The process that runs it, or ran it. */
  readonly runner: string
  /** Under which key it was done, so that it can be found, and marked as undone. */
  readonly key: string
  /** Absent where it cannot be undone. */
  readonly inverse?: CompensationCall
  /** What its caller was allowed when it began: the inverse runs with that, whatever was taken away since. */
  readonly authority?: unknown
  /** Why it failed, or could not be undone. */
  readonly failure?: StepFailure
  /** What was written beside its effect, in the words of whoever wrote it: taken back with it. */
  readonly wrote?: object
  /** Joins it with what else was written about the call. */
  readonly correlation?: string
}

/** Nothing more happens in it. */
export function isEnded(unit: Unit): boolean {
  return unit.status !== 'open' && unit.status !== 'rolling_back'
}

/** The key of a unit's record. */
export function unitKey(owner: string, id: string): string {
  return `unit/${owner}/${id}`
}

/** Steps sort by their order. */
export function stepKey(owner: string, id: string, order: number): string {
  return `${stepsPrefix(owner, id)}${String(order).padStart(6, '0')}`
}

/** The prefix of the keys of a unit's steps. */
export function stepsPrefix(owner: string, id: string): string {
  return `step/${owner}/${id}/`
}

/** Units that may need somebody: open ones, and those whose rollback has not ended. */
export const unfinishedPrefix = 'unfinished/'

/** The key that is there as long as a unit has not ended. */
export function unfinishedKey(owner: string, id: string): string {
  return `${unfinishedPrefix}${owner}/${id}`
}

/** Written whenever an owner begins a unit. */
export function unitBeginKey(owner: string): string {
  return `unit-turn/${owner}`
}

/** Units of which something could not be taken back: somebody has to look at them. */
export const stuckPrefix = 'stuck/'

/** The key that is there while a unit waits for its rollback to be tried again. */
export function stuckKey(owner: string, id: string): string {
  return `${stuckPrefix}${owner}/${id}`
}

/** The key of the lease of whoever rolls a unit back. */
export function leaseKey(owner: string, id: string): string {
  return `unit-lease/${owner}/${id}`
}

/** The unit that a record holds. Throws where it holds none. */
export function readUnit(text: string): Unit {
  return read<Unit>(text, 'begunAt')
}

/** The step that a record holds. Throws where it holds none. */
export function readStep(text: string): Step {
  return read<Step>(text, 'order')
}

function read<T>(text: string, mark: string): T {
  const value: unknown = JSON.parse(text)
  if (isRecord(value) && typeof value.id === 'string' && typeof value[mark] === 'number') return value as T
  throw new Error('A record of the journal does not have the expected form. Another program may have written it')
}

// The idempotency key under which a step is taken back: the same for every attempt, and never that of another step.

/** What every server takes as a key. */
const plain = /^[a-zA-Z0-9_\-:.]{1,128}$/

/** The idempotency key of a compensation: the same for each attempt, different for every step. */
export async function compensationKey(unit: string, step: string): Promise<string> {
  const key = `compensate-${unit}-${step}`
  // The last dash says where the two meet, as long as the step has none: else "a" and "b-1" would be "a-b" and "1".
  if (plain.test(key) && !step.includes('-')) return key
  return `compensate-${await digestText(JSON.stringify([unit, step]))}`
}

/** The one undo: takes back what was done, last first, one at a time, and reports on each. A failure does not stop it. */
export type UndoOutcome =
  | { readonly status: 'undone' }
  /** It had no effect, or was taken back before. */
  | { readonly status: 'nothing' }
  | { readonly status: 'failed'; readonly code: string; readonly message: string; readonly category?: Category }

interface UnwindOptions<T> {
  /** Takes one back. What it throws counts as a failure of that one. */
  undo(item: T): Promise<UndoOutcome>
  /** Writes down what came of it, before the next one is begun. What it throws ends the unwinding: another goes on from there. */
  record(item: T, outcome: UndoOutcome): Promise<void>
  /** Waits before a failure that may pass is tried again. */
  pause(attempt: number): Promise<void>
  /** Default 3. */
  readonly attempts?: number
}

/** `items` in the order in which they were done. */
export async function unwind<T>(items: readonly T[], options: UnwindOptions<T>): Promise<readonly UndoOutcome[]> {
  const outcomes: UndoOutcome[] = []
  for (const item of items.toReversed()) {
    const outcome = await persist(item, options)
    await options.record(item, outcome)
    outcomes.unshift(outcome)
  }
  return outcomes
}

async function persist<T>(item: T, options: UnwindOptions<T>): Promise<UndoOutcome> {
  for (let attempt = 1; ; attempt++) {
    const outcome = await options.undo(item).catch(failed)
    const passing = outcome.status === 'failed' && (outcome.category === 'transient' || outcome.category === 'rate_limited')
    if (!passing || attempt >= (options.attempts ?? 3)) return outcome
    await options.pause(attempt)
  }
}

function failed(error: unknown): UndoOutcome {
  return { status: 'failed', code: 'SERVER_ERROR', message: error instanceof Error ? error.message : String(error) }
}
