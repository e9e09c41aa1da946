/**
 * A gateway's file as it is written. `read.ts` and `own-settings.ts` read these keys, and the JSON Schema of the file is generated from these
 * types and their comments.
 */
import type { WrittenServer } from '../../host/config/written.ts'
import type { GatewayOptions } from '../gateway.ts'
import type { TrustSettings } from '../trust/settings.ts'
import type { UpstreamAuthOption } from '../upstreams/auth.ts'
import type { ConsoleSettings, ListenPlace, WrittenLimits } from './own-settings.ts'

/**
 * An upstream: a program to start, or a URL to connect to.
 * @nullable
 * @atLeastOne command url serverUrl httpUrl disabled
 * @atMostOne command url
 */
export interface WrittenUpstream extends WrittenServer {
  /** How the gateway authenticates at the upstream; for entries with a URL that is https, or on loopback. */
  readonly auth?: UpstreamAuthOption
  /**
   * Whether names of its tools and prompts start with the name of the upstream, or with a word of yours: up to 32 letters, digits, `_` and
   * `-`. By default only names that two upstreams share, or as `names` says.
   * @pattern {prefixForm}
   * @example true
   */
  readonly prefix?: boolean | string
  /**
   * Whether the upstream is left out, also one of this name in an included file. Nothing else in its entry is read then.
   * @default false
   */
  readonly disabled?: boolean
  /**
   * How long a request to the upstream may take without an answer or a sign of progress, in milliseconds.
   * @exclusiveMinimum 0
   * @maximum 86400000
   * @default 600000
   */
  readonly timeout?: number
  /** Read by hosts only; a gateway ignores it. */
  readonly autoApprove?: NonNullable<WrittenServer['autoApprove']>
  /** Read by hosts only; a gateway ignores it. */
  readonly alwaysAllow?: NonNullable<WrittenServer['alwaysAllow']>
  /** Read by hosts only; a gateway checks it and ignores it. */
  readonly live?: NonNullable<WrittenServer['live']>
  /** Read by hosts only; a gateway ignores it. */
  readonly events?: NonNullable<WrittenServer['events']>
}

/** A prefix that is a word. */
export const prefixForm = /^[A-Za-z0-9_-]{1,32}$/

/** The keys that only a gateway's entry has. */
export const upstreamKeys = ['auth', 'prefix'] as const satisfies readonly (keyof WrittenUpstream)[]

/**
 * A gateway's file: its upstreams, where it listens, and who may call what.
 * @atLeastOne include servers mcpServers
 */
export interface WrittenGateway
  extends Pick<GatewayOptions, 'name' | 'instructions' | 'askTimeout' | 'startWait' | 'drain' | 'shares' | 'names'>,
    TrustSettings {
  /** The JSON Schema of this file, for editors. In YAML a comment in the first line does the same. */
  readonly $schema?: string
  /**
   * Config files whose servers become upstreams: `.mcp.json` or those of other programs. A relative path starts from the folder of this
   * file, `~` is the home folder.
   * @default []
   * @minLength 1
   * @example ["~/.cursor/mcp.json"]
   */
  readonly include?: string | readonly string[]
  /**
   * Upstreams by name. An entry replaces an included one of the same name. A name has 1 to 128 characters.
   * @keys ^[\s\S]{1,128}$
   * @example {"wiki": {"url": "https://wiki.example.com/mcp"}}
   */
  readonly servers?: Readonly<Record<string, WrittenUpstream>>
  /**
   * Another spelling of `servers`.
   * @keys ^[\s\S]{1,128}$
   */
  readonly mcpServers?: Readonly<Record<string, WrittenUpstream>>
  /**
   * Where the gateway listens for HTTP; a number is the port.
   * @integer
   * @minimum 0
   * @maximum {lastPort}
   * @example {"port": 7420}
   */
  readonly listen?: number | ListenPlace
  /**
   * Where approvals, pins, the audit log and everything else is kept that must survive a restart: `memory:`, `sqlite:PATH` or
   * `postgres://…`. A relative path starts from the folder of this file.
   * @default memory:
   * @pattern {storeForm}
   * @example sqlite:.vivarium/gateway.db
   */
  readonly store?: string
  /**
   * Seals tokens that clients bring back: at least 32 characters, the same for all replicas. By default a random one, which is lost at
   * the end of the process.
   * @minLength {shortestSecret}
   * @example ${GATEWAY_SECRET}
   */
  readonly secret?: string
  /**
   * Whether `vivarium gateway` serves the web console, on 127.0.0.1 alone; an object says how. Read when the gateway starts.
   * @default false
   * @example {"port": 7425}
   */
  readonly console?: boolean | ConsoleSettings
  /** Limits on what clients send. If `frameBytes` is given, it also limits what upstreams send; otherwise these may send 16 MiB. */
  readonly limits?: WrittenLimits
}

/** The forms of a store. */
export const storeForm = /^(memory:$|sqlite:.|postgres(ql)?:\/\/)/
/** The last port. */
export const lastPort = 65_535
/** The fewest characters of a secret. */
export const shortestSecret = 32
/** The most characters of the gateway's name. */
export const longestName = 100

/** The keys of the file beside `$schema` and the trust settings. */
export const ownKeys = [
  'include',
  'servers',
  'mcpServers',
  'listen',
  'store',
  'secret',
  'name',
  'instructions',
  'askTimeout',
  'startWait',
  'drain',
  'limits',
  'shares',
  'names',
  'console',
] as const satisfies readonly (keyof WrittenGateway)[]
