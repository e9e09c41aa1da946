/** What a gateway may be told of trust: who may call what, what is asked, paid, pinned and written down. Plain data, as it lies in a file. */
import type { OAuthOptions } from '../../auth/resource/options.ts'
import type { Duration } from '../../core/duration.ts'
import type { Risk } from '../../features/reliability/confirmation/messages.ts'
import type { Hours, Rate } from '../../host/policy/rule.ts'

type Some = string | readonly string[]

/** One token for each client, by its name, kept by both sides. */
export interface FixedTokenSettings {
  readonly tokens: Readonly<Record<string, string>>
  /** The URL by which clients reach the gateway. Needed to listen on an address that is not loopback. */
  readonly resource?: string
}

/** Whose tokens are taken: those of an OAuth authorization server, or one for each client. */
export type AuthSettings = Omit<OAuthOptions, 'verify'> | FixedTokenSettings

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
export interface ClientSettings {
  /** Subjects of tokens. */
  readonly principals?: Some
  /** The OAuth clients that tokens were given to. */
  readonly oauthClients?: Some
  /** Servers whose tools, resources and prompts it sees. Default all. */
  readonly upstreams?: Some
  /** Tools that it sees, each as `server/tool`; what begins with `!` it does not. Default all. */
  readonly tools?: Some
  /** Resources that it sees, each as `server/address`, in the same way. Default: all of servers whose every tool it sees. */
  readonly resources?: Some
  /** Prompts that it sees, each as `server/prompt`, in the same way. Default: all of servers whose every tool it sees. */
  readonly prompts?: Some
  readonly budget?: ClientBudget | readonly ClientBudget[]
}

/** All conditions must hold; of several texts one must fit. What it says holds for those calls. */
export interface GatewayRule {
  /** Names it in every refusal, question and note. */
  readonly name: string
  readonly upstream?: Some
  /** The tool's own name, as its server calls it. Of a rule that names no tool, resource or prompt, `allow` and `deny` are about all three. */
  readonly tool?: Some
  /** Addresses of resources, as their server lists them: reading and watching them. Only allowed or refused. */
  readonly resource?: Some
  /** The prompt's own name. Only allowed or refused. */
  readonly prompt?: Some
  readonly client?: Some
  readonly principal?: Some
  /** Arguments by name; dots lead into objects. Of a list one member must fit, for a rule that allows all of them. */
  readonly args?: Readonly<Record<string, Some>>
  readonly hours?: Hours
  /** Only what goes beyond it, counted for each upstream, and there for each client or for all of them together. Default `client`. */
  readonly above?: Omit<Rate, 'by'> & { readonly by?: 'client' | 'all' }
  /** From then on it counts no more: ISO 8601. */
  readonly until?: string
  readonly do?: 'allow' | 'deny' | 'ask'
  /**
   * Of `ask`, who answers. `operator`: whoever runs the gateway. `client`: the user of the calling client, as that client reports it; a
   * client can say yes by itself, so use it only for clients that you trust. `either`: the client where it can ask its user, else the
   * operator. Default `operator`.
   */
  readonly by?: 'client' | 'operator' | 'either'
  /** What is told or asked instead of our own words; `{name}` stands for that argument. */
  readonly message?: string
  readonly fix?: string
  readonly risk?: Risk
  /** Of `ask`: how long a call waits for whoever runs the gateway. Default: `approvals.wait`. */
  readonly wait?: Duration
  /** Equal calls of one caller within this time are one. Not of tools that only read. */
  readonly dedupe?: Duration
  /** What a call costs. Default: what its server says. */
  readonly cost?: { readonly units: number; readonly label?: string }
  /** Scopes that the caller's token must have. */
  readonly scopes?: readonly string[]
  /** How long a call may take. */
  readonly timeout?: Duration
  /** Done twice it has the same effect as done once, whatever its server says. */
  readonly idempotent?: boolean
}

/** How calls are written down. */
export interface GatewayAudit {
  /** How long lines are kept. Default 90 days. */
  readonly keep?: Duration
  /** How many at most, roughly. Default 1,000,000. */
  readonly lines?: number
  /** Arguments too, as far as a line holds them and without what looks like a secret. Default false: a digest of them. */
  readonly arguments?: boolean
  /** A call is made only when it is written that it begins: while nothing can be written, calls are refused. Default false. */
  readonly must?: boolean
}

export interface TrustSettings {
  readonly auth?: AuthSettings
  readonly clients?: Readonly<Record<string, ClientSettings>>
  readonly rules?: readonly GatewayRule[]
  /** What happens where no rule says anything. Default `allow`. */
  readonly otherwise?: 'allow' | 'ask' | 'deny'
  /**
   * Which tools a caller finds in lists: those that it can call at all, or all that its client sees, also what rules refuse it
   * always and what needs scopes that its token lacks. Default `callable`.
   */
  readonly listed?: 'callable' | 'all'
  /** What becomes of a tool whose definition is not the one that was first seen: hidden until approved, told, or nothing. Default `block`. */
  readonly pins?: 'block' | 'warn' | 'off'
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
