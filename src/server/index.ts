/** For server authors: write a tool once, serve every revision on every transport. */
import '../core/required-node.ts'

export {
  type IntrospectionOptions,
  type OAuthResourceOptions as OAuthOptions,
  oauth,
  type ResourceAuthorization as Authorization,
  type VerifiedToken,
  type VerifyToken,
} from '../auth/resource/options.ts'
export type { Artifact, Provenance, Stamp } from '../core/artifact.ts'
export type { AuditVerdict } from '../core/audit/audit.ts'
export type { AuditEvent, AuditLine } from '../core/audit/line.ts'
export { type Clock, realClock } from '../core/clock.ts'
export { createLog, type Level, type Log, type LogOption, type LogOptions, type Severity } from '../core/log.ts'
export { type Category, Problem, type ProblemMore, problem } from '../core/problem.ts'
export { type InferOutput, type JsonSchema, jsonSchema, type Schema, withJsonSchema } from '../core/schema/index.ts'
export type { Suggestion } from '../core/suggestion.ts'
export type { Progress } from '../engine/calls.ts'
export type { Registration } from '../engine/server-feature.ts'
export type {
  AcknowledgeHandler,
  Acknowledgement,
  AnswerStream,
  ChannelMessage,
  ChannelOptions,
  ChannelSent,
  ChannelVerdict,
  ChannelWanted,
  CloseHandler,
  HandlerContext,
  OpenHandler,
  Published,
  PublishHandler,
  StreamHandler,
  TypingHandler,
} from '../features/live/channels/server.ts'
export type { RollbackHandler } from '../features/live/checkpoints/server.ts'
export type { LiveBlock, LiveInput } from '../features/live/content/messages.ts'
export type { CallCheckpoint } from '../features/live/context.ts'
export type { AfterInference, BeforeInference, Position } from '../features/live/context-hooks/messages.ts'
export type {
  AfterHook,
  BeforeHook,
  HookContext,
  Injected,
  InjectionInput,
  Reworded,
} from '../features/live/context-hooks/server.ts'
export type { LiveUse } from '../features/live/feature-sets/messages.ts'
export type { InferenceResult } from '../features/live/inference/messages.ts'
export type { Inference, InferenceInput as InferInput } from '../features/live/inference/server.ts'
export type { ModelInfo } from '../features/live/model-info/messages.ts'
export type { PushAnswer } from '../features/live/push-events/messages.ts'
export type { Pushed, PushInput } from '../features/live/push-events/server.ts'
export type { LiveOptions } from '../features/live/server.ts'
export type { Channel, FeatureSetOptions } from '../features/live/sets.ts'
export type { CacheOptions } from '../features/mcp/caching/messages.ts'
export type { Completer } from '../features/mcp/completion/messages.ts'
export { audio, image, link, resource, text } from '../features/mcp/content/blocks.ts'
export type {
  Annotations,
  AudioContent,
  ContentBlock,
  EmbeddedResource,
  ImageContent,
  ResourceContents,
  ResourceLink,
  TextContent,
} from '../features/mcp/content/messages.ts'
export type { Elicited, FormQuestion, UrlQuestion } from '../features/mcp/elicitation/server.ts'
export type { OfferedKind } from '../features/mcp/lifecycle/messages.ts'
export type { LogLevel } from '../features/mcp/logging/messages.ts'
export type { PromptOutput } from '../features/mcp/prompts/server.ts'
export type { ResourceOutput } from '../features/mcp/resources/server.ts'
export type { Root } from '../features/mcp/roots/messages.ts'
export type { SamplingMessage, SamplingParams, SamplingResult, SamplingTool } from '../features/mcp/sampling/messages.ts'
export type { TaskFacts, TaskWish } from '../features/mcp/tasks/messages.ts'
export type { ToolAnnotations } from '../features/mcp/tools/messages.ts'
export { type Reply, type ReplyParts, reply } from '../features/mcp/tools/result.ts'
export type { PendingApproval } from '../features/reliability/confirmation/approvals.ts'
export type { ConfirmFacts, PageRequest } from '../features/reliability/confirmation/facts.ts'
export type { ApprovedCalls, Risk } from '../features/reliability/confirmation/messages.ts'
export type { BudgetsControl, BudgetTerms } from '../features/reliability/cost/budgets.ts'
export type { CostFacts, QuotaFacts } from '../features/reliability/cost/facts.ts'
export type { CallCost } from '../features/reliability/cost/meter.ts'
export type { Rate, RateOptions } from '../features/reliability/cost/rates.ts'
export type { CostOptions } from '../features/reliability/cost/server.ts'
export type { ImportedAs, ImportHandler, ReferenceSource } from '../features/reliability/data-references/context.ts'
export { type DataReference, dataReference, dataReferenceSchema } from '../features/reliability/data-references/messages.ts'
export type {
  Imported,
  ImportOptions,
  ReferenceOptions,
  ReferencesOptions,
} from '../features/reliability/data-references/server.ts'
export type { EmitOptions } from '../features/reliability/events/entry.ts'
export type { EventHandle, EventOptions } from '../features/reliability/events/offering.ts'
export type { EventsServerOptions as EventsOptions } from '../features/reliability/events/server.ts'
export type { FacadePart } from '../features/reliability/facade/messages.ts'
export type { IntendedCall, IntentOptions } from '../features/reliability/intent/server.ts'
export type { ManifestOptions } from '../features/reliability/manifest/server.ts'
export type { AuthMethod } from '../features/reliability/manifest/shape.ts'
export { type MediaValue, type ReadMediaOptions, readMedia } from '../features/reliability/media/read.ts'
export type { MediaFacts } from '../features/reliability/media/server.ts'
export type {
  PermissionAnswer,
  PermissionRequest,
  PermissionsOptions,
  Refused,
} from '../features/reliability/permissions/server.ts'
export type { SessionFacts } from '../features/reliability/permissions/sessions.ts'
export { type Cited, cite } from '../features/reliability/provenance/cite.ts'
export type { Confidence } from '../features/reliability/recommendations/messages.ts'
export type { Recommend, Recommendation } from '../features/reliability/recommendations/server.ts'
export type { ProgressStep } from '../features/reliability/streaming/messages.ts'
export type { StreamingOptions } from '../features/reliability/streaming/server.ts'
export type { WireRolledBack } from '../features/reliability/transactions/messages.ts'
export type { StuckTransaction, TransactionsOptions } from '../features/reliability/transactions/server.ts'
export type { UndoFacts, UndoneCall } from '../features/reliability/transactions/undo.ts'
export type { Principal } from '../jsonrpc/connection.ts'
export { McpError } from '../jsonrpc/error.ts'
export type { Icon, Implementation, RevisionId } from '../revisions/index.ts'
export type { FetchHandler, FetchInfo } from '../transports/http/fetch.ts'
export type { Listening } from '../transports/http/listening.ts'
export type { FeatureSet, ImporterOptions, PromptOptions, ResourceOptions } from './api.ts'
export type { Auth } from './auth.ts'
export type { Context, LiveContext } from './context.ts'
export type { AuditControl } from './kit.ts'
export type { ServerCall, ServerMiddleware, ServerResults } from './middleware.ts'
export type { AuditOptions, ServerOptions } from './options.ts'

export type { FetchOptions, ServeHttpOptions } from './serve.ts'
export { createServer, type Server, type ToolOptions } from './server.ts'
