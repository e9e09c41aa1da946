/**
 * What clients see of all upstreams. Each change of one of them is laid beside what is shown, and only what differs is touched, so
 * that clients hear of a change only where there is one.
 */
import type { Cancel, Clock } from '../core/clock.ts'
import { NS } from '../core/namespace.ts'
import { Unchecked } from '../core/schema/index.ts'
import { quoted, type Why, why } from '../core/why.ts'
import type { Completer } from '../features/mcp/completion/messages.ts'
import type { Prompt } from '../features/mcp/prompts/messages.ts'
import type { Resource, ResourceTemplate } from '../features/mcp/resources/messages.ts'
import { parseTemplate } from '../features/mcp/resources/template.ts'
import type { Tool } from '../features/mcp/tools/messages.ts'
import { clip } from '../jsonrpc/limits.ts'
import type { Server } from '../server/api.ts'
import type { Context } from '../server/context.ts'
import type { Aliases } from './aliases.ts'
import type { Relay } from './bridge/relay.ts'
import type { OfferedName } from './gateway.ts'
import { exposedNames, exposedUris, type Names, type Prefixes } from './names.ts'
import { crossing, repeated, shownMeta, taskOf } from './shown-tool.ts'
import { definitionMeta } from './trust/foreign.ts'
import type { Trust } from './trust/trust.ts'
import { laidOver, leftOf, nothing, type Offer } from './upstreams/offer.ts'

/** The key in `_meta` of what is shown: which server it is from, and what it is called there. */
export const originKey = `${NS}/origin`

/** One thing of an upstream that clients see. */
export interface Proxied {
  readonly upstream: string
  /** What the upstream calls it. */
  readonly own: string
  readonly exposed: string
}

type Kind = 'tool' | 'resource' | 'template' | 'prompt'
type Item = Tool | Resource | ResourceTemplate | Prompt

interface Wanted extends Proxied {
  readonly kind: Kind
  readonly item: Item
  readonly completes: boolean
}

interface Shown {
  readonly wanted: Wanted
  readonly remove: () => void
}

interface Known {
  offer: Offer
  up: boolean
  /** What of it cannot be offered. */
  left: Why[]
}

export interface Naming {
  readonly prefixes: Prefixes
  readonly aliases: Aliases
}

/** Changes within so many milliseconds are shown as one; all of them take no more than one part in so many of the time. */
const togetherMs = 20
const share = 30
const mostWaitMs = 1_000

export class Catalog {
  readonly #server: Server
  readonly #relay: Relay
  readonly #trust: Trust
  readonly #clock: Clock
  readonly #rendered: () => void
  readonly #naming: Naming
  /** Of tools and prompts. */
  readonly #names = new Map<string, Names>()
  /** How long it took to show the last change. */
  #tookMs = 0
  /** Puts off what is to be shown soon. */
  #waiting: Cancel | undefined = undefined
  readonly #known = new Map<string, Known>()
  readonly #shown = new Map<string, Shown>()
  /** What upstreams that are down have offered, by the name under which clients knew it. */
  readonly #absent = new Map<string, string>()
  /** Under which addresses resources and templates are shown. */
  #uris: Names = new Map()
  #templates: Names = new Map()

  /** `rendered`: told after each change of what is shown. */
  constructor(server: Server, relay: Relay, trust: Trust, clock: Clock, rendered: () => void, naming: Naming) {
    this.#naming = naming
    this.#clock = clock
    this.#rendered = rendered
    this.#server = server
    this.#trust = trust
    this.#relay = relay
  }

