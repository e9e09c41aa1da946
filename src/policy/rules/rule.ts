/**
 * The rule language of hosts and gateways: what rules are made of, and what a policy is asked. Rules are plain data, so that they lie in
 * a file and can be compared. Both places read every rule; a condition about something that a place does not know never holds there.
 */
import type { Duration } from '../../core/clock.ts'
import { quoted } from '../../core/suggestion.ts'
import type { Scope, ScopeLists } from '../../features/live/scopes/messages.ts'
import type { Risk } from '../../features/reliability/confirmation/messages.ts'
import { clip } from '../../jsonrpc/limits.ts'
import type { Otherwise } from './otherwise.ts'
import type { Hours } from './read.ts'

/** Every kind of request that a policy decides about. */
export const kinds = [
  'push',
  'infer',
  'scope',
  'tool',
  'resource',
  'prompt',
  'sample',
  'elicit',
  'roots',
  'set',
  'inject',
  'definition',
] as const
/**
 * A kind of request. A gateway decides about `tool`, `resource` and `prompt`, a host about `tool` and all others.
 * @title kind
 */
export type Kind = (typeof kinds)[number]

/** What a rule can name by its own name: one of each is called or read. */
export const targets = ['tool', 'resource', 'prompt'] as const
/** A tool that is called, a resource or a prompt that is read. */
export type TargetKind = (typeof targets)[number]

/** The more careful first. */
export const effects = ['deny', 'ask', 'hold', 'coalesce', 'allow'] as const
/** The effect of a rule. */
export type Effect = (typeof effects)[number]

/** A request that a policy decides about. */
export interface Asked {
  /** The kind of request. */
  readonly kind: Kind
  /** The server that makes the request, or that is called. */
  readonly server: string
  /** The feature set of the request, if it has one. */
  readonly featureSet?: string
  /** The tool that is called. */
  readonly tool?: string
  /** The URI of a resource that is read, as its server lists it. */
  readonly resource?: string
  /** The prompt that is fetched. */
  readonly prompt?: string
  /** The tags of an event. */
  readonly tags?: readonly string[]
  /** The origin of an event. */
  readonly origin?: Readonly<Record<string, unknown>>
  /** The scope that is requested. */
  readonly scope?: Scope
  /** The arguments of a tool, or the messages of an inference. An approval applies to exactly these. */
  readonly payload?: unknown
  /** The SHA-256 digest of the pinned definition of the tool. An approval applies to exactly this definition. */
  readonly definition?: string
  /** Whether the pinned definition states that the tool changes nothing. */
  readonly readOnly?: boolean
  /** What started the turn. Absent outside of a turn. */
  readonly begunBy?: BegunBy
  /** The client of a gateway, by its name in the settings. Absent in a host. */
  readonly client?: string
  /** The subject of the client's token. Absent in a host. */
  readonly principal?: string
  /** The conversation that the request belongs to. */
  readonly conversation?: string
  /** The inference that the request belongs to, for the audit log. */
  readonly inferenceId?: string
  /** The id of the event that the request belongs to. */
  readonly eventId?: string
}

/**
 * One pattern or several, of which one must match. In a pattern `*` stands for any characters.
 * @title patterns
 * @maxLength 256
 * @minItems 1
 */
export type Patterns = string | readonly string[]

/** How many calls or events in a window, counted separately for each server and there for each client, feature set or origin. */
export interface RuleRate {
  /**
   * How many go through in a window before the rule applies.
   * @integer
   * @minimum 1
   */
  readonly count: number
  /**
   * The length of the window.
   * @minimum 1
   * @example 1m
   */
  readonly per: Duration
  /**
   * What is counted separately: each client of a gateway at a server (a host is a single client), all clients of a server together, each
   * feature set, or each origin.
   * @default client
   */
  readonly by?: CountScope
}

/** By what rates can be counted. */
export const counted = ['client', 'server', 'featureSet', 'origin'] as const
/** What is counted separately. `server`: all clients of a gateway together. */
type CountScope = (typeof counted)[number]

