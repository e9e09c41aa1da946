/**
 * Waiters by the id of their request. Ids are given out in order, so most waiters sit in a slot of their own; one that outlasts a
 * whole turn makes room and goes to a map. A map alone would do, but with so much coming and going its outgrown tables keep
 * answered calls alive until the next full collection.
 */

import { durationText } from '../core/clock.ts'
import type { Deadline } from '../core/deadlines.ts'
import { McpError } from '../jsonrpc/error.ts'
import { clip } from '../jsonrpc/limits.ts'
import type { Id, Params } from '../jsonrpc/message.ts'
import type { VersionStep } from '../revisions/index.ts'
import type { CallOptions, Progress, StoppableWork } from './calls.ts'
import type { Conversation } from './conversation.ts'
import type { Engine } from './engine.ts'
import type { Method } from './method.ts'

interface WithId {
  readonly id: Id
}

/** A power of two. */
const slotCount = 64

/** A table of pending calls by the ids of their requests. */
export class PendingCalls<W extends WithId> {
  readonly #slots: (W | undefined)[] = new Array(slotCount).fill(undefined)
  #lasting: Map<Id, W> | undefined = undefined

  /** By the exact id, type included. */
  get(id: Id): W | undefined {
    const pending = this.#slots[slotOf(id)]
    return pending?.id === id ? pending : this.#lasting?.get(id)
  }

  add(pending: W): void {
    const slot = slotOf(pending.id)
    const before = this.#slots[slot]
    if (before !== undefined) {
      this.#lasting ??= new Map()
      this.#lasting.set(before.id, before)
    }
    this.#slots[slot] = pending
  }

