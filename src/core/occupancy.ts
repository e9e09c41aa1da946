/**
 * Places of which there are so many for all: sessions, tasks, streams, calls, sockets. Whoever signed in is counted as a user, whatever
 * programs act for it; all others by the network they come from. Those together may hold three quarters, and one network as much as is
 * still free of them: alone it gets half, and the next one always finds some. The networks of one site (IPv6) may hold three times as much
 * as is still free, so that whoever has many of them leaves something to others. The last quarter is for users. An address that tells
 * nothing, because it is this machine's own or a proxy's on it, has no share of its own: those who come by it have all three quarters.
 */
import type { Caller, Principal } from '../jsonrpc/connection.ts'
import type { Awaitable } from '../jsonrpc/message.ts'
import { digestText } from './digest.ts'
import { type Problem, problem } from './problem.ts'

/** Nothing is known of where it comes from. */
const unknown = '@'

/** Whose place it is. Known without waiting, and nothing that is written down. */
export function callerAccount({ carrier, principal, connection }: Pick<Caller, 'carrier' | 'principal' | 'connection'>): string {
  if (principal !== undefined) return users.get(principal) ?? userOf(principal)
  if (carrier === 'stdio' || carrier === 'memory') return '='
  const { remoteAddress } = connection as { readonly remoteAddress?: unknown }
  if (typeof remoteAddress !== 'string') return unknown
  const network = networkOf(remoteAddress)
  return isLoopbackNetwork(network) ? unknown : `@${network}`
}

/**
 * By whom what a caller does is counted: a user whatever programs act for it, a network however many connections it opens. Where neither
 * is known, its connection is all that tells it from others.
 */
export function countingKey(caller: Pick<Caller, 'carrier' | 'principal' | 'connection'>): string | object {
  const account = callerAccount(caller)
  return account === unknown || (caller.principal === undefined && !isAnonymous(account)) ? caller.connection : account
}

/** By the object that a token is remembered as, which comes with each of its calls. */
const users = new WeakMap<Principal, string>()

function userOf(principal: Principal): string {
  const { id, issuer, subject } = principal
  const account = issuer === undefined || subject === undefined ? `=${id}` : `=${JSON.stringify([issuer, subject])}`
  users.set(principal, account)
  return account
}

/** Whether nobody signed in. */
export function isAnonymous(account: string): boolean {
  return account.startsWith('@')
}

/** What nobody is refused for: so few do not keep others out. */
const little = 16

/** Counts who holds the places of a bounded table, and refuses those who would hold more than their share. */
export class Occupancy {
  readonly limit: number
  readonly #accounts = new Tally<string>()
  readonly #sites = new Tally<string>()
  #held = 0
  #anonymous = 0

  constructor(limit: number) {
    this.limit = limit
  }

  /** All that are taken. */
  get held(): number {
    return this.#held
  }

  of(account: string): number {
    return this.#accounts.of(account)
  }

