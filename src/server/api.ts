/** What an author can do with a server: what each feature adds, joined. One line a feature. */
import type { AuditControl } from '../core/audit/audit.ts'
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
import type { Acceptor } from '../jsonrpc/connection.ts'
import type { Awaitable, Params } from '../jsonrpc/message.ts'
import type { FetchHandler } from '../transports/http/fetch.ts'
import type { Listening } from '../transports/http/listening.ts'
import type { FetchOptions, ServeHttpOptions } from './serve.ts'

export type { RateOptions } from '../features/reliability/cost/rates.ts'
export type { ManifestOptions } from '../features/reliability/manifest/server.ts'

/** Options of `createServer` that features add. */
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

/** Options of `server.tool` that features add. */
interface ToolFeatureOptions
  extends ConfirmToolOption,
    MediaToolOption,
    ProvenanceToolOption,
    PaginationToolOption,
    CostToolOption,
    ScopesToolOption {}

/** Options of `server.importer`. */
export interface ImporterOptions extends ImporterFacts, ToolFeatureOptions {}

/** A feature set of MCP Live, made by `server.featureSet`. */
export interface FeatureSet extends FeatureSetOf<AddLiveTool> {}

/** Registers a tool of a feature set. Works like `server.tool`, and `ctx` has the members of MCP Live. */
type AddLiveTool = <I extends Schema, O extends Schema>(
  name: string,
  options: ToolOptions<I, O>,
  handler: (args: Arguments<I>, context: LiveContext) => Awaitable<HandlerReturn<O>> | HandlerStream<O>,
) => Registration<ToolOptions<I, O>>

/** Options of `server.tool`. To name the type of one option, write for example `ToolOptions['confirm']`. */
export interface ToolOptions<I extends Schema = Schema, O extends Schema = Schema>
  extends Omit<ToolFacts, 'input' | 'output'>,
    ToolFeatureOptions {
  /**
   * The schema of the arguments: Zod, Valibot, ArkType, or JSON Schema. Arguments are validated before the handler runs. Default:
   * the tool takes no arguments.
   */
  readonly input?: I
  /** The schema of the structured result, as for `input`. What the handler returns is validated. Default: the result is not validated. */
  readonly output?: O
  /**
   * The tool that undoes a call of this one, and its arguments. With it the tool takes part in transactions. Default: calls
   * cannot be undone.
   */
  readonly undo?: UndoFacts<Arguments<I>, Schema extends O ? unknown : InferOutput<O>>
}

/** The arguments that a handler gets: the output of the schema, or an empty object. */
type Arguments<I> = Schema extends I ? Record<string, never> : InferOutput<I>
/** What a handler may return: the input of the output schema, or a `Reply`. Anything without an output schema. */
type HandlerReturn<O> = Schema extends O ? unknown : InferInput<O> | Reply

/** What an `async function*` handler yields: each value is a chunk. If it returns nothing, the result consists of its chunks. */
// biome-ignore lint/suspicious/noConfusingVoidType: a generator without a return statement returns void
type HandlerStream<O> = AsyncGenerator<unknown, HandlerReturn<O> | void, void>

/** Options of `server.resource`. */
export type ResourceOptions<T extends string = string> = ResourceFacts<Context, VariableName<T>>
/** Options of `server.prompt`. */
export type PromptOptions<A> = PromptFacts<Context, A>
/** The arguments of a prompt, by name. */
type ArgumentsRecord = Readonly<Record<string, ArgumentFacts<Context>>>

/** Registers a prompt, with its arguments as a record or as a schema. */
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

