/** `Client`: a thin façade over the features' client sides, for one server. */
import { toMilliseconds } from '../core/duration.ts'
import type { InferOutput, Schema } from '../core/schema/index.ts'
import type { SendOptions } from '../engine/calls.ts'
import { type Completion, complete } from '../features/mcp/completion/messages.ts'
import { answer, drive, isFinal } from '../features/mcp/input-required/client.ts'
import { ping } from '../features/mcp/lifecycle/messages.ts'
import type { LogLevel } from '../features/mcp/logging/messages.ts'
import { type GetPromptResult, getPrompt, listPrompts, type Prompt } from '../features/mcp/prompts/messages.ts'
import {
  listResources,
  listResourceTemplates,
  type ReadResourceResult,
  type Resource,
  type ResourceTemplate,
  readResource,
} from '../features/mcp/resources/messages.ts'
import { rootsChanged } from '../features/mcp/roots/messages.ts'
import { finishTask } from '../features/mcp/tasks/client.ts'
import { listTools, type Tool } from '../features/mcp/tools/messages.ts'
import { type CallStatus, callStatus, getKey } from '../features/reliability/idempotency/client.ts'
import type { Manifest } from '../features/reliability/manifest/client.ts'
import { Permissions } from '../features/reliability/permissions/client.ts'
import type { Recommended } from '../features/reliability/recommendations/client.ts'
import { StateTokens } from '../features/reliability/session-state/client.ts'
import { getTransaction, type TransactionReport, transactionReport } from '../features/reliability/transactions/client.ts'
import type { Params } from '../jsonrpc/message.ts'
import type { Capabilities, Implementation, RevisionId } from '../revisions/index.ts'
import { withArray } from './answer-shape.ts'
import type { ChangeKind, FollowOptions, WatchOptions } from './changes.ts'
import type { ClientParts } from './client-parts.ts'
import { Completions, type CompletionsOptions, completionQuestion } from './completions.ts'
import { callConfirmed } from './confirmed-calls.ts'
import type { EventReader, EventsOptions, EventType } from './events.ts'
import { incompatibleTools, isIncompatibleTool } from './incompatible-servers.ts'
import { fetchKept, type Lister, listAll } from './lists.ts'
import type { LiveConnection } from './live-handlers.ts'
import { Manifests } from './manifests.ts'
import type { RequestOptions } from './options.ts'
import type { ToolOutcome } from './outcome.ts'
import { callPriced, isPriced } from './priced-calls.ts'
import { recommended } from './recommended.ts'
import type { ReadReferenceOptions } from './references.ts'
import type { ClientMiddleware } from './session.ts'
import { statefully } from './stateful.ts'
import { ToolBook } from './tool-book.ts'
import { type CallToolOptions, callToolOn, heard, type ToolCaller } from './tool-calls.ts'
import { type Chunked, type StreamCaller, type StreamToolOptions, ToolStream } from './tool-stream.ts'
import { Transaction, type TransactionOptions } from './transaction.ts'

/** The lists of a server, and which capability each belongs to. */
const lists = {
  tools: { method: listTools, member: 'tools', capability: 'tools' },
  prompts: { method: listPrompts, member: 'prompts', capability: 'prompts' },
  resources: { method: listResources, member: 'resources', capability: 'resources' },
  // Many servers have resources and never heard of templates.
  templates: { method: listResourceTemplates, member: 'resourceTemplates', capability: 'resources', optional: true },
} as const

/** How often one call may be answered with questions. */
const rounds = 10
const never = new AbortController().signal
type Texts = Readonly<Record<string, string>>
const standard: RequestOptions = {}

export class Client {
  readonly #parts: ClientParts
  readonly #caller: ToolCaller
  readonly #lister: Lister
  readonly #completions: Completions
  readonly #states: StateTokens
  readonly #manifests: Manifests
  /** What most calls are sent with. */
  readonly #plain: SendOptions
  /** What a server that knows permissions would allow, and asking it for more. */
  readonly permissions: Permissions