  /** Why an account cannot have one more: there is none, or too many are its own, or of others who did not sign in. */
  refusal(account: string): 'limit' | 'share' | undefined {
    if (this.#held >= this.limit) return 'limit'
    if (!isAnonymous(account)) return undefined
    // Of a handful there are no quarters.
    const reserved = this.limit > little ? Math.floor(this.limit / 4) : 0
    const free = this.limit - reserved - this.#anonymous
    if (free <= 0) return 'share'
    if (account === unknown) return undefined
    const site = siteOf(account)
    const crowded = exceeds(this.#accounts.of(account), free) || (site !== undefined && exceeds(this.#sites.of(site), 3 * free))
    return crowded ? 'share' : undefined
  }

  /** How much counts where one gives way to another: what its whole site holds, so that many networks of one site gain nothing. */
  weight(account: string): number {
    const site = isAnonymous(account) ? siteOf(account) : undefined
    return site === undefined ? this.of(account) : this.#sites.of(site)
  }

  enter(account: string, places = 1): void {
    this.#count(account, places)
  }

  leave(account: string): void {
    this.#count(account, -1)
  }

  /**
   * Whether something of one account gives way to something new of another: who did not sign in to who did, and among equals whoever
   * holds more.
   */
  yields(from: string, to: string): boolean {
    const [stranger, other] = [isAnonymous(from), isAnonymous(to)]
    if (stranger !== other) return stranger
    return this.weight(from) > this.weight(to) + 1
  }

  #count(account: string, by: number): void {
    this.#held += by
    this.#accounts.add(account, by)
    if (!isAnonymous(account)) return
    this.#anonymous += by
    const site = siteOf(account)
    if (site !== undefined) this.#sites.add(site, by)
  }
}

function exceeds(held: number, most: number): boolean {
  return held >= little && held >= most
}

/** For the sentence of a refusal by share. */
export function shareText(what: string): string {
  return `Callers from your network who did not sign in hold their share of the ${what}`
}

// Which callers count as one where nobody signed in: those whose addresses one customer can choose from. Of IPv4 that is a single
// address. Of IPv6 it is a network of 56 bits, which is what providers usually give to one customer; those with the same first 48 bits,
// which is what companies and whoever rents a server often get, are one site. An address of IPv4 that is written as one of IPv6 is one
// of IPv4. Every limit that tells callers apart by address asks here.

/** Text that all addresses of a network have in common, however they are written. What is no address is a network of its own. */
export function networkOf(address: string): string {
  if (!address.includes(':')) return address
  const before = known.get(address)
  if (before !== undefined) return before
  const network = networkOfGroups(groupsOf(address)) ?? address
  if (known.size >= mostKnown) known.clear()
  known.set(address, network)
  return network
}

/** Asked for with every call, mostly by the same few. */
const known = new Map<string, string>()
const mostKnown = 1_000

/** The first 48 bits of a network of IPv6, or of the account that is named after one. Of IPv4: undefined, it is all there is. */
export function siteOf(network: string): string | undefined {
  const end = network.lastIndexOf(':')
  return end === -1 ? undefined : network.slice(0, end)
}

/** Whether an address is this machine's own: then it says nothing about where a caller is. */
export function isLoopbackNetwork(network: string): boolean {
  return network === '127.0.0.1' || network === loopback
}

/** The eight numbers of an address; undefined where it is none. */
function groupsOf(address: string): readonly number[] | undefined {
  const [text = ''] = address.split('%')
  const halves = text.replace(/(\d+)\.(\d+)\.(\d+)\.(\d+)$/, inGroups).split('::')
  if (halves.length > 2) return undefined
  const [before = [], after = []] = halves.map(half => (half === '' ? [] : half.split(':')))
  const missing = 8 - before.length - after.length
  if (halves.length === 2 ? missing < 1 : missing !== 0) return undefined
  const groups = [...before, ...new Array<string>(missing).fill('0'), ...after]
  return groups.every(group => /^[\da-f]{1,4}$/i.test(group)) ? groups.map(group => Number.parseInt(group, 16)) : undefined
}

function inGroups(_: string, ...bytes: readonly string[]): string {
  const [a = 0, b = 0, c = 0, d = 0] = bytes.slice(0, 4).map(Number)
  return `${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`
}

function networkOfGroups(groups: readonly number[] | undefined): string | undefined {
  if (groups === undefined) return undefined
  const [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0] = groups
  const noPrefix = a === 0 && b === 0 && c === 0 && d === 0 && e === 0
  if (noPrefix && f === 0xffff) return [g >> 8, g & 0xff, h >> 8, h & 0xff].join('.')
  if (noPrefix && f === 0 && g === 0 && h === 1) return loopback
  return [a, b, c, d & 0xff00].map(group => group.toString(16)).join(':')
}

const loopback = '::1'

/** Counts by key. A key that counts nothing is forgotten, so that the table holds only who is there. */
export class Tally<K> {
  readonly #counts = new Map<K, number>()

  of(key: K): number {
    return this.#counts.get(key) ?? 0
  }

  add(key: K, by: number): void {
    const count = this.of(key) + by
    if (count === 0) this.#counts.delete(key)
    else this.#counts.set(key, count)
  }

  /** How many keys count something. */
  get size(): number {
    return this.#counts.size
  }
}

// Shares of a bounded table. An account (a user, the owner of the process, or a network from which nobody signed in) may hold as much
// as is still free of three quarters of the table: one alone gets three eighths of it. The last quarter is for those who hold little,
// so that the next one still finds room when several have taken all they could. Nobody takes away what another holds.

/** Of a table, or of what one account holds in it. `length` is whatever the table counts: characters, or bytes. */
interface Amount {
  readonly records: number
  readonly length: number
}

/** What is little: this part of a table. */
const littlePart = 1 / 256

/** What of `limit` an account may still take that holds `mine` of the `held` of all accounts. */
export function leftOf(limit: number, held: number, mine: number): number {
  const shared = Math.ceil(limit * 0.75) - held - mine
  const reserved = Math.min(Math.ceil(limit * littlePart) - mine, limit - held)
  return Math.max(0, shared, reserved)
}

/** Counts what accounts hold of a table that is bounded in records and in length. */
export class Shares {
  readonly limit: Amount
  #accounts = new Map<string, Amount>()
  #records = 0
  #length = 0

