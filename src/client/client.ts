/** `Client`: a thin façade over the features' client sides, for one server. */
import { toMilliseconds } from '../core/duration.ts'
import type { InferOutput, Schema } from '../core/schema/index.ts'
import type { SendOptions } from '../engine/calls.ts'
import { type CompletionResult, complete } from '../features/mcp/completion/messages.ts'
import { type Answerers, drive } from '../features/mcp/input-required/client.ts'
import { ping } from '../features/mcp/lifecycle/messages.ts'
import { type LogLevel, setLevel } from '../features/mcp/logging/messages.ts'
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
import { listTools, type Tool } from '../features/mcp/tools/messages.ts'
import type { Params } from '../jsonrpc/message.ts'
import type { Capabilities, Implementation, RevisionId } from '../revisions/index.ts'
import type { ResultCache } from './cache.ts'
import { type ChangeKind, listChanges, resourceUpdates } from './changes.ts'
import type { Hub } from './hub.ts'
import { fetchKept, listAll } from './lists.ts'
import type { RequestOptions } from './options.ts'
import type { ClientMiddleware, Session } from './session.ts'
import { type CallToolOptions, callToolOn, type ToolCaller, type ToolOutcome } from './tool-calls.ts'

export interface ClientParts {
  readonly session: Session
  readonly cache: ResultCache
  readonly completions: ResultCache
  readonly hub: Hub
  readonly caller: ToolCaller
  readonly answerers: Answerers
  readonly timeoutMs: number
  readonly completionMs: number
  readonly logLevel: (level: LogLevel | undefined) => void
  readonly stop: () => void
}

const never = new AbortController().signal

export class Client {
  readonly #parts: ClientParts

  constructor(parts: ClientParts) {
    this.#parts = parts
  }

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

  /** Wraps every call from now on. */
  use(middleware: ClientMiddleware): this {
    this.#parts.session.middleware.push(middleware)
    return this
  }

  callTool<S extends Schema = Schema>(name: string, args?: Params, options: CallToolOptions<S> = {}): Promise<ToolOutcome<InferOutput<S>>> {
    const send = this.#send(options)
    return callToolOn(this.#parts.caller, name, args, options, options.onProgress === undefined ? send : { ...send, onProgress: options.onProgress })
  }

  /** All tools; pages by itself, and keeps what the server lets us keep. */
  async *tools(options: RequestOptions = {}): AsyncGenerator<Tool, void, undefined> {
    const { session, cache, caller } = this.#parts
    const mirrors = session.opened.revision.era === 'request' && session.opened.conversation.caller.carrier === 'http'
    for await (const tool of listAll<Tool>(session, cache, listTools, 'tools', this.#send(options))) if (caller.book.learn(tool, mirrors)) yield tool
  }

  resources(options: RequestOptions = {}): AsyncGenerator<Resource, void, undefined> {
    return listAll(this.#parts.session, this.#parts.cache, listResources, 'resources', this.#send(options))
  }

  resourceTemplates(options: RequestOptions = {}): AsyncGenerator<ResourceTemplate, void, undefined> {
    return listAll(this.#parts.session, this.#parts.cache, listResourceTemplates, 'resourceTemplates', this.#send(options))
  }

  prompts(options: RequestOptions = {}): AsyncGenerator<Prompt, void, undefined> {
    return listAll(this.#parts.session, this.#parts.cache, listPrompts, 'prompts', this.#send(options))
  }

  async readResource(uri: string, options: RequestOptions = {}): Promise<ReadResourceResult> {
    const { cache, session } = this.#parts
    const send = this.#send(options)
    let asked = false
    const result = await this.#drive({ uri }, send, (params) => {
      const retry = asked
      asked = true
      // What came of questions is for this call only.
      return retry ? session.request(readResource, params as never, send) : fetchKept(session, cache, readResource, params, send)
    })
    return result as ReadResourceResult
  }

  async getPrompt(name: string, args?: Readonly<Record<string, string>>, options: RequestOptions = {}): Promise<GetPromptResult> {
    const send = this.#send(options)
    const params = args === undefined ? { name } : { name, arguments: args }
    return (await this.#drive(params, send, (next) => this.#parts.session.request(getPrompt, next as never, send))) as GetPromptResult
  }

  /** Completions for the same question are asked once and kept for a moment. */
  async complete(
    ref: { readonly prompt: string } | { readonly template: string },
    argument: { readonly name: string; readonly value: string },
    options: RequestOptions & { readonly arguments?: Readonly<Record<string, string>> } = {},
  ): Promise<CompletionResult['completion']> {
    const { session, completions, completionMs } = this.#parts
    const params = {
      ref: 'prompt' in ref ? { type: 'ref/prompt' as const, name: ref.prompt } : { type: 'ref/resource' as const, uri: ref.template },
      argument,
      ...(options.arguments === undefined ? {} : { context: { arguments: options.arguments } }),
    }
    const kept = completions.get(complete.name, params) as { value: Promise<CompletionResult> } | undefined
    if (kept !== undefined) return (await kept.value).completion
    const value = session.request(complete, params, this.#send(options))
    completions.put(complete.name, params, { value, ttlMs: completionMs })
    value.catch(() => completions.clear())
    return (await value).completion
  }

  /** Which log messages the server sends: for the session, or with each request, whichever the wire has. */
  async setLogLevel(level: LogLevel, options: RequestOptions = {}): Promise<void> {
    if (this.#parts.session.opened.revision.era === 'request') this.#parts.logLevel(level)
    else await this.#parts.session.request(setLevel, { level }, this.#send(options))
  }

  async ping(options: RequestOptions = {}): Promise<void> {
    await this.#parts.session.request(ping, {}, this.#send(options))
  }

  /** Yields once for each announced change of a list. */
  changes(kind: ChangeKind, options: { readonly signal?: AbortSignal } = {}): AsyncGenerator<void, void, undefined> {
    return listChanges(this.#parts.session, this.#parts.hub, kind, options.signal ?? never)
  }

  /** Yields the URI of each announced update of a resource. */
  resourceUpdates(uri: string, options: { readonly signal?: AbortSignal } = {}): AsyncGenerator<string, void, undefined> {
    return resourceUpdates(this.#parts.session, this.#parts.hub, uri, options.signal ?? never)
  }

  /** Tells the server that the roots are other ones now. */
  rootsChanged(): void {
    const { engine, opened } = this.#parts.session
    engine.notify(opened.conversation, rootsChanged, {})
  }

  async close(): Promise<void> {
    this.#parts.stop()
    await this.#parts.session.close()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  #send({ signal, timeout, meta }: RequestOptions): SendOptions {
    return {
      timeoutMs: timeout === undefined ? this.#parts.timeoutMs : toMilliseconds(timeout),
      ...(signal === undefined ? {} : { signal }),
      ...(meta === undefined ? {} : { meta }),
    }
  }

  #drive(params: Params, send: SendOptions, request: (params: Params) => Promise<unknown>): Promise<unknown> {
    if (this.#parts.session.opened.revision.asks !== 'result') return request(params)
    return drive(params, request, { answerers: this.#parts.answerers, rounds: this.#parts.caller.rounds, signal: send.signal ?? never })
  }
}
