/**
 * Under which names clients see what many servers offer. A name that only one server uses stays as it is. One that several use is
 * given to none of them: each gets the name of its server in front, so that it never depends on who was there first whose tool is
 * called.
 */
import { createHash } from 'node:crypto'

/** Characters that every client takes in the name of a tool. */
const longest = 64
const hashed = 8
/** What the server side takes. */
const fit = /^[A-Za-z0-9_.\-/]{1,128}$/

/** By server, by its own names: the names that clients see. */
export type Names = ReadonlyMap<string, ReadonlyMap<string, string>>

/** `offered`: what each server calls its own. `strict`: of characters that tools may have; otherwise any will do. */
export function exposedNames(offered: ReadonlyMap<string, Iterable<string>>, strict = true): Names {
  const holders = new Map<string, number>()
  const own = new Map<string, readonly string[]>()
  for (const [server, names] of offered) {
    const distinct = [...new Set(names)]
    own.set(server, distinct)
    for (const name of distinct) holders.set(name, (holders.get(name) ?? 0) + 1)
  }
  const free = (name: string): boolean => holders.get(name) === 1 && (!strict || fit.test(name))
  const wished = new Map<string, number>()
  for (const [server, names] of own) {
    for (const name of names) {
      const shown = free(name) ? name : prefixed(server, name)
      wished.set(shown, (wished.get(shown) ?? 0) + 1)
    }
  }
  const all = new Map<string, ReadonlyMap<string, string>>()
  for (const [server, names] of own) {
    const shown = new Map<string, string>()
    for (const name of names) {
      const wish = free(name) ? name : prefixed(server, name)
      // What two would be called after all is told apart by a hash of where it comes from.
      shown.set(name, wished.get(wish) === 1 || free(name) ? wish : marked(server, name))
    }
    all.set(server, shown)
  }
  return all
}

/** The server's name in front; where that is too long, a hash of it, and as much of the tail as there is room for. */
export function prefixed(server: string, name: string): string {
  const whole = `${plain(server)}_${plain(name)}`
  return whole.length <= longest && server !== '' ? whole : marked(server, name)
}

function marked(server: string, name: string): string {
  const front = createHash('sha256').update(`${server}\0${name}`).digest('hex').slice(0, hashed)
  return `${front}_${plain(name).slice(-(longest - hashed - 1))}`
}

function plain(text: string): string {
  return text.replaceAll(/[^A-Za-z0-9_-]/g, '_')
}

/** A resource's address, where two servers have it: the server's name goes before the scheme. */
export function exposedUris(offered: ReadonlyMap<string, Iterable<string>>): Names {
  const holders = new Map<string, number>()
  const own = new Map<string, readonly string[]>()
  for (const [server, uris] of offered) {
    const distinct = [...new Set(uris)]
    own.set(server, distinct)
    for (const uri of distinct) holders.set(uri, (holders.get(uri) ?? 0) + 1)
  }
  const all = new Map<string, ReadonlyMap<string, string>>()
  for (const [server, uris] of own) {
    all.set(server, new Map(uris.map(uri => [uri, holders.get(uri) === 1 ? uri : `${scheme(server)}+${uri}`])))
  }
  return all
}

/** Schemes begin with a letter and are told apart without regard to case. */
function scheme(server: string): string {
  const word = server.toLowerCase().replaceAll(/[^a-z0-9.-]/g, '-')
  return /^[a-z]/.test(word) ? word : `x-${word}`
}
