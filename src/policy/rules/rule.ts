/**
 * The rule language of hosts and gateways: what rules are made of, and what a policy is asked. Rules are plain data, so that they lie in
 * a file and can be compared. Both places read every rule; a condition about something that a place does not know never holds there.
 */
import type { Duration } from '../../core/clock.ts'
import { quoted, type Why } from '../../core/suggestion.ts'
import type { Scope, ScopeLists } from '../../features/live/scopes/messages.ts'
import type { Risk } from '../../features/reliability/confirmation/messages.ts'
import { clip } from '../../jsonrpc/limits.ts'
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
 * What somebody wants: a push, an inference, a scope, a tool call, to read a resource or a prompt, what servers may ask for, a feature
 * set, an injection. A gateway decides about tools, resources and prompts, a host about all others and tools.
 */
export type Kind = (typeof kinds)[number]

/** What a rule can name by its own name: one of each is called or read. */
export const targets = ['tool', 'resource', 'prompt'] as const
/** A tool that is called, a resource or a prompt that is read. */
export type TargetKind = (typeof targets)[number]

/** The more careful first. */
export const effects = ['deny', 'ask', 'hold', 'coalesce', 'allow'] as const
/** What a rule does with what it is about. */
export type Effect = (typeof effects)[number]

/** What a policy is asked to decide. */
export interface Asked {
  readonly kind: Kind
  readonly server: string
  readonly featureSet?: string
  readonly tool?: string
  /** The address of a resource that is read, as its server lists it. */
  readonly resource?: string
  readonly prompt?: string
  readonly tags?: readonly string[]
  readonly origin?: Readonly<Record<string, unknown>>
  readonly scope?: Scope
  /** The arguments of a tool, the messages of an inference: what an approval is bound to. */
  readonly payload?: unknown
  /** SHA-256 over the definition of the tool as it was pinned: an approval is bound to it too. */
  readonly definition?: string
  /** The pinned definition says that the tool changes nothing. */
  readonly readOnly?: boolean
  /** Who began the turn; absent where there is none. */
  readonly begunBy?: BegunBy
  /** The client of a gateway that calls, by its name in the settings; absent in a host. */
  readonly client?: string
  /** The subject of that client's token; absent in a host. */
  readonly principal?: string
  readonly conversation?: string
  /** The inference and the event that it belongs to, for the audit: no answer is bound to them. */
  readonly inferenceId?: string
  readonly eventId?: string
}

/** What came of it; every refusal says why. */
export type Verdict =
  | { readonly do: 'allow'; readonly rule: string }
  | { readonly do: 'deny'; readonly why: Why; readonly retryAfterMs?: number }
  | { readonly do: 'ask'; readonly question: string; readonly digest: string; readonly rule: string }
  | { readonly do: 'hold'; readonly until: number; readonly why: Why }
  | { readonly do: 'coalesce'; readonly key: string; readonly withinMs: number; readonly rule: string }

/** One pattern or several, of which one must match; a star in it stands for any characters. */
export type Patterns = string | readonly string[]

/** So many in a time, counted apart for each server and there for each client, feature set or origin. */
export interface RuleRate {
  /** How many. */
  readonly count: number
  /** In which time: `1m`, `1h`. */
  readonly per: Duration
  /** Default `client`: each client of a gateway has a count of its own at each server; a host is a single client. */
  readonly by?: Counted
}

/** By what rates can be counted. */
export const counted = ['client', 'server', 'featureSet', 'origin'] as const
/** What is counted apart from each other. `server`: all clients of a gateway together. */
type Counted = (typeof counted)[number]

