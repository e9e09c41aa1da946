/** What a gateway may be told. Every option has a default. */
import type { Clock } from '../core/clock.ts'
import type { Duration } from '../core/duration.ts'
import type { LogOption } from '../core/log-trace.ts'
import type { ServerOption } from '../host/servers/entry.ts'
import type { RevisionId } from '../revisions/index.ts'
import type { ServerOptions } from '../server/options.ts'
import type { Store } from '../stores/store.ts'
import type { ListenPlace } from './config/frame.ts'
import type { TrustSettings } from './trust/settings.ts'

export interface GatewayOptions extends TrustSettings {
  /** A file that says all of this: YAML or JSON. What is given here stands before what it says. */
  readonly config?: string
  /** The servers behind it, by name: a URL, a command, or that with more about it. */
  readonly servers?: Readonly<Record<string, ServerOption>>
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
  /** Where `gateway.listen()` listens. Default: loopback, any port that is free. */
  readonly listen?: ListenPlace
  readonly limits?: ServerOptions['limits']
  readonly log?: LogOption
  readonly onTrace?: (event: string, detail: unknown) => void
  readonly clock?: Clock
  /** Told what a server that is a command writes on standard error. Default: it is not shown. */
  readonly onStderr?: (server: string, line: string) => void
}
