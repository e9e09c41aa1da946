/**
 * For clients that know no extensions: their methods as ordinary tools, and their `_meta` as ordinary arguments. Nothing is kept here: a
 * tool of the façade is the method itself, called for the same caller. Loaded only where an author wants it.
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
import { idPattern, transactionsExtension } from '../transactions/messages.ts'
import type { FacadePart } from './messages.ts'
import { type FacadeTool, facadeTools } from './tools.ts'

interface FacadeEntry extends DressedTool {
  readonly name: string
}

interface FacadeParts<E extends FacadeEntry> {
  readonly parts: ReadonlySet<FacadePart>
  readonly catalog: Catalog<E>
  /** An entry of the catalog for a tool of the façade. */
  readonly compile: (tool: FacadeTool) => E
  /** What else than the catalog decides which methods are offered: calls back when it may have changed. */
  readonly onOffer: (fn: () => void) => void
  /** Whether a method is offered now. */
  readonly offers: (method: FacadeTool['method']) => boolean
  readonly problemOf: (thrown: unknown) => Problem
  /** What a result's `_meta` says of a problem. */
  readonly problemMeta: (exchange: Exchange, problem: Problem) => Params | undefined
}

export interface Facade {
  /** Whether a call has arguments that are the façade's. */
  argues(exchange: Exchange): boolean
  /** Goes on with them where they belong. */
  translate(exchange: Exchange, next: Next): Promise<unknown>
  /** Whether a call is of a tool of the façade. */
  owns(exchange: Exchange): boolean
  answer(exchange: Exchange): Promise<unknown>
}

/** Offers extensions as tools for clients that do not know them. */
export function createFacade<E extends FacadeEntry>(options: FacadeParts<E>): Facade {
  const { catalog, parts } = options
  const tools = facadeTools.filter(({ part }) => parts.has(part))
  const own = new Map<string, { readonly entry: E; readonly tool: FacadeTool }>()
  const more = new WeakMap<E, Dress<E>>()
  let busy = false
  const dress = (): void => {
    // Each change made here is announced here too.
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
      // What the runtime itself calls with, to take something back, is all the tool's.
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
        // A tool that promises something of its content promises it of this too, to clients that do not look at isError.
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

/** Those whose method is offered, under names that are free: an author's own tool stays what it is. */
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

/** What was put on an entry, and the entry as its author made it. */
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

/** Without a tool that gives it there is nothing to pass on. */
function isUsed<E>({ part }: FacadeArgument, own: Own<E>): boolean {
  return [...own.values()].some(({ tool }) => tool.part === part)
}

/** The method for the same caller, as if its client had declared the extension. */
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

/** Refusals, and mistakes in arguments, are for the model to read; anything else fails as it always does. */
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

// Arguments beside a tool's own, for callers that have no other place for them. A tool that has an argument of that name keeps it: then
// the name means what the tool says, and nothing else.

/** What of a tool decides which of them it gets. */
interface DressedTool {
  readonly tool: Tool
  readonly facts: { readonly scopes?: unknown; readonly scopesFor?: unknown }
}

interface FacadeArgument {
  readonly name: string
  readonly part: FacadePart
  /** Where it belongs: the member of that name under this key of `_meta`. */
  readonly extension: string
  readonly schema: Readonly<Record<string, unknown>>
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
      pattern: idPattern.source,
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

/** Words of a schema by which it may speak of arguments without naming them. */
const unnaming = ['patternProperties', 'propertyNames', 'unevaluatedProperties']

/** Whether an argument of that name may be the tool's own: it is named somewhere, or the tool takes whatever it is given. */
function isOwn(schema: Readonly<Record<string, unknown>>, name: string): boolean {
  const { properties, additionalProperties: others } = schema
  if (others === undefined ? properties === undefined : others !== false) return true
  return unnaming.some(word => word in schema) || JSON.stringify(schema).includes(JSON.stringify(name))
}

/** The tool with these arguments beside its own. */
function dressed(tool: Tool, more: readonly FacadeArgument[]): Tool {
  const { inputSchema } = tool
  const own = isRecord(inputSchema['properties']) ? inputSchema['properties'] : {}
  const properties = { ...own, ...Object.fromEntries(more.map(({ name, schema }) => [name, schema])) }
  return { ...tool, inputSchema: { ...inputSchema, properties } }
}

/** The params with those arguments where they belong. Throws where they are no text, or `_meta` says something else. */
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
