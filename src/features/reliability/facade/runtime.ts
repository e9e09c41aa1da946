/**
 * The façade, for clients without extensions: extension methods become tools, and their `_meta` members become arguments. It has no
 * state; a façade tool calls the method itself for the same caller. Loaded only if an author enables it.
 */
import type { Catalog } from '../../../core/catalog.ts'
import { Problem, problem, problemText } from '../../../core/problem.ts'
import { compensation, Exchange } from '../../../engine/exchange.ts'
import { declaring } from '../../../engine/extensions.ts'
import { wireName } from '../../../engine/method.ts'
import { openParams, type Route } from '../../../engine/plan.ts'
import type { Next } from '../../../engine/stages.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { isRecord, type Params } from '../../../jsonrpc/message.ts'
import { because, type CallToolResult, type FailedResult, type Tool } from '../../mcp/tools/messages.ts'
import { idempotencyExtension, keyPattern } from '../idempotency/messages.ts'
import { permissionsExtension } from '../permissions/messages.ts'
import { toWire } from '../problem/messages.ts'
import { transactionsExtension } from '../transactions/messages.ts'
import type { FacadePart } from './messages.ts'
import { type FacadeTool, facadeTools } from './tools.ts'

interface FacadeEntry extends DressedTool {
  readonly name: string
}

interface FacadeParts<E extends FacadeEntry> {
  readonly parts: ReadonlySet<FacadePart>
  readonly catalog: Catalog<E>
  /** Compiles a façade tool to a catalog entry. */
  readonly compile: (tool: FacadeTool) => E
  /** Calls back when the set of offered methods may have changed for reasons outside of the catalog. */
  readonly onOffer: (fn: () => void) => void
  /** Whether a method is currently offered. */
  readonly offers: (method: FacadeTool['method']) => boolean
  readonly problemOf: (thrown: unknown) => Problem
  /** The `_meta` that describes a problem to this client. */
  readonly problemMeta: (exchange: Exchange, problem: Problem) => Params | undefined
}

/** The façade of one server. */
export interface Facade {
  /** Whether a call contains façade arguments. */
  argues(exchange: Exchange): boolean
  /** Moves them to `_meta`, and continues. */
  translate(exchange: Exchange, next: Next): Promise<unknown>
  /** Whether the call is for a façade tool. */
  owns(exchange: Exchange): boolean
  /** Answers the call of a façade tool. */
  answer(exchange: Exchange): Promise<unknown>
}

/** Adds the façade to a catalog of tools, and keeps it up to date. */
export function createFacade<E extends FacadeEntry>(options: FacadeParts<E>): Facade {
  const { catalog, parts } = options
  const tools = facadeTools.filter(({ part }) => parts.has(part))
  const own = new Map<string, { readonly entry: E; readonly tool: FacadeTool }>()
  const more = new WeakMap<E, Dress<E>>()
  let busy = false
  const dress = (): void => {
    // Changes made here trigger this callback again.
    if (busy) return
    busy = true
    try {
      offerTools(options, tools, own)
      offerArguments(options, own, more)
    } finally {
      busy = false
    }
  }
  dress()
  catalog.onChange(dress)
  options.onOffer(dress)
  const argumentsOf = ({ params }: Exchange): readonly FacadeArgument[] => {
    const entry = catalog.get(params['name'] as string)
    return (entry === undefined ? undefined : more.get(entry)?.arguments) ?? []
  }
  const toolOf = ({ params }: Exchange): FacadeTool | undefined => {
    const name = params['name'] as string
    const found = own.get(name)
    return found !== undefined && catalog.get(name) === found.entry ? found.tool : undefined
  }
  return {
    argues: exchange => {
      const args = exchange.params['arguments']
      // A compensation's arguments all belong to the tool.
      return (
        exchange.get(compensation) === undefined &&
        isRecord(args) &&
        argumentsOf(exchange).some(({ name }) => Object.hasOwn(args, name))
      )
    },
    translate: async (exchange, next) => {
      const promises = catalog.get(exchange.params['name'] as string)?.tool.outputSchema !== undefined
      try {
        exchange.params = moved(exchange.params, exchange.meta, argumentsOf(exchange))
        const result = (await next()) as FailedResult
        const problem = result[because]
        // A tool with an output schema promises that shape, so no error object is added.
        if (problem === undefined || promises || result.structuredContent !== undefined) return result
        return { ...result, structuredContent: { error: toWire(problem) } }
      } catch (error) {
        return failed(options, exchange, error, promises)
      }
    },
    owns: exchange => toolOf(exchange) !== undefined,
    answer: async exchange => {
      try {
        const value = await callMethod(exchange, toolOf(exchange) as FacadeTool)
        return { content: [{ type: 'text', text: JSON.stringify(value) }], structuredContent: value }
      } catch (error) {
        return failed(options, exchange, error, false)
      }
    },
  }
}

