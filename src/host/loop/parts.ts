/** What a turn shows while it runs, for as many readers as there are; each sees all of it, whenever it begins to read. */
import type { Why } from '../../core/why.ts'
import type { Change } from './after-hooks.ts'
import type { HookReport } from './hook-run.ts'
import type { PromptSnapshot } from './prompt.ts'
import type { CallOutcome, PlannedCall } from './records.ts'

export type TurnPart =
  | { readonly type: 'hook'; readonly report: HookReport }
  | { readonly type: 'prompt'; readonly prompt: PromptSnapshot }
  /** Words of the answer. While a hook may still change them there are none before it has looked. */
  | { readonly type: 'text'; readonly delta: string }
  | { readonly type: 'call'; readonly call: PlannedCall }
  | { readonly type: 'progress'; readonly n: number; readonly progress: number; readonly message?: string }
  | { readonly type: 'result'; readonly call: PlannedCall; readonly outcome: CallOutcome }
  | { readonly type: 'answer'; readonly text: string; readonly changes: readonly Change[] }
  | { readonly type: 'ended'; readonly status: 'failed' | 'cancelled' | 'interrupted'; readonly why: Why }

export class PartBuffer implements AsyncIterable<TurnPart> {
  readonly #parts: TurnPart[] = []
  #waiting: (() => void)[] = []
  #closed = false

  push(part: TurnPart): void {
    this.#parts.push(part)
    this.#wake()
  }

  close(): void {
    this.#closed = true
    this.#wake()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<TurnPart, void, undefined> {
    for (let at = 0; ; ) {
      const part = this.#parts[at]
      if (part !== undefined) {
        at++
        yield part
      } else if (this.#closed) return
      else await new Promise<void>(wake => this.#waiting.push(wake))
    }
  }

  #wake(): void {
    const waiting = this.#waiting
    this.#waiting = []
    for (const wake of waiting) wake()
  }
}
