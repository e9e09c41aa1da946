/**
 * Questions come one at a time: the next one is not shown before the one on the screen is answered or given up, so that a line that is
 * typed is the answer to what is shown. Each has a number, which its prompt repeats.
 */
import { unlessAborted } from '../../core/deadlines.ts'
import { brief } from './paint.ts'
import { escaped } from './text.ts'

/** Behind it there is room for the choices, on a line of most terminals. */
const topicLength = 36

/** A question while it is on the screen. */
export interface ShownQuestion {
  readonly number: number
  /** The beginning of its prompt: the number, what it is about, and how many others wait. */
  label(about: string): string
}

export class QuestionQueue {
  #asked = 0
  #waiting = 0
  #last: Promise<unknown> = Promise.resolve()

  /** Shows a question once those before it are over. Where its asker gives up while it waits, it is `unanswered` and never shown. */
  async ask<T>(signal: AbortSignal, unanswered: () => T, show: (question: ShownQuestion) => Promise<T>): Promise<T> {
    const before = this.#last
    const over = Promise.withResolvers<void>()
    this.#last = Promise.all([before, over.promise])
    this.#waiting++
    try {
      await unlessAborted(before, signal).catch(() => undefined)
      this.#waiting--
      return signal.aborted ? unanswered() : await show(this.#next())
    } finally {
      over.resolve()
    }
  }

  #next(): ShownQuestion {
    const number = ++this.#asked
    return {
      number,
      label: about => {
        const others = this.#waiting === 0 ? '' : ` (${this.#waiting} more ${this.#waiting === 1 ? 'waits' : 'wait'})`
        return `   ${number}. ${brief(escaped(about), topicLength)}${others}: `
      },
    }
  }
}