/** The conditions of a rule. All of them must hold; a condition that the host or gateway does not know never holds there. */
export interface When {
  /**
   * The kind of the request: `tool`, `push` or another key of `otherwise`. By default any.
   * @minItems 1
   * @example tool
   */
  readonly kind?: Kind | readonly Kind[]
  /**
   * The server that makes the request, or whose tool, resource or prompt is used, by its name in the config.
   * @example files
   */
  readonly server?: Patterns
  /**
   * The feature set of MCP Live that the request belongs to. Known in hosts only.
   * @example memory.*
   */
  readonly featureSet?: Patterns
  /**
   * The name of the tool at its server. Of `tool`, `resource` and `prompt` one must match.
   * @example delete_*
   */
  readonly tool?: Patterns
  /**
   * The URI of a resource that is read or watched, as its server lists it. Known in gateways only, for rules that allow or deny.
   * @example note://*
   */
  readonly resource?: Patterns
  /** The name of a prompt at its server. Known in gateways only, for rules that allow or deny. */
  readonly prompt?: Patterns
  /**
   * Arguments of a tool call by name. Dots lead into objects, and a list stands for each of its items. A rule that allows must match all
   * texts at that place, any other rule one of them.
   * @example {"path": "/etc/*"}
   */
  readonly arguments?: Readonly<Record<string, Patterns>>
  /** A tag of an event. Known in hosts only. */
  readonly tags?: Patterns
  /**
   * Members of the origin of an event by name; dots lead into objects. Known in hosts only.
   * @example {"author.bot": "true"}
   */
  readonly origin?: Readonly<Record<string, Patterns>>
  /**
   * What started the turn: `user`, or `event/SERVER`. If several servers took part, a rule that allows must match all of them, any other
   * rule one. Known in hosts only.
   * @pattern ^(user|\*|event/.*)$
   * @example event/*
   */
  readonly begunBy?: Patterns
  /** The calling client, by its name under `clients`. Known in gateways only. */
  readonly client?: Patterns
  /** The subject of the caller's token. Known in gateways only. */
  readonly principal?: Patterns
  /** The times of the day at which the rule applies. By default at any time. */
  readonly hours?: Hours
  /** The rate above which the rule applies. By default at any rate. */
  readonly above?: RuleRate
  /**
   * How many requests that match the other conditions must be running for the rule to apply. Known in hosts only.
   * @integer
   * @minimum 1
   */
  readonly running?: number
}

/**
 * A rule: what it is about, and what happens then.
 * @atLeastOne do dedupe cost scopes timeout idempotent
 * @requiresWhen do=coalesce within
 */
export interface Rule extends CallSettings {
  /**
   * The name of the rule, which refusals, questions and the audit log repeat. It must be unique.
   * @minLength 1
   * @example careful
   */
  readonly name: string
  /**
   * The effect: the request is allowed (`allow`), the user or operator is asked (`ask`), it is refused (`deny`), it waits (`hold`), or
   * events become one turn (`coalesce`). A rule without `do` only adds settings to tool calls.
   * @example ask
   */
  readonly do?: Effect
  /** The conditions. A rule without conditions is about everything. */
  readonly when?: When
  /**
   * The time from which on the rule no longer applies: ISO 8601, or milliseconds since 1970. By default it always applies.
   * @example 2027-01-31T00:00:00Z
   */
  readonly until?: string | number
  /**
   * With `hold`: how long the request waits. By default until the `hours` of the rule are over or its rate allows it.
   * @example 10m
   */
  readonly for?: Duration
  /**
   * With `coalesce`: events that come within this time become one turn.
   * @example 30s
   */
  readonly within?: Duration
  /**
   * With `coalesce`: what the events of one turn have in common.
   * @default origin
   */
  readonly by?: CountScope
  /**
   * The text of the question or refusal, instead of the standard one. In a gateway `{name}` stands for the argument of that name.
   * @example Close {id}?
   */
  readonly message?: string
  /** What a refused caller can do. */
  readonly fix?: string
}

