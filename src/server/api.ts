/** What an author can do with a server: what each feature adds, joined. One line a feature. */
import type { InferInput, InferOutput, Schema } from '../core/schema/index.ts'
import type { CallContext } from '../engine/context.ts'
import type { Engine } from '../engine/engine.ts'
import type { Registration } from '../engine/server-feature.ts'
import type { LiveApi, LiveMembers, LiveServerOptions } from '../features/live/server.ts'
import type { FeatureSetOf } from '../features/live/sets.ts'
import type { ElicitationContext } from '../features/mcp/elicitation/server.ts'
import type { OfferingOptions } from '../features/mcp/lifecycle/messages.ts'
import type { LifecycleServerOptions } from '../features/mcp/lifecycle/server.ts'
import type { LoggingContext } from '../features/mcp/logging/server.ts'
import type { ListPromptsResult } from '../features/mcp/prompts/messages.ts'
import type { ArgumentFacts, ArgumentsOf, PromptFacts, PromptOutput } from '../features/mcp/prompts/server.ts'
import type { ResourceFacts } from '../features/mcp/resources/entry.ts'
import type { ListResourcesResult, ListResourceTemplatesResult } from '../features/mcp/resources/messages.ts'
import type { ResourceOutput } from '../features/mcp/resources/server.ts'
import type { TemplateVariables, VariableName } from '../features/mcp/resources/template.ts'
import type { RootsContext } from '../features/mcp/roots/server.ts'
import type { SamplingContext } from '../features/mcp/sampling/server.ts'
import type { TasksContext } from '../features/mcp/tasks/server.ts'
import type { ListToolsResult, ToolFacts } from '../features/mcp/tools/messages.ts'
import type { Reply } from '../features/mcp/tools/result.ts'
import type { ConfirmationApi, ConfirmationContext, ConfirmToolOption } from '../features/reliability/confirmation/server.ts'
import type { BudgetsApi, CostContext, CostServerOptions, CostToolOption } from '../features/reliability/cost/server.ts'
import type {
  ImporterApi,
  ImporterFacts,
  ReferencesContext,
  ReferencesServerOptions,
} from '../features/reliability/data-references/server.ts'
import type { DavioeServerOptions } from '../features/reliability/davioe/server.ts'
import type { EventsApi, EventsServerOptions } from '../features/reliability/events/offering.ts'
import type { FacadeServerOptions } from '../features/reliability/facade/server.ts'
import type { IdempotencyContext, IdempotencyServerOptions } from '../features/reliability/idempotency/server.ts'
import type { IntentContext, IntentServerOptions } from '../features/reliability/intent/server.ts'
import type { ManifestServerOptions, PaginationToolOption } from '../features/reliability/manifest/server.ts'
import type { MediaToolOption } from '../features/reliability/media/server.ts'
import type { PermissionsApi, PermissionsServerOptions, ScopesToolOption } from '../features/reliability/permissions/server.ts'
import type { ProvenanceToolOption } from '../features/reliability/provenance/server.ts'
import type { RecommendationsServerOptions } from '../features/reliability/recommendations/server.ts'
import type { StateContext, StateServerOptions, StatesApi } from '../features/reliability/session-state/server.ts'
import type { ProgressContext, StreamingServerOptions } from '../features/reliability/streaming/server.ts'
import type { TransactionsApi, TransactionsServerOptions, UndoFacts } from '../features/reliability/transactions/server.ts'
import type { Door } from '../jsonrpc/connection.ts'
import type { Awaitable, Params } from '../jsonrpc/message.ts'
import type { FetchHandler } from '../transports/http/fetch.ts'
import type { Listening } from '../transports/http/listening.ts'
import type { AuditControl } from './kit.ts'
import type { FetchOptions, ServeHttpOptions } from './serve.ts'

export type { RateOptions } from '../features/reliability/cost/rates.ts'
export type { ManifestOptions } from '../features/reliability/manifest/server.ts'

