/**
 * Conversations of a host and their turns.
 *
 * For sessions that may not see payloads (see the index of the contract) these members are left out: `text`, `answer`, `partial` and
 * `preview` of turns, `content` of prompt sections, `arguments` and `result` of calls, `before` and `after` of changes, `text` and
 * `message` of parts. Such turns carry `reduced`.
 */
import type { PageQuery } from './problem.ts'
import type { Why } from './servers.ts'
import type { TurnSpan } from './turn-spans.ts'

/** `GET /host`: what the chat shows beside conversations. */
export interface HostFacts {
  /** The model that answers users. */
  readonly model: string
  /** Lines worth trying, from the config; at most 20. */
  readonly examples: readonly string[]
  /** The conversation that the page opens first. */
  readonly conversation: string
}

/** A conversation in the list, which is sorted by `last`, newest first. */
export interface Conversation {
  /** The name. In addresses it is one segment: `encodeURIComponent(id)`. */
  readonly id: string
  /** When its first turn was accepted. */
  readonly began: number
  /** When its last turn was accepted. */
  readonly last: number
  /** How many turns it ever had, also undone ones. */
  readonly turns: number
  /** Whether a turn runs or waits in this process. */
  readonly busy: boolean
}

/** What began a turn. `through`: other servers whose events caused it. */
export type TurnOrigin =
  | { readonly kind: 'user' }
  | {
      readonly kind: 'event'
      readonly server: string
      readonly featureSet: string
      readonly eventId: string
      readonly through?: readonly string[]
    }

/** `interrupted`: the host stopped during it; events are tried again, turns of users can be resumed. */
export type TurnStatus = 'waiting' | 'running' | 'done' | 'failed' | 'cancelled' | 'interrupted' | 'undone'

/** `planned`: not ended. `refused`: it was not made. `unknown`: it was made, and no answer came. */
export type TurnCallStatus = 'planned' | 'done' | 'failed' | 'refused' | 'unknown'

/** What a turn used. */
export interface TurnCost {
  /** How often the model was asked. */
  readonly inferences: number
  readonly inputTokens: number
  readonly outputTokens: number
  /** In the currency of the model's price; absent where it has none. */
  readonly money?: number
  /** Of tools, in the units of their servers. */
  readonly units: number
  /** Estimated tokens that servers put into the prompt. */
  readonly injected: readonly { readonly server: string; readonly tokens: number }[]
}

/** A tool call in lists. */
export interface TurnCallRow {
  /** Its number within the turn, from 0. */
  readonly n: number
  /** The name that the model used. */
  readonly name: string
  /** Absent: a tool of the host, or an unknown one. */
  readonly server?: string
  /** The name at the server. */
  readonly tool: string
  readonly featureSet?: string
  /** It declares that it changes nothing. */
  readonly readOnly: boolean
  readonly status: TurnCallStatus
  /** When it began; absent before, and for calls that earlier versions stored. */
  readonly began?: number
  readonly ms?: number
}

/** A turn in lists: also the payload of the event `turn`, which is sent when a turn is accepted, begins, makes a call, and ends. */
export interface TurnRow {
  readonly conversation: string
  /** Its number in the conversation; never used again. */
  readonly seq: number
  /** Its id in the audit log, at servers, and for `/explain/:id`. */
  readonly inferenceId: string
  readonly from: TurnOrigin
  readonly status: TurnStatus
  /** When it was accepted. */
  readonly at: number
  /** When it ended; absent for turns that earlier versions stored. */
  readonly ended?: number
  /** What the user said; `null` where an event began the turn. Cut after 4,000 characters. */
  readonly text?: string | null
  /** The text of the event that began it, cut. Events of the stream leave it out. */
  readonly preview?: string
  /** The answer. Cut after 4,000 characters. */
  readonly answer?: string
  /** Text or answer are cut: the turn itself has them whole. */
  readonly cut?: true
  /** Why there is no answer. */
  readonly why?: Why
  readonly calls: readonly TurnCallRow[]
  readonly cost: TurnCost
  /** Payloads are left out for this session. */
  readonly reduced?: true
}

/** A part of the prompt, in its order. */
export interface PromptSection {
  /** `host`, `history`, `user`, `tools`, or the name of a server. */
  readonly from: string
  readonly featureSet?: string
  /** The server's name for what it put in. */
  readonly namespace?: string
  readonly position?: 'system' | 'beforeUser' | 'afterUser'
  /** Estimated. */
  readonly tokens: number
  /** It differs from the prompt before, so the provider's cache is lost from here on. */
  readonly changed?: boolean
  /** What a server put in, as text; cut after 16,000 characters. */
  readonly content?: string
  /** Characters of the whole content. */
  readonly length?: number
}

