/**
 * The types that an application sees of a client: its members, the options and results of tool calls, and the options of
 * `connect`. Each is joined from the types of the features, so that a feature declares its own part.
 */

import type { ClientAuthorization } from '../auth/client/index.ts'
import type { Clock, Duration } from '../core/clock.ts'
import type { LogOption } from '../core/log.ts'
import type { InferOutput, Schema } from '../core/schema/index.ts'
import type { RequestRate } from '../engine/client-feature.ts'
import type { Limits } from '../engine/limits.ts'
import type { LiveAnswer, LiveCallOptions } from '../features/live/client.ts'
import type { LiveHandlers } from '../features/live/client-api.ts'
import type { ListLimits } from '../features/mcp/caching/client.ts'
import type { CompletionClientApi, CompletionOptions } from '../features/mcp/completion/client.ts'
import type { ElicitationOptions } from '../features/mcp/elicitation/client.ts'
import type { LifecycleClientApi, LifecycleOptions } from '../features/mcp/lifecycle/client.ts'
import type { LoggingClientApi, LoggingOptions } from '../features/mcp/logging/client.ts'
import type { PromptsClientApi } from '../features/mcp/prompts/client.ts'
import type { ResourcesClientApi } from '../features/mcp/resources/client.ts'
import type { RootsClientApi, RootsOptions } from '../features/mcp/roots/client.ts'
import type { SamplingOptions } from '../features/mcp/sampling/client.ts'
import type { SubscriptionsClientApi } from '../features/mcp/subscriptions/client.ts'
import type { ToolsClientApi, ToolsOptions } from '../features/mcp/tools/client.ts'
import type { ToolAnswer, ToolCallOptions } from '../features/mcp/tools/messages.ts'
import type { ConfirmationCallOptions, ConfirmationOptions } from '../features/reliability/confirmation/client.ts'
import type { CostAnswer, CostCallOptions, CostClientOptions } from '../features/reliability/cost/client.ts'
import type { EventsClientApi } from '../features/reliability/events/client.ts'
import type { IdempotencyCallOptions, IdempotencyClientApi } from '../features/reliability/idempotency/client.ts'
import type { IntentAnswer, IntentCallOptions, IntentClientOptions } from '../features/reliability/intent/client.ts'
import type { ManifestClientApi } from '../features/reliability/manifest/client.ts'
import type { MediaAnswer } from '../features/reliability/media/client.ts'
import type { PermissionsClientApi } from '../features/reliability/permissions/client.ts'
import type { ProblemOptions } from '../features/reliability/problem/client.ts'
import type { ProvenanceAnswer } from '../features/reliability/provenance/client.ts'
import type { RecommendationsClientApi, Recommended } from '../features/reliability/recommendations/client.ts'
import type { StateClientApi } from '../features/reliability/session-state/client.ts'
import type { ToldProgress } from '../features/reliability/streaming/client.ts'
import type { TransactionsClientApi } from '../features/reliability/transactions/client.ts'
import type { Connection } from '../jsonrpc/connection.ts'
import type { Params } from '../jsonrpc/message.ts'
import type { Implementation, RevisionId } from '../revisions/index.ts'
import type { Relaying } from './relaying.ts'

export type { Recommended, ToldProgress }

/** Options of `callTool`. */
export interface CallToolOptions<S extends Schema = Schema>
  extends ToolCallOptions<S>,
    IdempotencyCallOptions,
    CostCallOptions,
    ConfirmationCallOptions,
    IntentCallOptions,
    LiveCallOptions {
  /** Called with each progress notification of the call. */
  readonly onProgress?: (progress: ToldProgress) => void
}

/** The result of a tool call, with what features add to it. */
interface CallAnswer<Failed extends boolean, T>
  extends ToolAnswer<Failed, T>,
    CostAnswer,
    IntentAnswer,
    ProvenanceAnswer,
    MediaAnswer,
    LiveAnswer {}

/** The result of a tool call. If the tool failed (`isError`), the structured content has no known type. */
export type ToolOutcome<T = unknown> = CallAnswer<false, T> | CallAnswer<true, unknown>

/** `callTool`, with the options of all features. */
interface ToolCallsApi {
  /**
   * Calls a tool and resolves with its result, also if the tool reports an error (`isError`). With the option `output` the
   * structured content is validated and typed.
   * @example
   * const { text, isError } = await mcp.callTool('add', { a: 1, b: 2 })
   */
  callTool<S extends Schema>(
    name: string,
    args: Params | undefined,
    options: CallToolOptions<S> & {
      /** The schema of the structured content. */
      readonly output: S
    },
  ): Promise<ToolOutcome<InferOutput<S>>>
  callTool(name: string, args?: Params, options?: CallToolOptions): Promise<ToolOutcome>
}

