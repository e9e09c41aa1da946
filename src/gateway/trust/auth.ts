/** Whose tokens a gateway takes. What it needs at the servers behind it is its own, and no token of a caller ever goes there. */
import { createHash, timingSafeEqual } from 'node:crypto'
import { type Authorization, handedOutTokens, oauth, type VerifiedToken } from '../../auth/resource/options.ts'
import { tokenIssuer } from './clients.ts'
import type { AuthSettings } from './settings.ts'

/** Fixed tokens: each stands for the client that it is given to. */
export class FixedTokens {
  #known: ReadonlyMap<string, Buffer> = new Map()

  /** From now on these are the ones. Gives the clients whose token was taken away or is another one now. */
  take(tokens: Readonly<Record<string, string>>): ReadonlySet<string> {
    const before = this.#known
    this.#known = new Map(Object.entries(tokens).map(([client, token]) => [client, hashOf(token)]))
    const isSame = (client: string, hash: Buffer): boolean => this.#known.get(client)?.equals(hash) === true
    return new Set([...before].flatMap(([client, hash]) => (isSame(client, hash) ? [] : [client])))
  }

  verify(token: string): VerifiedToken | undefined {
    const hash = hashOf(token)
    const found = [...this.#known].find(([, known]) => timingSafeEqual(known, hash))
    return found === undefined ? undefined : { subject: found[0], client: found[0], issuer: tokenIssuer }
  }
}

export function authorizationOf(auth: AuthSettings | undefined, fixed: FixedTokens): Authorization | undefined {
  if (auth === undefined) return undefined
  if (!('tokens' in auth)) return oauth(auth)
  fixed.take(auth.tokens)
  return handedOutTokens({ issuer: tokenIssuer, resource: auth.resource, verify: token => fixed.verify(token) })
}

function hashOf(token: string): Buffer {
  return createHash('sha256').update(token).digest()
}