/** What a gateway adds to the tool calls that a rule is about. A host ignores these settings. */
export interface CallSettings {
  /**
   * With `ask`: who answers. `operator`: the operator of the gateway. `client`: the user of the calling client, as that client reports it; a
   * client can approve without asking its user, so use it only for clients that you trust. `either`: the client if it can ask its user, else the
   * operator.
   * @default operator
   */
  readonly approver?: 'client' | 'operator' | 'either'
  /** With `ask`: the risk level of the call, which the question shows. */
  readonly risk?: Risk
  /** With `ask`: how long a call waits for the operator. By default as long as `approvals.wait` says. */
  readonly wait?: Duration
  /**
   * Equal calls of one caller within this time are executed once. Calls of tools that only read are not affected.
   * @example 30s
   */
  readonly dedupe?: Duration
  /** What a call costs. By default what its server says. */
  readonly cost?: CallCost
  /**
   * Scopes that the caller's token must have.
   * @example ["tickets:write"]
   */
  readonly scopes?: readonly string[]
  /** How long a call may take. By default as long as `timeout` of its server's entry says. */
  readonly timeout?: Duration
  /** Whether a second equal call has no further effect, whatever the server says. By default what its server says. */
  readonly idempotent?: boolean
}

/** The cost of a call. */
interface CallCost {
  /**
   * How many units a call costs.
   * @minimum 0
   */
  readonly units: number
  /** The name of the unit. */
  readonly label?: string
}

/** Settings for one server: feature sets, scopes and uses. */
export interface ServerRules {
  /**
   * Feature sets to enable without asking. The user is asked about feature sets that are in neither list.
   * @default []
   * @example ["memory.*"]
   */
  readonly enable?: readonly string[]
  /**
   * Feature sets to disable; this takes precedence over `enable` and over every rule that allows.
   * @default []
   */
  readonly disable?: readonly string[]
  /**
   * What feature sets may do beyond the uses that they declare, by feature set; for servers that declare too little.
   * @example {"heartbeat": ["pushEvents"]}
   */
  readonly uses?: Readonly<Record<string, readonly string[]>>
  /**
   * What scoped feature sets may act on, by feature set.
   * @example {"files.edit": {"whitelist": ["/project/**"]}}
   */
  readonly scopes?: Readonly<Record<string, ScopeLists>>
}

/** The policy of a host: what servers and tools may do. */
export interface PolicyRules {
  /**
   * The rules. Their order does not matter: `deny` wins, then the narrower rule, then the stricter effect.
   * @default []
   * @maxItems {ruleLimit}
   */
  readonly rules?: readonly Rule[]
  /**
   * Settings by server. In names `*` stands for any characters.
   * @default {}
   */
  readonly servers?: Readonly<Record<string, ServerRules>>
  /** The verdict where no rule applies. */
  readonly otherwise?: Otherwise
}

/** The most rules of a policy. */
export const ruleLimit = 1_000

// Who began a turn: the user, or an event that a server pushed. What the turn may do without a question depends on it: a server that
// can make the model act must not thereby get the rights of another.

/** What started a turn: the user, or an event of a server. */
export type BegunBy =
  | {
      /** Who began it. */
      readonly kind: 'user'
    }
  | {
      /** Who began it. */
      readonly kind: 'event'
      /** The server that sent the event. */
      readonly server: string
      /** The feature set that sent the event. */
      readonly featureSet: string
      /** The id of the event. */
      readonly eventId: string
      /** Other servers whose events led to this one, through turns that they began. */
      readonly through?: readonly string[]
    }

/** Every server that had a part in beginning the turn; none where the user began it. */
export function initiatingServers(begunBy: BegunBy | undefined): readonly string[] {
  if (begunBy?.kind !== 'event') return []
  return [...new Set([begunBy.server, ...(begunBy.through ?? [])])].sort()
}

/** As rules name it: `user`, or `event/SERVER` for every server that had a part in it. Nothing where there is no turn. */
export function begunByNames(begunBy: BegunBy | undefined): readonly string[] {
  if (begunBy === undefined) return []
  return begunBy.kind === 'user' ? ['user'] : initiatingServers(begunBy).map(server => `event/${server}`)
}

/** For sentences; empty where the user began the turn, or there is none. */
export function begunByText(begunBy: BegunBy | undefined): string {
  if (begunBy?.kind !== 'event') return ''
  const through = initiatingServers(begunBy).filter(server => server !== begunBy.server)
  const before =
    through.length === 0 ? '' : `, which was caused by an event of ${through.map(server => clip(server)).join(' and ')}`
  return ` in a turn that was started by the event ${quoted(begunBy.eventId)} of ${clip(begunBy.server)}${before}`
}
