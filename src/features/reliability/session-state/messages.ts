/** State on the wire: a sealed token in the `_meta` of a call and of its answer. Whoever keeps it need not be able to read it. */
import { compensation, completeResult, type Exchange } from '../../../engine/exchange.ts'
import { NS } from '../../../engine/method.ts'
import { type Port, port } from '../../../engine/ports.ts'
import { isRecord, type Params } from '../../../jsonrpc/message.ts'
import { isInputRequired } from '../../mcp/input-required/messages.ts'

/** What other features may use of state. */
interface StatePort {
  /** The state of a call. */
  of(exchange: Exchange): CallState
}

/** What other features may use of state. */
export const statePort = port<StatePort>('state')

/** The name of the extension. */
export const stateExtension = `${NS}/state`

/** The longest token given out or kept, in characters. */
export const tokenLimit = 64 * 1024

/** In the `_meta` of a call and of its answer. */
export interface WireState {
  /** Absent in an answer: the one that the caller has stays good. */
  readonly session_state?: string
  readonly state_changed?: boolean
  readonly expires_at?: string
}

/** What may happen to a session. */
export type Lifecycle = 'session_created' | 'session_renewed' | 'session_expired' | 'session_invalidated'

/** What stands there, if anything does. Cheap: every call may be asked. */
export function stateIn(meta: Params | undefined): unknown {
  return isRecord(meta) && Object.hasOwn(meta, stateExtension) ? meta[stateExtension] : undefined
}

/** Undefined where it is none. */
export function readState(value: unknown): WireState | undefined {
  if (!isRecord(value)) return undefined
  const { session_state: token, state_changed: changed, expires_at: expires } = value
  if (token !== undefined && typeof token !== 'string') return undefined
  return {
    ...(token === undefined ? {} : { session_state: token }),
    ...(typeof changed === 'boolean' ? { state_changed: changed } : {}),
    ...(typeof expires === 'string' ? { expires_at: expires } : {}),
  }
}

/** The states of conversations, for other features of a client. */
export interface ClientStates {
  /** The token that a conversation has now. */
  at(conversation?: string): string | undefined
  /** What was written since then was undone: the token of then is good again, unless another came meanwhile. */
  back(conversation: string, last: string | undefined, before: string | undefined): void
}

/** The client's states. */
export const statesPort: Port<ClientStates> = port('states')

/** What a call makes of the state. */
export interface StateDraft {
  value: unknown
  /** The steps, as long as nothing else was done: they can be done again on what others wrote meanwhile. */
  steps: unknown[] | undefined
  changed: boolean
}

/** What reads and writes the state of a call. */
export interface CallWorks {
  /** The value with the steps of RFC 6902 done to it. */
  patched(value: unknown, steps: readonly unknown[]): unknown
  /** Finds the state of a call. */
  open(exchange: Exchange): Promise<OpenedState>
  /** Writes what the call made of it; gives the result that tells of it. */
  close(exchange: Exchange, opened: OpenedState, draft: StateDraft, result: unknown): Promise<unknown>
}

/** The state that a call found. Where it was found is the runtime's to know. */
interface OpenedState {
  readonly value: unknown
}

/** The state as one call sees it: read when first touched, written when the call has succeeded. */
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
  readonly place: OpenedState
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
