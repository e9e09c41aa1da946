/** What an application sees of a client: the members that its features give it, and what a call may say and answer, joined here. */
import type { InferOutput, Schema } from '../core/schema/index.ts'
import type { CompletionClientApi } from '../features/mcp/completion/client.ts'
import type { LifecycleClientApi } from '../features/mcp/lifecycle/client.ts'
import type { LoggingClientApi } from '../features/mcp/logging/client.ts'
import type { PromptsClientApi } from '../features/mcp/prompts/client.ts'
import type { ResourcesClientApi } from '../features/mcp/resources/client.ts'
import type { RootsClientApi } from '../features/mcp/roots/client.ts'
import type { SubscriptionsClientApi } from '../features/mcp/subscriptions/client.ts'
import type { ToolsClientApi } from '../features/mcp/tools/client.ts'
import type { ToolAnswer, ToolCallOptions } from '../features/mcp/tools/messages.ts'
import type { ConfirmationCallOptions } from '../features/reliability/confirmation/client.ts'
import type { CostAnswer, CostCallOptions } from '../features/reliability/cost/client.ts'
import type { EventsClientApi } from '../features/reliability/events/client.ts'
import type { IdempotencyCallOptions, IdempotencyClientApi } from '../features/reliability/idempotency/client.ts'
import type { IntentAnswer, IntentCallOptions } from '../features/reliability/intent/client.ts'
import type { ManifestClientApi } from '../features/reliability/manifest/client.ts'
import type { MediaAnswer } from '../features/reliability/media/client.ts'
import type { PermissionsClientApi } from '../features/reliability/permissions/client.ts'
import type { ProvenanceAnswer } from '../features/reliability/provenance/client.ts'
import type { RecommendationsClientApi } from '../features/reliability/recommendations/client.ts'
import type { StateClientApi } from '../features/reliability/session-state/client.ts'
import type { ToldProgress } from '../features/reliability/streaming/client.ts'
import type { TransactionsClientApi } from '../features/reliability/transactions/client.ts'
import type { Params } from '../jsonrpc/message.ts'
import type { LiveAnswer, LiveCallOptions } from './live-client.ts'

/** What a call of a tool may be given. */
export interface CallToolOptions<S extends Schema = Schema>
  extends ToolCallOptions<S>,
    IdempotencyCallOptions,
    CostCallOptions,
    ConfirmationCallOptions,
    IntentCallOptions,
    LiveCallOptions {
  /** Told how far the call has come. */
  readonly onProgress?: (progress: ToldProgress) => void
}

interface CallAnswer<Failed extends boolean, T>
  extends ToolAnswer<Failed, T>,
    CostAnswer,
    IntentAnswer,
    ProvenanceAnswer,
    MediaAnswer,
    LiveAnswer {}

/** What came of a call. What a tool that failed left as structured content is nothing to rely on. */
export type ToolOutcome<T = unknown> = CallAnswer<false, T> | CallAnswer<true, unknown>

/** Calling tools, with all that features add to a call. */
interface ToolCallsApi {
  /** Calls a tool. With the option `output` the structured content is checked, and typed where the tool did not fail. */
  callTool<S extends Schema>(
    name: string,
    args: Params | undefined,
    options: CallToolOptions<S> & { readonly output: S },
  ): Promise<ToolOutcome<InferOutput<S>>>
  callTool(name: string, args?: Params, options?: CallToolOptions): Promise<ToolOutcome>
}

/** The members of a client that its features give it. */
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
