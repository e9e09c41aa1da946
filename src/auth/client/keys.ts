/** Private keys as operators have them: PKCS #8 in PEM. */
import { AuthorizationError } from './failure.ts'

/** The signatures that can be made, by the names that metadata uses. */
export type SigningAlgorithm = 'ES256' | 'ES384' | 'ES512' | 'RS256' | 'PS256' | 'EdDSA'

const parameters: Readonly<Record<SigningAlgorithm, EcKeyImportParams | RsaHashedImportParams | Algorithm>> = {
  ES256: { name: 'ECDSA', namedCurve: 'P-256' },
  ES384: { name: 'ECDSA', namedCurve: 'P-384' },
  ES512: { name: 'ECDSA', namedCurve: 'P-521' },
  RS256: { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' },
  PS256: { name: 'RSA-PSS', hash: 'SHA-256' },
  EdDSA: { name: 'Ed25519' },
}

/** A `CryptoKey`, called by what makes one: only the types of browsers have that name. */
export type SigningKey = Awaited<ReturnType<typeof crypto.subtle.importKey>>

export async function signingKey(key: string | SigningKey, algorithm: SigningAlgorithm): Promise<SigningKey> {
  if (typeof key !== 'string') return key
  const body = /-----BEGIN PRIVATE KEY-----([A-Za-z0-9+/=\s]+)-----END PRIVATE KEY-----/.exec(key)?.[1]
  try {
    const bytes = Uint8Array.from(atob((body ?? '-').replace(/\s/g, '')), char => char.charCodeAt(0))
    return await crypto.subtle.importKey('pkcs8', bytes, parameters[algorithm], false, ['sign'])
  } catch {
    throw new AuthorizationError('options', `The privateKey is no ${algorithm} key in PEM (PKCS #8, BEGIN PRIVATE KEY)`)
  }
}
