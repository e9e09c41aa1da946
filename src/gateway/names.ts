/**
 * Under which names clients see what many servers offer. A name that only one server uses stays as it is. One that several use is
 * given to none of them: each gets the name of its server in front, so that it never depends on who was there first whose tool is
 * called.
 */
import { createHash } from 'node:crypto'

/** Characters that every client takes in the name of a tool. */
const longest = 64
const hashed = 8
/** What we make of names that are too long is nobody's own. */
const hashedFront = /^[0-9a-f]{8}_/
/** What the server side takes. */
const fit = /^[A-Za-z0-9_.\-/]{1,128}$/

/** By server, by its own names: the names that clients see. */
export type Names = ReadonlyMap<string, ReadonlyMap<string, string>>

/** What stands in front of all names of a server; undefined where they are short as long as they can be. */
export type Prefixes = (server: string) => string | undefined

/** `offered`: what each server calls its own. `strict`: of characters that tools may have; otherwise any will do. */
export function exposedNames(
  offered: ReadonlyMap<string, Iterable<string>>,
  strict = true,
  prefixes: Prefixes = () => undefined,
): Names {
  const own = distinct(offered)
  const holders = holdersOf(own, prefixes)
  const borrowed = borrowing(own, prefixes)
  const free = (server: string, name: string): boolean =>
    prefixes(server) === undefined &&
    holders.get(name) === 1 &&
    (!strict || fit.test(name)) &&
    !hashedFront.test(name) &&
    !borrowed(server, name)
  const wishOf = (server: string, name: string): string =>
    free(server, name) ? name : prefixed(prefixes(server) ?? server, name)
  const wished = new Map<string, number>()
  for (const [server, names] of own) {
    for (const name of names) {
      const shown = wishOf(server, name)
      wished.set(shown, (wished.get(shown) ?? 0) + 1)
    }
  }
  const all = new Map<string, ReadonlyMap<string, string>>()
  for (const [server, names] of own) {
    const shown = new Map<string, string>()
    for (const name of names) {
      const wish = wishOf(server, name)
      // What two would be called after all is told apart by a hash of where it comes from.
      shown.set(name, wished.get(wish) === 1 ? wish : marked(server, name))
    }
    all.set(server, shown)
  }
  return all
}

function distinct(offered: ReadonlyMap<string, Iterable<string>>): ReadonlyMap<string, readonly string[]> {
  return new Map([...offered].map(([server, names]) => [server, [...new Set(names)]]))
}

/** How many would have a name as it is: not those whose names all get something in front. */
function holdersOf(own: ReadonlyMap<string, readonly string[]>, prefixes?: Prefixes): ReadonlyMap<string, number> {
  const holders = new Map<string, number>()
  for (const [server, names] of own)
    if (prefixes?.(server) === undefined) for (const name of names) holders.set(name, (holders.get(name) ?? 0) + 1)
  return holders
}

/**
 * Whether a name reads as what another server has, with that one's name in front: nobody shall be called instead of another, now or
 * when that one needs the name.
 */
function borrowing(own: ReadonlyMap<string, readonly string[]>, prefixes: Prefixes): (server: string, name: string) => boolean {
  const fronts = new Map<string, string[]>()
  for (const server of own.keys()) {
    const front = plain(prefixes(server) ?? server)
    fronts.set(front, [...(fronts.get(front) ?? []), server])
  }
  const plainly = new Map<string, ReadonlySet<string>>()
  const has = (server: string, rest: string): boolean => {
    const known = plainly.get(server) ?? new Set(own.get(server)?.map(plain))
    plainly.set(server, known)
    return known.has(rest)
  }
  return (server, name) => {
    for (let at = name.indexOf('_'); at > 0; at = name.indexOf('_', at + 1)) {
      const others = fronts.get(name.slice(0, at)) ?? []
      if (others.some(other => other !== server && has(other, name.slice(at + 1)))) return true
    }
    return false
  }
}

/** The server's name in front; where that is too long, a hash of it, and as much of the tail as there is room for. */
export function prefixed(server: string, name: string): string {
  const whole = `${plain(server)}_${plain(name)}`
  return whole.length <= longest && server !== '' ? whole : marked(server, name)
}

function marked(server: string, name: string): string {
  return `${hashOf(`${server}\0${name}`)}_${plain(name).slice(-(longest - hashed - 1))}`
}

function plain(text: string): string {
  return text.replaceAll(/[^A-Za-z0-9_-]/g, '_')
}

/**
 * A resource's address, where two servers have it: the server's name goes before the scheme, with a hash of it where another
 * server is of a like name. One that begins as another server's would gets it too.
 */
export function exposedUris(offered: ReadonlyMap<string, Iterable<string>>): Names {
  const own = distinct(offered)
  const holders = holdersOf(own)
  const schemes = schemesOf(own.keys())
  const all = new Map<string, ReadonlyMap<string, string>>()
  for (const [server, uris] of own) {
    // An address that begins like one of another server's would be taken for it.
    const free = (uri: string): boolean => holders.get(uri) === 1 && !isBorrowed(uri, server, schemes) && !fitsAll(uri)
    all.set(server, new Map(uris.map(uri => [uri, free(uri) ? uri : `${schemes.get(server)}+${uri}`])))
  }
  return all
}

function isBorrowed(uri: string, server: string, schemes: ReadonlyMap<string, string>): boolean {
  const at = uri.indexOf('+')
  if (at <= 0 || at > uri.indexOf(':')) return false
  const front = uri.slice(0, at).toLowerCase()
  for (const [other, word] of schemes) if (other !== server && word === front) return true
  return false
}

/** A template that leaves the scheme open would answer for the addresses of others. */
function fitsAll(template: string): boolean {
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

/** The address of one server's own that no list has, where another server may have one of the same. */
export function prefixedUri(server: string, uri: string): string {
  return `${scheme(server)}-${hashOf(`${server}\0${uri}`)}+${uri}`
}

function scheme(server: string): string {
  const word = server.toLowerCase().replaceAll(/[^a-z0-9.-]/g, '-')
  return /^[a-z]/.test(word) ? word : `x-${word}`
}

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, hashed)
}
