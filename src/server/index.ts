/** For server authors: write a tool once, serve every revision on every transport. */
import '../core/required-node.ts'

export {
  type OAuthResourceOptions as OAuthOptions,
  oauth,
  type ResourceAuthorization as Authorization,
  type VerifiedToken,
} from '../auth/resource/options.ts'
export type { Provenance } from '../core/artifact.ts'
export type { AuditVerdict } from '../core/audit/audit.ts'
export type { AuditLine } from '../core/audit/line.ts'
export { type Clock, realClock } from '../core/clock.ts'
export { createLog, type Log, type LogOptions } from '../core/log.ts'
export { type Category, Problem, problem } from '../core/problem.ts'
export { type InferOutput, type JsonSchema, jsonSchema, type Schema, withJsonSchema } from '../core/schema/index.ts'
export type { Suggestion } from '../core/suggestion.ts'
export type { Registration } from '../engine/server-feature.ts'
export type { AnswerStream, ChannelMessage, ChannelOptions, ChannelSent } from '../features/live/channels/server.ts'
export type { LiveBlock } from '../features/live/content/messages.ts'
export type { InferenceResult } from '../features/live/inference/messages.ts'
export type { Inference } from '../features/live/inference/server.ts'
export type { PushAnswer } from '../features/live/push-events/messages.ts'
export type { Pushed } from '../features/live/push-events/server.ts'
export type { LiveOptions } from '../features/live/server.ts'
export type { Channel, FeatureSetOptions } from '../features/live/sets.ts'
export type { CacheOptions } from '../features/mcp/caching/messages.ts'
export type {
  AudioContent,
  ContentBlock,
  EmbeddedResource,
  ImageContent,
  ResourceContents,
  ResourceLink,
  TextContent,
} from '../features/mcp/content/messages.ts'
export { audio, image, link, resource, text } from '../features/mcp/content/messages.ts'
export type { Elicited, FormQuestion, UrlQuestion } from '../features/mcp/elicitation/server.ts'
export type { LogLevel } from '../features/mcp/logging/messages.ts'
export type { PromptOutput } from '../features/mcp/prompts/server.ts'
export type { ResourceOutput } from '../features/mcp/resources/server.ts'
export type { Root } from '../features/mcp/roots/messages.ts'
export type { SamplingMessage, SamplingParams, SamplingResult } from '../features/mcp/sampling/messages.ts'
export { type Reply, type ReplyParts, reply } from '../features/mcp/tools/result.ts'
export type { Risk } from '../features/reliability/confirmation/messages.ts'
export type { PendingApproval } from '../features/reliability/confirmation/runtime.ts'
export type { RateOptions } from '../features/reliability/cost/rates.ts'
export type { CostOptions } from '../features/reliability/cost/server.ts'
export { type DataReference, dataReference, dataReferenceSchema } from '../features/reliability/data-references/messages.ts'
export type { Imported, ReferencesOptions } from '../features/reliability/data-references/server.ts'
export type { EventHandle, EventOptions } from '../features/reliability/events/offering.ts'
export type { EventsOptions } from '../features/reliability/events/server.ts'
export type { IntendedCall } from '../features/reliability/intent/server.ts'
export { type MediaValue, readMedia } from '../features/reliability/media/messages.ts'
export type { PermissionsOptions } from '../features/reliability/permissions/server.ts'
export { cite } from '../features/reliability/provenance/server.ts'
export type { Recommendation } from '../features/reliability/recommendations/server.ts'
export type { StreamingOptions } from '../features/reliability/streaming/server.ts'
export type { StuckTransaction, TransactionsOptions } from '../features/reliability/transactions/server.ts'
export type { Principal } from '../jsonrpc/connection.ts'
export { McpError } from '../jsonrpc/error.ts'
export type { Icon, Implementation, RevisionId } from '../revisions/index.ts'
export type { FetchHandler } from '../transports/http/fetch.ts'
export type { Listening } from '../transports/http/listening.ts'
export type {
  Context,
  FeatureSet,
  ImporterOptions,
  LiveContext,
  PromptOptions,
  ResourceOptions,
  ServerCall,
  ServerMiddleware,
  ServerResults,
} from './api.ts'
export type { Auth } from './auth.ts'
export type { AuditOptions, ServerOptions } from './options.ts'

export type { FetchOptions, ServeHttpOptions } from './serve.ts'
export { createServer, type Server, type ToolOptions } from './server.ts'
