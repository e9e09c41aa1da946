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

/** The options of a tool call, from all features. */
export interface CallToolOptions<S extends Schema = Schema>
  extends ToolCallOptions<S>,
    IdempotencyCallOptions,
    CostCallOptions,
    ConfirmationCallOptions,
    IntentCallOptions,
    LiveCallOptions {
  /** Receives progress of the call. */
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

/** The result of a tool call. The structured content of a failed call has no known type. */
export type ToolOutcome<T = unknown> = CallAnswer<false, T> | CallAnswer<true, unknown>

/** `callTool`, with the options of all features. */
interface ToolCallsApi {
  /** Calls a tool. With the option `output` the structured content is checked, and typed where the tool did not fail. */
  callTool<S extends Schema>(
    name: string,
    args: Params | undefined,
    options: CallToolOptions<S> & { readonly output: S },
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
  /**
   * How often the server may ask. Default: bursts of 10 elicitations and one more every 2 s; bursts of 20 samplings and one
   * more a second.
   */
  readonly rates?: { readonly elicit?: RequestRate | false; readonly sample?: RequestRate | false }
}

/** Options of `connect`: those of its features, and of the connection itself. */
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
  /** How this client names itself. Default: vivarium. */
  readonly info?: Implementation
  /** The revisions to use. Default: the five official ones. */
  readonly revisions?: readonly RevisionId[]
  /**
   * Receives questions of the server unchanged, in place of the handlers above: for programs between a server and its clients.
   */
  readonly relay?: Relaying
  /** The server speaks the form of another implementation: `davioe` is that of davioe/mcp-extension-proposals. Default: none. */
  readonly profile?: 'davioe'
  /** Extensions this client declares, by their id. */
  readonly extensions?: Readonly<Record<string, Readonly<Record<string, unknown>>>>
  /** Obtains credentials when the server asks for them: `oauth()`, `bearer(token)`, … Default: none. */
  readonly auth?: ClientAuthorization
  /** Headers of every HTTP request. */
  readonly headers?: Readonly<Record<string, string>>
  /** Called with every connection that is opened; its result is used instead. For recording and for tests. */
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
