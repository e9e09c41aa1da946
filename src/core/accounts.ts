/**
 * Whose something is. An account is whose share of a bounded table it counts against: a user, whatever programs act for it, or the
 * network that callers who did not sign in come from. An owner may see and change it.
 */
import type { Caller, Principal } from '../jsonrpc/connection.ts'
import type { Awaitable } from '../jsonrpc/message.ts'
import { digestText } from './digest.ts'

/** Nothing is known of where it comes from. */
export const unknownNetwork = '@'

/** Whose place it is. Known without waiting, and nothing that is written down. */
export function callerAccount({ carrier, principal, connection }: Pick<Caller, 'carrier' | 'principal' | 'connection'>): string {
  if (principal !== undefined) return users.get(principal) ?? userOf(principal)
  if (carrier === 'stdio' || carrier === 'memory') return '='
  const { remoteAddress } = connection as { readonly remoteAddress?: unknown }
  if (typeof remoteAddress !== 'string') return unknownNetwork
  const network = networkOf(remoteAddress)
  return isLoopbackNetwork(network) ? unknownNetwork : `@${network}`
}

/**
 * By whom what a caller does is counted: a user whatever programs act for it, a network however many connections it opens. Where neither
 * is known, its connection is all that tells it from others.
 */
export function countingKey(caller: Pick<Caller, 'carrier' | 'principal' | 'connection'>): string | object {
  const account = callerAccount(caller)
  return account === unknownNetwork || (caller.principal === undefined && !isAnonymous(account)) ? caller.connection : account
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
