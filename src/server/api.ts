/** What an author can do with a server: the shapes of `server.tool`, `server.resource` and `server.prompt`. */
import type { InferInput, InferOutput, Schema } from '../core/schema/index.ts'
import type { Engine } from '../engine/engine.ts'
import type { ArgumentFacts, ArgumentsOf } from '../features/mcp/prompts/arguments.ts'
import type { PromptOutput } from '../features/mcp/prompts/result.ts'
import type { PromptFacts } from '../features/mcp/prompts/server.ts'
import type { ResourceOutput } from '../features/mcp/resources/contents.ts'
import type { ResourceFacts } from '../features/mcp/resources/entry.ts'
import type { TemplateVariables, VariableName } from '../features/mcp/resources/variables.ts'
import type { Reply } from '../features/mcp/tools/result.ts'
import type { ToolFacts } from '../features/mcp/tools/server.ts'
import type { Approvals } from '../features/reliability/confirmation/approvals.ts'
import type { States } from '../features/reliability/session-state/server.ts'
import type { UndoFacts } from '../features/reliability/transactions/undo.ts'
import type { Door } from '../jsonrpc/connection.ts'
import type { Awaitable } from '../jsonrpc/message.ts'
import type { FetchHandler } from '../transports/http/fetch.ts'
import type { Listening } from '../transports/http/listening.ts'
import type { Context } from './context.ts'
import type { BudgetsControl } from './cost.ts'
import type { EventHandle, EventOptions } from './events.ts'
import type { FeatureSet, FeatureSetOptions } from './feature-set.ts'
import type { ImporterOptions, ImportHandler } from './importer.ts'
import type { ServerMiddleware } from './middleware.ts'
import type { AuditControl } from './records.ts'
import type { Registration } from './registration.ts'
import type { PermissionsControl, ReliableFacts, Transactions } from './reliability.ts'
import type { FetchOptions, ServeHttpOptions } from './serve.ts'

export interface ToolOptions<I extends Schema, O extends Schema> extends Omit<ToolFacts, 'input' | 'output'>, ReliableFacts {
  /** The arguments: a Zod, Valibot or ArkType schema, or JSON Schema. Default: none are taken. */
  readonly input?: I
  /** The structured result, by a schema as of `input`. What the handler returns is checked against it. */
  readonly output?: O
  /** How a call of this tool is taken back: by which tool, and with which arguments. With it the tool takes part in transactions. */
  readonly undo?: UndoFacts<Arguments<I>, Schema extends O ? unknown : InferOutput<O>>
}

export type Arguments<I> = Schema extends I ? Record<string, never> : InferOutput<I>
export type Returned<O> = Schema extends O ? unknown : InferInput<O> | Reply

/** What an `async function*` gives: each yield is a chunk. Where it returns nothing, the result is made of its chunks. */
// biome-ignore lint/suspicious/noConfusingVoidType: a generator without a return statement returns void
export type Streamed<O> = AsyncGenerator<unknown, Returned<O> | void, void>

export type ResourceOptions<T extends string = string> = ResourceFacts<Context, VariableName<T>>
export type PromptOptions<A> = PromptFacts<Context, A>
type ArgumentsRecord = Readonly<Record<string, ArgumentFacts<Context>>>

export interface AddPrompt {
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

export interface Server {
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
  /**
   * Offers an event, to which clients subscribe.
   * @example const created = server.event('ticket_created', { payload: z.object({ id: z.string() }) }); await created.emit({ id: 'T-1' })
   */
  event<S extends Schema>(name: string, options: EventOptions<S>): EventHandle<S>
  /**
   * Offers the tool `import_from_ref`, by which this server takes over what others have given by reference. The handler gets what
   * was fetched and checked; it is let go afterwards.
   * @example server.importer({}, async data => ({ rows: await load(await data.open()) }))
   */
  importer(options: ImporterOptions, handler: ImportHandler): { remove(): void }
  /**
   * Offers a feature set of MCP Live: what a host may switch on and off as a whole. Hosts that know nothing of MCP Live see its tools.
   * @example const memory = server.featureSet('memory.retrieval', { description: 'Finds memories' }); memory.beforeInference(turn => recall(turn))
   */
  featureSet(name: string, options: FeatureSetOptions): FeatureSet
  /** Tells those who watch it that the content of a resource is another one now. */
  resourceUpdated(uri: string): void
  /** What has become of transactions that somebody should look at. */
  readonly transactions: Transactions
  /** For the page that approves calls of tools whose `confirm` has the channel `url`, and for whoever answers those that stand in line. */
  readonly confirmations: Pick<Approvals, 'find' | 'approve' | 'waiting' | 'refuse'>
  /** What was granted to callers: who holds it, what more they get, and its end. */
  readonly permissions: PermissionsControl
  /** What was decided, by whom, and whether anybody changed what was written of it. */
  readonly audit: AuditControl
  /** What callers may spend beside what quotas allow. */
  readonly budgets: BudgetsControl
  /** The sessions of `ctx.state`: what happens to them, and how one is taken back. */
  readonly states: States
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
