/** Whose tokens a gateway takes. What it needs at the servers behind it is its own, and no token of a caller ever goes there. */
import { createHash, timingSafeEqual } from 'node:crypto'
import { type Authorization, oauth, type VerifiedToken } from '../../auth/resource/options.ts'
import { tokenIssuer } from './clients.ts'
import type { AuthSettings } from './settings.ts'

export function authorizationOf(auth: AuthSettings | undefined): Authorization | undefined {
  if (auth === undefined) return undefined
  if (!('tokens' in auth)) return oauth(auth)
  const known = Object.entries(auth.tokens).map(([client, token]) => ({ client, hash: hashOf(token) }))
  const verify = (token: string): VerifiedToken | undefined => {
    const hash = hashOf(token)
    const found = known.find(each => timingSafeEqual(each.hash, hash))
    return found === undefined ? undefined : { subject: found.client, client: found.client, issuer: tokenIssuer }
  }
  return oauth({ issuer: tokenIssuer, verify })
}

function hashOf(token: string): Buffer {
  return createHash('sha256').update(token).digest()
}