  constructor(parts: ClientParts) {
    const { session, cache, answerers, validateArguments, timeoutMs } = parts
    this.#parts = parts
    this.#states = new StateTokens((event, detail) => session.engine.trace(event, detail))
    this.#plain = { timeoutMs }
    this.permissions = new Permissions((method, params) => session.request(method, params, this.#send(standard)))
    this.#lister = { session, cache, limits: parts.listLimits }
    this.#manifests = new Manifests(this.#lister, () => this.tools())
    const { clock, completionDelayMs: delayMs, completionMs: keepMs } = parts
    const send: CompletionsOptions['send'] = (question, sending) => session.request(complete, question, sending)
    this.#completions = new Completions({ send, clock, delayMs, keepMs, caller: () => cache.callers })
    this.#caller = {
      session,
      live: parts.live,
      book: new ToolBook((event, detail) => session.engine.trace(event, detail)),
      answerers,
      rounds,
      validateArguments,
      retries: parts.retries,
      newKey: () => crypto.randomUUID(),
      sendOptions: options => this.#send(options),
      list: (anew, signal) => this.#readTools(anew, signal),
      finishTask: (task, { signal = never, totalMs }, onStatus) =>
        finishTask(session.tasks, task, {
          totalMs,
          signal,
          onStatus,
          answer: request => answer(request, { answerers, signal }),
        }),
    }
  }

  /** What it calls tools with, for those who pass on other people's calls. */
  static caller = (client: Client): ToolCaller => client.#caller

  /** The wire that was settled on. */
  get revision(): RevisionId {
    return this.#parts.session.opened.revision.id
  }

  get capabilities(): Capabilities {
    return this.#parts.session.opened.capabilities
  }

  get server(): Implementation | undefined {
    return this.#parts.session.opened.serverInfo
  }

  get instructions(): string | undefined {
    return this.#parts.session.opened.instructions
  }

  /** Resolves when the connection is over: with why it broke, or with nothing where it was closed on this side. */
  get ended(): Promise<Error | undefined> {
    return this.#parts.session.ended
  }

  /** The server as a live one; undefined where it is not, or the option `live` was not given. */
  get live(): LiveConnection | undefined {
    return this.#parts.live?.connection
  }

  /** The feature set of MCP Live that a tool belongs to, once the tools were listed; undefined where nobody says so. */
  toolSet(name: string): string | undefined {
    return this.#parts.live?.toolSet(this.#caller.book.get(name)?.tool as Params | undefined)
  }

  /** Wraps every call from now on; the first given is the outermost. */
  use(middleware: ClientMiddleware): this {
    this.#parts.session.middleware.push(middleware)
    return this
  }

  /** Calls a tool. With the option `output` the structured content is checked, and typed where the tool did not fail. */
  callTool<S extends Schema>(
    name: string,
    args: Params | undefined,
    options: CallToolOptions<S> & { readonly output: S },
  ): Promise<ToolOutcome<InferOutput<S>>>
  callTool(name: string, args?: Params, options?: CallToolOptions): Promise<ToolOutcome>
  callTool(name: string, args?: Params, options: CallToolOptions = standard): Promise<ToolOutcome> {
    return this.#stateful(heard(options), echoing => this.#called(name, args, echoing))
  }

  /**
   * Calls a tool and gives its result while it forms: `for await (const chunk of stream)`, then `await stream.result`, which is
   * complete in itself. A connection that breaks in between is made good where the server knows how. A server that does not
   * stream gives its result as the only chunk.
   */
  streamTool<C extends Schema, S extends Schema>(
    name: string,
    args?: Params,
    options: StreamToolOptions<S, C> = {},
  ): ToolStream<Chunked<C>, Chunked<S>> {
    const { session, clock } = this.#parts
    const call: StreamCaller['call'] = (wanted, again, mayRepeat) => {
      const caller = { ...this.#caller, mayRepeat }
      return this.#stateful(wanted, sent =>
        again ? callToolOn(caller, name, args, sent) : this.#called(name, args, sent, caller),
      )
    }
    return new ToolStream({ clock, tool: name, open: () => !session.opened.conversation.ended, call }, options)
  }

  #called(name: string, args: Params | undefined, options: CallToolOptions, caller = this.#caller): Promise<ToolOutcome> {
    const { pricing, confirmation } = this.#parts
    if (!isPriced(pricing, caller, name, options)) return callConfirmed(caller, confirmation, name, args, options)
    return callPriced(pricing, caller, (by, ...call) => callConfirmed(by, confirmation, ...call), name, args, options)
  }

