/** The public types of a gateway: its interface and its options. Types only. */

import type { TokenStorage } from '../auth/client/index.ts'
import type { Clock, Duration } from '../core/clock.ts'
import type { LogRecord } from '../core/heard-log.ts'
import type { LogOption } from '../core/log.ts'
import type { Why } from '../core/suggestion.ts'
import type { ServerStatus } from '../host/servers/server.ts'
import type { Awaitable } from '../jsonrpc/message.ts'
import type { GatewayAuditEntry } from '../policy/audit/gateway-audit.ts'
import type { HeldLaunch } from '../policy/pins/launches.ts'
import type { RevisionId } from '../revisions/index.ts'
import type { Server } from '../server/api.ts'
import type { ServerOptions } from '../server/options.ts'
import type { ServeHttpOptions } from '../server/serve.ts'
import type { Store } from '../stores/store.ts'
import type { FetchHandler } from '../transports/http/fetch.ts'
import type { Listening } from '../transports/http/listening.ts'
import type { ListenPlace } from './config/own-settings.ts'
import type { ShareOptions } from './shares.ts'
import type { GatewayNotice } from './trust/approvals.ts'
import type { TrustSettings } from './trust/settings.ts'
import type { TrustControl } from './trust/trust.ts'
import type { GatewayServer } from './upstreams/entry.ts'

/** An entry that clients see. */
export interface OfferedName {
  /** What it is. */
  readonly kind: 'tool' | 'resource' | 'template' | 'prompt'
  /** The exposed name, or address of a resource. */
  readonly name: string
  /** The name of the upstream. */
  readonly upstream: string
  /** Its name at the upstream. */
  readonly own: string
}

/** The state of an upstream. */
export interface UpstreamStatus {
  /** The name of the upstream. */
  readonly name: string
  /** The state of its connection. */
  readonly status: ServerStatus
  /** Why it is not connected. */
  readonly why?: Why | undefined
  /** The revision that it speaks, while it is connected. */
  readonly revision?: RevisionId | undefined
  /** How it is reached; undefined where a program hands over the connection. */
  readonly carrier?: 'stdio' | 'http' | 'websocket' | undefined
  /** The sizes of its lists; `resources` includes templates. */
  readonly tools: number
  /** The number of resources and resource templates. */
  readonly resources: number
  /** The number of prompts. */
  readonly prompts: number
  /** How many of its tool definitions are held until they are approved. */
  readonly held: number
  /** What of it cannot be offered, and why. */
  readonly left: readonly Why[]
}

/** The effect of a reload. */
export interface Reloaded {
  /** Upstreams that were added, removed and reconnected; others were not touched. */
  readonly started: readonly string[]
  /** Upstreams that were removed. */
  readonly stopped: readonly string[]
  /** Upstreams that were reconnected, because their settings have changed. */
  readonly restarted: readonly string[]
  /** Changed options that need a restart. */
  readonly pending: readonly string[]
}