/** What the features let an author say of a server. */
export interface FeatureOptions
  extends OfferingOptions,
    LifecycleServerOptions,
    IdempotencyServerOptions,
    TransactionsServerOptions,
    PermissionsServerOptions,
    CostServerOptions,
    IntentServerOptions<Context>,
    StreamingServerOptions,
    StateServerOptions,
    FacadeServerOptions,
    DavioeServerOptions,
    ManifestServerOptions,
    RecommendationsServerOptions,
    EventsServerOptions,
    ReferencesServerOptions,
    LiveServerOptions {}

/** What the features let an author say of a tool. */
interface ToolFeatureOptions
  extends ConfirmToolOption,
    MediaToolOption,
    ProvenanceToolOption,
    PaginationToolOption,
    CostToolOption,
    ScopesToolOption {}

/** What an author says of the tool `import_from_ref`. */
export interface ImporterOptions extends ImporterFacts, ToolFeatureOptions {}

/** A feature set that is offered. */
export interface FeatureSet extends FeatureSetOf<AddLiveTool> {}

/** Offers a tool that belongs to a feature set. */
type AddLiveTool = <I extends Schema, O extends Schema>(
  name: string,
  options: ToolOptions<I, O>,
  handler: (args: Arguments<I>, context: LiveContext) => Awaitable<Returned<O>> | Streamed<O>,
) => Registration<ToolOptions<I, O>>

/** What an author says of a tool. The type of one option is an indexed access: `ToolOptions['confirm']`. */
export interface ToolOptions<I extends Schema = Schema, O extends Schema = Schema>
  extends Omit<ToolFacts, 'input' | 'output'>,
    ToolFeatureOptions {
  /** The arguments: a Zod, Valibot or ArkType schema, or JSON Schema. Default: none are taken. */
  readonly input?: I
  /** The structured result, by a schema as of `input`. What the handler returns is checked against it. */
  readonly output?: O
  /** How a call of this tool is taken back: by which tool, and with which arguments. With it the tool takes part in transactions. */
  readonly undo?: UndoFacts<Arguments<I>, Schema extends O ? unknown : InferOutput<O>>
}

type Arguments<I> = Schema extends I ? Record<string, never> : InferOutput<I>
type Returned<O> = Schema extends O ? unknown : InferInput<O> | Reply

/** What an `async function*` gives: each yield is a chunk. Where it returns nothing, the result is made of its chunks. */
// biome-ignore lint/suspicious/noConfusingVoidType: a generator without a return statement returns void
type Streamed<O> = AsyncGenerator<unknown, Returned<O> | void, void>

/** What an author says of a resource. */
export type ResourceOptions<T extends string = string> = ResourceFacts<Context, VariableName<T>>
/** What an author says of a prompt. */
export type PromptOptions<A> = PromptFacts<Context, A>
type ArgumentsRecord = Readonly<Record<string, ArgumentFacts<Context>>>

interface AddPrompt {
  <const A extends ArgumentsRecord>(
    name: string,
    options: PromptOptions<A>,
    handler: (args: ArgumentsOf<A>, context: Context) => Awaitable<PromptOutput>,
  ): Registration<PromptOptions<A>>
  <A extends Schema>(
    name: string,
    options: PromptOptions<A>,
    handler: (args: InferOutput<A>, context: Context) => Awaitable<PromptOutput>,
  ): Registration<PromptOptions<A>>
}

