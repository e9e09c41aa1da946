/**
 * What clients see of all upstreams. Each change of one of them is laid beside what is shown, and only what differs is touched, so
 * that clients hear of a change only where there is one.
 */
import type { Cancel, Clock } from '../core/clock.ts'
import { quoted, type Why, why } from '../core/suggestion.ts'
import type { Prompt } from '../features/mcp/prompts/messages.ts'
import type { Resource, ResourceTemplate } from '../features/mcp/resources/messages.ts'
import type { Tool } from '../features/mcp/tools/messages.ts'
import type { Caller } from '../jsonrpc/connection.ts'
import { clip } from '../jsonrpc/limits.ts'
import type { Server } from '../server/api.ts'
import { Addresses, type UpstreamPlace } from './addresses.ts'
import type { Relay } from './bridge/relay.ts'
import type { OfferedName } from './gateway.ts'
import { type Aliases, exposedNames, type Names, type Prefixes } from './names.ts'
import { type Proxied, Proxies } from './proxies.ts'
import type { Trust } from './trust/trust.ts'
import type { Visibility } from './trust/visibility.ts'
import { emptyOffer, laidOver, type Offer, omittedFrom } from './upstreams/offer.ts'

type Kind = 'tool' | 'resource' | 'template' | 'prompt'
type Item = Tool | Resource | ResourceTemplate | Prompt

/** An entry that should be registered. */
interface Wanted extends Proxied {
  readonly kind: Kind
  readonly item: Item
  readonly completes: boolean
}

/** An entry that is registered, and what removes it. */
interface Shown {
  readonly wanted: Wanted
  readonly remove: () => void
}

/** What is known of one upstream. */
interface Known {
  offer: Offer
  up: boolean
  /** What of it cannot be offered. */
  left: Why[]
}

/** How names are made: prefixes by upstream, and names that were shown before. */
interface Naming {
  readonly prefixes: Prefixes
  readonly aliases: Aliases
}

/** Changes within so many milliseconds are shown as one; all of them take no more than one part in so many of the time. */
const togetherMs = 20
const share = 30
const mostWaitMs = 1_000

/** Registers at the server face what upstreams offer, and keeps it current. */
export class GatewayCatalog {
  readonly #proxies: Proxies
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
  /** What upstreams that are down have offered, by kind and the name under which clients knew it. */
  readonly #absent = new Map<string, UpstreamPlace>()
  readonly #addresses = new Addresses()
  /** What has changed since clients were last told. */
  readonly news: ListNews

  /** `rendered`: told after each change of what is shown. */
  constructor(server: Server, relay: Relay, trust: Trust, clock: Clock, rendered: () => void, naming: Naming) {
    this.#naming = naming
    this.#clock = clock
    this.#rendered = rendered
    this.#trust = trust
    this.#proxies = new Proxies(server, relay, trust, uri => this.resource(uri))
    this.news = new ListNews(trust.visibility)
  }

