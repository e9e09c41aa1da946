/** The one place that knows the package `jose`: what it does with signatures and key sets, loaded when the first token comes. */
import type { LocalJWKSet } from 'jose/jwks/local'

/** Finds the key of the issuer that a token says it was signed with. */
export type KeySet = LocalJWKSet
/** Asked for a key by jose itself; what it throws that is no failure of jose's comes out as it went in. */
export type FindKey = (...asked: Parameters<LocalJWKSet>) => ReturnType<LocalJWKSet>

export interface SignedToken {
  readonly header: { readonly typ?: string | undefined }
  readonly claims: Readonly<Record<string, unknown>>
}

export interface SignatureOptions {
  readonly algorithms: readonly string[]
  readonly now: number
  readonly skewMs: number
}

export interface Jose {
  keySet(jwks: unknown): KeySet
  /** Undefined when no key of the set fits the token. */
  isUnknownKey(error: unknown): boolean
  /** The claims of a token whose signature and times are good; otherwise a word for what is wrong with it. */
  open(token: string, find: FindKey, options: SignatureOptions): Promise<SignedToken | string>
}

let loaded: Promise<Jose> | undefined

/** A load that failed is tried again. */
export function loadJose(): Promise<Jose> {
  loaded ??= load().catch(error => {
    loaded = undefined
    throw error
  })
  return loaded
}

async function load(): Promise<Jose> {
  const [{ jwtVerify }, { createLocalJWKSet }, errors] = await Promise.all([
    import('jose/jwt/verify'),
    import('jose/jwks/local'),
    import('jose/errors'),
  ])
  return {
    keySet: jwks => createLocalJWKSet(jwks as Parameters<typeof createLocalJWKSet>[0]),
    isUnknownKey: error => error instanceof errors.JWKSNoMatchingKey,
    open: async (token, find, { algorithms, now, skewMs }) => {
      const options = { algorithms: [...algorithms], currentDate: new Date(now), clockTolerance: skewMs / 1000 }
      try {
        const { payload, protectedHeader } = await jwtVerify(token, find, options)
        return { header: protectedHeader, claims: payload }
      } catch (error) {
        if (!(error instanceof errors.JOSEError)) throw error
        return words.get(error.code) ?? 'it is not a JWT that can be read'
      }
    },
  }
}

/** What of a failure is told: enough to find a mistake, nothing of the token. */
const words: ReadonlyMap<string, string> = new Map([
  ['ERR_JWT_EXPIRED', 'it has expired'],
  ['ERR_JWT_CLAIM_VALIDATION_FAILED', 'one of its times is wrong or not reached yet'],
  ['ERR_JWS_SIGNATURE_VERIFICATION_FAILED', 'its signature is wrong'],
  ['ERR_JOSE_ALG_NOT_ALLOWED', 'its signature algorithm is not taken here'],
  ['ERR_JWKS_NO_MATCHING_KEY', 'no key of the issuer fits it'],
  ['ERR_JWKS_MULTIPLE_MATCHING_KEYS', 'it does not say which key of the issuer it was signed with'],
])
