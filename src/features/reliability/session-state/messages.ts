/** Session state on the wire: a sealed token in `_meta`. Also `ctx.state`, which other features build on. */
import { compensation, completeResult, type Exchange } from '../../../engine/exchange.ts'
import { NS } from '../../../engine/method.ts'
import { port } from '../../../engine/ports.ts'
import { isRecord, type Params } from '../../../jsonrpc/message.ts'
import { isInputRequired } from '../../mcp/input-required/messages.ts'

/** What other features may do with state. */
interface StatePort {
  /** The state of a call. */
  of(exchange: Exchange): CallState
}

/** The port of this feature. */
export const statePort = port<StatePort>('state')

/** The extension name. */
export const stateExtension = `${NS}/state`

/** The longest token in characters. */
export const tokenLimit = 64 * 1024

/** The state in `_meta`. */
export interface WireState {
  /** Absent in an answer: the current token stays valid. */
  readonly session_state?: string
  readonly state_changed?: boolean
  readonly expires_at?: string
}

/** Lifecycle events of a session. */
export type Lifecycle = 'session_created' | 'session_renewed' | 'session_expired' | 'session_invalidated'

/** The value in `_meta`. Must be fast. */
export function stateIn(meta: Params | undefined): unknown {
  return meta?.[stateExtension]
}

/** Reads a state; undefined if it is malformed. */
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

/** State tokens, for other client features. */
export interface ClientStates {
  /** The current token. */
  at(conversation?: string): string | undefined
  /** Restores an earlier token after a rollback. */
  back(conversation: string, last: string | undefined, before: string | undefined): void
}

/** The client port. */
export const statesPort = port<ClientStates>('states')

/** The state during a call. */
export interface StateDraft {
  value: unknown
  /** The patches so far; undefined after `set`. They can be repeated on a newer state. */
  steps: unknown[] | undefined
  changed: boolean
}

/** Loads and stores the state of a call. */
export interface CallStateStorage {
  /** Applies an RFC 6902 patch. */
  patched(value: unknown, steps: readonly unknown[]): unknown
  /** Loads the state. */
  open(exchange: Exchange): Promise<OpenedState>
  /** Stores the state; returns the result with its token. */
  close(exchange: Exchange, opened: OpenedState, draft: StateDraft, result: unknown): Promise<unknown>
}

/** The loaded state. */
interface OpenedState {
  readonly value: unknown
}

/** `ctx.state`: loaded on first access, stored after success. */
export class CallState {
  /** Whether the next call will find what this one writes. */
  readonly durable: boolean
  readonly #exchange: Exchange
  readonly #load: () => Promise<CallStateStorage>
  #opening: Promise<OpenCallState> | undefined = undefined
  #last: Promise<unknown> | undefined = undefined

  constructor(exchange: Exchange, durable: boolean, load: () => Promise<CallStateStorage>) {
    this.#exchange = exchange
    this.durable = durable
    this.#load = load
  }

  /** A copy of the state; undefined before the first write. */
  get<T = unknown>(): Promise<T | undefined> {
    return this.#do(({ value }) => structuredClone(value) as T | undefined)
  }

  /** Replaces the state with any JSON; undefined deletes it. */
  set(value: unknown): Promise<void> {
    return this.#do(draft => {
      draft.value = value === undefined ? undefined : JSON.parse(JSON.stringify(value))
      draft.steps = undefined
      draft.changed = true
    })
  }

  /** Applies an RFC 6902 patch, initially to `{}`; returns the result. */
  patch<T = unknown>(steps: readonly unknown[]): Promise<T> {
    return this.#do((draft, { patched }) => {
      draft.value = patched(draft.value ?? {}, steps)
      draft.steps?.push(...structuredClone(steps))
      draft.changed = true
      return structuredClone(draft.value) as T
    })
  }

  /** Loads the state now, or throws. */
  open(): Promise<void> {
    return this.#do(() => undefined)
  }

  /** Operations run in the order of the calls. */
  #do<T>(fn: (draft: StateDraft, runtime: CallStateStorage) => T): Promise<T> {
    this.#opening ??= this.#begin()
    const done = this.#opening.then(({ draft, runtime }) => fn(draft, runtime))
    // If nobody awaits it, a failed load surfaces at the end of the call.
    this.#last = done.catch(() => undefined)
    return done
  }

  #begin(): Promise<OpenCallState> {
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

interface OpenCallState {
  readonly runtime: CallStateStorage
  readonly place: OpenedState
  readonly draft: StateDraft
}

/** Nothing is stored: the call failed, will be repeated, or was abandoned. */
function isDropped(exchange: Exchange, result: unknown): boolean {
  // A rollback restores the state by itself.
  return (
    exchange.get(compensation) !== undefined ||
    exchange.cancelled ||
    exchange.asking?.pending === true ||
    isInputRequired(result) ||
    (isRecord(result) && result['isError'] === true)
  )
}