  /**
   * Begins a transaction: calls that stay together, or are taken back together.
   * @example await using tx = await mcp.transaction(); await tx.callTool('create', …); await tx.commit()
   */
  transaction(options: TransactionOptions = {}): Promise<Transaction> {
    const { session, retries } = this.#parts
    return Transaction.begin(
      { session, retries, send: this.#plain, states: this.#states, call: (name, args, more) => this.callTool(name, args, more) },
      options,
    )
  }

  /** How a transaction of ours stands, whichever process began it. */
  async transactionStatus(id: string, options: RequestOptions = standard): Promise<TransactionReport> {
    return transactionReport(await this.#parts.session.request(getTransaction, { transaction_id: id }, this.#send(options)))
  }

  /** What servers keep for a conversation is left behind: its next call begins without. */
  forgetState(conversation?: string): void {
    this.#states.forget(conversation)
  }

  /** What a server that knows idempotency keys knows of the call that was made under one. */
  async callStatus(idempotencyKey: string, options: RequestOptions = standard): Promise<CallStatus> {
    return callStatus(await this.#parts.session.request(getKey, { idempotency_key: idempotencyKey }, this.#send(options)))
  }

  /** All tools that are fit for use; pages by itself, and keeps what the server lets us keep. */
  async *tools(options: RequestOptions = standard): AsyncGenerator<Tool, void, undefined> {
    const { revision, conversation } = this.#parts.session.opened
    const mirrors = revision.era === 'request' && conversation.caller.carrier === 'http'
    let [fit, foreign] = [false, false]
    for await (const tool of listAll<Tool>(this.#lister, lists.tools, this.#send(options))) {
      if (this.#caller.book.learn(tool, mirrors)) {
        fit = true
        yield tool
      } else foreign ||= isIncompatibleTool(tool)
    }
    // An empty list would hide that there are tools.
    if (foreign && !fit) throw incompatibleTools()
  }

  /**
   * All that is known of the server before a call: its tools with their scopes, cost, risk and limits. Kept as long as the server
   * lets us; of a server that has none it is put together from its lists.
   */
  manifest(options: RequestOptions = standard): Promise<Manifest> {
    return this.#manifests.get(this.#send(options))
  }

  /** The servers that this one recommends for a capability that it lacks, the surest first. Nothing connects to them. */
  recommend(
    capability: string,
    options: RequestOptions & { readonly limit?: number } = standard,
  ): Promise<readonly Recommended[]> {
    return recommended(this.#parts.session, capability, options.limit, this.#send(options), () => this.manifest(options))
  }

  async *resources(options: RequestOptions = standard): AsyncGenerator<Resource, void, undefined> {
    const { resources } = this.#parts
    resources.clear()
    for await (const resource of listAll<Resource>(this.#lister, lists.resources, this.#send(options))) {
      resources.learn(resource)
      yield resource
    }
  }

  async *resourceTemplates(options: RequestOptions = standard): AsyncGenerator<ResourceTemplate, void, undefined> {
    yield* listAll(this.#lister, lists.templates, this.#send(options))
  }

  async *prompts(options: RequestOptions = standard): AsyncGenerator<Prompt, void, undefined> {
    yield* listAll(this.#lister, lists.prompts, this.#send(options))
  }

  readResource(uri: string, options: RequestOptions = standard): Promise<ReadResourceResult> {
    return this.#stateful(options, echoing => this.#readResource(uri, echoing))
  }

  async #readResource(uri: string, options: RequestOptions): Promise<ReadResourceResult> {
    const send = this.#send(options)
    const first = await fetchKept(this.#lister, readResource, { uri }, send)
    // What came of questions is for this call only.
    const again = (more: Params): Promise<unknown> => this.#parts.session.request(readResource, { uri, ...more }, send)
    return withArray<ReadResourceResult>(await this.#driven(first, again, send), readResource.name, 'contents')
  }

  /**
   * The content that a reference stands for (a block of a result that carries one, or the reference itself), as a stream that goes
   * on by itself where a connection broke. It ends with an error where it is not what was announced.
   * @example for await (const chunk of await mcp.readReference(content[0])) file.write(chunk)
   */
  async readReference(reference: unknown, options: ReadReferenceOptions = {}): Promise<ReadableStream<Uint8Array>> {
    const { address: server, clock } = this.#parts
    const { referenceStream } = await import('./references.ts')
    return referenceStream(reference, { server, clock, read: uri => this.readResource(uri, options) }, options)
  }

  getPrompt(name: string, args?: Texts, options: RequestOptions = standard): Promise<GetPromptResult> {
    return this.#stateful(options, echoing => this.#getPrompt(name, args, echoing))
  }

  async #getPrompt(name: string, args: Texts | undefined, options: RequestOptions): Promise<GetPromptResult> {
    const send = this.#send(options)
    const params = args === undefined ? { name } : { name, arguments: args }
    const again = (more?: Params): Promise<unknown> => this.#parts.session.request(getPrompt, { ...params, ...more }, send)
    return withArray<GetPromptResult>(await this.#driven(await again(), again, send), getPrompt.name, 'messages')
  }

  /**
   * What an argument could become. Of rapid questions about one argument only the last is sent, and all get its answer
   * (option `completionDelay`); the same question again is answered from memory for a moment (`completionCache`).
   */
  async complete(
    ref: { readonly prompt: string } | { readonly template: string },
    argument: { readonly name: string; readonly value: string },
    options: RequestOptions & { readonly arguments?: Readonly<Record<string, string>> } = standard,
  ): Promise<Completion> {
    return this.#completions.ask(completionQuestion(ref, argument, options.arguments), this.#send(options))
  }

  /** Which log messages the server sends: for the session, or with each request, whichever the wire has. */
  async setLogLevel(level: LogLevel, options: RequestOptions = standard): Promise<void> {
    await this.#parts.log.set(level, this.#send(options))
  }

  async ping(options: RequestOptions = standard): Promise<void> {
    await this.#parts.session.request(ping, {}, this.#send(options))
  }

  /** Yields once for each change of a list that is announced while somebody reads here. */
  changes(kind: ChangeKind, { signal, beside }: FollowOptions = {}): AsyncGenerator<void, void, undefined> {
    return this.#parts.changes.ofList(kind, signal, beside)
  }

  /** Yields the URI of each announced update of a resource, or of a part of it. */
  resourceUpdates(uri: string, options: WatchOptions = {}): AsyncGenerator<string, void, undefined> {
    return this.#parts.changes.ofResource(uri, options.signal, options.onWatched)
  }

  /**
   * What happens at the server, from now on or behind a cursor, each event once and in order. Taken up again by itself when the
   * connection breaks; where something is missing that the server no longer has, the next event says `truncated`.
   * @example for await (const { payload } of mcp.events(['ticket_created'], { filter: { project: 'home' } })) console.log(payload)
   */
  events(names: readonly string[], options: EventsOptions = {}): EventReader {
    return this.#parts.events.stream(names, options, () => this.#send(standard))
  }

  /** What can be subscribed to by `events`, for whoever asks; none where the server has no events. */
  eventTypes(options: RequestOptions = standard): Promise<readonly EventType[]> {
    return this.#parts.events.types(this.#send(options))
  }

  /** Tells the server that the roots are other ones now. */
  rootsChanged(): void {
    this.#parts.session.engine.notify(this.#parts.session.opened.conversation, rootsChanged, {})
  }

  async close(): Promise<void> {
    this.#parts.stop()
    await this.#parts.session.close()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  #stateful<T extends object, O extends RequestOptions>(options: O, work: (options: O) => Promise<T>): Promise<T> {
    return statefully(this.#states, options, work)
  }

  async #readTools(anew: boolean, signal: AbortSignal | undefined): Promise<void> {
    if (anew) this.#parts.cache.drop(listTools.name)
    for await (const _ of this.tools(signal === undefined ? standard : { signal }));
  }

  #send({ signal, timeout, meta: own }: RequestOptions): SendOptions {
    const [granted, live] = [this.permissions.meta, this.#parts.live?.meta]
    const meta = granted === undefined && live === undefined ? own : { ...granted, ...live, ...own }
    if (signal === undefined && timeout === undefined && meta === undefined) return this.#plain
    return {
      timeoutMs: timeout === undefined ? this.#parts.timeoutMs : toMilliseconds(timeout, 'timeout'),
      ...(signal === undefined ? {} : { signal }),
      ...(meta === undefined ? {} : { meta }),
    }
  }

  /** Answers what a result asks, on wires where questions travel so. */
  #driven(first: unknown, again: (more: Params) => Promise<unknown>, { signal }: SendOptions): unknown {
    const { session, answerers } = this.#parts
    if (isFinal(first) || session.opened.revision.asks !== 'result') return first
    return drive(first, again, { answerers, rounds, signal })
  }
}