  /** Upstreams in the order in which they are to be shown; what is known of them stays so, and others are shown no more. */
  begin(names: Iterable<string>): void {
    const before = new Map(this.#known)
    this.#known.clear()
    for (const name of names) this.#known.set(name, before.get(name) ?? { offer: emptyOffer, up: false, left: [] })
    for (const name of before.keys()) if (!this.#known.has(name)) this.#trust.news.gone(name)
    this.#naming.aliases.keep(new Set(this.#known.keys()))
    if (before.size > 0) this.#soon()
  }

  /** Shows all tools anew: what rules say of them is another. */
  renew(): void {
    for (const [key, { remove }] of this.#shown) {
      remove()
      this.#shown.delete(key)
    }
    this.#soon()
    this.flush()
    this.news.renewed()
  }

  /** What an upstream offers, or offered before it went down. */
  offered(upstream: string): Offer {
    return this.#known.get(upstream)?.offer ?? emptyOffer
  }

  /** In the order of the config and of each upstream's lists, whichever came up first. */
  names(): readonly OfferedName[] {
    const shown = [...this.#wanted()].filter(([key]) => this.#shown.has(key))
    return shown.map(([, { kind, exposed, upstream, own }]) => ({ kind, name: exposed, upstream, own }))
  }

  /** What of an upstream is not offered, and why. */
  left(upstream: string): readonly Why[] {
    const known = this.#known.get(upstream)
    if (known === undefined) return []
    return known.up ? [...omittedFrom(upstream, known.offer), ...known.left] : known.left
  }

  /** The upstream of what is not shown because that is down. Of this kind alone: whether its caller may know of it was asked of that. */
  absent(kind: 'tool' | 'prompt' | 'resource', name: string): string | undefined {
    if (kind !== 'resource') return this.#absent.get(`${kind} ${name}`)?.upstream
    const upstream = this.resource(name)?.upstream
    return upstream !== undefined && this.#known.get(upstream)?.up === false ? upstream : undefined
  }

  /** Where a resource is that clients know under this address. */
  resource(uri: string): UpstreamPlace | undefined {
    return this.#addresses.find(uri)
  }

  /**
   * Where something is from, and its name there: a prompt, a resource by its address, a template, or a tool that is not shown because
   * its server is away. Undefined where none offers it.
   */
  originOf(kind: 'tool' | 'prompt' | 'resource' | 'template', exposed: string): UpstreamPlace | undefined {
    // An address may read like a template, and be one of another upstream: what is read is not what is completed.
    if (kind === 'resource') return this.resource(exposed)
    const shown = kind === 'tool' ? undefined : this.#shown.get(`${kind} ${exposed}`)?.wanted
    return shown ?? this.#absent.get(`${kind} ${exposed}`)
  }

  /** Whether clients see something of this name, or address. */
  knows(kind: 'tool' | 'prompt' | 'resource', exposed: string): boolean {
    return kind === 'resource' ? this.resource(exposed) !== undefined : this.#shown.has(`${kind} ${exposed}`)
  }

  /** The address under which clients know what an upstream lists, or has a template for. */
  address(upstream: string, own: string): string | undefined {
    return this.#addresses.of(upstream, own)
  }

  /** Some upstream keeps state for its callers. */
  get stateful(): boolean {
    for (const { offer } of this.#known.values()) if (offer.stateful) return true
    return false
  }

  /** An upstream was listed. */
  show(upstream: string, offer: Offer): void {
    const known = this.#known.get(upstream)
    if (known === undefined) return
    known.offer = laidOver(known.offer, offer)
    known.up = true
    const { prompts, resources, templates } = known.offer
    for (const items of [prompts, resources, templates]) this.#trust.inspect(upstream, items)
    this.#trust.news.offer(upstream)
    this.#soon()
  }

  /** An upstream went down, or is about to end. */
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

  /** Registers what is new and removes what is gone; entries that stay the same are not touched. */
  #render(): void {
    const wanted = this.#wanted()
    for (const [key, { wanted: before, remove }] of this.#shown) {
      const now = wanted.get(key)
      if (now?.item === before.item && now.upstream === before.upstream && now.completes === before.completes) continue
      this.news.add(before)
      remove()
      this.#shown.delete(key)
    }
    this.#naming.aliases.look(wanted, ({ kind, upstream, own }) => this.#names.get(kind)?.get(upstream)?.get(own))
    for (const known of this.#known.values()) known.left = []
    for (const [key, each] of wanted) {
      if (!this.#shown.has(key)) this.#add(key, each)
    }
  }

  /** What the server face refuses is left out, and told in `left`. */
  #add(key: string, wanted: Wanted): void {
    try {
      this.news.add(wanted)
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
          else if (!up) this.#absent.set(key, { upstream, own })
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
    const { prefixes, aliases } = this.#naming
    const taken = (kind: 'tool' | 'prompt') => (upstream: string, own: string) => aliases.takenFrom(kind, upstream, own)
    this.#names.set('tool', exposedNames(toolNames, true, prefixes, taken('tool')))
    this.#names.set('prompt', exposedNames(promptNames, false, prefixes, taken('prompt')))
    add('tool', this.#names.get('tool') as Names, ({ tools }) => tools, name)
    add('prompt', this.#names.get('prompt') as Names, ({ prompts }) => prompts, name)
    this.#addresses.renew(new Map([...this.#known].map(([upstream, { offer }]) => [upstream, offer])))
    add('resource', this.#addresses.uris, ({ resources }) => resources, uri)
    add('template', this.#addresses.templates, ({ templates }) => templates, uriTemplate)
    return wanted
  }

  /** Returns what removes it again. */
  #register(wanted: Wanted): () => void {
    const { kind, upstream, own, exposed } = wanted
    const proxy: Proxied = { upstream, own, exposed }
    if (kind === 'tool') return this.#proxies.tool(proxy, wanted.item as Tool, this.offered(upstream).tasks)
    if (kind === 'prompt') return this.#proxies.prompt(proxy, wanted.item as Prompt, wanted.completes)
    return this.#proxies.resource(proxy, wanted.item as Resource | ResourceTemplate, wanted.completes)
  }
}

/** Why an entry could not be registered. */
function unfit({ kind, upstream, own }: Wanted, error: unknown): Why {
  const said = clip(error instanceof Error ? error.message : String(error), 300)
  return why(
    'NOT_OFFERED',
    'gateway.catalog',
    `The ${kind} ${quoted(own)} of ${quoted(upstream)} cannot be offered: ${said}`,
    'Correct it at its server; everything else of that server is offered',
  )
}

// What has changed in the lists since clients were last told: a client hears that a list is another one only where something came or
// went that it sees. That others have something new is theirs.

type List = 'tools' | 'prompts' | 'resources'

/** Something that came or went, by the name that it has at its server. */
interface Changed {
  readonly kind: 'tool' | 'resource' | 'template' | 'prompt'
  readonly upstream: string
  readonly own: string
}

const listOf = { tool: 'tools', prompt: 'prompts', resource: 'resources', template: 'resources' } as const
/** More of them and all are told: to look at each for each client would cost more. */
const most = 1_000

/** Collects changes until the notification goes out, then says which callers it concerns. */
class ListNews {
  readonly #visibility: Pick<Visibility, 'lists' | 'limits'>
  readonly #changed = new Map<List, Map<string, Changed>>()
  /** Lists of which everybody is to hear. */
  readonly #renewed = new Set<List>()

  constructor(visibility: Pick<Visibility, 'lists' | 'limits'>) {
    this.#visibility = visibility
  }

  /** Nothing is collected while everybody sees everything. */
  add({ kind, upstream, own }: Changed): void {
    if (!this.#visibility.limits) return
    const list = listOf[kind]
    const changed = this.#changed.get(list) ?? new Map<string, Changed>()
    this.#changed.set(list, changed)
    if (changed.size <= most) changed.set(`${kind} ${upstream}\n${own}`, { kind, upstream, own })
  }

  /** Rules or clients are others: whatever somebody saw before may be gone, and he is to look. */
  renewed(): void {
    for (const list of Object.values(listOf)) this.#renewed.add(list)
  }

  /** Clients are about to be told: who of them notices it. Undefined: everybody. */
  take(list: List): ((caller: Caller) => boolean) | undefined {
    const changed = this.#changed.get(list)
    this.#changed.delete(list)
    if (this.#renewed.delete(list) || changed === undefined || changed.size > most || !this.#visibility.limits) return undefined
    const all = [...changed.values()]
    return caller =>
      all.some(({ kind, ...place }) => this.#visibility.lists(caller, kind === 'template' ? 'resource' : kind, place))
  }
}
