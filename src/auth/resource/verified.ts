/** Tokens that were good a moment ago, by digest: a hash is some hundred times cheaper than a signature. Bounded in number and time. */
import type { Clock } from '../../core/clock.ts'
import { digestText } from '../../core/digest.ts'
import type { Principal } from '../../jsonrpc/connection.ts'
import type { Awaitable } from '../../jsonrpc/message.ts'

export interface Verified {
  get(key: string): Principal | undefined
  add(key: string, principal: Principal): void
}

/** `ms`: the longest time without another look; a token is forgotten when it expires in any case. */
export function createVerified(ms: number, clock: Clock, limit = 5_000): Verified {
  const known = new Map<string, { readonly principal: Principal; readonly until: number }>()
  return {
    get: key => {
      const found = known.get(key)
      if (found === undefined || found.until > clock.now()) return found?.principal
      known.delete(key)
      return undefined
    },
    add: (key, principal) => {
      const until = Math.min(clock.now() + ms, principal.expiresAt ?? Number.POSITIVE_INFINITY)
      if (until <= clock.now()) return
      if (known.size >= limit) forgetOldest(known)
      known.set(key, { principal, until })
    },
  }
}

function forgetOldest(known: Map<string, unknown>): void {
  for (const oldest of known.keys()) {
    known.delete(oldest)
    return
  }
}

const hash = globalThis.process?.getBuiltinModule?.('node:crypto')?.hash

/** What stands for a token here. At once where the runtime can hash at once, as Node can. */
export function fingerprint(token: string): Awaitable<string> {
  return hash === undefined ? digestText(token) : hash('sha256', token, 'base64url')
}
