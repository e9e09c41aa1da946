/** What a policy is made of, and what it is asked: rules as plain data, so that they lie in a file and can be compared. */
import type { Duration } from '../../core/duration.ts'
import type { Why } from '../../core/why.ts'
import type { Scope, ScopeLists } from '../../features/live/scopes/messages.ts'
import type { BegunBy } from '../begun-by.ts'

export const kinds = ['push', 'infer', 'scope', 'tool', 'sample', 'elicit', 'roots', 'set', 'inject', 'definition'] as const
/** What somebody wants: a push, an inference, a scope, a tool call, what servers may ask for, a feature set, an injection. */
export type Kind = (typeof kinds)[number]

/** The more careful first. */
export const effects = ['deny', 'ask', 'hold', 'coalesce', 'allow'] as const
export type Effect = (typeof effects)[number]

export interface Asked {
  readonly kind: Kind
  readonly server: string
  readonly featureSet?: string
  readonly tool?: string
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

type Some = string | readonly string[]

/** Local time from `from` to before `to`, over midnight where `to` is the earlier one. */
export interface Hours {
  /** `22:00`. */
  readonly from: string
  /** `07:00`; that minute does not belong to it. */
  readonly to: string
  /** A name such as `Europe/Berlin`. */
  readonly zone: string
  /** On which days they begin. Default all. */
  readonly days?: readonly Day[]
}

export const days = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'] as const
export type Day = (typeof days)[number]

/** So many in a time, counted for each server, feature set or origin. */
export interface Rate {
  /** How many. */
  readonly count: number
  /** In which time: `1m`, `1h`. */
  readonly per: Duration
  /** Default `server`. */
  readonly by?: Counted
}

export type Counted = 'server' | 'featureSet' | 'origin'

/** All of these must hold. In texts a star stands for any characters; of several texts one must fit. */
export interface When {
  /** What is wanted: `push`, `tool`, `infer`, … Default anything. */
  readonly kind?: Kind | readonly Kind[]
  /** Who wants it, by the name of the server in the config. */
  readonly server?: Some
  /** The feature set of MCP Live that it belongs to, such as `memory.*`. */
  readonly featureSet?: Some
  /** The name of the tool, as its server has it. */
  readonly tool?: Some
  /** One of its tags. */
  readonly tags?: Some
  /** Members of its origin, by name; dots lead into objects. */
  readonly origin?: Readonly<Record<string, Some>>
  /**
   * Who began the turn: `user`, or `event/SERVER`. Where several servers had a part in it, a rule that allows needs all of them, and
   * any other rule one.
   */
  readonly begunBy?: Some
  /** Only at these times of the day. */
  readonly hours?: Hours
  /** Only what goes beyond it. */
  readonly above?: Rate
  /** Only while so many of what the other conditions name are under way. */
  readonly running?: number
}

export interface Rule {
  /** Names it in every verdict. */
  readonly name: string
  /** What happens: `allow`, `ask`, `deny`, `hold` until another time, or `coalesce` into one. */
  readonly do: Effect
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
  /** What is told instead of our own words. */
  readonly message?: string
  /** What whoever is refused is told to do about it. */
  readonly fix?: string
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

export interface PolicyRules {
  /** Their order never matters: a `deny` beats all, else the narrower rule counts, else the more careful one. */
  readonly rules?: readonly Rule[]
  /** By name of the server, or by a pattern of such. */
  readonly servers?: Readonly<Record<string, ServerRules>>
  /** What happens where no rule says anything. */
  readonly otherwise?: Readonly<Partial<Record<Kind, 'allow' | 'ask' | 'deny'>>>
}

/** New feature sets and what leads out of them are asked about; the rest lies within what was enabled. */
export const otherwise: Readonly<Record<Kind, 'allow' | 'ask' | 'deny'>> = {
  push: 'allow',
  infer: 'allow',
  inject: 'allow',
  tool: 'allow',
  elicit: 'allow',
  sample: 'ask',
  roots: 'ask',
  scope: 'ask',
  set: 'ask',
  definition: 'ask',
}
