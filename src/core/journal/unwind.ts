/** The one undo: takes back what was done, last first, one at a time, and reports on each. A failure does not stop it. */
import type { Category } from '../problem.ts'

export type Undone =
  | { readonly status: 'undone' }
  /** It had no effect, or was taken back before. */
  | { readonly status: 'nothing' }
  | { readonly status: 'failed'; readonly code: string; readonly message: string; readonly category?: Category }

export interface UnwindOptions<T> {
  /** Takes one back. What it throws counts as a failure of that one. */
  undo(item: T): Promise<Undone>
  /** Writes down what came of it, before the next one is begun. What it throws ends the unwinding: another goes on from there. */
  record(item: T, outcome: Undone): Promise<void>
  /** Waits before a failure that may pass is tried again. */
  pause(attempt: number): Promise<void>
  /** Default 3. */
  readonly attempts?: number
}

/** `items` in the order in which they were done. */
export async function unwind<T>(items: readonly T[], options: UnwindOptions<T>): Promise<readonly Undone[]> {
  const outcomes: Undone[] = []
  for (const item of items.toReversed()) {
    const outcome = await persist(item, options)
    await options.record(item, outcome)
    outcomes.unshift(outcome)
  }
  return outcomes
}

async function persist<T>(item: T, options: UnwindOptions<T>): Promise<Undone> {
  for (let attempt = 1; ; attempt++) {
    const outcome = await options.undo(item).catch(failed)
    const passing = outcome.status === 'failed' && (outcome.category === 'transient' || outcome.category === 'rate_limited')
    if (!passing || attempt >= (options.attempts ?? 3)) return outcome
    await options.pause(attempt)
  }
}

function failed(error: unknown): Undone {
  return { status: 'failed', code: 'SERVER_ERROR', message: error instanceof Error ? error.message : String(error) }
}
