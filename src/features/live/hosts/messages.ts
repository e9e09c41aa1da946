/** What the features of a live server know of a host: how to reach it, what it has selected, and how it wants to be spoken to. */
import type { Exchange } from '../../../engine/exchange.ts'
import type { Method } from '../../../engine/method.ts'
import type { ScopeLists } from '../scopes/messages.ts'

/** How a host wants to be spoken to. */
export interface HostDialect {
  /** As it says itself. */
  readonly version: string
  readonly label: '0.2' | '0.3' | '0.4' | '0.5'
  /** It reads feature sets as an array. */
  readonly arrays: boolean
  /** It reads media by their `source`. */
  readonly source: boolean
}

/** What a host lets a server do. */
export interface Selected {
  /** It has said something at all. */
  readonly said: boolean
  enabled(featureSet: string): boolean
  /** It has said no, in so many words. */
  disabled(featureSet: string): boolean
  scopes(featureSet: string): ScopeLists | undefined
}

/** The same as another process finds it. */
export interface KeptSelected extends Selected {
  save(): unknown
  restore(saved: unknown): void
}

/** What a request to a host may be given. */
export interface HostCall {
  readonly signal?: AbortSignal | undefined
  readonly timeoutMs?: number | undefined
  /** The call on whose way back it is asked, where there is one. */
  readonly exchange?: Exchange | undefined
  readonly onChunk?: ((index: number, delta: string) => void) | undefined
}

/** A host of MCP Live, as the features of a server see it. */
export interface LiveHost {
  readonly dialect: HostDialect
  readonly selected: Selected
  /** The id of its principal, where one is known. */
  readonly principal: string | undefined
  /** Something said now will be heard. */
  readonly reachable: boolean
  readonly gone: boolean
  request<P, R>(method: Method<P, R>, params: P, options?: HostCall): Promise<R>
  notify<P>(method: Method<P, undefined>, params: P): boolean
}

/** Whoever makes a request, as far as MCP Live goes. */
export interface LiveCaller {
  readonly dialect: HostDialect
  readonly selected: Selected
  /** The way to it; undefined where it holds no stream open. */
  readonly host: LiveHost | undefined
}
