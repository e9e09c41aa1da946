/** Registers entries of upstreams at the server face, each with a handler that calls the relay, and adjusts what definitions say. */
import { UncheckedSchema } from '../core/schema/index.ts'
import { exchangeOf } from '../engine/context.ts'
import { NS } from '../engine/method.ts'
import { liveExtension } from '../features/live/feature-sets/messages.ts'
import type { Completer } from '../features/mcp/completion/messages.ts'
import type { Prompt } from '../features/mcp/prompts/messages.ts'
import type { Resource, ResourceTemplate } from '../features/mcp/resources/messages.ts'
import type { TaskFacts } from '../features/mcp/tasks/messages.ts'
import type { TaskSupport, Tool, ToolAnnotations } from '../features/mcp/tools/messages.ts'
import { operationalExtension } from '../features/reliability/cost/messages.ts'
import { streamingExtension } from '../features/reliability/streaming/messages.ts'
import { transactionsExtension } from '../features/reliability/transactions/messages.ts'
import { McpError } from '../jsonrpc/error.ts'
import { clip } from '../jsonrpc/limits.ts'
import { picked } from '../jsonrpc/message.ts'
import type { Context, Server } from '../server/api.ts'
import type { UpstreamPlace } from './addresses.ts'
import type { Relay } from './bridge/relay.ts'
import { definitionMeta } from './bridge/returns.ts'
import type { AddedOptions } from './trust/options.ts'
import type { Trust } from './trust/trust.ts'

/** Task support of an exposed tool: optional where the upstream has any, because the gateway can wait for the result itself. `decides`: the upstream may answer any call with a task. */
function taskOf(support: TaskSupport | undefined, decides: boolean): TaskFacts | undefined {
  if (support === 'optional' || support === 'required') return { support: 'optional' }
  return decides ? { support: 'optional', deferred: true } : undefined
}

/** The shown `_meta`. A cost that the gateway states replaces that of the upstream. */
function shownMeta(tool: Tool, { cost, meta }: AddedOptions): Readonly<Record<string, unknown>> {
  const { [operationalExtension]: priced, ...rest } = definitionMeta(tool._meta) ?? {}
  return { ...rest, ...(cost === undefined && priced !== undefined && { [operationalExtension]: priced }), ...meta }
}

/** Annotations with the idempotency that a rule states. A tool that is not idempotent is not read-only either. */
function repeated(hints: ToolAnnotations | undefined, idempotent: boolean): ToolAnnotations {
  return { ...hints, idempotentHint: idempotent, ...(!idempotent && hints?.readOnlyHint === true && { readOnlyHint: false }) }
}

/** Extensions that only work on a direct connection and are removed from definitions. */
const direct: ReadonlySet<string> = new Set([transactionsExtension, streamingExtension, liveExtension])

/** The `_meta` without them. */
function crossing(meta: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(meta).filter(([key]) => !direct.has(key)))
}

/** The `_meta` key that names the upstream and the own name of an entry. */
const originKey = `${NS}/origin`

/** An entry of an upstream that clients see. */
export interface ProxiedEntry {
  readonly upstream: string
  /** Its name at the upstream. */
  readonly own: string
  /** Its name at the gateway. */
  readonly exposed: string
}

/** Registers tools, resources and prompts. Each method returns the function that removes the entry. */
export class Proxies {
  readonly #server: Server
  readonly #relay: Relay
  readonly #trust: Trust
  readonly #find: (uri: string) => UpstreamPlace | undefined

  /** `find`: which upstream serves an address. */
  constructor(server: Server, relay: Relay, trust: Trust, find: (uri: string) => UpstreamPlace | undefined) {
    this.#server = server
    this.#relay = relay
    this.#trust = trust
    this.#find = find
  }