/** All of these must hold. In texts a star stands for any characters; of several texts one must fit. */
export interface When {
  /** What is wanted: `push`, `tool`, `infer`, … Default anything. */
  readonly kind?: Kind | readonly Kind[]
  /** The server that wants it, or whose tool, resource or prompt it is, by its name in the config. */
  readonly server?: Patterns
  /** The feature set of MCP Live that it belongs to, such as `memory.*`. Known to hosts. */
  readonly featureSet?: Patterns
  /** The name of the tool, as its server has it. Of `tool`, `resource` and `prompt` one must fit. */
  readonly tool?: Patterns
  /** Addresses of resources, as their server lists them: reading and watching them. Known to gateways; only allowed or denied. */
  readonly resource?: Patterns
  /** The prompt's own name. Known to gateways; only allowed or denied. */
  readonly prompt?: Patterns
  /**
   * Arguments of a tool call by name; dots lead into objects, and lists stand for each of their members. A rule that allows must fit
   * everything at that place, any other rule one thing.
   */
  readonly arguments?: Readonly<Record<string, Patterns>>
  /** One of its tags. Known to hosts. */
  readonly tags?: Patterns
  /** Members of its origin, by name; dots lead into objects. Known to hosts. */
  readonly origin?: Readonly<Record<string, Patterns>>
  /**
   * Who began the turn: `user`, or `event/SERVER`. Where several servers had a part in it, a rule that allows needs all of them, and
   * any other rule one. Known to hosts.
   */
  readonly begunBy?: Patterns
  /** The client that calls, by its name in the settings of the gateway. Known to gateways. */
  readonly client?: Patterns
  /** The subject of its token. Known to gateways. */
  readonly principal?: Patterns
  /** Only at these times of the day. */
  readonly hours?: Hours
  /** Only what goes beyond it. */
  readonly above?: RuleRate
  /** Only while so many of what the other conditions name are under way. Known to hosts. */
  readonly running?: number
}

/** One rule: what it is about, and what happens then. */
export interface Rule extends CallSettings {
  /** Names it in every verdict, refusal, question and note. */
  readonly name: string
  /** What happens: `allow`, `ask`, `deny`, `hold` until another time, or `coalesce` into one. */
  readonly do?: Effect
  /** Without conditions it is about everything. */
  readonly when?: When
  /** From then on it counts no more: ISO 8601, or milliseconds since the epoch. */
  readonly until?: string | number
  /** Of `hold`: how long. Without it until the hours are over, or the rate allows it. */
  readonly for?: Duration
  /** Of `coalesce`: what comes within this time becomes one run. */
  readonly within?: Duration
  /** Of `coalesce`: what has this in common. Default `origin`. */
  readonly by?: Counted
  /** What is told or asked instead of our own words; in a gateway `{name}` stands for that argument. */
  readonly message?: string
  /** What whoever is refused is told to do about it. */
  readonly fix?: string
}

/** What a gateway adds to tool calls that a rule is about. A host reads these and leaves them to the server. */
export interface CallSettings {
  /**
   * Of `ask`, who answers. `operator`: whoever runs the gateway. `client`: the user of the calling client, as that client reports it; a
   * client can say yes by itself, so use it only for clients that you trust. `either`: the client where it can ask its user, else the
   * operator. Default `operator`. In a host its user answers.
   */
  readonly approver?: 'client' | 'operator' | 'either'
  /** Of `ask`: how grave the call is. */
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

/** What holds for one server. */
export interface ServerRules {
  /** Feature sets by name or pattern. What is in neither list is asked about. */
  readonly enable?: readonly string[]
  /** Beats `enable`, and every rule that allows. */
  readonly disable?: readonly string[]
  /**
   * What feature sets may do beyond what they declare, by name or pattern of the set: `{ heartbeat: ['pushEvents'] }`. For servers
   * that declare too little.
   */
  readonly uses?: Readonly<Record<string, readonly string[]>>
  /** Scopes by feature set, or by a pattern of such. */
  readonly scopes?: Readonly<Record<string, ScopeLists>>
}

/** What a rule may do where no other one says anything. */
export type DefaultEffect = 'allow' | 'ask' | 'deny'

/**
 * What happens where no rule says anything: by kind, or one for all. One for all counts for tools, resources and prompts, and for other
 * kinds where it is more careful than their default. Resources and prompts are never asked about.
 */
export type Otherwise = DefaultEffect | Readonly<Partial<Record<Kind, DefaultEffect>>>

/** The rules of a host, as they are written. */
export interface PolicyRules {
  /** Their order never matters: a `deny` beats all, else the narrower rule counts, else the more careful one. */
  readonly rules?: readonly Rule[]
  /** By name of the server, or by a pattern of such. */
  readonly servers?: Readonly<Record<string, ServerRules>>
  /** What happens where no rule says anything. */
  readonly otherwise?: Otherwise
}

// Who began a turn: the user, or an event that a server pushed. What the turn may do without a question depends on it: a server that
// can make the model act must not thereby get the rights of another.

/** The user, or an event and the servers that had a part in it. */
export type BegunBy =
  | { readonly kind: 'user' }
  | {
      readonly kind: 'event'
      readonly server: string
      readonly featureSet: string
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
  const before = through.length === 0 ? '' : `, which came of an event of ${through.map(server => clip(server)).join(' and ')}`
  return ` in a turn that the event ${quoted(begunBy.eventId)} of ${clip(begunBy.server)} began${before}`
}
