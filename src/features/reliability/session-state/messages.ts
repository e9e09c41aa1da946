/** State on the wire: a sealed token in the `_meta` of a call and of its answer. Whoever keeps it need not be able to read it. */
import type { Exchange } from '../../../engine/exchange.ts'
import { NS } from '../../../engine/method.ts'
import { type Port, port } from '../../../engine/ports.ts'
import { isRecord, type Params } from '../../../jsonrpc/message.ts'
import type { CallState } from './call-state.ts'

/** What other features may use of state. */
export interface StatePort {
  /** The state of a call. */
  of(exchange: Exchange): CallState
}

/** What other features may use of state. */
export const statePort = port<StatePort>('state')

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
