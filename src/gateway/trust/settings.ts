/** The trust settings of a gateway (auth, clients, rules, pins, audit): plain data, as in a config file. */
import type { OAuthResourceOptions } from '../../auth/resource/options.ts'
import type { Duration } from '../../core/clock.ts'
import { picked } from '../../jsonrpc/message.ts'
import type { GatewayAudit } from '../../policy/audit/gateway-audit.ts'
import type { PinMode } from '../../policy/pins/pins.ts'
import type { WrittenRule } from '../../policy/rules/call-policy.ts'
import type { Otherwise, Patterns } from '../../policy/rules/rule.ts'

/** One fixed token per client, by client name. */
interface FixedTokenSettings {
  readonly tokens: Readonly<Record<string, string>>
  /** The URL by which clients reach the gateway. Required to listen on an address that is not loopback. */
  readonly resource?: string
}

/** Accepted tokens: those of an OAuth authorization server, or fixed ones. */
export type AuthSettings = Omit<OAuthResourceOptions, 'verify'> | FixedTokenSettings

/** A quota per period, for all callers of a client together. */
interface ClientBudget {
  /** Either units or calls. */
  readonly units?: number
  readonly calls?: number
  /** The period. */
  readonly per: Duration
}

/**
 * A named client. A caller without a token is `local` on a pipe or in memory and `anonymous` over HTTP; one whose token matches no client is
 * `unlisted`. As soon as clients are configured, a caller that is none of them sees nothing and its requests are refused. In patterns
 * `*` stands for any characters.
 */
interface GatewayClientSettings {
  /** Subjects of its tokens. */
  readonly principals?: Patterns
  /** OAuth clients that its tokens were issued to. */
  readonly oauthClients?: Patterns
  /** Upstreams that it sees. Default: all. */
  readonly upstreams?: Patterns
  /** Tools that it sees, as `server/tool`; `!` excludes. Default: all. */
  readonly tools?: Patterns
  /** Resources that it sees, as `server/address`; `!` excludes. Default: all of upstreams whose tools it sees all of. */
  readonly resources?: Patterns
  /** Prompts that it sees, as `server/prompt`; `!` excludes. Default: all of upstreams whose tools it sees all of. */
  readonly prompts?: Patterns
  /** What it may spend. */
  readonly budget?: ClientBudget | readonly ClientBudget[]
}

/** The settings of a gateway that are about trust. */
export interface TrustSettings {
  /** Accepted tokens. Without it callers are anonymous. */
  readonly auth?: AuthSettings
  /** Clients by name. */
  readonly clients?: Readonly<Record<string, GatewayClientSettings>>
  /** Order does not matter: `deny` wins, then the more specific rule, then the more careful one. */
  readonly rules?: readonly WrittenRule[]
  /** The verdict where no rule applies. Default `allow`. */
  readonly otherwise?: Otherwise
  /**
   * Which tools a caller finds in lists: those that it can call, or all that its client sees, including tools that rules always refuse and
   * tools whose scopes its token lacks. Default `callable`.
   */
  readonly listed?: 'callable' | 'all'
  /** What happens to a tool whose definition differs from the pinned one: hidden until approved, reported, or nothing. Default `block`. */
  readonly pins?: PinMode
  /** Whether calls are written to the audit log. Default true. */
  readonly audit?: boolean | GatewayAudit
  /** How long a call waits for the operator before it is refused and has to be repeated. Default: not at all. */
  readonly approvals?: { readonly wait?: Duration }
  /** Whether results name their upstream and tool, for clients that declare provenance. Default true. */
  readonly provenance?: boolean
  /** Publishes notifications of upstreams as events; an object names resources that are watched even if no client does. */
  readonly events?: boolean | Readonly<Record<string, readonly string[]>>
}

/** The members of a config file that are trust settings. */
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

/** The trust settings among other options. */
export function trustOf(options: TrustSettings): TrustSettings {
  return picked(options, ...trustMembers)
}

/** Settings that a reload can change; of `auth`, only fixed tokens. */
export const changeable: ReadonlySet<keyof TrustSettings> = new Set([
  'clients',
  'rules',
  'otherwise',
  'listed',
  'pins',
  'approvals',
])

/** The names of callers that match no client: on a pipe, over HTTP without a token, and with one. */
export const unnamed = { pipe: 'local', http: 'anonymous', token: 'unlisted' } as const
