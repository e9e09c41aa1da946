/** Whose tokens a gateway takes. What it needs at the servers behind it is its own, and no token of a caller ever goes there. */
import { createHash, timingSafeEqual } from 'node:crypto'
import { type Authorization, oauth, type VerifiedToken } from '../../auth/resource/options.ts'
import { tokenIssuer } from './clients.ts'
import type { AuthSettings } from './settings.ts'

/** Fixed tokens: each stands for the client that it is given to. */
export class FixedTokens {
  #known: readonly { readonly client: string; readonly hash: Buffer }[] = []

  /** From now on these are the ones. */
  take(tokens: Readonly<Record<string, string>>): void {
    this.#known = Object.entries(tokens).map(([client, token]) => ({ client, hash: hashOf(token) }))
  }

  verify(token: string): VerifiedToken | undefined {
    const hash = hashOf(token)
    const found = this.#known.find(each => timingSafeEqual(each.hash, hash))
    return found === undefined ? undefined : { subject: found.client, client: found.client, issuer: tokenIssuer }
  }
}

export function authorizationOf(auth: AuthSettings | undefined, fixed: FixedTokens): Authorization | undefined {
  if (auth === undefined) return undefined
  if (!('tokens' in auth)) return oauth(auth)
  fixed.take(auth.tokens)
  return oauth({ issuer: tokenIssuer, verify: token => fixed.verify(token) })
}

function hashOf(token: string): Buffer {
  return createHash('sha256').update(token).digest()
}
