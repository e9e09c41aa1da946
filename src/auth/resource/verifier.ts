/** The three ways to find out what a token is worth, as one function. */
import type { Clock } from '../../core/clock.ts'
import type { Principal } from '../../jsonrpc/connection.ts'
import { skewMs, toPrincipal } from './claims.ts'
import { IssuerError } from './fetch-json.ts'
import { introspectionVerifier } from './introspection.ts'
import { jwtVerifier } from './jwt.ts'
import type { Settings, VerifyToken } from './options.ts'
import type { Asking } from './question-slots.ts'

/** Who it is, or why the token is not good here. Rejects when that cannot be found out now. */
export type Verifier = (token: string, asking: Asking) => Promise<Principal | string>

export interface VerifierOptions {
  readonly settings: Settings
  readonly resource: () => string
  readonly clock: Clock
  /** Told of an issuer that does not answer. */
  readonly failed: (error: unknown) => void
}

export function createVerifier(options: VerifierOptions): Verifier {
  const { settings, resource } = options
  const audiences = (): readonly string[] => (settings.audiences.length === 0 ? [resource()] : settings.audiences)
  if (settings.verify !== undefined) return ownVerifier(settings.verify, options)
  if (settings.introspection !== undefined) {
    return introspectionVerifier({ issuer: settings.issuer, ...settings.introspection, audiences, clock: options.clock })
  }
  return jwtVerifier({ ...options, audiences })
}

/** How long an author's function may take. */
const verifyMs = 10_000

function ownVerifier(verify: VerifyToken, { settings, resource, clock }: VerifierOptions): Verifier {
  return async token => {
    const stop = new AbortController()
    const late = new Promise<never>((_, reject) => {
      stop.signal.addEventListener('abort', () => reject(new IssuerError(`verify took longer than ${verifyMs} ms`)))
    })
    const cancel = clock.setTimeout(() => stop.abort(), verifyMs, true)
    try {
      const found = await Promise.race([verify(token, { resource: resource(), signal: stop.signal }), late])
      if (found === undefined) return 'it is not known here'
      const { subject, issuer = settings.issuer, client, scopes = [], expiresAt, claims } = found
      if (typeof subject !== 'string' || subject === '') return 'it names no subject'
      if (expiresAt !== undefined && expiresAt + skewMs <= clock.now()) return 'it has expired'
      return toPrincipal({ issuer, subject, client, scopes, expiresAt, claims })
    } finally {
      cancel()
    }
  }
}
