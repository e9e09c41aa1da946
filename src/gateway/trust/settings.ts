/** The trust settings of a gateway (auth, clients, rules, pins, audit): plain data, as in a config file. */
import type { OAuthResourceOptions } from '../../auth/resource/options.ts'
import type { Duration } from '../../core/clock.ts'
import { picked } from '../../jsonrpc/message.ts'
import type { GatewayAudit } from '../../policy/audit/gateway-audit.ts'
import type { PinMode } from '../../policy/pins/pins.ts'
import type { WrittenRule } from '../../policy/rules/call-policy.ts'
import type { Otherwise } from '../../policy/rules/otherwise.ts'

/** Fixed tokens, for clients that you give a token yourself. */
interface FixedTokenSettings {
  /**
   * One token per client, by client name. A token has at least 16 characters; use variables instead of writing tokens into the file.
   * @minLength {shortestToken}
   * @example {"ci": "${CI_TOKEN}"}
   */
  readonly tokens: Readonly<Record<string, string>>
  /**
   * The URL by which clients reach the gateway: https, or http on loopback. It is required to listen on an address that is not loopback.
   * @pattern ^https://[^?#@\s]+$|^http://(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?(/[^?#\s]*)?$
   * @example https://mcp.example.com/mcp
   */
  readonly resource?: string
}

/** The fewest characters of a fixed token. */
export const shortestToken = 16

/** Accepted tokens: those of an OAuth authorization server, or fixed ones. */
export type AuthSettings = IssuerSettings | FixedTokenSettings

/** An OAuth authorization server whose tokens are accepted. */
type IssuerSettings = Omit<OAuthResourceOptions, 'verify'>

/**
 * A quota per window, for all callers of a client together. It counts either units or calls.
 * @exactlyOne units calls
 */
interface ClientBudget {
  /**
   * Units of cost that may be spent in a window.
   * @exclusiveMinimum 0
   * @maximum 1000000000
   */
  readonly units?: number
  /**
   * Calls that may be made in a window.
   * @exclusiveMinimum 0
   * @maximum 1000000000
   */
  readonly calls?: number
  /**
   * The length of the window.
   * @example 1h
   */
  readonly per: Duration
}

/**
 * One pattern or a list of patterns. In a pattern `*` stands for any characters.
 * @title patterns
 * @minLength 1
 * @maxLength 256
 */
type ClientPatterns = string | readonly string[]

/**
 * A named client. A caller without a token is `local` on a pipe or in memory and `anonymous` over HTTP; one whose token matches no client is
 * `unlisted`. As soon as clients are configured, a caller that is none of them sees nothing and its requests are refused.
 */
interface GatewayClientSettings {
  /**
   * Subjects of its tokens. With fixed tokens the token itself says which client calls.
   * @example ["ann", "bob"]
   */
  readonly principals?: ClientPatterns
  /** OAuth clients that its tokens were issued to. */
  readonly oauthClients?: ClientPatterns
  /**
   * Upstreams that it sees. By default all.
   * @example ["bank", "wiki"]
   */
  readonly upstreams?: ClientPatterns
  /**
   * Tools that it sees, as `server/tool`; a pattern that begins with `!` excludes. By default all.
   * @pattern {namesServer}
   * @example ["bank/*", "!bank/close"]
   */
  readonly tools?: ClientPatterns
  /**
   * Resources that it sees, as `server/URI`; a pattern that begins with `!` excludes. By default those of upstreams of which it sees all tools.
   * @pattern {namesServer}
   */
  readonly resources?: ClientPatterns
  /**
   * Prompts that it sees, as `server/prompt`; a pattern that begins with `!` excludes. By default those of upstreams of which it sees all tools.
   * @pattern {namesServer}
   */
  readonly prompts?: ClientPatterns
  /** What all callers of the client may spend together. By default there is no limit. */
  readonly budget?: ClientBudget | readonly ClientBudget[]
}

/** A pattern of something at a server: `server/name`, or with a star. */
export const namesServer = /[/*]/

/** When calls that need an approval are answered. */
interface ApprovalSettings {
  /**
   * How long a call waits for the operator's answer before it is refused and has to be repeated. By default it is refused at once.
   * @example 30s
   */
  readonly wait?: Duration
}

/** The settings of a gateway that are about trust. */
export interface TrustSettings {
  /** Who may call: the tokens that are accepted. Without it callers are anonymous. */
  readonly auth?: AuthSettings
  /** Clients by name: what each of them sees and may spend. Without it every caller sees everything. */
  readonly clients?: Readonly<Record<string, GatewayClientSettings>>
  /**
   * Rules about calls. Their order does not matter: `deny` wins, then the narrower rule, then the stricter effect.
   * @default []
   */
  readonly rules?: readonly WrittenRule[]
  /**
   * The verdict where no rule applies: one for all kinds of requests, or one per kind.
   * @default allow
   */
  readonly otherwise?: Otherwise
  /**
   * Which tools a caller finds in lists: those that it can call, or all that its client sees, including tools that rules always refuse and
   * tools whose scopes its token lacks.
   * @default callable
   */
  readonly listed?: 'callable' | 'all'
  /**
   * What happens to a tool whose definition differs from the one that was first seen, and to a server whose command or address does: it is
   * held until it is approved, a warning is logged, or nothing.
   * @default block
   */
  readonly pins?: PinMode
  /**
   * Whether calls are written to the audit log; an object says what the entries hold and how long they are kept.
   * @default true
   */
  readonly audit?: boolean | GatewayAudit
  /** How calls wait for the operator's approval. */
  readonly approvals?: ApprovalSettings
  /**
   * Whether results name their upstream and tool, for clients that declare provenance.
   * @default true
   */
  readonly provenance?: boolean
  /**
   * Whether notifications of upstreams are published as events. An object lists, by upstream, URIs of resources that are watched even if
   * no client watches them.
   * @default false
   * @example {"wiki": ["note://1"]}
   * @maxItems {mostWatched}
   */
  readonly events?: boolean | Readonly<Record<string, readonly string[]>>
}

/** The most resources that `events` may list per upstream. */
export const mostWatched = 1_000

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