  constructor(limit: Amount) {
    this.limit = limit
  }

  /** What all accounts hold. */
  get held(): Amount {
    return { records: this.#records, length: this.#length }
  }

  of(account: string): Amount {
    return this.#accounts.get(account) ?? nothing
  }

  /** What an account may still take. */
  left(account: string): Amount {
    const mine = this.of(account)
    return {
      records: leftOf(this.limit.records, this.#records, mine.records),
      length: leftOf(this.limit.length, this.#length, mine.length),
    }
  }

  fits(account: string, { records, length }: Amount): boolean {
    const left = this.left(account)
    return records <= left.records && length <= left.length
  }

  /** Counts; by less than nothing where something is gone. */
  add(account: string, records: number, length: number): void {
    const mine = this.of(account)
    // Never below nothing: what another process freed may be subtracted here although it was never added.
    const next = { records: Math.max(0, mine.records + records), length: Math.max(0, mine.length + length) }
    this.#records += next.records - mine.records
    this.#length += next.length - mine.length
    if (next.records === 0 && next.length === 0) this.#accounts.delete(account)
    else this.#accounts.set(account, next)
  }

  entries(): readonly (readonly [string, Amount])[] {
    return [...this.#accounts]
  }
}

const nothing: Amount = { records: 0, length: 0 }

/** The refusal of something new whose account has no share left. Nothing that is kept gives way to it. */
export function quotaExhausted(what: string, waitMs: number | undefined, suggestion: string): Problem {
  return problem('QUOTA_EXHAUSTED', `Your share of ${what} is used up. Nothing was executed`, {
    // Without a known time: soon enough for whoever waits, seldom enough for whoever is asked.
    retryAfter: Math.max(1_000, waitMs ?? 5_000),
    suggestion,
  })
}

// Whose something is, as keys for stores: short, of a fixed alphabet, and nothing of the identity to be read in them. The owner may
// see and change it; the account is whose share of a bounded table it counts against. A user has one account and, with each program
// that acts for it, one owner; callers who did not sign in own nothing by what they are, and have one account for each address of IPv4 or site of IPv6: what is kept for
// long gives way to nobody, so that whoever has many networks must not have many shares.

/** Half of the digest: 128 bits, in characters. */
const length = 22

/** Who started this process speaks on its pipe. No digest has such a name. */
const processOwner = '~process'

/** Keys remembered; the longest unused are computed anew. */
const remembered = 10_000

let young = new Map<string, string>()
let old = new Map<string, string>()

/**
 * The key of a caller's principal; on a pipe without one that of the process owner. Undefined where nobody is known: then only
 * a handle can say what belongs to whom. Never contains `/`.
 */
export function ownerKey(caller: Pick<Caller, 'carrier' | 'principal'>): Awaitable<string> | undefined {
  const id = caller.principal?.id
  if (id === undefined) return caller.carrier === 'stdio' || caller.carrier === 'memory' ? processOwner : undefined
  return keyOf(id, `id ${id}`)
}

/** Whose share it counts against. Always somebody's: callers who are not known share that of their network. Never contains `/`. */
export function accountKey({ carrier, principal, connection }: AccountCaller): Awaitable<string> {
  if (principal !== undefined) {
    const { id, issuer, subject } = principal
    // Whoever registers one program after the other has no more for it.
    if (issuer === undefined || subject === undefined) return keyOf(id, `id ${id}`)
    return keyOf({ issuer, subject }, `user ${JSON.stringify([issuer, subject])}`)
  }
  if (carrier === 'stdio' || carrier === 'memory') return processOwner
  const { remoteAddress } = connection as { readonly remoteAddress?: unknown }
  if (typeof remoteAddress !== 'string') return everywhere
  const address = networkOf(remoteAddress)
  const network = siteOf(address) ?? address
  return keyOf({ network }, `network ${network}`)
}

type AccountCaller = Pick<Caller, 'carrier' | 'principal' | 'connection'>

/** Where not even an address is known. */
const everywhere = '~anonymous'

function keyOf(identity: unknown, name: string): Awaitable<string> {
  return young.get(name) ?? (old.has(name) ? remember(name, old.get(name) as string) : compute(identity, name))
}

async function compute(identity: unknown, name: string): Promise<string> {
  // As JSON, because half surrogate pairs would all become one character in UTF-8.
  return remember(name, (await digestText(JSON.stringify(identity))).slice(0, length))
}

/** Two generations: a hit in the young one, the usual case, moves nothing. */
function remember(id: string, key: string): string {
  if (young.size >= remembered / 2) {
    old = young
    young = new Map()
  }
  young.set(id, key)
  return key
}
