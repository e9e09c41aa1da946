/** What a host may say when connecting. Every option has a default. */
import type { Authorization } from '../auth/client/index.ts'
import type { Clock } from '../core/clock.ts'
import type { Duration } from '../core/duration.ts'
import type { LogOption } from '../core/log.ts'
import type { Limits } from '../engine/limits.ts'
import type { OnElicit, OnQuestionRefused } from '../features/mcp/elicitation/client.ts'
import type { LogMessage } from '../features/mcp/logging/client.ts'
import type { LogLevel } from '../features/mcp/logging/messages.ts'
import type { Roots } from '../features/mcp/roots/client.ts'
import type { OnSample, SampleContext } from '../features/mcp/sampling/client.ts'
import type { OnConfirm } from '../features/reliability/confirmation/client.ts'
import type { OnCost } from '../features/reliability/cost/client.ts'
import type { OnSuggestion } from '../features/reliability/intent/client.ts'
import type { Connection } from '../jsonrpc/connection.ts'
import type { Implementation, RevisionId } from '../revisions/index.ts'
import type { LiveHandlers } from './live-handlers.ts'
import type { Relaying } from './relaying.ts'
import type { OnAuthRequired, OnProblem, RetryOptions } from './retries.ts'

export interface ClientRate {
  readonly perSecond: number
  readonly burst?: number
}

export interface ClientLimits extends Partial<Limits> {
  /** How often the server may ask. Default: 10 elicitations at once and one every 2 s, 20 samplings and one a second. */
  readonly rates?: { readonly elicit?: ClientRate | false; readonly sample?: ClientRate | false }
  /** Pages of one list. Default 64. */
  readonly listPages?: number
  /** Entries of one list. Default 10,000. */
  readonly listItems?: number
}

export interface HealthCheck {
  readonly every: Duration
  readonly patient?: boolean
}

export interface ConnectOptions {
  /** How this client names itself. Default: vivarium. */
  readonly info?: Implementation
  /** The wires spoken. Default: the five official revisions. */
  readonly revisions?: readonly RevisionId[]
  /** Answers the server's questions to the user; declares `elicitation`. */
  readonly onElicit?: OnElicit
  /** Told of a question whose page is at an address that is not to be opened; `onElicit` never sees it. */
  readonly onQuestionRefused?: OnQuestionRefused
  /**
   * Asked before a tool is called that needs the user's yes; such a call is not sent before. Without it the server asks, where
   * there is `onElicit`; without both the call is refused.
   */
  readonly onConfirm?: OnConfirm
  /** Asked before a call that costs more than `costLimit` or its own budget, or nobody knows how much. Without it such calls are refused. */
  readonly onCost?: OnCost
  /** The most units that a call may cost without anybody being asked. Default: no limit. */
  readonly costLimit?: number
  /** Whether this server may hear what calls are for (the option `intent` of a call). Default false: it is not sent. */
  readonly intent?: boolean
  /** Told what the server suggests instead of a call; true: that is done. Without it nothing is followed. */
  readonly onSuggestion?: OnSuggestion
  /** Whether pages may be asked for, beside forms. Default true with `onElicit`. */
  readonly elicitUrl?: boolean
  /** Answers the server's questions to a model; declares `sampling`. */
  readonly onSample?: OnSample
  /** Whether the model can be given tools. Default false. */
  readonly sampleTools?: boolean
  /** Whose conversations the server may ask to have put before its messages; `onSample` does that. Default: none. */
  readonly sampleContext?: SampleContext
  /** The folders this client works in; declares `roots`. */
  readonly roots?: Roots
  /** Gets what the server asks as it came, instead of the handlers above: for programs that stand between a server and its clients. */
  readonly relay?: Relaying
  /** Told what the server logs. */
  readonly onLog?: (message: LogMessage) => void
  /** The least severe log messages to be sent. Default: none on wires where each request says so, elsewhere the server's choice. */
  readonly logLevel?: LogLevel
  /** Told when the page of a URL question has done its work. Only of pages that this connection was asked to visit. */
  readonly onElicitationComplete?: (elicitationId: string) => void
  /** The server speaks the form of another implementation: `davioe` is that of davioe/mcp-extension-proposals. Default: none. */
  readonly profile?: 'davioe'
  /** Extensions this client declares, by their id. */
  readonly extensions?: Readonly<Record<string, Readonly<Record<string, unknown>>>>
  /** Gets credentials when the server asks for them: `oauth()`, `bearer(token)`, … Default: none. */
  readonly auth?: Authorization
  /** Headers of every HTTP request. */
  readonly headers?: Readonly<Record<string, string>>
  /** Sees every connection when it is opened; what it gives is used in its place. For recording and for tests. */
  readonly wrap?: (connection: Connection) => Connection
  /** Makes HTTP requests instead of the built-in client. */
  readonly fetch?: typeof fetch
  /** The default wait for an answer, or a sign of progress. Default 60 s. */
  readonly timeout?: Duration
  /** How long the server may take to answer when it is opened. Default: as long as `timeout`. */
  readonly startTimeout?: Duration
  /** How long a pipe may stay silent on the first, modern message before a handshake is tried. Default 5 s. */
  readonly probeTimeout?: Duration
  /** Makes this client the host of an MCP Live server: what the server may ask, and who answers. Default: MCP without Live. */
  readonly live?: LiveHandlers
  /** Checks arguments against the tool's input schema before sending. Default false. */
  readonly validateArguments?: boolean
  /**
   * How failed tool calls are made again by themselves: only where waiting can help (problems of the categories transient and
   * rate_limited, busy or vanished servers), and only calls that do no harm when repeated. False: never.
   */
  readonly retry?: RetryOptions | false
  /** Told of a failure that the user can do something about, with what that is. */
  readonly onProblem?: OnProblem
  /** Gets the right that a call lacked; true: it is made once more. What HTTP asks for is the matter of `auth`. */
  readonly onAuthRequired?: OnAuthRequired
  /**
   * Sends a ping this often (`server/discover` where the wire has no ping) and closes when there is no answer. `patient`: a server that
   * takes its time is kept, one that cannot be reached any more is not. Default: never.
   */
  readonly healthCheck?: Duration | HealthCheck
  /** How long completions for the same question are kept. Default 5 s; 0 keeps none. */
  readonly completionCache?: Duration
  /**
   * How long typing must pause before a completion is asked for. Of the questions about one argument that come in between only
   * the last is sent, and all get its answer. Default 100 ms; 0 sends each one.
   */
  readonly completionDelay?: Duration
  /** How large messages may be, and how many may be under way. */
  readonly limits?: ClientLimits
  /**
   * Where the client's own log goes, and how much of it: a level for standard error, or a log of your own. Default: the variable
   * VIVARIUM_LOG, else `silent`. What the server logs comes to `onLog`.
   */
  readonly log?: LogOption
  /** Told the same as the log, but raw, secrets included: for programs and tests. */
  readonly onTrace?: (event: string, detail: unknown) => void
  /** For tests: the time, and timers. Default: the real one. */
  readonly clock?: Clock
  /** Gives up opening: what was started for it is ended again. Later it has no say. */
  readonly signal?: AbortSignal
}

export interface RequestOptions {
  /** Which of several conversations over this client it belongs to: the state that a server keeps is each one's own. */
  readonly conversation?: string
  /** Gives the request up; the server is told. */
  readonly signal?: AbortSignal
  /** How long the answer is waited for. Default: that of the connection. */
  readonly timeout?: Duration
  /** Members of `_meta` that go along. */
  readonly meta?: Readonly<Record<string, unknown>>
}
