/**
 * Under which names others see what many servers offer. A name that only one server uses stays as it is. One that several use is
 * given to none of them: each gets the name of its server in front, so that it never depends on who was there first whose tool is
 * called.
 */
import { createHash } from 'node:crypto'

/** Characters that every client and every provider of models takes in the name of a tool. */
const longest = 64
const hashed = 8
/** What we make of names that are too long is nobody's own. */
const hashedFront = /^[0-9a-f]{8}_/

/** By server, by its own names: the names that others see. */
export type Names = ReadonlyMap<string, ReadonlyMap<string, string>>

/** What stands in front of all names of a server; undefined where they are short as long as they can be. */
export type Prefixes = (server: string) => string | undefined

interface NameRules {
  /** Whether a name can be shown as it is. */
  readonly fits: (name: string) => boolean
  readonly prefixes?: Prefixes
  /** What names have in common that readers take for one and the same. Default: the whole name. */
  readonly folded?: (name: string) => string
  /** Names, folded, that are given already. */
  readonly taken?: ReadonlySet<string>
  /** Whether a name is kept for another server, which had it before. */
  readonly reserved?: (server: string, name: string) => boolean
}

const asItIs = (name: string): string => name
const nobody: ReadonlySet<string> = new Set()

/** `offered`: what each server calls its own. */
export function assignNames(offered: ReadonlyMap<string, Iterable<string>>, rules: NameRules): Names {
  const { fits, prefixes = () => undefined, folded = asItIs, taken = nobody, reserved } = rules
  const own = distinct(offered)
  const holders = holdersOf(own, folded, prefixes)
  const borrowed = borrowing(own, prefixes)
  const free = (server: string, name: string): boolean =>
    prefixes(server) === undefined &&
    holders.get(folded(name)) === 1 &&
    fits(name) &&
    !taken.has(folded(name)) &&
    !hashedFront.test(name) &&
    !borrowed(server, name) &&
    reserved?.(server, name) !== true
  const wishOf = (server: string, name: string): string =>
    free(server, name) ? name : prefixed(prefixes(server) ?? server, name)
  const wished = new Map<string, number>([...taken].map(name => [name, 1]))
  for (const [server, names] of own) {
    for (const name of names) {
      const shown = folded(wishOf(server, name))
      wished.set(shown, (wished.get(shown) ?? 0) + 1)
    }
  }
  const all = new Map<string, ReadonlyMap<string, string>>()
  for (const [server, names] of own) {
    const shown = new Map<string, string>()
    for (const name of names) {
      const wish = wishOf(server, name)
      // What two would be called after all is told apart by a hash of where it comes from.
      shown.set(name, wished.get(folded(wish)) === 1 ? wish : marked(server, name))
    }
    all.set(server, shown)
  }
  return all
}

/** Each server with its own names, without duplicates. */
export function distinct(offered: ReadonlyMap<string, Iterable<string>>): ReadonlyMap<string, readonly string[]> {
  return new Map([...offered].map(([server, names]) => [server, [...new Set(names)]]))
}

/** How many would have a name as it is: not those whose names all get something in front. */
export function holdersOf(
  own: ReadonlyMap<string, readonly string[]>,
  folded: (name: string) => string = asItIs,
  prefixes?: Prefixes,
): ReadonlyMap<string, number> {
  const holders = new Map<string, number>()
  for (const [server, names] of own)
    if (prefixes?.(server) === undefined) for (const name of names.map(folded)) holders.set(name, (holders.get(name) ?? 0) + 1)
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
function prefixed(server: string, name: string): string {
  const whole = `${plain(server)}_${plain(name)}`
  return whole.length <= longest && server !== '' ? whole : marked(server, name)
}

function marked(server: string, name: string): string {
  return `${hashOf(`${server}\0${name}`)}_${plain(name).slice(-(longest - hashed - 1))}`
}

function plain(text: string): string {
  return text.replaceAll(/[^A-Za-z0-9_-]/g, '_')
}

/** A short hash, for names that are too long or not unique. */
export function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, hashed)
}