/** A server, as its author holds it. */
export interface Server
  extends EventsApi,
    ImporterApi<Context, ImporterOptions>,
    LiveApi<FeatureSet>,
    TransactionsApi,
    ConfirmationApi,
    PermissionsApi,
    BudgetsApi,
    StatesApi {
  /** Where carriers of one's own hand in connections. */
  readonly door: Door
  /** What is underneath. Not part of what we promise to keep as it is. */
  readonly engine: Engine
  /**
   * Offers a tool. Arguments are checked before the handler runs; what it returns (a text, an object, content blocks) becomes the
   * result, and what it throws becomes a result that says so.
   * @example server.tool('add', { description: 'Adds', input: z.object({ a: z.number(), b: z.number() }) }, ({ a, b }) => a + b)
   */
  tool<I extends Schema, O extends Schema>(
    name: string,
    options: ToolOptions<I, O>,
    handler: (args: Arguments<I>, context: Context) => Awaitable<Returned<O>> | Streamed<O>,
  ): Registration<ToolOptions<I, O>>
  /**
   * Offers a resource under one URI, or by a URI template (RFC 6570) many. Returning nothing means that there is none such.
   * @example server.resource('ticket://{id}', { name: 'ticket', mimeType: 'text/plain' }, ({ id }) => tickets.get(id))
   */
  resource<const T extends string>(
    address: T,
    options: ResourceOptions<T>,
    handler: (variables: TemplateVariables<T>, context: Context) => Awaitable<ResourceOutput>,
  ): Registration<ResourceOptions<T>>
  /**
   * Offers a prompt. A string that the handler returns is what the user says.
   * @example server.prompt('triage', { arguments: { id: { required: true } } }, ({ id }) => `Triage ticket ${id}`)
   */
  readonly prompt: AddPrompt
  /** Tells those who watch it that the content of a resource is another one now. */
  resourceUpdated(uri: string): void
  /** What was decided, by whom, and whether anybody changed what was written of it. */
  readonly audit: AuditControl
  /** Wraps every request from now on. */
  use(middleware: ServerMiddleware): Server
  /** Serves one client on standard input and output; settles when it has gone. */
  stdio(): Promise<void>
  /** Serves HTTP, by default on loopback and a free port. */
  listen(options?: ServeHttpOptions): Promise<Listening>
  /** The web-standard face: `export default { fetch: server.fetch }`. */
  readonly fetch: FetchHandler
  /** The same for other hosts and origins than loopback. */
  fetchWith(options: FetchOptions): FetchHandler
  /** Ends all conversations and listeners. */
  close(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

// What a handler gets beside its arguments: the engine's context and what each feature adds to it.

/** The author's view of a call. */
export interface Context
  extends CallContext,
    ElicitationContext,
    LoggingContext,
    RootsContext,
    SamplingContext,
    TasksContext,
    ConfirmationContext,
    CostContext,
    ReferencesContext,
    IdempotencyContext,
    IntentContext,
    StateContext,
    ProgressContext {}

/** The author's view of a call of a tool that belongs to a feature set. */
export interface LiveContext extends Context, LiveMembers {}

// Middleware around every request.

/** What comes of the requests that a server answers, by their canonical names. Lists are the same on every wire. */
export interface ServerResults {
  'tools/list': ListToolsResult
  'tools/call': unknown
  'prompts/list': ListPromptsResult
  'prompts/get': unknown
  'resources/list': ListResourcesResult
  'resources/templates/list': ListResourceTemplatesResult
  'resources/read': unknown
  'resources/subscribe': unknown
  'resources/unsubscribe': unknown
  'completion/complete': unknown
  'subscriptions/listen': unknown
  'logging/setLevel': unknown
  'tasks/get': unknown
  'tasks/list': unknown
  'tasks/update': unknown
  'tasks/result': unknown
  'tasks/cancel': unknown
  'tasks/input_response': unknown
  initialize: unknown
  'server/discover': unknown
  ping: unknown
  shutdown: unknown
}

/** One incoming request, as middleware sees it. */
export type ServerCall = { [M in keyof ServerResults]: CallOf<M> }[keyof ServerResults]

interface CallOf<M extends keyof ServerResults> {
  /** The canonical name of the method, whatever the wire calls it. */
  readonly method: M
  readonly params: Params
  readonly context: Context
}

/**
 * Calls `next` with the call (or a changed one) to go on, and may change what comes of it.
 *
 * @example
 * server.use(async (call, next) => {
 *   if (call.method !== 'tools/list') return next(call)
 *   const page = await next(call)
 *   return { ...page, tools: page.tools.filter(({ name }) => mayCall(call.context.principal, name)) }
 * })
 */
export type ServerMiddleware = (
  call: ServerCall,
  next: <C extends ServerCall>(call: C) => Promise<ServerResults[C['method']]>,
) => Awaitable<unknown>
