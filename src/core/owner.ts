/**
 * Whose something is, as keys for stores: short, of a fixed alphabet, and nothing of the identity to be read in them. The owner may
 * see and change it; the account is whose share of a bounded table it counts against. A user has one account and, with each program
 * that acts for it, one owner; callers who did not sign in own nothing by what they are, and have one account for each address of IPv4 or site of IPv6: what is kept for
 * long gives way to nobody, so that whoever has many networks must not have many shares.
 */
import type { Caller } from '../jsonrpc/connection.ts'
import type { Awaitable } from '../jsonrpc/message.ts'
import { digestText } from './digest.ts'
import { networkOf, siteOf } from './occupancy.ts'

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