/** The last prompt of a turn. */
export interface TurnPrompt {
  readonly model: string
  readonly sections: readonly PromptSection[]
  /** Estimated tokens of all. */
  readonly tokens: number
  /** Earlier turns that did not fit. */
  readonly left: number
}

/** A hook of a server that ran before or after an inference. */
export interface TurnHook {
  readonly server: string
  readonly featureSet?: string
  readonly hook: 'before' | 'after'
  /** `refused`: skipped by the circuit breaker. `dropped`: answered without effect. */
  readonly outcome: 'success' | 'failure' | 'timeout' | 'refused' | 'dropped'
  readonly began?: number
  readonly ms: number
  readonly why?: Why
}

/** One answer of the model. */
export interface TurnInference {
  /** From 0. */
  readonly n: number
  readonly model?: string
  readonly began?: number
  /** From its beginning to the first word. */
  readonly firstMs?: number
  readonly ms?: number
  readonly inputTokens: number
  readonly outputTokens: number
  /** The numbers of the calls that it asked for. */
  readonly calls: readonly number[]
}

/** A question to a person before a call. */
export interface TurnQuestion {
  /** When it was asked. */
  readonly began: number
  /** How long the answer took. */
  readonly ms: number
  readonly yes: boolean
  /** Who answered, where that is known. */
  readonly by?: string
}

/** A tool call with what went in and came out. */
export interface TurnCall extends TurnCallRow {
  readonly arguments?: unknown
  /** The result as the model saw it, as text; cut after 65,536 characters. `GET …/calls/:call` has it whole. */
  readonly result?: string
  /** Characters of the whole result. */
  readonly length?: number
  readonly why?: Why
  /** The rule, grant or approval that allowed it. */
  readonly rule?: string
  readonly units?: number
  /** The question whether it may be made. */
  readonly asked?: TurnQuestion
  /** The question of its server that the user declined. */
  readonly declined?: string
  /** The tool that its server named to take it back. */
  readonly compensation?: string
  /** The server has rolled it back. */
  readonly rolledBack?: true
  /** The checkpoints of its feature set. */
  readonly state?: { readonly featureSet?: string; readonly before?: string; readonly after: string }
}

/** How a hook changed the answer. */
export interface TurnAnswerChange {
  readonly server: string
  readonly featureSet: string
  readonly before?: string
  readonly after?: string
}

/** `GET /conversations/:conversation/turns/:seq`. */
export interface TurnDetail extends Omit<TurnRow, 'calls'> {
  /** The answer so far, while the turn runs. */
  readonly partial?: string
  readonly prompt?: TurnPrompt
  readonly hooks: readonly TurnHook[]
  readonly inferences: readonly TurnInference[]
  readonly calls: readonly TurnCall[]
  readonly changes: readonly TurnAnswerChange[]
  readonly finishReason?: string
  /** The waterfall: parents first. */
  readonly spans: readonly TurnSpan[]
}

/** `GET /conversations/:conversation/turns`: newest first; `after` is a `seq`. */
export interface TurnQuery extends PageQuery {
  /** `1`: also turns that were undone. */
  readonly undone?: '1'
}

/** `POST /conversations/:conversation/turns`. */
export interface NewTurn {
  /** At most 200,000 characters. `/name …` calls a prompt of a server; `//` begins a line with a slash. */
  readonly text: string
  /** Resources of servers; at most 16. */
  readonly attach?: readonly { readonly server: string; readonly uri: string }[]
}

/** A prompt of a server that can be called as `/COMMAND`. */
export interface OfferedPrompt {
  readonly command: string
  readonly server: string
  readonly title?: string
  readonly description?: string
  readonly arguments: readonly { readonly name: string; readonly description?: string; readonly required?: boolean }[]
}

/** A part of a turn as it is made. */
export type TurnPart =
  | { readonly type: 'hook'; readonly hook: TurnHook }
  | { readonly type: 'prompt'; readonly prompt: TurnPrompt }
  /** The next words of the answer, gathered for some milliseconds. */
  | { readonly type: 'text'; readonly text?: string }
  | { readonly type: 'inference'; readonly inference: TurnInference }
  | { readonly type: 'call'; readonly call: TurnCall }
  | { readonly type: 'progress'; readonly n: number; readonly progress: number; readonly message?: string }
  | { readonly type: 'result'; readonly call: TurnCall }
  | { readonly type: 'answer'; readonly text?: string; readonly changes: readonly TurnAnswerChange[] }
  | { readonly type: 'ended'; readonly status: 'failed' | 'cancelled' | 'interrupted'; readonly why: Why }