/** An MCP server, made by `createServer`. Register tools, resources and prompts, then serve it by `listen`, `stdio` or `fetch`. */
export interface Server
  extends EventsApi,
    ImporterApi<Context, ImporterOptions>,
    LiveApi<FeatureSet>,
    TransactionsApi,
    ConfirmationApi,
    PermissionsApi,
    BudgetsApi,
    StatesApi {
  /** Accepts connections and messages of your own carriers. */
  readonly acceptor: Acceptor
  /**
   * The entrance for carriers of your own: pass connections or single messages to it.
   * @deprecated Use `acceptor`.
   */
  readonly door: Acceptor
  /**
   * The engine that runs this server: for carriers and tools that the public API does not cover.
   * @experimental Its members change without notice.
   */
  readonly engine: Engine
  /**
   * Registers a tool. Arguments are validated before the handler runs. What the handler returns (text, an object, content blocks,
   * `reply(…)`) becomes the result; what it throws becomes an error result.
   * @example
   * server.tool(
   *   'add',
   *   { description: 'Adds two numbers', input: z.object({ a: z.number(), b: z.number() }) },
   *   ({ a, b }) => `${a + b}`,
   * )
   */
  tool<I extends Schema, O extends Schema>(
    name: string,
    options: ToolOptions<I, O>,
    handler: (args: Arguments<I>, context: Context) => Awaitable<HandlerReturn<O>> | HandlerStream<O>,
  ): Registration<ToolOptions<I, O>>
  /**
   * Registers a resource under a URI, or many under a URI template (RFC 6570). A handler that returns nothing states that there
   * is no such resource.
   * @example
   * server.resource('ticket://{id}', { name: 'ticket', mimeType: 'text/plain' }, ({ id }) => tickets.get(id))
   */
  resource<const T extends string>(
    address: T,
    options: ResourceOptions<T>,
    handler: (variables: TemplateVariables<T>, context: Context) => Awaitable<ResourceOutput>,
  ): Registration<ResourceOptions<T>>
  /**
   * Registers a prompt. Text that the handler returns is a message of the user.
   * @example
   * server.prompt('triage', { arguments: { id: { required: true } } }, ({ id }) => `Triage ticket ${id}`)
   */
  readonly prompt: AddPrompt
  /**
   * Notifies the clients that watch this resource that its contents have changed.
   * @example server.resourceUpdated('ticket://T-1')
   */
  resourceUpdated(uri: string): void
  /**
   * Reads and verifies the audit log. There is one if the server has a `store`.
   * @example const lines = await server.audit.read({ tool: 'delete_ticket' })
   */
  readonly audit: AuditControl
  /**
   * Adds middleware around every request. The first middleware is the outermost. Returns the server.
   * @example
   * server.use(async (call, next) => {
   *   const began = Date.now()
   *   const result = await next(call)
   *   console.error(call.method, Date.now() - began, 'ms')
   *   return result
   * })
   */
  use(middleware: ServerMiddleware): Server
  /** Serves one client on standard input and output. Resolves when the client has disconnected. Write logs to standard error only. */
  stdio(): Promise<void>
  /**
   * Serves HTTP on 127.0.0.1 and a free port, unless you say otherwise. An address that others can reach needs `auth`.
   * @example
   * const listening = await server.listen({ path: '/mcp' })
   * console.log(listening.url)
   */
  listen(options?: ServeHttpOptions): Promise<Listening>
  /**
   * Handles a web-standard `Request` of a loopback host: `export default { fetch: server.fetch }`. For other hosts use
   * `fetchWith`.
   * @example const response = await server.fetch(new Request('http://127.0.0.1/mcp', { method: 'POST', body: '…' }))
   */
  readonly fetch: FetchHandler
  /**
   * Returns a handler like `fetch` with other options: accepted hosts and origins, and authorization.
   * @example const handle = server.fetchWith({ hosts: ['api.example.com'], auth: 'none' })
   */
  fetchWith(options: FetchOptions): FetchHandler
  /** Closes all connections, sessions and listeners. */
  close(): Promise<void>
  /** Same as `close()`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void>
}

// What a handler gets beside its arguments: the engine's context and what each feature adds to it.

/** What a handler gets as its second argument: the caller, questions to the user and the model, progress, state, and more. */
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

/** What a handler of a tool of a feature set gets as its second argument. */
export interface LiveContext extends Context, LiveMembers {}

// Middleware around every request.

/** The results of requests by method, as middleware sees them. Lists have the same form in every revision. */
export interface ServerResults {
  /** A page of tools. */
  'tools/list': ListToolsResult
  /** The result of a tool, or the task that it has become. */
  'tools/call': unknown
  /** A page of prompts. */
  'prompts/list': ListPromptsResult
  /** The messages of a prompt. */
  'prompts/get': unknown
  /** A page of resources. */
  'resources/list': ListResourcesResult
  /** A page of resource templates. */
  'resources/templates/list': ListResourceTemplatesResult
  /** The contents of a resource. */
  'resources/read': unknown
  /** An empty result. */
  'resources/subscribe': unknown
  /** An empty result. */
  'resources/unsubscribe': unknown
  /** The proposals for an argument. */
  'completion/complete': unknown
  /** The result that ends a listen request (2026-07-28). */
  'subscriptions/listen': unknown
  /** An empty result. */
  'logging/setLevel': unknown
  /** The state of a task. */
  'tasks/get': unknown
  /** A page of tasks. */
  'tasks/list': unknown
  /** The state of a task after the update. */
  'tasks/update': unknown
  /** The result of the call that the task runs. */
  'tasks/result': unknown
  /** The state of the cancelled task. */
  'tasks/cancel': unknown
  /** An empty result. */
  'tasks/input_response': unknown
  /** The result of the handshake. */
  initialize: unknown
  /** What a server states of itself without a handshake (2026-07-28). */
  'server/discover': unknown
  /** An empty result. */
  ping: unknown
  /** An empty result. */
  shutdown: unknown
}

/** One incoming request, as middleware sees it. Compare `call.method` to narrow the type of the result. */
export type ServerCall = { [M in keyof ServerResults]: CallOf<M> }[keyof ServerResults]

/** One incoming request of a given method. */
interface CallOf<M extends keyof ServerResults> {
  /** The method, by its name in the newest revision. */
  readonly method: M
  /** The params of the request. */
  readonly params: Params
  /** The context that the handler gets. */
  readonly context: Context
}

/**
 * Wraps requests. Call `next` with the call, or a changed one, to continue; return its result or another one.
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
