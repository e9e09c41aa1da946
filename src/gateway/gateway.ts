/** A running gateway. */

import type { Why } from '../core/why.ts'
import type { ServerStatus } from '../host/servers/server.ts'
import type { RevisionId } from '../revisions/index.ts'
import type { Server } from '../server/api.ts'
import type { ServeHttpOptions } from '../server/serve.ts'
import type { FetchHandler } from '../transports/http/fetch.ts'
import type { Listening } from '../transports/http/listening.ts'
import type { GatewayOptions } from './options.ts'
import type { TrustControl } from './trust/trust.ts'

/** One thing that clients see. */
export interface OfferedName {
  readonly kind: 'tool' | 'resource' | 'template' | 'prompt'
  /** Or address. */
  readonly name: string
  readonly upstream: string
  /** What its server calls it. */
  readonly own: string
}

/** How one of the servers behind a gateway is. */
export interface UpstreamStatus {
  readonly name: string
  readonly status: ServerStatus
  /** Why it is not up. */
  readonly why?: Why | undefined
  /** The wire that it speaks, while it is up. */
  readonly revision?: RevisionId | undefined
  readonly tools: number
  readonly resources: number
  readonly prompts: number
  /** What of it cannot be offered, and why. */
  readonly left: readonly Why[]
}

/** What other options have changed. */
export interface Reloaded {
  /** Servers that are new, gone, or connected to anew; others were not touched. */
  readonly started: readonly string[]
  readonly stopped: readonly string[]
  readonly restarted: readonly string[]
  /** Options that are others now and count only after a restart. */
  readonly pending: readonly string[]
}

export interface Gateway extends TrustControl {
  /** What clients see: a server like any other. */
  readonly server: Server
  readonly fetch: FetchHandler
  listen(options?: ServeHttpOptions): Promise<Listening>
  /** Serves one client on standard input and output; settles when it has gone. */
  stdio(): Promise<void>
  upstreams(): readonly UpstreamStatus[]
  /** All that is offered now: under which name, whose it is, and what it is called there. */
  names(): readonly OfferedName[]
  /** Settles when each upstream came up once and was listed, or failed once. */
  ready(): Promise<void>
  /** Tries an upstream at once that is down. */
  retry(upstream: string): void
  /**
   * Takes other options, or what its file says now. They are checked whole before anything changes: where one is wrong it throws, and
   * all stays as it was. Clients stay connected, except those whose token was taken away or is another one now, and those whose token
   * belongs to no client any more: their connections, sessions, streams and calls end.
   */
  reload(options?: GatewayOptions): Promise<Reloaded>
  /** Ends all conversations, and the processes of upstreams. */
  close(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}
