/**
 * The state as one call sees it: read when first touched, changed in a draft, written when the call has succeeded. What a call
 * that fails, asks or is cancelled has written is forgotten with it.
 */
import { compensation, completeResult, type Exchange } from '../../../engine/exchange.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import { isInputRequired } from '../../mcp/input-required/messages.ts'
import type { StatePlace, StateRuntime } from './runtime.ts'

/** What a call makes of the state. */
export interface StateDraft {
  value: unknown
  /** The steps, as long as nothing else was done: they can be done again on what others wrote meanwhile. */
  steps: unknown[] | undefined
  changed: boolean
}

/** What reads and writes the state of a call. */
export type CallWorks = Pick<StateRuntime, 'patched' | 'open' | 'close'>

export class CallState {
  /** The next call of this conversation will find what this one writes. */
  readonly durable: boolean
  readonly #exchange: Exchange
  readonly #load: () => Promise<CallWorks>
  #opening: Promise<Begun> | undefined = undefined
  #last: Promise<unknown> | undefined = undefined

  constructor(exchange: Exchange, durable: boolean, load: () => Promise<CallWorks>) {
    this.#exchange = exchange
    this.durable = durable
    this.#load = load
  }

  /** The state, a copy; undefined where none was written yet. Of which type it is only its writers know. */
  get<T = unknown>(): Promise<T | undefined> {
    return this.#do(({ value }) => structuredClone(value) as T | undefined)
  }

  /** Writes it anew, any JSON; undefined forgets it. */
  set(value: unknown): Promise<void> {
    return this.#do(draft => {
      draft.value = value === undefined ? undefined : JSON.parse(JSON.stringify(value))
      draft.steps = undefined
      draft.changed = true
    })
  }

  /** Changes parts of it, by the steps of RFC 6902; before the first write it is `{}`. Gives what came of it. */
  patch<T = unknown>(steps: readonly unknown[]): Promise<T> {
    return this.#do((draft, { patched }) => {
      draft.value = patched(draft.value ?? {}, steps)
      draft.steps?.push(...structuredClone(steps))
      draft.changed = true
      return structuredClone(draft.value) as T
    })
  }

  /** Reads it now, or finds that it cannot be read. */
  open(): Promise<void> {
    return this.#do(() => undefined)
  }

  /** All wait for the same promise, so they happen in the order in which they were called. */
  #do<T>(fn: (draft: StateDraft, runtime: CallWorks) => T): Promise<T> {
    this.#opening ??= this.#begin()
    const done = this.#opening.then(({ draft, runtime }) => fn(draft, runtime))
    // Of one that nobody awaits the end of the call tells, if it is the reading that failed.
    this.#last = done.catch(() => undefined)
    return done
  }

  #begin(): Promise<Begun> {
    const exchange = this.#exchange
    const opening = this.#load().then(async runtime => {
      const place = await runtime.open(exchange)
      return { runtime, place, draft: { value: place.value, steps: [], changed: false } }
    })
    exchange.set(completeResult, async result => {
      if (isDropped(exchange, result)) return result
      await this.#last
      const { runtime, place, draft } = await opening
      return runtime.close(exchange, place, draft, result)
    })
    return opening
  }
}

interface Begun {
  readonly runtime: CallWorks
  readonly place: StatePlace
  readonly draft: StateDraft
}

/** The call has failed, or will be made again with answers, or nobody waits for it any more. */
function isDropped(exchange: Exchange, result: unknown): boolean {
  // A compensation leaves the state alone: that goes back by itself.
  return (
    exchange.get(compensation) !== undefined ||
    exchange.cancelled ||
    exchange.asking?.pending === true ||
    isInputRequired(result) ||
    (isRecord(result) && result['isError'] === true)
  )
}
