/** Under which names clients of a gateway see what its servers offer: as hosts name tools for models, with more room for characters. */
import type { Exchange } from '../engine/exchange.ts'
import type { Layer } from '../engine/stages.ts'
import { assignNames, distinct, hashOf, holdersOf, type Names, type Prefixes } from '../host/servers/names.ts'

export type { Names, Prefixes }

/** What the server side takes. */
const fit = /^[A-Za-z0-9_.\-/]{1,128}$/

/**
 * `offered`: what each server calls its own. `strict`: of characters that tools may have; otherwise any will do. `taken`: whether a
 * name that is short was another server's before.
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
 * A resource's address, where two servers have it: the server's name goes before the scheme, with a hash of it where another
 * server is of a like name. One that begins as another server's would gets it too, and one that is `taken`.
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
    // An address that begins like one of another server's would be taken for it.
    const free = (uri: string): boolean =>
      holders.get(uri) === 1 && !isBorrowed(uri, server, schemes) && !fitsEveryAddress(uri) && !taken(server, uri)
    all.set(server, new Map(uris.map(uri => [uri, free(uri) ? uri : `${schemes.get(server)}+${uri}`])))
  }
  return all
}

/** Whether an address begins with the scheme prefix of another server. */
function isBorrowed(uri: string, server: string, schemes: ReadonlyMap<string, string>): boolean {
  const at = uri.indexOf('+')
  if (at <= 0 || at > uri.indexOf(':')) return false
  const front = uri.slice(0, at).toLowerCase()
  for (const [other, word] of schemes) if (other !== server && word === front) return true
  return false
}

/** A template that leaves the scheme open would answer for the addresses of others. */
export function fitsEveryAddress(template: string): boolean {
  const at = template.indexOf('{')
  return at !== -1 && !template.slice(0, at).includes(':')
}

/** Schemes begin with a letter and are told apart without regard to case; two servers never have the same. */
function schemesOf(servers: Iterable<string>): ReadonlyMap<string, string> {
  const words = [...servers].map(server => [server, scheme(server)] as const)
  const counted = new Map<string, number>()
  for (const [, word] of words) counted.set(word, (counted.get(word) ?? 0) + 1)
  return new Map(words.map(([server, word]) => [server, counted.get(word) === 1 ? word : `${word}-${hashOf(server)}`]))
}

/** The address of one server's own that no list has, where another server may have one of the same. `mark`: what tells it from others. */
export function prefixedUri(server: string, uri: string, mark = hashOf(`${server}\0${uri}`)): string {
  return `${scheme(server)}-${mark}+${uri}`
}

/** The name of a server as a URI scheme. */
function scheme(server: string): string {
  const word = server.toLowerCase().replaceAll(/[^a-z0-9.-]/g, '-')
  return /^[a-z]/.test(word) ? word : `x-${word}`
}

// Names that were shown once and had to get longer, because another server came with the same one: they are in no list any more, but
// whoever has read them may go on calling what they meant. As long as that server is in the file they mean nothing else.

/** What a short name stood for when it was first shown. */
interface Meant {
  readonly kind: string
  readonly upstream: string
  readonly own: string
}

/** One thing that is shown, as far as it counts here. */
interface ShownName extends Meant {
  readonly exposed: string
}

const mostNames = 10_000
const kinds: ReadonlyMap<string, string> = new Map([
  ['tools/call', 'tool'],
  ['prompts/get', 'prompt'],
])

/** Keeps short names callable after they had to be prefixed. */
export class Aliases {
  /** What each short name meant first, by kind and name. */
  readonly #meant = new Map<string, Meant>()
  /** Under which name it is shown now, where that is another. */
  #now = new Map<string, string>()

  /** Names are replaced before anything else looks at them: what rules and clients are told of is what is called. */
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

  /** Whether a short name was shown for another server. */
  takenFrom(kind: 'tool' | 'prompt', upstream: string, name: string): boolean {
    const meant = this.#meant.get(`${kind} ${name}`)
    return meant !== undefined && meant.upstream !== upstream
  }

  /** From now on there are only these servers. */
  keep(upstreams: ReadonlySet<string>): void {
    for (const [key, { upstream }] of this.#meant) if (!upstreams.has(upstream)) this.#meant.delete(key)
  }

  /** What is shown has changed. `exposed`: the name of something now, shown or not; undefined where its server has it no more. */
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

  #of({ route, params }: Exchange): string | undefined {
    const name: unknown = params?.['name']
    return typeof name === 'string' ? this.#now.get(`${kinds.get(route.method.name)} ${name}`) : undefined
  }
}
