/**
 * The catalog that clients see: registers at the server face what all upstreams offer and updates it by difference, so that clients get
 * `list_changed` only for real changes. `ListNews` limits these notifications to clients that can see the change.
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
import { type ProxiedEntry, Proxies } from './proxies.ts'
import type { Trust } from './trust/trust.ts'
import type { Visibility } from './trust/visibility.ts'
import { emptyOffer, laidOver, type Offer, omittedFrom } from './upstreams/offer.ts'

type Kind = OfferedName['kind']
type Item = Tool | Resource | ResourceTemplate | Prompt

/** An entry that should be registered. */
interface WantedEntry extends ProxiedEntry {
  readonly kind: Kind
  readonly item: Item
  /** The upstream completes arguments. */
  readonly completes: boolean
}

/** An entry that is registered, and what removes it. */
interface RegisteredEntry {
  readonly wanted: WantedEntry
  readonly remove: () => void
}

/** What is known of one upstream. */
interface UpstreamRecord {
  offer: Offer
  up: boolean
  /** Entries that could not be registered, and why. */
  left: Why[]
}

/** How exposed names are made: prefixes by upstream, and aliases of names that were shown before. */
interface Naming {
  readonly prefixes: Prefixes
  readonly aliases: Aliases
}

/** Changes within this time are shown as one. */
const togetherMs = 20
/** Rendering takes at most one part in `share` of the time: the pause grows with the duration of the last rendering. */
const share = 30
/** The longest pause. */
const mostWaitMs = 1_000

/** Registers at the server face what upstreams offer, and keeps it current. */
export class GatewayCatalog {
  readonly #proxies: Proxies
  readonly #trust: Trust
  readonly #clock: Clock
  /** Called after each change of what is shown. */
  readonly #rendered: () => void
  readonly #naming: Naming
  /** Exposed names by kind (tool or prompt), upstream and own name. */
  readonly #names = new Map<string, Names>()
  /** How long the last rendering took. */
  #tookMs = 0
  /** Cancels the scheduled rendering; undefined where none is scheduled. */
  #waiting: Cancel | undefined = undefined
  /** In the order of the config. */
  readonly #known = new Map<string, UpstreamRecord>()
  readonly #shown = new Map<string, RegisteredEntry>()
  /** Entries of upstreams that are down, by kind and exposed name. */
  readonly #absent = new Map<string, UpstreamPlace>()
  readonly #addresses = new Addresses()
  /** Collects changes until clients are notified. */
  readonly news: ListNews

  /** `rendered`: called after each change of what is shown. */
  constructor(server: Server, relay: Relay, trust: Trust, clock: Clock, rendered: () => void, naming: Naming) {
    this.#naming = naming
    this.#clock = clock
    this.#rendered = rendered
    this.#trust = trust
    this.#proxies = new Proxies(server, relay, trust, uri => this.resource(uri))
    this.news = new ListNews(trust.visibility)
  }