  /** Registers a tool. `tasks`: the upstream may answer any call with a task. */
  tool(proxy: ProxiedEntry, tool: Tool, tasks: boolean): () => void {
    const relay = this.#relay
    const { inputSchema, outputSchema, annotations, execution } = tool
    const more = this.#trust.options(proxy.upstream, tool, proxy.exposed)
    const task = taskOf(execution?.taskSupport, tasks)
    const options = {
      ...picked(tool, 'title', 'description', 'annotations', 'icons'),
      // The upstream validates arguments itself, so its schemas are shown but not checked here.
      input: new UncheckedSchema(inputSchema),
      ...(outputSchema !== undefined && { output: new UncheckedSchema(outputSchema) }),
      ...(task !== undefined && { task }),
      ...more,
      ...(more.idempotent !== undefined && { annotations: repeated(annotations, more.idempotent) }),
      meta: { ...crossing(shownMeta(tool, more)), ...origin(proxy) },
    }
    const called = more.idempotent === undefined ? tool : { ...tool, annotations: options.annotations ?? {} }
    const { remove } = this.#server.tool(proxy.exposed, options, (args, ctx) => relay.call(proxy, called, args, ctx))
    return () => {
      this.#trust.forget(proxy.exposed)
      remove()
    }
  }

  /** Registers a resource or a template. */
  resource(proxy: ProxiedEntry, item: Resource | ResourceTemplate, completes: boolean): () => void {
    const relay = this.#relay
    const variables = 'uriTemplate' in item && completes ? namesIn(item.uriTemplate) : []
    const options = {
      name: item.name || proxy.own,
      ...picked(item, 'title', 'description', 'mimeType', 'icons', 'annotations'),
      ...('uri' in item && picked(item, 'size')),
      ...(variables.length > 0 && { complete: completersOf(relay, proxy, 'template', variables) }),
      meta: { ...definitionMeta(item._meta), ...origin(proxy) },
    }
    return this.#server.resource(proxy.exposed, options, (_, ctx) => this.#read(ctx)).remove
  }

  /** Registers a prompt. Its arguments are completed where the upstream supports it. */
  prompt(proxy: ProxiedEntry, prompt: Prompt, completes: boolean): () => void {
    const relay = this.#relay
    const { arguments: args = [] } = prompt
    const names = completes ? args.map(({ name }) => name) : []
    const options = {
      ...picked(prompt, 'title', 'description', 'icons'),
      arguments: Object.fromEntries(args.map(each => [each.name, picked(each, 'title', 'description', 'required')])),
      ...(args.length > 0 && { complete: completersOf(relay, proxy, 'prompt', names) }),
      meta: { ...definitionMeta(prompt._meta), ...origin(proxy) },
    }
    return this.#server.prompt(proxy.exposed, options, (values, ctx) => relay.prompt(proxy, values, ctx)).remove
  }

  /** Reads by address, not by registered entry: several templates may match, and the address decides. */
  #read(ctx: Context): ReturnType<Relay['read']> {
    const { params } = exchangeOf(ctx)
    const uri = String(params['uri'])
    const place = this.#find(uri)
    if (place !== undefined) return this.#relay.read({ ...place, exposed: uri }, ctx)
    const message = `There is no resource "${clip(uri)}". Several servers have a resource with this URI: resources/list shows a separate URI for each`
    throw new McpError('resource-not-found', message, { data: { uri: clip(uri) } })
  }
}

/** The origin as `_meta`. */
function origin({ upstream, own }: ProxiedEntry): Readonly<Record<string, unknown>> {
  return { [originKey]: { server: upstream, name: own } }
}

/** Completers that ask the upstream, one for each name. */
function completersOf(
  relay: Relay,
  proxy: ProxiedEntry,
  kind: 'prompt' | 'template',
  names: readonly string[],
): Readonly<Record<string, Completer<Context>>> {
  return Object.fromEntries(
    names.map(name => [name, (value, { arguments: filled, ctx }) => relay.complete(proxy, kind, { name, value }, filled, ctx)]),
  )
}

/** The variables of an RFC 6570 template. */
function namesIn(template: string): readonly string[] {
  const names = [...template.matchAll(/\{[+#./;?&]?([^{}]*)\}/g)].flatMap(([, list = '']) => list.split(','))
  return [...new Set(names.map(name => name.replace(/(\*|:\d+)$/, '')).filter(name => name !== ''))]
}
