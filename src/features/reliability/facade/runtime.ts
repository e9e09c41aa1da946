/**
 * The facade, for clients without extensions: extension methods become tools, and their `_meta` members become arguments. It has no
 * state; a facade tool calls the method itself for the same caller. Loaded only if an author enables it.
 */
import type { Catalog } from '../../../core/catalog.ts'
import { Problem, problem } from '../../../core/problem.ts'
import type { CallContext } from '../../../engine/context.ts'
import { compensation, Exchange } from '../../../engine/exchange.ts'
import { withDeclared } from '../../../engine/extensions.ts'
import { wireName } from '../../../engine/method.ts'
import { openParams, type Route } from '../../../engine/plan.ts'
import type { ServerKit } from '../../../engine/server-feature.ts'
import type { Next } from '../../../engine/stages.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { isRecord, type Params } from '../../../jsonrpc/message.ts'
import {
  type CallToolResult,
  type FailedResult,
  failureProblem,
  type Tool,
  type ToolEntry,
  toolsPort,
} from '../../mcp/tools/messages.ts'
import { eventsPort } from '../events/messages.ts'
import { idempotencyExtension, keyPattern } from '../idempotency/messages.ts'
import { permissionsExtension } from '../permissions/messages.ts'
import { problemPort, toWire } from '../problem/messages.ts'
import { transactionsExtension } from '../transactions/messages.ts'
import type { FacadePart } from './messages.ts'
import { type FacadeTool, facadeTools } from './tools.ts'

type Entry = ToolEntry<CallContext>

/** An entry with facade arguments, and the author's original. */
interface ExtendedEntry {
  readonly bare: Entry
  readonly arguments: readonly FacadeArgument[]
}

/** The facade of one server: added to its catalog of tools, and kept up to date. */
export class Facade {
  readonly #kit: ServerKit
  readonly #parts: ReadonlySet<FacadePart>
  readonly #catalog: Catalog<Entry>
  /** The facade tools that are offered, by name. */
  readonly #own = new Map<string, { readonly entry: Entry; readonly tool: FacadeTool }>()
  readonly #extended = new WeakMap<Entry, ExtendedEntry>()
  #busy = false

