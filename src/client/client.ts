/**
 * `Client`: the public class for one server. Most of its members come from features; this file adds those of the connection
 * itself.
 */
import type { Schema } from '../core/schema/index.ts'
import type { Method } from '../engine/method.ts'
import type { LiveConnection } from '../features/live/client-api.ts'
import { clientResourcesPort } from '../features/mcp/resources/messages.ts'
import type { ToolCaller } from '../features/mcp/tools/call.ts'
import { toolCallerOf } from '../features/mcp/tools/client.ts'
import { clientToolsPort } from '../features/mcp/tools/messages.ts'
import { readOutput } from '../features/mcp/tools/outcome.ts'
import { classify } from '../features/reliability/problem/classify.ts'
import { problemsPort } from '../features/reliability/problem/messages.ts'
import { statesPort } from '../features/reliability/session-state/messages.ts'
import type { Params } from '../jsonrpc/message.ts'
import type { Capabilities, Implementation, RevisionId } from '../revisions/index.ts'
import type { CallToolOptions, ClientFeatureMembers, ToolOutcome } from './api.ts'
import type { ClientOwnKit } from './kit.ts'
import type { ReadReferenceOptions } from './references.ts'
import type { ClientMiddleware, Session } from './session.ts'
import { type ChunkOf, type StreamToolOptions, ToolStream } from './tool-stream.ts'
import { Transaction, type TransactionOptions } from './transaction.ts'

/** Defines the members of all features on the instance. */
class FeatureMembers {
  constructor({ parts }: ClientOwnKit) {
    for (const { client = {} } of parts)
      for (const [name, member] of Object.entries(Object.getOwnPropertyDescriptors(client)))
        Object.defineProperty(this, name, { ...member, enumerable: false })
  }
}

/** The members that features add at run time. */
const WithFeatures = FeatureMembers as new (kit: ClientOwnKit) => ClientFeatureMembers

/** A connection to one server, made by `connect`. `close` ends it. */
export class Client extends WithFeatures {
  readonly #kit: ClientOwnKit
  readonly #session: Session

  constructor(kit: ClientOwnKit, session: Session) {
    super(kit)
    this.#kit = kit
    this.#session = session
  }

  /**
   * The tool caller of a client, for programs that forward calls of others.
   * @internal
   */
  static override caller = (client: Client): ToolCaller => toolCallerOf(client.#kit.port(clientToolsPort))

  /** The protocol revision in use. */
  get revision(): RevisionId {
    return this.#session.opened.revision.id
  }

  /** The capabilities that the server declares. */
  get capabilities(): Capabilities {
    return this.#session.opened.capabilities
  }

  /** Name and version of the server, if it states them. */
  get server(): Implementation | undefined {
    return this.#session.opened.serverInfo
  }

  /** How the server says that it should be used, for the model. */
  get instructions(): string | undefined {
    return this.#session.opened.instructions
  }

  /** Resolves when the connection has ended: with the error, or with undefined if you closed it. */
  get ended(): Promise<Error | undefined> {
    return this.#session.ended
  }

  /** The MCP Live connection; undefined if the server is not live, or without the option `live`. */
  get live(): LiveConnection | undefined {
    return undefined
  }

  /** The MCP Live feature set of a tool, once the tools were listed; undefined if none is known. */
  toolSet(_name: string): string | undefined {
    return undefined
  }

  /**
   * Adds middleware around every later request. The first middleware is the outermost.
   * @example
   * mcp.use(async (call, next) => {
   *   console.error(call.method)
   *   return next(call)
   * })
   */
  use(middleware: ClientMiddleware): this {
    this.#session.middleware.push(middleware)
    return this
  }

  /**
   * Calls a tool and yields its result in chunks. `await stream.result` gives the complete result. If the connection breaks, the
   * call is resumed where the server supports that. A server that does not stream yields one chunk.
   * @example
   * const stream = mcp.streamTool('export', { table: 'sales' })
   * for await (const chunk of stream) console.log(chunk)
   * const { isError } = await stream.result
   */
  streamTool<C extends Schema, S extends Schema>(
    name: string,
    args?: Params,
    options: StreamToolOptions<S, C> = {},
  ): ToolStream<ChunkOf<C>, ChunkOf<S>> {
    const tools = this.#kit.port(clientToolsPort)
    const call = (wanted: CallToolOptions, resumed: boolean, mayRepeat: () => boolean): Promise<ToolOutcome> =>
      tools.call(name, args, wanted, { resumed, mayRepeat, rawProgress: true }) as Promise<ToolOutcome>
    const open = (): boolean => !this.#session.opened.conversation.ended
    return new ToolStream(
      {
        clock: this.#kit.clock,
        tool: name,
        open,
        call,
        read: (schema, data) => readOutput(schema, name, data),
        mayPass: error => classify(error).retryable,
      },
      options,
    )
  }

  /**
   * Begins a transaction: its calls are committed together, or undone together. Throws if the server has no transactions.
   * @example
   * await using tx = await mcp.transaction()
   * await tx.callTool('create', { title: 'Login fails' })
   * await tx.commit()
   */
  transaction(options: TransactionOptions = {}): Promise<Transaction> {
    const kit = this.#kit
    const session = this.#session
    const request = <P, R>(method: Method<P, R>, params: P): Promise<R> => session.request(method, params, kit.sendPlain)
    const repeat = async <P, R>(method: Method<P, R>, params: P): Promise<R> => {
      const answered = await kit.port(problemsPort).retry({
        tool: method.name,
        attempt: async () => ({ told: await request(method, params), problem: undefined }),
        harmless: () => true,
        open: () => !session.opened.conversation.ended,
        signal: kit.sendPlain.signal,
      })
      return answered.told
    }
    const call = (name: string, args: Params | undefined, more: CallToolOptions) => this.callTool(name, args, more)
    return Transaction.begin({ session, request, repeat, states: kit.port(statesPort), call }, options)
  }

  /**
   * Returns the content behind a data reference (a content block that carries one, or the reference itself) as a stream. It
   * resumes if the connection breaks, and ends with an error if size or digest differ from what was announced.
   * @example for await (const chunk of await mcp.readReference(content[0])) file.write(chunk)
   */
  async readReference(reference: unknown, options: ReadReferenceOptions = {}): Promise<ReadableStream<Uint8Array>> {
    const { address: server, clock, port } = this.#kit
    const { referenceStream } = await import('./references.ts')
    return referenceStream(
      reference,
      { server, clock, read: uri => port(clientResourcesPort).readResource(uri, options) },
      options,
    )
  }

  /** Closes the connection. Pending requests fail. */
  async close(): Promise<void> {
    for (const part of this.#kit.parts) part.closing?.()
    await this.#session.close()
  }

  /** Same as `close()`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }
}
