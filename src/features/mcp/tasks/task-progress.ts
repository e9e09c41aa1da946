/**
 * Progress of a call, also once it has become a task: by notifications under the call's token where the wire has that for tasks, else by
 * what the task says of itself each time it is looked at.
 */
import type { CallOptions, Calls, Progress } from '../../../engine/calls.ts'
import type { Id } from '../../../jsonrpc/message.ts'
import type { ClientTaskProgress, Task } from './messages.ts'
import { progressFromText } from './progress-text.ts'

const mostEarly = 100

/** One call's progress. */
export class TaskProgress implements ClientTaskProgress {
  readonly #tell: (step: Progress) => void
  readonly #calls: () => Calls | undefined
  #stop: () => void = () => {}
  #last = Number.NEGATIVE_INFINITY
  #said: string | undefined
  #notified = false
  /** What came between the answer and its reading; undefined once the call is known to be a task. */
  #early: Progress[] | undefined = []

  constructor(tell: (step: Progress) => void, calls: () => Calls | undefined) {
    this.#tell = tell
    this.#calls = calls
  }

  /** What a request has to be sent with. The first that is told of it counts: a call that is made again has another token. */
  options({ onSent }: CallOptions): Pick<CallOptions, 'onProgress' | 'onSent'> {
    return {
      onProgress: step => this.#step(step),
      onSent: (id: Id) => {
        onSent?.(id)
        this.#stop()
        // Each request counts anew.
        this.#last = Number.NEGATIVE_INFINITY
        this.#stop =
          this.#calls()?.hear(id, step => {
            if (this.#early === undefined) this.#notify(step)
            else if (this.#early.length < mostEarly) this.#early.push(step)
          }) ?? (() => {})
      },
    }
  }

  /** The call has become a task: from here on its token outlives its answer. A call that has failed is told of no more. */
  begun(): void {
    const early = this.#early ?? []
    this.#early = undefined
    for (const step of early) this.#notify(step)
  }

  /** The task, as it was just looked at. */
  looked({ statusMessage }: Task): void {
    if (this.#notified || statusMessage === undefined || statusMessage === this.#said) return
    this.#said = statusMessage
    const found = progressFromText(statusMessage)
    this.#step('progress' in found ? found : { ...found, progress: Math.max(0, this.#last) + 1 })
  }

  end(): void {
    this.#stop()
  }

  #notify(step: Progress): void {
    this.#notified = true
    this.#step(step)
  }

  #step(step: Progress): void {
    if (!(step.progress > this.#last)) return
    this.#last = step.progress
    this.#tell(step)
  }
}