  constructor(kit: ServerKit, parts: ReadonlySet<FacadePart>) {
    this.#kit = kit
    this.#parts = parts
    this.#catalog = kit.port(toolsPort).catalog
    this.#extendTools()
    this.#catalog.onChange(() => this.#extendTools())
    // The set of offered methods may also change for reasons outside of the catalog.
    kit.port(eventsPort).onChange(() => this.#extendTools())
  }

  /** Whether a call contains facade arguments. */
  argues(exchange: Exchange): boolean {
    const args = exchange.params['arguments']
    // A compensation's arguments all belong to the tool.
    return (
      exchange.get(compensation) === undefined &&
      isRecord(args) &&
      this.#argumentsOf(exchange).some(({ name }) => Object.hasOwn(args, name))
    )
  }

  /** Moves them to `_meta`, and continues. */
  async translate(exchange: Exchange, next: Next): Promise<unknown> {
    const promises = this.#catalog.get(exchange.params['name'] as string)?.tool.outputSchema !== undefined
    try {
      exchange.params = moved(exchange.params, exchange.meta, this.#argumentsOf(exchange))
      const result = (await next()) as FailedResult
      const problem = result[failureProblem]
      // A tool with an output schema promises that shape, so no error object is added.
      if (problem === undefined || promises || result.structuredContent !== undefined) return result
      return { ...result, structuredContent: { error: toWire(problem) } }
    } catch (error) {
      return this.#failed(exchange, error, promises)
    }
  }

  /** Whether the call is for a facade tool. */
  owns(exchange: Exchange): boolean {
    return this.#toolOf(exchange) !== undefined
  }

  /** Answers the call of a facade tool. */
  async answer(exchange: Exchange): Promise<unknown> {
    try {
      const value = await callMethod(exchange, this.#toolOf(exchange) as FacadeTool)
      return { content: [{ type: 'text', text: JSON.stringify(value) }], structuredContent: value }
    } catch (error) {
      return this.#failed(exchange, error, false)
    }
  }

  #argumentsOf({ params }: Exchange): readonly FacadeArgument[] {
    const entry = this.#catalog.get(params['name'] as string)
    return (entry && this.#extended.get(entry)?.arguments) ?? []
  }

  #toolOf({ params }: Exchange): FacadeTool | undefined {
    const name = params['name'] as string
    const found = this.#own.get(name)
    return found !== undefined && this.#catalog.get(name) === found.entry ? found.tool : undefined
  }

  #extendTools(): void {
    // Changes made here trigger this callback again.
    if (this.#busy) return
    this.#busy = true
    try {
      this.#offerTools()
      this.#offerArguments()
    } finally {
      this.#busy = false
    }
  }

  /** Adds a tool for each offered method, unless the author has a tool of that name. */
  #offerTools(): void {
    const { plan, fallback } = this.#kit.engine()
    for (const tool of facadeTools) {
      const { name, part, method, description, input, annotations } = tool
      if (!this.#parts.has(part) || this.#catalog.get(name) !== undefined) continue
      if (plan.route(fallback, wireName(method, fallback)) === undefined) continue
      const entry = this.#kit.port(toolsPort).compile(name, { description, input, annotations })
      this.#own.set(name, { entry, tool })
      this.#catalog.add(entry)
    }
  }

  #offerArguments(): void {
    for (const entry of this.#catalog.snapshot.entries) {
      if (this.#own.get(entry.name)?.entry === entry) continue
      const { bare, arguments: before } = this.#extended.get(entry) ?? { bare: entry, arguments: [] }
      const suiting = facadeArguments.filter(
        each => this.#parts.has(each.part) && this.#isUsed(each) && each.suits(bare) && !isOwn(bare.tool.inputSchema, each.name),
      )
      if (suiting.length === before.length) continue
      const next = { ...bare, tool: extended(bare.tool, suiting) }
      this.#extended.set(next, { bare, arguments: suiting })
      this.#catalog.update(next)
    }
  }

  /** Without a tool that provides the value, the argument is useless. */
  #isUsed({ part }: FacadeArgument): boolean {
    return [...this.#own.values()].some(({ tool }) => tool.part === part)
  }

  /** Problems and invalid arguments become tool errors that the model can read; other errors are thrown. */
  #failed(exchange: Exchange, error: unknown, promises: boolean): CallToolResult {
    const mistake = error instanceof McpError && (error.kind === 'invalid-params' || error.kind === 'invalid-arguments')
    if (!(error instanceof Problem) && !mistake) throw error
    const problem = this.#kit.port(problemPort).of(error)
    const { content, ...rest } = this.#kit.port(toolsPort).failed(exchange, problem)
    return { content, ...(promises ? {} : { structuredContent: { error: toWire(problem) } }), ...rest }
  }
}

/** Calls the method for the same caller, as if the client had declared the extension. */
async function callMethod(exchange: Exchange, { method, params }: FacadeTool): Promise<unknown> {
  const { engine, conversation, caller, reply, peer, id, meta } = exchange
  const args = exchange.input as Params
  const { _meta: own, ...wanted } = params === undefined ? args : params(args)
  const route =
    engine.plan.route(peer.revision, wireName(method, peer.revision)) ??
    (engine.plan.route(engine.fallback, wireName(method, engine.fallback)) as Route)
  const both = { ...meta, ...(own as Params | undefined) }
  const inner = new Exchange(
    engine,
    conversation,
    caller,
    reply,
    route,
    withDeclared(peer, [method.extension as string]),
    id,
    openParams(route, { ...wanted, _meta: both }),
  )
  const value = await route.run(inner)
  return inner.raw && route.finish !== undefined ? route.finish(inner, value) : value
}

// Additional arguments of tools. If a tool already has an argument of that name, it keeps its meaning.

/** What decides which arguments a tool gets. */
interface ToolFactsForArguments {
  readonly tool: Tool
  readonly facts: { readonly scopes?: unknown; readonly scopesFor?: unknown }
}

interface FacadeArgument {
  readonly name: string
  readonly part: FacadePart
  /** The key in `_meta` under which it belongs. */
  readonly extension: string
  readonly schema: Readonly<Record<string, unknown>>
  /** Whether the tool gets this argument. */
  suits(tool: ToolFactsForArguments): boolean
}

const changes = ({ tool }: ToolFactsForArguments): boolean => tool.annotations?.readOnlyHint !== true

const facadeArguments: readonly FacadeArgument[] = [
  {
    name: 'transaction_id',
    part: 'transactions',
    extension: transactionsExtension,
    schema: {
      type: 'string',
      pattern: keyPattern.source,
      description: 'The transaction_id of begin_transaction, if this call is a step of a transaction',
    },
    suits: changes,
  },
  {
    name: 'idempotency_key',
    part: 'idempotency',
    extension: idempotencyExtension,
    schema: {
      type: 'string',
      pattern: keyPattern.source,
      description:
        'A unique key for this operation. Send the same key again only to retry the same call after its response was lost: the operation is then not executed twice',
    },
    suits: changes,
  },
  {
    name: 'session_token',
    part: 'permissions',
    extension: permissionsExtension,
    schema: { type: 'string', description: 'The session.token that negotiate_scopes returned, if any' },
    suits: ({ facts }) => facts.scopes !== undefined || facts.scopesFor !== undefined,
  },
]

/** Keywords by which a schema may allow arguments without naming them. */
const unnaming = ['patternProperties', 'propertyNames', 'unevaluatedProperties']

/** Whether the tool itself may use an argument of that name. */
function isOwn(schema: Readonly<Record<string, unknown>>, name: string): boolean {
  const { properties, additionalProperties: others } = schema
  if (others === undefined ? properties === undefined : others !== false) return true
  return unnaming.some(word => word in schema) || JSON.stringify(schema).includes(JSON.stringify(name))
}

/** The tool definition with additional arguments. */
function extended(tool: Tool, more: readonly FacadeArgument[]): Tool {
  const { inputSchema } = tool
  const own = isRecord(inputSchema['properties']) ? inputSchema['properties'] : {}
  const properties = { ...own, ...Object.fromEntries(more.map(({ name, schema }) => [name, schema])) }
  return { ...tool, inputSchema: { ...inputSchema, properties } }
}

/** Moves facade arguments to `_meta`. Throws if they are not strings, or contradict `_meta`. */
function moved(params: Params, meta: Params | undefined, more: readonly FacadeArgument[]): Params {
  const args = { ...(params['arguments'] as Params) }
  const said: Record<string, unknown> = { ...meta }
  for (const { name, extension } of more) {
    if (!Object.hasOwn(args, name)) continue
    const value = args[name]
    delete args[name]
    const there = Object.hasOwn(said, extension) ? said[extension] : {}
    const other = isRecord(there) ? there[name] : there
    if (typeof value !== 'string') throw problem('INVALID_INPUT', `${name} must be a string`)
    if (!isRecord(there) || (other !== undefined && other !== value))
      throw problem('INVALID_INPUT', `${name} and params._meta["${extension}"] have different values. Send only one of them`)
    said[extension] = { ...there, [name]: value }
  }
  return { ...params, arguments: args, _meta: said }
}