  delete(id: Id): void {
    const slot = slotOf(id)
    if (this.#slots[slot]?.id === id) this.#slots[slot] = undefined
    else this.#lasting?.delete(id)
  }

  all(): W[] {
    return [...(this.#lasting?.values() ?? []), ...this.#slots.filter(pending => pending !== undefined)]
  }
}

function slotOf(id: Id): number {
  return typeof id === 'number' ? id & (slotCount - 1) : 0
}

// One request of ours while its answer is awaited: its deadline, and its way of being given up.

/** How long a call whose answer could not be read waits for one that can: peers that print noise send the right one as well. */
const secondAnswerMs = 1_000

/** A request of ours that waits for its response. */
export class PendingCall {
  readonly id: Id
  readonly onProgress: ((progress: Progress) => void) | undefined
  readonly onReleased: CallOptions['onReleased']
  readonly lasting: boolean
  /** The list in the answer whose entries stand each for itself. */
  readonly entries: string | undefined
  lastProgress = Number.NEGATIVE_INFINITY
  readonly #engine: Engine
  readonly #conversation: Conversation
  readonly #method: Method
  readonly #params: Params
  readonly #resultUp: VersionStep | undefined
  readonly #signal: AbortSignal | undefined
  readonly #behalf: StoppableWork | undefined
  readonly #timeoutMs: number
  readonly #totalMs: number
  #latest: number
  #heldAt: number | undefined
  #unread: Error | undefined
  readonly #deadline: Deadline
  readonly #resolve: (result: unknown) => void
  readonly #reject: (error: unknown) => void
  /** Whether letting go is all there is to cancelling. */
  readonly #silent: boolean
  readonly #onAbort: (() => void) | undefined
  readonly #onLate: CallOptions['onLate']

  constructor(
    engine: Engine,
    conversation: Conversation,
    method: Method,
    params: Params,
    resultUp: VersionStep | undefined,
    id: Id,
    options: CallOptions,
    silent: boolean,
    resolve: (result: unknown) => void,
    reject: (error: unknown) => void,
  ) {
    const now = engine.clock.now()
    this.id = id
    this.onProgress = options.onProgress
    this.onReleased = options.onReleased
    this.lasting = method.lasting === true
    this.entries = method.entries
    this.#engine = engine
    this.#conversation = conversation
    this.#method = method
    this.#params = params
    this.#resultUp = resultUp
    this.#signal = options.signal
    this.#behalf = options.behalf
    this.#timeoutMs = options.timeoutMs ?? engine.limits.callTimeoutMs
    this.#totalMs = options.totalMs ?? Math.max(engine.limits.callTotalMs, this.#timeoutMs)
    this.#latest = now + this.#totalMs
    this.#silent = silent
    this.#onLate = options.onLate
    this.#resolve = resolve
    this.#reject = reject
    const at = Math.min(now + this.#timeoutMs, this.#latest)
    // Whoever awaits an answer must live to see it or its absence. A server lives by its listeners; what it asks does not hold it.
    const awaited = engine.role === 'client' && at < Number.POSITIVE_INFINITY
    this.#deadline = engine.deadlines.add(at, () => this.#expire(), awaited)
    if (options.signal !== undefined) {
      this.#onAbort = () => this.#giveUp(abortReason(options.signal), 'aborted')
      options.signal.addEventListener('abort', this.#onAbort, { once: true })
    }
    const { behalf } = options
    behalf?.onStop(() => this.#giveUp(behalf.signal.reason, 'aborted'))
  }

  /** The answer is here: steps up, and out. */
  resolve(result: unknown): void {
    try {
      this.#resolve(this.#resultUp === undefined ? result : this.#resultUp(result as Params))
    } catch (cause) {
      this.#reject(
        new McpError('invalid-result', `The response to ${this.#method.name} does not have the required form`, { cause }),
      )
    }
  }

  reject(error: unknown): void {
    this.#reject(error)
  }

  /** Frees what the call holds. */
  release(): void {
    this.#engine.deadlines.cancel(this.#deadline)
    this.#behalf?.onStop(undefined)
    if (this.#onAbort !== undefined) this.#signal?.removeEventListener('abort', this.#onAbort)
  }

  /** A sign of life moves the deadline, up to the total. */
  extend(): void {
    if (this.#heldAt !== undefined) return
    const waitMs = this.#unread === undefined ? this.#timeoutMs : secondAnswerMs
    this.#deadline.at = Math.min(this.#engine.clock.now() + waitMs, this.#latest)
  }

  /** What came was its answer, or may have been, and cannot be read: it fails with this unless a readable one comes soon. */
  failSoon(error: Error): void {
    this.#unread ??= error
    this.extend()
  }

  /** Time stands still while the request waits for something on this side; afterwards it has as much as it had. */
  hold(held: boolean): void {
    const now = this.#engine.clock.now()
    if (held) {
      this.#heldAt ??= now
      this.#deadline.at = Number.POSITIVE_INFINITY
    } else if (this.#heldAt !== undefined) {
      this.#latest += now - this.#heldAt
      this.#heldAt = undefined
      this.extend()
    }
  }

  #expire(): void {
    this.#giveUp(this.#unread ?? new McpError('timeout', this.#lateness()), 'deadline passed')
  }

  #lateness(): string {
    const { name, nameParam } = this.#method
    const target = nameParam === undefined ? undefined : this.#params[nameParam]
    const what = typeof target === 'string' ? `${name} "${clip(target)}"` : name
    if (this.#deadline.at >= this.#latest && this.#totalMs > this.#timeoutMs) {
      return `No response to ${what} within ${durationText(this.#totalMs)} in total, despite its progress; raise limits.callTotalMs`
    }
    const option = this.#engine.role === 'client' ? 'the option timeout of the call, or of connect' : 'its option timeoutMs'
    return `No response to ${what} within ${durationText(this.#timeoutMs)}; if it may take longer, raise ${option}`
  }

  #giveUp(error: unknown, why: string): void {
    const { calls } = this.#conversation
    if (calls?.take(this.id) === undefined) return
    if (this.#onLate !== undefined) calls.onLateResult(this.id, result => this.#answeredLate(result))
    if (!this.#silent) this.#engine.cancelSent(this.#conversation, this.id, why)
    this.#conversation.connection?.drop?.(this.id, error)
    this.#reject(error)
  }

  #answeredLate(result: unknown): void {
    try {
      this.#onLate?.(this.#resultUp === undefined ? result : this.#resultUp(result as Params))
    } catch (error) {
      this.#engine.trace('late-answer-unread', error)
    }
  }
}

function abortReason(signal: AbortSignal | undefined): unknown {
  return signal?.reason ?? new DOMException('Aborted', 'AbortError')
}
