/** What a gateway may be told of trust: who may call what, what is asked, paid, pinned and written down. Plain data, as it lies in a file. */
import type { OAuthResourceOptions } from '../../auth/resource/options.ts'
import type { Duration } from '../../core/clock.ts'
import type { GatewayAudit } from '../../policy/audit/call-notes.ts'
import type { PinMode } from '../../policy/pins/pins.ts'
import type { WrittenRule } from '../../policy/rules/call-policy.ts'
import type { Otherwise, Patterns } from '../../policy/rules/rule.ts'

/** One token for each client, by its name, kept by both sides. */
interface FixedTokenSettings {
  readonly tokens: Readonly<Record<string, string>>
  /** The URL by which clients reach the gateway. Needed to listen on an address that is not loopback. */
  readonly resource?: string
}

/** Whose tokens are taken: those of an OAuth authorization server, or one for each client. */
export type AuthSettings = Omit<OAuthResourceOptions, 'verify'> | FixedTokenSettings

/** So much in each period, for all of a client together. */
export interface ClientBudget {
  readonly units?: number
  readonly calls?: number
  readonly per: Duration
}

/**
 * A name for callers. Who has no token is `local` on a pipe and in memory, and `anonymous` over HTTP; whose token no client names is
 * `unlisted`. As soon as clients are given, a caller that is none of them sees nothing, and each of its requests is refused. In texts
 * a star stands for any characters.
 */
export interface GatewayClientSettings {
  /** Subjects of tokens. */
  readonly principals?: Patterns
  /** The OAuth clients that tokens were given to. */
  readonly oauthClients?: Patterns
  /** Servers whose tools, resources and prompts it sees. Default all. */
  readonly upstreams?: Patterns
  /** Tools that it sees, each as `server/tool`; what begins with `!` it does not. Default all. */
  readonly tools?: Patterns
  /** Resources that it sees, each as `server/address`, in the same way. Default: all of servers whose every tool it sees. */
  readonly resources?: Patterns
  /** Prompts that it sees, each as `server/prompt`, in the same way. Default: all of servers whose every tool it sees. */
  readonly prompts?: Patterns
  readonly budget?: ClientBudget | readonly ClientBudget[]
}

/** The settings of a gateway that are about trust. */
export interface TrustSettings {
  readonly auth?: AuthSettings
  readonly clients?: Readonly<Record<string, GatewayClientSettings>>
  /** Their order never matters: a `deny` beats all, else the narrower rule counts, else the more careful one. */
  readonly rules?: readonly WrittenRule[]
  /** What happens where no rule says anything. Default `allow`. */
  readonly otherwise?: Otherwise
  /**
   * Which tools a caller finds in lists: those that it can call at all, or all that its client sees, also what rules refuse it
   * always and what needs scopes that its token lacks. Default `callable`.
   */
  readonly listed?: 'callable' | 'all'
  /** What becomes of a tool whose definition is not the one that was first seen: hidden until approved, told, or nothing. Default `block`. */
  readonly pins?: PinMode
  /** Whether every call is written down. Default true. */
  readonly audit?: boolean | GatewayAudit
  /** How long calls wait for whoever runs the gateway, before they are refused and have to be made again. Default not at all. */
  readonly approvals?: { readonly wait?: Duration }
  /** Whether results say which server and tool they are from, to clients that want to know. Default true. */
  readonly provenance?: boolean
  /** Resources, by server, whose updates become events whether a client watches them or not. */
  readonly events?: boolean | Readonly<Record<string, readonly string[]>>
}

/** The members of a file that are about trust. */
export const trustMembers = [
  'auth',
  'clients',
  'rules',
  'otherwise',
  'listed',
  'pins',
  'audit',
  'approvals',
  'provenance',
  'events',
] as const satisfies readonly (keyof TrustSettings)[]

/** Those that may be others while the gateway runs; of `auth` fixed tokens. */
export const changeable: ReadonlySet<keyof TrustSettings> = new Set([
  'clients',
  'rules',
  'otherwise',
  'listed',
  'pins',
  'approvals',
])

/** The names of callers that no client names: on a pipe, over HTTP without a token, and with one. */
export const unnamed = { pipe: 'local', http: 'anonymous', token: 'unlisted' } as const
