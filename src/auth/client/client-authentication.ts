/** How a client proves itself at a token endpoint, chosen by what the authorization server lists, and the keys it signs with. */
import { AuthorizationError } from './failure.ts'
import { type AuthorizationServer, type ClientAuth, noSecret, secretInBody, secretInHeader } from './protocol.ts'

/** Without a list it is this one (RFC 8414 section 2). */
const standard = 'client_secret_basic'

export function methodsOf(server: AuthorizationServer): readonly string[] {
  return server.token_endpoint_auth_methods_supported ?? [standard]
}

/** What to register as: an application on somebody's machine keeps no secrets, unless it is made to. */
export function methodToRegister(server: AuthorizationServer): string {
  const methods = methodsOf(server)
  return ['none', standard, 'client_secret_post'].find(method => methods.includes(method)) ?? standard
}

/** For a client with a secret. */
export function secretMethod(server: AuthorizationServer): string {
  const methods = methodsOf(server)
  return [standard, 'client_secret_post', 'none'].find(method => methods.includes(method)) ?? standard
}

export function authenticationBy(method: string, secret: string | undefined): ClientAuth {
  if (method === 'none') return noSecret()
  if (secret === undefined || secret === '') {
    throw new AuthorizationError(
      'registration',
      `The authorization server wants ${method}, but the client has no secret; give clientSecret`,
    )
  }
  if (method === 'client_secret_basic') return secretInHeader(secret)
  if (method === 'client_secret_post') return secretInBody(secret)
  throw new AuthorizationError(
    'registration',
    `The authorization server registered the client for ${method}, which is not known here`,
  )
}

// Private keys as operators have them: PKCS #8 in PEM.

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