/** A running gateway, made by `createGateway`: the server that clients connect to, its upstreams, and the controls of the operator. */
export interface Gateway extends TrustControl {
  /** The server that clients connect to. */
  readonly server: Server
  /** Serves a web-standard request. */
  readonly fetch: FetchHandler
  /** Listens for HTTP. Throws where it would be open to others without `auth`. */
  listen(options?: ServeHttpOptions): Promise<Listening>
  /** Serves one client on standard input and output; settles when it disconnects. */
  stdio(): Promise<void>
  /** The state of each upstream, in config order. */
  upstreams(): readonly UpstreamStatus[]
  /** Everything that is offered now, with its origin. */
  names(): readonly OfferedName[]
  /** Settles when each upstream was listed or failed once. */
  ready(): Promise<void>
  /** Reconnects an upstream that is down, without waiting. */
  retry(upstream: string): void
  /**
   * Applies other options, or the current content of its file. All are checked before anything changes: on a mistake it throws and nothing
   * changes. Clients stay connected, except those whose token was removed or changed, or belongs to no client any more: their
   * connections, sessions, streams and calls end.
   */
  reload(options?: GatewayOptions): Promise<Reloaded>
  /** Drains, then closes all connections and stops the processes of upstreams. */
  close(): Promise<void>
  /** Same as `close()`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void>
}

// Options. Every option has a default.

/** A server whose command or address differs from the pinned one. */
export type LaunchChange = Pick<HeldLaunch, 'id' | 'upstream' | 'changes'>

/** The options of `createGateway`. */
export interface GatewayOptions extends TrustSettings {
  /** A file with these options, in YAML or JSON. Options given here take precedence. */
  readonly config?: string
  /** The upstreams by name: a URL, a command, or either of them with more settings. */
  readonly servers?: Readonly<Record<string, GatewayServer>>
  /**
   * The name that clients see, 1 to 100 characters.
   * @default vivarium-gateway
   * @minLength 1
   * @maxLength 100
   */
  readonly name?: string
  /** The version that clients see. By default that of this package. */
  readonly version?: string
  /** Instructions for the model, which clients get when they connect. By default none. */
  readonly instructions?: string
  /** Revisions that clients may speak. Default: all. */
  readonly revisions?: readonly RevisionId[]
  /** Seals tokens; the first is used, the others are still accepted. Replicas need the same one, and a shared store. */
  readonly secret?: string | readonly string[]
  /** The store, as an object or a URL. Default: in memory. */
  readonly store?: string | Store
  /**
   * How long a client may take to answer a question of an upstream.
   * @default 10m
   */
  readonly askTimeout?: Duration
  /**
   * How long lists, and calls of unknown names, wait after the start until all upstreams were listed.
   * @default 5s
   */
  readonly startWait?: Duration
  /**
   * How long running calls may take when the gateway closes.
   * @default 5s
   */
  readonly drain?: Duration
  /** Where `gateway.listen()` listens. Default: loopback, any free port. */
  readonly listen?: ListenPlace
  /** Limits on what clients send. If `frameBytes` is given, it also limits what upstreams send; otherwise these may send 16 MiB. */
  readonly limits?: NonNullable<ServerOptions['limits']>
  /** Capacity at each upstream, for all clients together; one client gets at most as much as it leaves free. */
  readonly shares?: ShareOptions
  /**
   * Which names of tools and prompts start with the name of their upstream: all (`prefixed`), or only those that two upstreams share.
   * @default short
   */
  readonly names?: 'prefixed' | 'short'
  /** Where log entries go. */
  readonly log?: LogOption
  /** Called with every trace event. */
  readonly onTrace?: (event: string, detail: unknown) => void
  /** For tests: time and timers. Default: the real clock. */
  readonly clock?: Clock
  /** Tokens of sign-ins at upstreams. Default: the file in which `vivarium` keeps those of its user. */
  readonly tokens?: TokenStorage
  /**
   * Called with what waits for the operator (calls, tools and launches that need approval) and with audit entries that could not be
   * written. Default: written to the log as errors.
   */
  readonly onNotice?: (notice: GatewayNotice) => void
  /**
   * Asked once about a server whose entry in the file of `config` has another command or address than before; the server is held until
   * the answer. Default: the change is applied and `onNotice` is called. Changes in included files are always held.
   */
  readonly onLaunchChanged?: (launch: LaunchChange) => Awaitable<boolean>
  /**
   * Called with each entry of the audit log at once, before it is stored, also with `audit: false`. `more.ms` says how long a call took.
   * Entries of other processes, and answers to approvals, are only in the log.
   */
  readonly onAuditEntry?: (entry: GatewayAuditEntry) => void
  /** Called with each log record from level `info` on, without secrets, whatever `log` writes. */
  readonly onLog?: (record: LogRecord) => void
  /** Called with the standard error of command servers. Default: discarded. */
  readonly onStderr?: (server: string, line: string) => void
}
