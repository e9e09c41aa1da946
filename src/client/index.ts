/** For client and host authors: connect to any MCP server that exists. */
import '../core/required-node.ts'

export {
  type AuthorizationContext,
  AuthorizationError,
  type AuthorizationRule,
  type Browser,
  bearer,
  type ClientAuthorization as Authorization,
  type ClientCredentialsOptions,
  type CliOptions,
  cli,
  clientCredentials,
  type EnterpriseOptions,
  enterprise,
  type FileStorageOptions,
  fileStorage,
  memoryStorage,
  type OAuthClientOptions as OAuthOptions,
  oauth,
  type SigningAlgorithm,
  type TokenStorage,
  type WorkloadOptions,
  workloadIdentity,
} from '../auth/client/index.ts'
export type { Artifact, Provenance, Stamp } from '../core/artifact.ts'
export { createLog, type Level, type Log, type LogOption, type LogOptions, type Severity } from '../core/log.ts'
export { type Outbound, OutboundError, type OutboundRequest } from '../core/outbound.ts'
export { type Category, Problem } from '../core/problem.ts'
export { jsonSchema } from '../core/schema/index.ts'
export type { Why } from '../core/why.ts'
export type { Progress } from '../engine/calls.ts'
export type { RequestOptions } from '../engine/client-feature.ts'
export type { Acknowledged, WireChannel } from '../features/live/channels/messages.ts'
export type { ChannelStream } from '../features/live/channels/outgoing.ts'
export type { After, Before, InferenceLifecycle as Lifecycle } from '../features/live/context-hooks/client.ts'
export type { AfterInference, BeforeInference, Injection } from '../features/live/context-hooks/messages.ts'
export type {
  DialectLabel,
  HostSelection as Selection,
  ServerRollback as RolledBack,
} from '../features/live/dialects/messages.ts'
export type { DeclaredSets, KnownSet } from '../features/live/feature-sets/client.ts'
export type { FeatureSetFacts } from '../features/live/feature-sets/messages.ts'
export type { OnInfer } from '../features/live/inference/client.ts'
export type { InferenceRequest, InferenceResult } from '../features/live/inference/messages.ts'
export type { ModelInfo } from '../features/live/model-info/messages.ts'
export type { OnPush } from '../features/live/push-events/client.ts'
export type { PushAnswer, PushEvent } from '../features/live/push-events/messages.ts'
export type { OnElevate } from '../features/live/scopes/client.ts'
export type { Scope, ScopeLists } from '../features/live/scopes/messages.ts'
export type { ContentBlock, ResourceContents } from '../features/mcp/content/messages.ts'
export type { OnElicit, OnQuestionRefused, Question } from '../features/mcp/elicitation/client.ts'
export type { ElicitResult } from '../features/mcp/elicitation/messages.ts'
export type { HealthCheck } from '../features/mcp/lifecycle/client.ts'
export type { LogMessage } from '../features/mcp/logging/client.ts'
export type { LogLevel } from '../features/mcp/logging/messages.ts'
export type { GetPromptResult, Prompt } from '../features/mcp/prompts/messages.ts'
export type { ReadResourceResult, Resource, ResourceTemplate } from '../features/mcp/resources/messages.ts'
export type { Roots } from '../features/mcp/roots/client.ts'
export type { Root } from '../features/mcp/roots/messages.ts'
export type { OnSample, SampleContext } from '../features/mcp/sampling/client.ts'
export type { SamplingMessage, SamplingParams, SamplingResult } from '../features/mcp/sampling/messages.ts'
export type { ChangeKind } from '../features/mcp/subscriptions/client.ts'
export type { Tool } from '../features/mcp/tools/messages.ts'
export type { ConfirmQuestion, OnConfirm } from '../features/reliability/confirmation/client.ts'
export {
  type CallBudget,
  type CallUsage,
  type CostQuestion,
  type OfferedCost,
  type OnCost,
  offeredCost,
} from '../features/reliability/cost/client.ts'
export { type DataReference, dataReference } from '../features/reliability/data-references/messages.ts'
export type {
  EventReader,
  EventsClientOptions as EventsOptions,
  EventType,
  ServerEvent,
} from '../features/reliability/events/client.ts'
export type { CallStatus } from '../features/reliability/idempotency/client.ts'
export { type OnSuggestion, type SuggestedFor, type Suggestion, suggestionText } from '../features/reliability/intent/client.ts'
export type { Manifest, ManifestTool } from '../features/reliability/manifest/client.ts'
export { readManifest } from '../features/reliability/manifest/exchange.ts'
export type { WireManifest } from '../features/reliability/manifest/messages.ts'
export { type MediaValue, type ReadMediaOptions, readMedia } from '../features/reliability/media/read.ts'
export type { Negotiated, NegotiateOptions, Permission, Permissions } from '../features/reliability/permissions/client.ts'
export { classify } from '../features/reliability/problem/classify.ts'
export type { OnAuthRequired, OnProblem, RetryOptions } from '../features/reliability/problem/client.ts'
export type { ResultProvenance, Source } from '../features/reliability/provenance/client.ts'
export type { Confidence, Recommended } from '../features/reliability/recommendations/client.ts'
export type { Remote, ServerPackage } from '../features/reliability/recommendations/listing.ts'
export type { Checkpoint, ToldProgress } from '../features/reliability/streaming/client.ts'
export type { StepReport, TransactionReport } from '../features/reliability/transactions/client.ts'
export { type Connection, ConnectionError } from '../jsonrpc/connection.ts'
export { McpError } from '../jsonrpc/error.ts'
export type { Implementation, RevisionId } from '../revisions/index.ts'
export type { CallToolOptions, ToolOutcome } from './api.ts'
export { Client } from './client.ts'
export { connect } from './connect.ts'
export { createFinder, type Finder, type FinderOptions, type FindOptions } from './finder/finder.ts'
export type { Candidate, CandidateSource, FinderFault, Found, Recommender } from './finder/search.ts'
export type {
  AcknowledgeOptions,
  LiveBlock,
  LiveCall,
  LiveConnection,
  LiveHandlers,
  PublishOptions,
  SetUse,
  StateReport,
} from './live-handlers.ts'
export type { ConnectOptions } from './options.ts'
export type { ReadReferenceOptions } from './references.ts'
export { type Saga, type SagaOptions, type SagaStepOptions, type SagaUndo, saga } from './saga.ts'
export type { SagaReport, SagaStepReport, SagasOptions } from './sagas.ts'
export type { ClientMiddleware, OutgoingCall } from './session.ts'
export type { Command, Target } from './target.ts'
export { type Chunked, type StreamToolOptions, ToolStream } from './tool-stream.ts'
export { type StepOptions, Transaction, type TransactionOptions } from './transaction.ts'
