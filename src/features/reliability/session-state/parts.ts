/** What keeping state needs to know: what its author said, and what it uses of the server. */
import type { Clock, Duration } from '../../../core/clock.ts'
import type { Seal } from '../../../core/handle.ts'
import type { Trace } from '../../../core/log.ts'
import type { Params } from '../../../jsonrpc/message.ts'
import type { Op, Store } from '../../../stores/store.ts'

/** What an author may say of state. */
export interface StateOptions {
  /** How long a state lasts that nobody uses. Default 24 hours. */
  readonly ttl?: Duration
  /**
   * Clients can subscribe to what happens to their states: `session_created`, `session_renewed`, `session_expired` and
   * `session_invalidated`. Default false.
   */
  readonly events?: boolean
}

/** What two calls that wrote on the same state come to: a state each, or a refusal for the later one. */
type StateRule = 'branch' | 'conflict'

/** What it uses of the server. */
export interface StateParts extends StateOptions {
  readonly store: () => Promise<Store>
  /** Whether the store was given, so that others may share it. */
  readonly shared: boolean
  readonly seal: Seal
  /** Which server this is: a token is good for no other. */
  readonly audience: string
  readonly clock: Clock
  readonly trace: Trace
  /** The writes that tell its owner what happens to a session, where that is offered. */
  readonly announcing: (name: string, payload: Params, owner: string) => Promise<readonly Op[]>
  /** The rule of a tool. */
  readonly rule: (tool: string) => StateRule | undefined
  /** Whether some tool has one: then clients are told of it. Tokens are given to those who declare them all the same. */
  readonly used: () => boolean
}

/** Where the state of a caller is kept. */
export type Keeping = 'token' | 'conversation' | 'session' | 'principal' | 'call'