  /** Sets the upstreams, in display order. Keeps what is known of those that stay and removes the others. */
  begin(names: Iterable<string>): void {
    const before = new Map(this.#known)
    this.#known.clear()
    for (const name of names) this.#known.set(name, before.get(name) ?? { offer: emptyOffer, up: false, left: [] })
    for (const name of before.keys()) if (!this.#known.has(name)) this.#trust.news?.gone(name)
    this.#naming.aliases.keep(new Set(this.#known.keys()))
    if (before.size > 0) this.#soon()
  }

  /** Registers everything again, because rules or clients have changed. */
  renew(): void {
    for (const [key, { remove }] of this.#shown) {
      remove()
      this.#shown.delete(key)
    }
    this.#soon()
    this.flush()
    this.news.renewed()
  }

  /** The lists of an upstream, or its last lists while it is down. */
  offered(upstream: string): Offer {
    return this.#known.get(upstream)?.offer ?? emptyOffer
  }

  /** All exposed names, in the order of the config and of each upstream's lists. */
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

  /** The upstream of an entry that is not shown because the upstream is down. */
  absent(kind: 'tool' | 'prompt' | 'resource', name: string): string | undefined {
    if (kind !== 'resource') return this.#absent.get(`${kind} ${name}`)?.upstream
    const upstream = this.resource(name)?.upstream
    return upstream !== undefined && this.#known.get(upstream)?.up === false ? upstream : undefined
  }

  /** The upstream resource behind an address that clients use. */
  resource(uri: string): UpstreamPlace | undefined {
    return this.#addresses.find(uri)
  }

  /**
   * The upstream and own name of a prompt, a resource or a template; of a tool only while its upstream is down. Undefined where no
   * upstream offers it.
   */
  originOf(kind: Kind, exposed: string): UpstreamPlace | undefined {
    // A resource address can be spelled like a template of another upstream; reading and completing must not be confused.
    if (kind === 'resource') return this.resource(exposed)
    const shown = kind === 'tool' ? undefined : this.#shown.get(`${kind} ${exposed}`)?.wanted
    return shown ?? this.#absent.get(`${kind} ${exposed}`)
  }

  /** Whether clients see something under this name or address. */
  knows(kind: 'tool' | 'prompt' | 'resource', exposed: string): boolean {
    return kind === 'resource' ? this.resource(exposed) !== undefined : this.#shown.has(`${kind} ${exposed}`)
  }

  /** The address that clients use for a resource that an upstream lists or has a template for. */
  address(upstream: string, own: string): string | undefined {
    return this.#addresses.of(upstream, own)
  }

  /** Whether any upstream keeps session state. */
  get stateful(): boolean {
    for (const { offer } of this.#known.values()) if (offer.stateful) return true
    return false
  }

  /** Takes the fresh lists of an upstream. */
  show(upstream: string, offer: Offer): void {
    const known = this.#known.get(upstream)
    if (known === undefined) return
    known.offer = laidOver(known.offer, offer)
    known.up = true
    const { prompts, resources, templates } = known.offer
    for (const items of [prompts, resources, templates]) this.#trust.inspect(upstream, items)
    this.#trust.news?.offer(upstream)
    this.#soon()
  }

  /** Hides an upstream that went down or is about to be removed. */
  hide(upstream: string): void {
    const known = this.#known.get(upstream)
    if (known?.up !== true) return
    known.up = false
    this.#trust.news?.gone(upstream)
    this.#soon()
  }

  /** Shows pending changes now. */
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

  /** Schedules a rendering. Upstreams that connect together become one change; the longer a rendering takes, the rarer it is. */
  #soon(): void {
    const waitMs = Math.min(Math.max(togetherMs, this.#tookMs * share), mostWaitMs)
    this.#waiting ??= this.#clock.setTimeout(() => this.flush(), waitMs, true)
  }

  /** Registers new entries and removes old ones; unchanged entries are not touched. */
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

  /** Registers an entry. What the server face refuses is left out and reported in `left`. */
  #add(key: string, wanted: WantedEntry): void {
    try {
      this.news.add(wanted)
      this.#shown.set(key, { wanted, remove: this.#register(wanted) })
    } catch (error) {
      this.#known.get(wanted.upstream)?.left.push(unfit(wanted, error))
    }
  }

  /** Everything that should be registered. Names of upstreams that are down stay reserved, so that they get the same names back. */
  #wanted(): Map<string, WantedEntry> {
    const wanted = new Map<string, WantedEntry>()
    this.#absent.clear()
    // Fills `wanted` with one kind of entry of all connected upstreams, and `#absent` with those of the others.
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

  /** Registers an entry and returns the function that removes it. */
  #register(wanted: WantedEntry): () => void {
    const { kind, upstream, own, exposed } = wanted
    const proxy: ProxiedEntry = { upstream, own, exposed }
    if (kind === 'tool') return this.#proxies.tool(proxy, wanted.item as Tool, this.offered(upstream).tasks)
    if (kind === 'prompt') return this.#proxies.prompt(proxy, wanted.item as Prompt, wanted.completes)
    return this.#proxies.resource(proxy, wanted.item as Resource | ResourceTemplate, wanted.completes)
  }
}

/** Why an entry could not be registered. */
function unfit({ kind, upstream, own }: WantedEntry, error: unknown): Why {
  const said = clip(error instanceof Error ? error.message : String(error), 300)
  return why(
    'NOT_OFFERED',
    'gateway.catalog',
    `The ${kind} ${quoted(own)} of ${quoted(upstream)} is not offered: ${said}`,
    'Correct it at its server. Everything else of that server is offered',
  )
}

// List news: what has changed since clients were last notified. A client is notified only about changes that it can see, so that it learns
// nothing about the entries of others.

type List = 'tools' | 'prompts' | 'resources'

/** An entry that was added or removed, by its name at the upstream. */
type EntryChange = Pick<WantedEntry, 'kind' | 'upstream' | 'own'>

/** The list of each kind of entry. */
const listOf = { tool: 'tools', prompt: 'prompts', resource: 'resources', template: 'resources' } as const
/** Beyond this number everybody is notified: checking each change for each client would cost more. */
const most = 1_000

/** Collects changes until the notification is sent, then decides which callers it concerns. */
class ListNews {
  readonly #visibility: Pick<Visibility, 'lists' | 'limits'>
  readonly #changed = new Map<List, Map<string, EntryChange>>()
  /** Lists whose change concerns everybody. */
  readonly #renewed = new Set<List>()

  constructor(visibility: Pick<Visibility, 'lists' | 'limits'>) {
    this.#visibility = visibility
  }

  /** Records a change. Does nothing while everybody sees everything. */
  add({ kind, upstream, own }: EntryChange): void {
    if (!this.#visibility.limits) return
    const list = listOf[kind]
    const changed = this.#changed.get(list) ?? new Map<string, EntryChange>()
    this.#changed.set(list, changed)
    if (changed.size <= most) changed.set(`${kind} ${upstream}\n${own}`, { kind, upstream, own })
  }

  /** Rules or clients have changed, so every client has to list again. */
  renewed(): void {
    for (const list of Object.values(listOf)) this.#renewed.add(list)
  }

  /** Returns which callers to notify, and resets the list; undefined: all. */
  take(list: List): ((caller: Caller) => boolean) | undefined {
    const changed = this.#changed.get(list)
    this.#changed.delete(list)
    if (this.#renewed.delete(list) || changed === undefined || changed.size > most || !this.#visibility.limits) return undefined
    const all = [...changed.values()]
    return caller => all.some(({ kind, ...place }) => this.#visibility.lists(caller, kind, place))
  }
}
