/** The key that DPoP tokens are bound to (RFC 9449): kept with them, because without it they are of no use. */
import { makeKeyPair, makeProver, type Prover } from './protocol.ts'
import type { PrivateJwk } from './records.ts'

export interface Possession {
  readonly prover: Prover
  /** The private key, to be kept with the tokens. */
  readonly key: PrivateJwk
}

const algorithm = { name: 'ECDSA', namedCurve: 'P-256' }

export async function newPossession(): Promise<Possession> {
  const pair = await makeKeyPair()
  return { prover: makeProver(pair), key: await crypto.subtle.exportKey('jwk', pair.privateKey) }
}

export async function keptPossession(key: PrivateJwk): Promise<Possession> {
  const { kty = '', crv = '', x = '', y = '' } = key
  const [privateKey, publicKey] = await Promise.all([
    crypto.subtle.importKey('jwk', key, algorithm, false, ['sign']),
    crypto.subtle.importKey('jwk', { kty, crv, x, y }, algorithm, true, ['verify']),
  ])
  return { prover: makeProver({ privateKey, publicKey }), key }
}
