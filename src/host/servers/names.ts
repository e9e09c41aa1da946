/**
 * Assigns unique names to what many servers offer; used for tools of the host and the gateway. A name of a single server stays as it is.
 * A name of several goes to none of them: each gets its server's name as a prefix, so that the order of connection never matters.
 */
import { createHash } from 'node:crypto'

/** The longest name that all clients and model providers accept. */
const longest = 64
/** Digits of a hash. */
const hashed = 8
/** Names with this prefix are reserved for shortened names. */
const hashedFront = /^[0-9a-f]{8}_/

/** Shown names by server and own name. */
export type Names = ReadonlyMap<string, ReadonlyMap<string, string>>

/** The prefix of all names of a server; undefined where names stay short if possible. */
export type Prefixes = (server: string) => string | undefined

interface NameRules {
  /** Whether a name can be shown as it is. */
  readonly fits: (name: string) => boolean
  readonly prefixes?: Prefixes
  /** Maps names to a form in which equal ones collide. Default: the name itself. */
  readonly folded?: (name: string) => string
  /** Folded names that are already assigned. */
  readonly taken?: ReadonlySet<string>
  /** Whether a name is reserved for another server that had it before. */
  readonly reserved?: (server: string, name: string) => boolean
}

const asItIs = (name: string): string => name
const nobody: ReadonlySet<string> = new Set()

/** Assigns names. `offered`: the own names of each server. */
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
      // Remaining collisions get a hash of server and name.
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

/** How many servers would show a name unchanged; those with a prefix do not count. */
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

/** Whether a name looks like another server's name with prefix, so that it could be called by mistake, now or later. */
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

/** The name with the server's prefix; where that is too long, a hash and the end of the name. */
function prefixed(server: string, name: string): string {
  const whole = `${plain(server)}_${plain(name)}`
  return whole.length <= longest && server !== '' ? whole : marked(server, name)
}

/** A hash and the end of the name. */
function marked(server: string, name: string): string {
  return `${hashOf(`${server}\0${name}`)}_${plain(name).slice(-(longest - hashed - 1))}`
}

/** Replaces characters that names may not have. */
function plain(text: string): string {
  return text.replaceAll(/[^A-Za-z0-9_-]/g, '_')
}

/** A short hash, for names that are too long or not unique. */
export function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, hashed)
}
