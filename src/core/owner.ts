/** Whose something is, as a key for stores: short, of a fixed alphabet, and nothing of the identity to be read in it. */
import type { Caller } from '../jsonrpc/connection.ts'
import type { Awaitable } from '../jsonrpc/message.ts'
import { digestText } from './digest.ts'

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
  return young.get(id) ?? (old.has(id) ? remember(id, old.get(id) as string) : compute(id))
}

async function compute(id: string): Promise<string> {
  // As JSON, because half surrogate pairs would all become one character in UTF-8.
  return remember(id, (await digestText(JSON.stringify(id))).slice(0, length))
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
