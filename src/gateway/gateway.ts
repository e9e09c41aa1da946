/** A running gateway. */

import type { TokenStorage } from '../auth/client/index.ts'
import type { Clock, Duration } from '../core/clock.ts'
import type { LogOption } from '../core/log.ts'
import type { Why } from '../core/suggestion.ts'
import type { ServerStatus } from '../host/servers/server.ts'
import type { Awaitable } from '../jsonrpc/message.ts'
import type { HeldLaunch } from '../policy/pins/launches.ts'
import type { RevisionId } from '../revisions/index.ts'
import type { Server } from '../server/api.ts'
import type { ServerOptions } from '../server/options.ts'
import type { ServeHttpOptions } from '../server/serve.ts'
import type { Store } from '../stores/store.ts'
import type { FetchHandler } from '../transports/http/fetch.ts'
import type { Listening } from '../transports/http/listening.ts'
import type { ListenPlace } from './config/frame.ts'
import type { ShareOptions } from './shares.ts'
import type { GatewayNotice } from './trust/approvals.ts'
import type { TrustSettings } from './trust/settings.ts'
import type { TrustControl } from './trust/trust.ts'
import type { GatewayServer } from './upstreams/entry.ts'

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

/** A gateway that runs: its server face, its upstreams, and what its operator can ask and answer. */
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

// What a gateway may be told. Every option has a default.

/** A server that is started, or called, in another way than before. */
export type LaunchChange = Pick<HeldLaunch, 'id' | 'upstream' | 'changes'>

/** The options of `createGateway`. */
export interface GatewayOptions extends TrustSettings {
  /** A file that says all of this: YAML or JSON. What is given here stands before what it says. */
  readonly config?: string
  /** The servers behind it, by name: a URL, a command, or that with more about it. */
  readonly servers?: Readonly<Record<string, GatewayServer>>
  /** How it names itself to clients. Default: vivarium-gateway. */
  readonly name?: string
  readonly version?: string
  readonly instructions?: string
  /** The wires that clients may speak. Default: all there are. */
  readonly revisions?: readonly RevisionId[]
  /** Shared by replicas, with a store that they share. */
  readonly secret?: string | readonly string[]
  /** Where what must last is kept. Default: in memory. */
  readonly store?: string | Store
  /** How long a client may take to answer what a server asked it. Default 10 minutes. */
  readonly askTimeout?: Duration
  /** After a start, how long lists and calls of unknown names wait at most for the first look at all servers. Default 5 s. */
  readonly startWait?: Duration
  /** At its end, how long calls that are under way may take before they are cut, and told so. Default 5 s. */
  readonly drain?: Duration
  /** Where `gateway.listen()` listens. Default: loopback, any port that is free. */
  readonly listen?: ListenPlace
  /** Of what callers send; `frameBytes`, where it is given, of what servers answer too (default 16 MiB). */
  readonly limits?: NonNullable<ServerOptions['limits']>
  /** Room at each server, for all clients together; one client has at most as much of it as it leaves free. */
  readonly shares?: ShareOptions
  /** `prefixed`: every name has its server's in front, so that none ever changes. Default: only where two servers share one. */
  readonly names?: 'prefixed' | 'short'
  readonly log?: LogOption
  readonly onTrace?: (event: string, detail: unknown) => void
  readonly clock?: Clock
  /** Where the tokens are of those who signed in for a server. Default: the file in which `vivarium` keeps those of its user. */
  readonly tokens?: TokenStorage
  /**
   * Told what waits for whoever runs the gateway (calls, tools and launches that need a yes), and what of the audit log could not be
   * written. Default: it is written into the log, as errors are.
   */
  readonly onNotice?: (notice: GatewayNotice) => void
  /**
   * Asked once about a server whose entry in the file of `config` starts or calls it in another way than before; it is held until the
   * answer. Default: nobody is asked; it is applied, and `onNotice` is told. What included files change is held in any case.
   */
  readonly onLaunchChanged?: (launch: LaunchChange) => Awaitable<boolean>
  /** Told what a server that is a command writes on standard error. Default: it is not shown. */
  readonly onStderr?: (server: string, line: string) => void
}