  /** Upstreams in the order in which they are to be shown; what is known of them stays so, and others are shown no more. */
  begin(names: Iterable<string>): void {
    const before = new Map(this.#known)
    this.#known.clear()
    for (const name of names) this.#known.set(name, before.get(name) ?? { offer: nothing, up: false, left: [] })
    for (const name of before.keys()) if (!this.#known.has(name)) this.#trust.news.gone(name)
    if (before.size > 0) this.#soon()
  }

  /** Shows all tools anew: what rules say of them is another. */
  renew(): void {
    for (const [key, { wanted, remove }] of this.#shown) {
      if (wanted.kind !== 'tool') continue
      remove()
      this.#shown.delete(key)
    }
    this.#soon()
    this.flush()
  }

  offered(upstream: string): Offer {
    return this.#known.get(upstream)?.offer ?? nothing
  }

  /** In the order of the config and of each upstream's lists, whichever came up first. */
  names(): readonly OfferedName[] {
    const shown = [...this.#wanted()].filter(([key]) => this.#shown.has(key))
    return shown.map(([, { kind, exposed, upstream, own }]) => ({ kind, name: exposed, upstream, own }))
  }

  left(upstream: string): readonly Why[] {
    const known = this.#known.get(upstream)
    if (known === undefined) return []
    return known.up ? [...leftOf(upstream, known.offer), ...known.left] : known.left
  }

  /** The upstream of what is not shown because that is down. */
  absent(name: string): string | undefined {
    return this.#absent.get(name)
  }

  /** Where a resource is that clients know under this address. */
  resource(uri: string): { readonly upstream: string; readonly own: string } | undefined {
    const listed = this.#shown.get(`resource ${uri}`)?.wanted
    if (listed !== undefined) return listed
    for (const { wanted } of this.#shown.values()) {
      const { kind, upstream, own, exposed } = wanted
      if (kind !== 'template' || parseTemplate(exposed).match(uri) === undefined) continue
      return { upstream, own: uri.slice(exposed.length - own.length) }
    }
    return undefined
  }

  /** Where a prompt, or a resource by its address or template, is from, and its name there, or a tool that is gone; undefined where none offers it. */
  originOf(
    kind: 'tool' | 'prompt' | 'resource',
    exposed: string,
  ): { readonly upstream: string; readonly own: string } | undefined {
    if (kind === 'tool') {
      const upstream = this.#absent.get(exposed)
      return upstream === undefined ? undefined : { upstream, own: exposed }
    }
    if (kind === 'prompt') return this.#shown.get(`prompt ${exposed}`)?.wanted
    return this.#shown.get(`template ${exposed}`)?.wanted ?? this.resource(exposed)
  }

  /** Whether clients see something of this name, or address. */
  knows(kind: 'tool' | 'prompt' | 'resource', exposed: string): boolean {
    return kind === 'resource' ? this.resource(exposed) !== undefined : this.#shown.has(`${kind} ${exposed}`)
  }

  /** The address under which clients know what an upstream lists, or has a template for. */
  address(upstream: string, own: string): string | undefined {
    const listed = this.#uris.get(upstream)?.get(own)
    if (listed !== undefined) return listed
    for (const [template, exposed] of this.#templates.get(upstream) ?? [])
      if (parseTemplate(template).match(own) !== undefined) return `${exposed.slice(0, exposed.length - template.length)}${own}`
    return undefined
  }

  /** Some upstream keeps state for its callers. */
  get stateful(): boolean {
    for (const { offer } of this.#known.values()) if (offer.stateful) return true
    return false
  }

  show(upstream: string, offer: Offer): void {
    const known = this.#known.get(upstream)
    if (known === undefined) return
    known.offer = laidOver(known.offer, offer, known.up)
    known.up = true
    const { prompts, resources, templates } = known.offer
    for (const items of [prompts, resources, templates]) this.#trust.inspect(upstream, items)
    this.#trust.news.offer(upstream)
    this.#soon()
  }

  hide(upstream: string): void {
    const known = this.#known.get(upstream)
    if (known?.up !== true) return
    known.up = false
    this.#trust.news.gone(upstream)
    this.#soon()
  }

  /** Shows at once what has changed. */
  flush(): void {
    if (this.#waiting === undefined) return
    this.#waiting()
    this.#waiting = undefined
    const began = performance.now()
    this.#render()
    this.#tookMs = performance.now() - began
    this.#rendered()
  }

  close(): void {
    this.#waiting?.()
    this.#waiting = undefined
  }

  /** Many upstreams that come up together are one change; the more there is to lay side by side, the more rarely. */
  #soon(): void {
    const waitMs = Math.min(Math.max(togetherMs, this.#tookMs * share), mostWaitMs)
    this.#waiting ??= this.#clock.setTimeout(() => this.flush(), waitMs, true)
  }

  #render(): void {
    const wanted = this.#wanted()
    for (const [key, { wanted: before, remove }] of this.#shown) {
      const now = wanted.get(key)
      if (now?.item === before.item && now.upstream === before.upstream && now.completes === before.completes) continue
      remove()
      this.#shown.delete(key)
    }
    this.#naming.aliases.look(wanted, ({ kind, upstream, own }) => this.#names.get(kind)?.get(upstream)?.get(own))
    for (const known of this.#known.values()) known.left = []
    for (const [key, each] of wanted) {
      if (!this.#shown.has(key)) this.#add(key, each)
    }
  }

  #add(key: string, wanted: Wanted): void {
    try {
      this.#shown.set(key, { wanted, remove: this.#register(wanted) })
    } catch (error) {
      this.#known.get(wanted.upstream)?.left.push(unfit(wanted, error))
    }
  }

  /** Names of upstreams that are down stay taken: what comes back has the name it had. */
  #wanted(): Map<string, Wanted> {
    const wanted = new Map<string, Wanted>()
    this.#absent.clear()
    const add = (kind: Kind, names: Names, items: (offer: Offer) => readonly Item[], nameOf: (item: Item) => string): void => {
      for (const [upstream, { offer, up }] of this.#known) {
        for (const item of items(offer)) {
          const own = nameOf(item)
          const exposed = names.get(upstream)?.get(own) ?? own
          const key = `${kind} ${exposed}`
          if (up && !wanted.has(key)) wanted.set(key, { kind, upstream, own, exposed, item, completes: offer.completes })
          else if (!up) this.#absent.set(exposed, upstream)
        }
      }
    }
    const all = (pick: (offer: Offer) => readonly string[]): Map<string, readonly string[]> =>
      new Map([...this.#known].map(([name, { offer }]) => [name, pick(offer)]))
    const name = (item: Item): string => (item as Tool).name
    const uri = (item: Item): string => (item as Resource).uri
    const uriTemplate = (item: Item): string => (item as ResourceTemplate).uriTemplate
    const toolNames = all(({ tools }) => tools.map(name))
    const promptNames = all(({ prompts }) => prompts.map(name))
    this.#names.set('tool', exposedNames(toolNames, true, this.#naming.prefixes))
    this.#names.set('prompt', exposedNames(promptNames, false, this.#naming.prefixes))
    add('tool', this.#names.get('tool') as Names, ({ tools }) => tools, name)
    add('prompt', this.#names.get('prompt') as Names, ({ prompts }) => prompts, name)
    this.#uris = exposedUris(all(({ resources }) => resources.map(uri)))
    this.#templates = exposedUris(all(({ templates }) => templates.map(uriTemplate)))
    add('resource', this.#uris, ({ resources }) => resources, uri)
    add('template', this.#templates, ({ templates }) => templates, uriTemplate)
    return wanted
  }

  #register(wanted: Wanted): () => void {
    const { kind, upstream, own, exposed } = wanted
    const proxy: Proxied = { upstream, own, exposed }
    if (kind === 'tool') return this.#tool(proxy, wanted.item as Tool)
    if (kind === 'prompt') return this.#prompt(proxy, wanted.item as Prompt, wanted.completes)
    return this.#resource(proxy, wanted.item as Resource | ResourceTemplate, wanted.completes)
  }

  #tool(proxy: Proxied, tool: Tool): () => void {
    const relay = this.#relay
    const { title, description, inputSchema, outputSchema, annotations, icons, execution } = tool
    const more = this.#trust.options(proxy.upstream, tool, proxy.exposed)
    const task = taskOf(execution?.taskSupport, this.#known.get(proxy.upstream)?.offer.tasks === true)
    const options = {
      ...(title !== undefined && { title }),
      ...(description !== undefined && { description }),
      input: new Unchecked(inputSchema),
      ...(outputSchema !== undefined && { output: new Unchecked(outputSchema) }),
      ...(annotations !== undefined && { annotations }),
      ...(icons !== undefined && { icons }),
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

  #resource(proxy: Proxied, item: Resource | ResourceTemplate, completes: boolean): () => void {
    const relay = this.#relay
    const { name, title, description, mimeType, icons, annotations } = item
    const size = 'uri' in item ? item.size : undefined
    const variables = 'uriTemplate' in item && completes ? namesIn(item.uriTemplate) : []
    const options = {
      name: name || proxy.own,
      ...(title !== undefined && { title }),
      ...(description !== undefined && { description }),
      ...(mimeType !== undefined && { mimeType }),
      ...(size !== undefined && { size }),
      ...(icons !== undefined && { icons }),
      ...(annotations !== undefined && { annotations }),
      ...(variables.length > 0 && { complete: completersOf(relay, proxy, 'template', variables) }),
      meta: { ...definitionMeta(item._meta), ...origin(proxy) },
    }
    return this.#server.resource(proxy.exposed, options, (_, ctx) => relay.read(proxy, ctx)).remove
  }

  #prompt(proxy: Proxied, { title, description, arguments: args = [], icons, _meta }: Prompt, completes: boolean): () => void {
    const relay = this.#relay
    const complete = completes
      ? completersOf(
          relay,
          proxy,
          'prompt',
          args.map(({ name }) => name),
        )
      : {}
    const options = {
      ...(title !== undefined && { title }),
      ...(description !== undefined && { description }),
      ...(icons !== undefined && { icons }),
      arguments: Object.fromEntries(
        args.map(({ name, title: shown, description: says, required }) => [
          name,
          {
            ...(shown !== undefined && { title: shown }),
            ...(says !== undefined && { description: says }),
            ...(required !== undefined && { required }),
          },
        ]),
      ),
      ...(args.length > 0 && { complete }),
      meta: { ...definitionMeta(_meta), ...origin(proxy) },
    }
    return this.#server.prompt(proxy.exposed, options, (values, ctx) => relay.prompt(proxy, values, ctx)).remove
  }
}

function origin({ upstream, own }: Proxied): Readonly<Record<string, unknown>> {
  return { [originKey]: { server: upstream, name: own } }
}

function completersOf(
  relay: Relay,
  proxy: Proxied,
  kind: 'prompt' | 'template',
  names: readonly string[],
): Readonly<Record<string, Completer<Context>>> {
  return Object.fromEntries(
    names.map(name => [name, (value, { arguments: filled, ctx }) => relay.complete(proxy, kind, { name, value }, filled, ctx)]),
  )
}

/** The variables of a template, as RFC 6570 writes them. */
function namesIn(template: string): readonly string[] {
  const names = [...template.matchAll(/\{[+#./;?&]?([^{}]*)\}/g)].flatMap(([, list = '']) => list.split(','))
  return [...new Set(names.map(name => name.replace(/(\*|:\d+)$/, '')).filter(name => name !== ''))]
}

function unfit({ kind, upstream, own }: Wanted, error: unknown): Why {
  const said = clip(error instanceof Error ? error.message : String(error), 300)
  return why(
    'NOT_OFFERED',
    'gateway.catalog',
    `The ${kind} ${quoted(own)} of ${quoted(upstream)} cannot be offered: ${said}`,
    'Correct it at its server; everything else of that server is offered',
  )
}