/** The members of `Client` that features provide. */
export interface ClientFeatureMembers
  extends ToolsClientApi,
    ToolCallsApi,
    ResourcesClientApi,
    PromptsClientApi,
    CompletionClientApi,
    LoggingClientApi,
    LifecycleClientApi,
    SubscriptionsClientApi,
    RootsClientApi,
    EventsClientApi,
    IdempotencyClientApi,
    ManifestClientApi,
    PermissionsClientApi,
    RecommendationsClientApi,
    StateClientApi,
    TransactionsClientApi {}

// The options of `connect`. Every option has a default.

/** Limits on what a server may send and ask. */
interface ClientLimits extends Partial<Limits>, ListLimits {
  /** How often the server may ask. Requests above the rate are refused. */
  readonly rates?: {
    /** The rate of questions to the user. Default: 0.5 per second, bursts of 10. `false`: no limit. */
    readonly elicit?: RequestRate | false
    /** The rate of sampling requests. Default: 1 per second, bursts of 20. `false`: no limit. */
    readonly sample?: RequestRate | false
  }
}

/**
 * Options of `connect`.
 * @example
 * await using mcp = await connect(url, {
 *   timeout: '10s',
 *   onElicit: question => ({ action: 'decline' }),
 *   onLog: ({ level, data }) => console.error(level, data),
 * })
 */
export interface ConnectOptions
  extends ElicitationOptions,
    SamplingOptions,
    RootsOptions,
    LoggingOptions,
    LifecycleOptions,
    CompletionOptions,
    ToolsOptions,
    ProblemOptions,
    ConfirmationOptions,
    CostClientOptions,
    IntentClientOptions {
  /** Name and version that the server sees. Default: `vivarium` and its version. */
  readonly info?: Implementation
  /** The protocol revisions to use. The client finds out which of them the server speaks. Default: the five official ones. */
  readonly revisions?: readonly RevisionId[]
  /**
   * Receives the questions of the server unchanged and replaces `onElicit`, `onSample` and `roots`: for programs between a server
   * and its clients, such as a gateway. Default: the handlers answer.
   * @experimental Its methods change without notice.
   */
  readonly relay?: Relaying
  /** The extension dialect of the server: `davioe` is that of davioe/mcp-extension-proposals. Default: that of this package. */
  readonly profile?: 'davioe'
  /** Further extensions to declare, with their settings, by id. Default: none. */
  readonly extensions?: Readonly<Record<string, Readonly<Record<string, unknown>>>>
  /** Gets tokens when the server asks for them: `oauth()`, `bearer(token)`, … Default: none. */
  readonly auth?: ClientAuthorization
  /** Headers of every HTTP request. Default: none. */
  readonly headers?: Readonly<Record<string, string>>
  /** Called with every connection that is opened; the connection that it returns is used instead. For recording and for tests. */
  readonly wrap?: (connection: Connection) => Connection
  /** Makes the HTTP requests. Default: a built-in HTTP client. */
  readonly fetch?: typeof fetch
  /** How long a request waits for an answer, or for a sign of progress. `options.timeout` of one request takes precedence. Default 60 s. */
  readonly timeout?: Duration
  /** How long the server may take to answer while the connection is opened. Default: as long as `timeout`. */
  readonly startTimeout?: Duration
  /**
   * How long a stdio server may stay silent on the first message of 2026-07-28 before the handshake of older revisions is tried.
   * Default 5 s.
   */
  readonly probeTimeout?: Duration
  /** Makes this client the host of an MCP Live server and answers its requests. Default: MCP without Live. */
  readonly live?: LiveHandlers
  /** How large messages may be, and how many requests may run. Default: see the reference of limits. */
  readonly limits?: ClientLimits
  /**
   * The log of the client: a level for standard error, or a log of your own. Default: the variable VIVARIUM_LOG, else `silent`.
   * The log of the server goes to `onLog`.
   */
  readonly log?: LogOption
  /** Called with every trace event, unredacted: for programs and tests. Default: not called. */
  readonly onTrace?: (event: string, detail: unknown) => void
  /** For tests: time and timers. Default: the real clock. */
  readonly clock?: Clock
  /** Aborts opening the connection. It has no effect afterwards. */
  readonly signal?: AbortSignal
}
