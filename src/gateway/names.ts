/**
 * Exposed names: `exposedNames` for tools and prompts, `exposedUris` for resources, `Aliases` for short names that had to become longer.
 * Names follow the rules of the host, with a wider set of characters.
 */
import type { Exchange } from '../engine/exchange.ts'
import type { Layer } from '../engine/stages.ts'
import { assignNames, distinct, hashOf, holdersOf, type Names, type Prefixes } from '../host/servers/names.ts'

export type { Names, Prefixes }

/** Names that the server side accepts for tools. */
const fit = /^[A-Za-z0-9_.\-/]{1,128}$/

/**
 * Exposed names by upstream and own name. `strict`: only characters that tool names may have. `taken`: whether a short name was shown
 * for another upstream before.
 */
export function exposedNames(
  offered: ReadonlyMap<string, Iterable<string>>,
  strict = true,
  prefixes: Prefixes = () => undefined,
  taken: (server: string, name: string) => boolean = () => false,
): Names {
  return assignNames(offered, { fits: name => !strict || fit.test(name), prefixes, reserved: taken })
}

/**
 * Exposed addresses by upstream and own address. Where two upstreams share an address, the upstream's name goes before the scheme, with a
 * hash where two names are alike. An address that looks prefixed for another upstream, fits everything or is `taken` also gets one.
 */
export function exposedUris(
  offered: ReadonlyMap<string, Iterable<string>>,
  taken: (server: string, uri: string) => boolean = () => false,
): Names {
  const own = distinct(offered)
  const holders = holdersOf(own)
  const schemes = schemesOf(own.keys())
  const all = new Map<string, ReadonlyMap<string, string>>()
  for (const [server, uris] of own) {
    // An address that starts like another upstream's prefix would be mistaken for it.
    const free = (uri: string): boolean =>
      holders.get(uri) === 1 && !isBorrowed(uri, server, schemes) && !fitsEveryAddress(uri) && !taken(server, uri)
    all.set(server, new Map(uris.map(uri => [uri, free(uri) ? uri : `${schemes.get(server)}+${uri}`])))
  }
  return all
}

/** Whether an address starts with the scheme prefix of another upstream. */
function isBorrowed(uri: string, server: string, schemes: ReadonlyMap<string, string>): boolean {
  const at = uri.indexOf('+')
  if (at <= 0 || at > uri.indexOf(':')) return false
  const front = uri.slice(0, at).toLowerCase()
  for (const [other, word] of schemes) if (other !== server && word === front) return true
  return false
}

/** Whether a template leaves the scheme open and so would match addresses of any upstream. */
export function fitsEveryAddress(template: string): boolean {
  const at = template.indexOf('{')
  return at !== -1 && !template.slice(0, at).includes(':')
}

/** A unique scheme per upstream. Schemes start with a letter and ignore case. */
function schemesOf(servers: Iterable<string>): ReadonlyMap<string, string> {
  const words = [...servers].map(server => [server, scheme(server)] as const)
  const counted = new Map<string, number>()
  for (const [, word] of words) counted.set(word, (counted.get(word) ?? 0) + 1)
  return new Map(words.map(([server, word]) => [server, counted.get(word) === 1 ? word : `${word}-${hashOf(server)}`]))
}

/** A prefixed address for a resource that is in no list. `mark`: what makes it unique. */
export function prefixedUri(server: string, uri: string, mark = hashOf(`${server}\0${uri}`)): string {
  return `${scheme(server)}-${mark}+${uri}`
}

/** An upstream's name as a URI scheme. */
function scheme(server: string): string {
  const word = server.toLowerCase().replaceAll(/[^a-z0-9.-]/g, '-')
  return /^[a-z]/.test(word) ? word : `x-${word}`
}

// Aliases: a name that was shown short and had to get a prefix because another upstream brought the same name. It is no longer listed, but
// clients that know it can go on calling it. It means nothing else while its upstream stays in the config.

/** What a short name stood for when it was first shown. */
interface Meant {
  readonly kind: string
  readonly upstream: string
  readonly own: string
}

/** A shown entry. */
interface ShownName extends Meant {
  readonly exposed: string
}

/** Short names that are remembered. */
const mostNames = 10_000
/** The kind of name that each method takes. */
const kinds: ReadonlyMap<string, string> = new Map([
  ['tools/call', 'tool'],
  ['prompts/get', 'prompt'],
])

/** Keeps short names callable after they got a prefix. */
export class Aliases {
  /** The first meaning of each short name, by kind and name. */
  readonly #meant = new Map<string, Meant>()
  /** The current name of each alias, by kind and short name. */
  #now = new Map<string, string>()

  /** Replaces aliases before other layers run, so that rules see the real name. */
  readonly layer: Layer = {
    stage: 'enter',
    methods: [...kinds.keys()],
    when: exchange => this.#now.size > 0 && this.#of(exchange) !== undefined,
    run: (exchange, next) => {
      const name = this.#of(exchange)
      if (name !== undefined) exchange.params = { ...exchange.params, name }
      return next()
    },
  }

  /** Whether a short name was shown for another upstream. */
  takenFrom(kind: 'tool' | 'prompt', upstream: string, name: string): boolean {
    const meant = this.#meant.get(`${kind} ${name}`)
    return meant !== undefined && meant.upstream !== upstream
  }

  /** Forgets names of upstreams that are no longer configured. */
  keep(upstreams: ReadonlySet<string>): void {
    for (const [key, { upstream }] of this.#meant) if (!upstreams.has(upstream)) this.#meant.delete(key)
  }

  /** Updates the aliases after a change. `exposed`: the current name of an entry; undefined where its upstream no longer has it. */
  look(shown: ReadonlyMap<string, ShownName>, exposed: (meant: Meant) => string | undefined): void {
    for (const [key, { kind, upstream, own, exposed: name }] of shown) {
      // A name that is shown means what it is shown for.
      if (name === own && (kind === 'tool' || kind === 'prompt') && this.#meant.size < mostNames)
        this.#meant.set(key, { kind, upstream, own })
    }
    this.#now = new Map()
    for (const [key, meant] of this.#meant) {
      const name = exposed(meant)
      if (name !== undefined && name !== meant.own && !shown.has(key)) this.#now.set(key, name)
    }
  }

  /** The name that replaces the alias in a request. */
  #of({ route, params }: Exchange): string | undefined {
    const name: unknown = params?.['name']
    return typeof name === 'string' ? this.#now.get(`${kinds.get(route.method.name)} ${name}`) : undefined
  }
}