type Own<E> = Map<string, { readonly entry: E; readonly tool: FacadeTool }>

/** Adds a tool for each offered method, unless the author has a tool of that name. */
function offerTools<E extends FacadeEntry>(
  { catalog, compile, offers }: FacadeParts<E>,
  tools: readonly FacadeTool[],
  own: Own<E>,
) {
  for (const tool of tools) {
    if (catalog.get(tool.name) !== undefined || !offers(tool.method)) continue
    const entry = compile(tool)
    own.set(tool.name, { entry, tool })
    catalog.add(entry)
  }
}

/** An entry with façade arguments, and the author's original. */
interface Dress<E> {
  readonly bare: E
  readonly arguments: readonly FacadeArgument[]
}

function offerArguments<E extends FacadeEntry>(
  { catalog, parts }: FacadeParts<E>,
  own: Own<E>,
  more: WeakMap<E, Dress<E>>,
): void {
  for (const entry of catalog.snapshot.entries) {
    if (own.get(entry.name)?.entry === entry) continue
    const { bare, arguments: before } = more.get(entry) ?? { bare: entry, arguments: [] }
    const suiting = facadeArguments.filter(
      each => parts.has(each.part) && isUsed(each, own) && each.suits(bare) && !isOwn(bare.tool.inputSchema, each.name),
    )
    if (suiting.length === before.length) continue
    const next = { ...bare, tool: dressed(bare.tool, suiting) }
    more.set(next, { bare, arguments: suiting })
    catalog.update(next)
  }
}

/** Without a tool that provides the value, the argument is useless. */
function isUsed<E>({ part }: FacadeArgument, own: Own<E>): boolean {
  return [...own.values()].some(({ tool }) => tool.part === part)
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
    declaring(peer, [method.extension as string]),
    id,
    openParams(route, { ...wanted, _meta: both }),
  )
  const value = await route.run(inner)
  return inner.raw && route.finish !== undefined ? route.finish(inner, value) : value
}

/** Problems and invalid arguments become tool errors that the model can read; other errors are thrown. */
function failed<E extends FacadeEntry>(
  { problemOf, problemMeta }: FacadeParts<E>,
  exchange: Exchange,
  error: unknown,
  promises: boolean,
): CallToolResult {
  const mistake = error instanceof McpError && (error.kind === 'invalid-params' || error.kind === 'invalid-arguments')
  if (!(error instanceof Problem) && !mistake) throw error
  const problem = problemOf(error)
  const meta = problemMeta(exchange, problem)
  const result: FailedResult = {
    content: [{ type: 'text', text: problemText(problem) }],
    ...(promises ? {} : { structuredContent: { error: toWire(problem) } }),
    isError: true,
    ...(meta === undefined ? {} : { _meta: meta }),
    [because]: problem,
  }
  return result
}

// Additional arguments of tools. If a tool already has an argument of that name, it keeps its meaning.

/** What decides which arguments a tool gets. */
interface DressedTool {
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
  suits(tool: DressedTool): boolean
}

const changes = ({ tool }: DressedTool): boolean => tool.annotations?.readOnlyHint !== true

const facadeArguments: readonly FacadeArgument[] = [
  {
    name: 'transaction_id',
    part: 'transactions',
    extension: transactionsExtension,
    schema: {
      type: 'string',
      pattern: keyPattern.source,
      description: 'The transaction that this call takes part in, if any: what begin_transaction gave',
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
        'Names this one operation. Give the same key again only to repeat it after its answer was lost: then it is not done twice',
    },
    suits: changes,
  },
  {
    name: 'session_token',
    part: 'permissions',
    extension: permissionsExtension,
    schema: { type: 'string', description: 'The session.token that negotiate_scopes gave, if any' },
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
function dressed(tool: Tool, more: readonly FacadeArgument[]): Tool {
  const { inputSchema } = tool
  const own = isRecord(inputSchema['properties']) ? inputSchema['properties'] : {}
  const properties = { ...own, ...Object.fromEntries(more.map(({ name, schema }) => [name, schema])) }
  return { ...tool, inputSchema: { ...inputSchema, properties } }
}

/** Moves façade arguments to `_meta`. Throws if they are not strings, or contradict `_meta`. */
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
      throw problem('INVALID_INPUT', `${name} and params._meta["${extension}"] say different things: say it in one place`)
    said[extension] = { ...there, [name]: value }
  }
  return { ...params, arguments: args, _meta: said }
}
