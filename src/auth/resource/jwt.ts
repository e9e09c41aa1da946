/** Tokens that are JWTs (RFC 9068, and what issuers gave before it): the signature by the issuer's keys, then the claims. */
import type { Clock } from '../../core/clock.ts'
import { principalOf, skewMs } from './claims.ts'
import { loadJose } from './jose.ts'
import { Keys } from './keys.ts'
import type { Settings } from './options.ts'
import type { Verifier } from './verifier.ts'

export interface JwtOptions {
  readonly settings: Settings
  readonly audiences: () => readonly string[]
  readonly clock: Clock
  readonly failed: (error: unknown) => void
}

export function jwtVerifier({ settings, audiences, clock, failed }: JwtOptions): Verifier {
  const { issuer, jwksUri, algorithms } = settings
  let keys: Keys | undefined
  return async token => {
    // Looked at first, so that what is plainly something else costs nothing more.
    if (!compact.test(token)) return 'it is not a JWT that can be read'
    const jose = await loadJose()
    keys ??= new Keys({ issuer, jwksUri, jose, clock, failed })
    const now = clock.now()
    const signed = await jose.open(token, keys.find, { algorithms, now, skewMs })
    if (typeof signed === 'string') return signed
    const { header, claims } = signed
    if (!isAccessToken(header.typ)) return 'it is not an access token'
    if (claims['exp'] === undefined) return 'it never expires'
    return principalOf(claims, { issuer, audiences: audiences(), now })
  }
}

const compact = /^[\w-]+\.[\w-]+\.[\w-]+$/

/** Other kinds of JWT (of identity, of proof, of logout) say so here. Many issuers say only that it is a JWT, or nothing. */
function isAccessToken(typ: string | undefined): boolean {
  return typ === undefined || /^(?:application\/)?(?:at\+jwt|jwt)$/i.test(typ)
}
