/** The public API for authors of clients and hosts: connect to any MCP server, whatever revision it speaks. */
import '../core/required-node.ts'

export {
  AuthorizationError,
  type Browser,
  bearer,
  type ClientAuthorization as Authorization,
  type ClientCredentialsOptions,
  type CliOptions,
  cli,
  clientCredentials,
  type EnterpriseOptions,
  enterprise,
  fileStorage,
  memoryStorage,
  type OAuthClientOptions as OAuthOptions,
  oauth,
  type SigningAlgorithm,
  type TokenStorage,
  type WorkloadOptions,
  workloadIdentity,
} from '../auth/client/index.ts'
export { createLog, type Log, type LogOptions } from '../core/log.ts'
export { type Outbound, OutboundError } from '../core/outbound.ts'
export { type Category, Problem } from '../core/problem.ts'
export { jsonSchema } from '../core/schema/index.ts'
export type { Why } from '../core/suggestion.ts'
export type { RequestOptions } from '../engine/client-feature.ts'
export type { ChannelStream } from '../features/live/channels/client.ts'
export type { LiveBlock, LiveConnection, LiveHandlers } from '../features/live/client-api.ts'
export type { HostSelection as Selection } from '../features/live/dialects/messages.ts'
export type { InferenceRequest, InferenceResult } from '../features/live/inference/messages.ts'
export type { PushAnswer, PushEvent } from '../features/live/push-events/messages.ts'
export type { ContentBlock, ResourceContents } from '../features/mcp/content/messages.ts'
export type { Question } from '../features/mcp/elicitation/client.ts'
export type { ElicitResult } from '../features/mcp/elicitation/messages.ts'
export type { LogMessage } from '../features/mcp/logging/client.ts'
export type { LogLevel } from '../features/mcp/logging/messages.ts'
export type { GetPromptResult, Prompt } from '../features/mcp/prompts/messages.ts'
export type { ReadResourceResult, Resource, ResourceTemplate } from '../features/mcp/resources/messages.ts'
export type { Root } from '../features/mcp/roots/messages.ts'
export type { SamplingMessage, SamplingParams, SamplingResult } from '../features/mcp/sampling/messages.ts'
export type { ChangeKind } from '../features/mcp/subscriptions/client.ts'
export type { Tool } from '../features/mcp/tools/messages.ts'
export type { ConfirmQuestion } from '../features/reliability/confirmation/client.ts'
export { type CallUsage, type CostQuestion, type OfferedCost, offeredCost } from '../features/reliability/cost/client.ts'
export { type DataReference, dataReference } from '../features/reliability/data-references/messages.ts'
export type {
  EventReader,
  EventsClientOptions as EventsOptions,
  EventType,
  ServerEvent,
} from '../features/reliability/events/client.ts'
export type { CallStatus } from '../features/reliability/idempotency/client.ts'
export { type Suggestion, suggestionText } from '../features/reliability/intent/client.ts'
export type { Manifest } from '../features/reliability/manifest/client.ts'
export { readManifest } from '../features/reliability/manifest/client.ts'
export { type MediaValue, readMedia } from '../features/reliability/media/messages.ts'
export type { Permission, Permissions } from '../features/reliability/permissions/client.ts'
export { classify } from '../features/reliability/problem/classify.ts'
export type { ResultProvenance, Source } from '../features/reliability/provenance/client.ts'
export { type Connection, ConnectionError } from '../jsonrpc/connection.ts'
export { McpError } from '../jsonrpc/error.ts'
export type { Implementation, RevisionId } from '../revisions/index.ts'
export type { CallToolOptions, ConnectOptions, Recommended, ToldProgress, ToolOutcome } from './api.ts'
export { Client } from './client.ts'
export { connect } from './connect.ts'
export { createFinder, type Finder, type FinderOptions, type FindOptions } from './finder/finder.ts'
export type { Candidate, Found } from './finder/search.ts'
export { type Saga, type SagaOptions, type SagaReport, type SagaStepOptions, type SagasOptions, saga } from './saga.ts'
export type { ClientMiddleware, OutgoingCall } from './session.ts'
export type { Command, Target } from './target.ts'
export { type Checkpoint, type StreamToolOptions, ToolStream } from './tool-stream.ts'
export { type StepOptions, Transaction, type TransactionOptions, type TransactionReport } from './transaction.ts'
