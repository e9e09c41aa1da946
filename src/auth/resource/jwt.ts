/** Tokens that are JWTs (RFC 9068, and what issuers gave before it): the signature by the issuer's keys, then the claims. */

import type { LocalJWKSet } from 'jose/jwks/local'
import type { Clock } from '../../core/clock.ts'
import { principalOf, skewMs } from './claims.ts'
import { fetchJson, IssuerError, issuerAddress } from './issuer.ts'
import type { Settings } from './options.ts'
import type { Verifier } from './verifier.ts'

interface JwtOptions {
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

/**
 * The issuer's public keys. Fetched when first needed and now and then after; an unknown key id may be a new key, but a flood of
 * invented ones must not become a flood of requests to the issuer: between two looks there is always a pause.
 */
interface KeysOptions {
  readonly issuer: string
  /** Undefined: as the issuer's metadata says. */
  readonly jwksUri: string | undefined
  readonly jose: Jose
  readonly clock: Clock
  /** Told of looks that failed. */
  readonly failed: (error: unknown) => void
}

/** After so long the keys are fetched anew; */
const freshMs = 10 * 60_000
/** while that fails, the old ones hold until then. */
const staleMs = 60 * 60_000
const pauseMs = 30_000
const pauseAfterFailureMs = 5_000

class Keys {
  readonly #options: KeysOptions
  #set: KeySet | undefined = undefined
  #fetchedAt = 0
  #nextLook = 0
  #looking: Promise<void> | undefined = undefined

  constructor(options: KeysOptions) {
    this.#options = options
  }

  readonly find: FindKey = async (header, token) => {
    const { jose, clock } = this.#options
    if (this.#set === undefined || clock.now() - this.#fetchedAt > freshMs) await this.#look()
    const known = this.#current()
    try {
      return await known(header, token)
    } catch (error) {
      if (!jose.isUnknownKey(error)) throw error
      await this.#look()
      if (this.#set === known) throw error
      return this.#current()(header, token)
    }
  }

  #current(): KeySet {
    if (this.#set !== undefined && this.#options.clock.now() - this.#fetchedAt <= staleMs) return this.#set
    throw new IssuerError('The keys of the issuer cannot be had at the moment')
  }

  /** Fetches the keys, unless that was done just now. Never rejects: what is known stays. */
  #look(): Promise<void> {
    const { clock } = this.#options
    if (this.#looking !== undefined) return this.#looking
    if (clock.now() < this.#nextLook) return Promise.resolve()
    this.#looking = this.#fetch().finally(() => {
      this.#looking = undefined
    })
    return this.#looking
  }

  async #fetch(): Promise<void> {
    const { issuer, jwksUri, jose, clock, failed } = this.#options
    try {
      this.#set = jose.keySet(await fetchJson(jwksUri ?? (await issuerAddress(issuer, 'jwks_uri'))))
      this.#fetchedAt = clock.now()
      this.#nextLook = clock.now() + pauseMs
    } catch (error) {
      this.#nextLook = clock.now() + pauseAfterFailureMs
      failed(error)
    }
  }
}

// The one place that knows the package `jose`: what it does with signatures and key sets, loaded when the first token comes.

/** Finds the key of the issuer that a token says it was signed with. */
type KeySet = LocalJWKSet
/** Asked for a key by jose itself; what it throws that is no failure of jose's comes out as it went in. */
type FindKey = (...asked: Parameters<LocalJWKSet>) => ReturnType<LocalJWKSet>

interface SignedToken {
  readonly header: { readonly typ?: string | undefined }
  readonly claims: Readonly<Record<string, unknown>>
}

interface SignatureOptions {
  readonly algorithms: readonly string[]
  readonly now: number
  readonly skewMs: number
}

interface Jose {
  keySet(jwks: unknown): KeySet
  /** Undefined when no key of the set fits the token. */
  isUnknownKey(error: unknown): boolean
  /** The claims of a token whose signature and times are good; otherwise a word for what is wrong with it. */
  open(token: string, find: FindKey, options: SignatureOptions): Promise<SignedToken | string>
}

let loaded: Promise<Jose> | undefined

/** A load that failed is tried again. */
function loadJose(): Promise<Jose> {
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
