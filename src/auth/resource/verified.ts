/** What was found out of tokens a moment ago, by digest: a hash is some hundred times cheaper than a signature. Bounded in number and time. */
import type { Clock } from '../../core/clock.ts'
import { digestText } from '../../core/digest.ts'
import type { Awaitable } from '../../jsonrpc/message.ts'

export interface Remembered<T> {
  get(key: string): T | undefined
  /** `until`: when it is forgotten, in milliseconds since the epoch. */
  add(key: string, value: T, until: number): void
  /** Forgets all that match. */
  drop(matches: (value: T) => boolean): void
}

/** Where it is full, the oldest is forgotten. */
export function createRemembered<T>(clock: Clock, limit = 5_000): Remembered<T> {
  const known = new Map<string, { readonly value: T; readonly until: number }>()
  return {
    get: key => {
      const found = known.get(key)
      if (found === undefined || found.until > clock.now()) return found?.value
      known.delete(key)
      return undefined
    },
    add: (key, value, until) => {
      if (until <= clock.now()) return
      known.delete(key)
      if (known.size >= limit) forgetOldest(known)
      known.set(key, { value, until })
    },
    drop: matches => {
      for (const [key, { value }] of known) if (matches(value)) known.delete(key)
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
