/**
 * What live server features know of a host: how to reach it, what it has selected, and its dialect. Separate, because every feature
 * needs it and none may import another's code.
 */
import type { Exchange } from '../../../engine/exchange.ts'
import type { Method } from '../../../engine/method.ts'
import type { ScopeLists } from '../scopes/messages.ts'

/** How messages to a host must be written. */
export interface HostDialect {
  readonly label: '0.2' | '0.3' | '0.4' | '0.5'
  /** It expects feature sets as an array. */
  readonly arrays: boolean
  /** It expects media under `source`. */
  readonly source: boolean
}

/** What a host allows a server to do. */
export interface HostSelectionView {
  enabled(featureSet: string): boolean
  /** Whether it has disabled the set explicitly. */
  disabled(featureSet: string): boolean
  /** Its allow and deny lists for scopes. */
  scopes(featureSet: string): ScopeLists | undefined
}

/** A selection that can be handed to another process. */
export interface TransferableSelection extends HostSelectionView {
  save(): unknown
  restore(saved: unknown): void
}

/** Options of a request to a host. */
export interface HostCall {
  readonly signal?: AbortSignal | undefined
  readonly timeoutMs?: number | undefined
  /** The call during which the host is asked; over HTTP the request uses its stream. */
  readonly exchange?: Exchange | undefined
  /** Receives pieces of a streamed answer. */
  readonly onChunk?: ((index: number, delta: string) => void) | undefined
}

/** A live host, as server features use it. */
export interface LiveHost {
  readonly dialect: HostDialect
  readonly selected: HostSelectionView
  /** The id of its principal, if known. */
  readonly principal: string | undefined
  /** Whether a message sent now would arrive. */
  readonly reachable: boolean
  /** Whether it has disconnected for good. */
  readonly gone: boolean
  request<P, R>(method: Method<P, R>, params: P, options?: HostCall): Promise<R>
  /** Sends a notification; false if it cannot arrive. */
  notify<P>(method: Method<P, undefined>, params: P): boolean
}

/** The sender of a request, if it speaks MCP Live. */
export interface LiveCaller {
  readonly dialect: HostDialect
  readonly selected: HostSelectionView
  /** The connection to it; undefined if it holds no stream open. */
  readonly host: LiveHost | undefined
}
