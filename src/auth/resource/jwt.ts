/** Tokens that are JWTs (RFC 9068, and what issuers gave before it): the signature by the issuer's keys, then the claims. */
import type { LocalJWKSet } from 'jose/jwks/local'
import type { Clock } from '../../core/clock.ts'
import { isScope } from '../../core/scope.ts'
import type { Principal } from '../../jsonrpc/connection.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import { carriesCredentials, metadataUrls } from '../addresses.ts'
import type { Settings } from './options.ts'
import type { Verifier } from './verifier.ts'

interface JwtOptions {
  readonly settings: Settings
  readonly audiences: () => readonly string[]
  readonly clock: Clock
  readonly failed: (error: unknown) => void
}

/** Verifies JWT access tokens (RFC 9068) by the published keys of their issuer. */
export function jwtVerifier({ settings, audiences, clock, failed }: JwtOptions): Verifier {
  const { issuer, algorithms } = settings
  let keys: Keys | undefined
  return async token => {
    // Looked at first, so that what is plainly something else costs nothing more.
    if (!compact.test(token)) return 'it is not a valid JWT'
    const jose = await loadJose()
    keys ??= new Keys(jose, settings, clock, failed)
    const now = clock.now()
    const options = { algorithms: [...algorithms], currentDate: new Date(now), clockTolerance: skewMs / 1000 }
    try {
      const { payload, protectedHeader } = await jose.jwtVerify(token, keys.find, options)
      if (!isAccessToken(protectedHeader.typ)) return 'it is not an access token'
      if (payload.exp === undefined) return 'it has no expiry time'
      return principalFromClaims(payload, { issuer, audiences: audiences(), now })
    } catch (error) {
      if (!(error instanceof jose.JOSEError)) throw error
      return words.get(error.code) ?? 'it is not a valid JWT'
    }
  }
}

const compact = /^[\w-]+\.[\w-]+\.[\w-]+$/

/** Other kinds of JWT (of identity, of proof, of logout) say so here. Many issuers say only that it is a JWT, or nothing. */
function isAccessToken(typ: string | undefined): boolean {
  return typ === undefined || /^(?:application\/)?(?:at\+jwt|jwt)$/i.test(typ)
}

/** After so long the keys are fetched anew; */
const freshMs = 10 * 60_000
/** while that fails, the old ones hold until then. */
const staleMs = 60 * 60_000
const pauseMs = 30_000
const pauseAfterFailureMs = 5_000

/**
 * The issuer's public keys. Fetched when first needed and now and then after; an unknown key id may be a new key, but a flood of
 * invented ones must not become a flood of requests to the issuer: between two looks there is always a pause.
 */
class Keys {
  readonly #jose: Jose
  readonly #settings: Settings
  readonly #clock: Clock
  /** Told of looks that failed. */
  readonly #failed: (error: unknown) => void
  #set: LocalJWKSet | undefined = undefined
  #fetchedAt = 0
  #nextLook = 0
  #looking: Promise<void> | undefined = undefined

  constructor(jose: Jose, settings: Settings, clock: Clock, failed: (error: unknown) => void) {
    this.#jose = jose
    this.#settings = settings
    this.#clock = clock
    this.#failed = failed
  }

  /** Asked for a key by jose itself; what it throws that is no failure of jose's comes out as it went in. */
  readonly find = async (...[header, token]: Parameters<LocalJWKSet>): ReturnType<LocalJWKSet> => {
    if (this.#set === undefined || this.#clock.now() - this.#fetchedAt > freshMs) await this.#look()
    const known = this.#current()
    try {
      return await known(header, token)
    } catch (error) {
      if (!(error instanceof this.#jose.JWKSNoMatchingKey)) throw error
      await this.#look()
      if (this.#set === known) throw error
      return this.#current()(header, token)
    }
  }

  #current(): LocalJWKSet {
    if (this.#set !== undefined && this.#clock.now() - this.#fetchedAt <= staleMs) return this.#set
    throw new IssuerError('The keys of the issuer are temporarily unavailable')
  }

  /** Fetches the keys, unless that was done just now. Never rejects: what is known stays. */
  async #look(): Promise<void> {
    if (this.#looking === undefined && this.#clock.now() < this.#nextLook) return
    this.#looking ??= this.#fetch().finally(() => {
      this.#looking = undefined
    })
    await this.#looking
  }

  async #fetch(): Promise<void> {
    const { issuer, jwksUri } = this.#settings
    try {
      const jwks = await fetchJson(jwksUri ?? (await issuerAddress(issuer, 'jwks_uri')))
      this.#set = this.#jose.createLocalJWKSet(jwks as unknown as Parameters<Jose['createLocalJWKSet']>[0])
      this.#fetchedAt = this.#clock.now()
      this.#nextLook = this.#clock.now() + pauseMs
    } catch (error) {
      this.#nextLook = this.#clock.now() + pauseAfterFailureMs
      this.#failed(error)
    }
  }
}

// The package `jose`, which does signatures and key sets, is loaded when the first token comes.

type Jose = Awaited<ReturnType<typeof load>>

let loaded: Promise<Jose> | undefined

/** A load that failed is tried again. */
function loadJose(): Promise<Jose> {
  loaded ??= load().catch(error => {
    loaded = undefined
    throw error
  })
  return loaded
}

async function load() {
  const [{ jwtVerify }, { createLocalJWKSet }, { JOSEError, JWKSNoMatchingKey }] = await Promise.all([
    import('jose/jwt/verify'),
    import('jose/jwks/local'),
    import('jose/errors'),
  ])
  return { jwtVerify, createLocalJWKSet, JOSEError, JWKSNoMatchingKey }
}

/** What of a failure is told: enough to find a mistake, nothing of the token. */
const words: ReadonlyMap<string, string> = new Map([
  ['ERR_JWT_EXPIRED', 'it has expired'],
  ['ERR_JWT_CLAIM_VALIDATION_FAILED', 'one of its times is not valid, or in the future'],
  ['ERR_JWS_SIGNATURE_VERIFICATION_FAILED', 'its signature is not valid'],
  ['ERR_JOSE_ALG_NOT_ALLOWED', 'its signature algorithm is not accepted'],
  ['ERR_JWKS_NO_MATCHING_KEY', 'no key of the issuer matches it'],
  ['ERR_JWKS_MULTIPLE_MATCHING_KEYS', 'it does not name the key of the issuer that signed it'],
])

// What a token says → who it is, or why it is not good here. One place for JWTs and for what an issuer tells of other tokens.

interface ExpectedClaims {
  readonly issuer: string
  readonly audiences: readonly string[]
  readonly now: number
}

/** How far our clock and the issuer's may differ. */
export const skewMs = 60_000

type Claims = Readonly<Record<string, unknown>>

/** A principal, or what is wrong with the token in the words that its bearer is told. */
export function principalFromClaims(claims: Claims, { issuer, audiences, now }: ExpectedClaims): Principal | string {
  const { iss, sub, exp, nbf } = claims
  if (iss !== issuer) return 'it has another issuer'
  if (!namesOneOf(claims['aud'], audiences)) return 'it has another audience'
  // Without a subject all users of a client would be one.
  if (typeof sub !== 'string' || sub === '') return 'it has no subject'
  // Whoever cannot check the proof that belongs to it must not take such a token as one of a bearer (RFC 9449 §7.1).
  if (claims['cnf'] !== undefined) return 'it is bound to a key, but only bearer tokens are accepted'
  if (exp !== undefined && !(typeof exp === 'number' && exp * 1000 + skewMs > now)) return 'it has expired'
  if (nbf !== undefined && !(typeof nbf === 'number' && nbf * 1000 - skewMs <= now)) return 'it is not valid yet'
  const expiresAt = exp === undefined ? undefined : exp * 1000
  return toPrincipal({ issuer, subject: sub, client: clientOf(claims), scopes: scopesOf(claims), expiresAt, claims })
}

/** The three parts as one text; no two triples have the same. */
export function toPrincipal(parts: Omit<Principal, 'id'>): Principal {
  return { id: JSON.stringify([parts.issuer, parts.subject, parts.client ?? null]), ...parts }
}

function namesOneOf(aud: unknown, audiences: readonly string[]): boolean {
  const named: readonly unknown[] = Array.isArray(aud) ? aud : [aud]
  return named.some(each => typeof each === 'string' && audiences.includes(each))
}

/** RFC 9068 calls it `client_id`; issuers that are older than that have names of their own. */
function clientOf(claims: Claims): string | undefined {
  for (const name of ['client_id', 'azp', 'cid', 'appid']) {
    const client = claims[name]
    if (typeof client === 'string' && client !== '') return client
  }
  return undefined
}

/** `scope` is one text, `scp` mostly a list; each is seen in both forms. What is no scope grants nothing. */
function scopesOf(claims: Claims): readonly string[] {
  const found = claims['scope'] ?? claims['scp']
  const all: readonly unknown[] = typeof found === 'string' ? found.split(' ') : Array.isArray(found) ? found : []
  return all.filter(isScope)
}

// An issuer's own metadata (RFC 8414, OpenID Connect Discovery), fetched as bounded JSON: where its keys are, and where it can be
// asked about tokens.

/** The address that the metadata gives for `member`; an IssuerError if there is none, or if it is somebody else's metadata. */
export async function issuerAddress(issuer: string, member: 'jwks_uri' | 'introspection_endpoint'): Promise<string> {
  let failure: unknown
  for (const url of metadataUrls(new URL(issuer))) {
    try {
      const metadata = await fetchJson(url)
      if (metadata['issuer'] !== issuer)
        throw new IssuerError(`The metadata at ${clip(url)} names another issuer: ${clip(String(metadata['issuer']))}`)
      return checked(metadata[member], member, url)
    } catch (error) {
      failure = error
    }
  }
  throw failure
}

function checked(address: unknown, member: string, url: string): string {
  if (typeof address === 'string' && URL.canParse(address) && carriesCredentials(new URL(address))) return address
  throw new IssuerError(`The metadata at ${clip(url)} has no valid ${member}; set the address in the options of oauth`)
}

/** JSON from an address that the author or the issuer they chose has named: bounded in time and size, no redirects. */
const fetchLimits = { bytes: 256 * 1024, ms: 5_000 }

/** What the door needs of the issuer could not be had: nobody's token is at fault. */
export class IssuerError extends Error {
  override readonly name = 'IssuerError'
}

interface JsonRequest {
  readonly method?: 'GET' | 'POST'
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

/** A JSON object, or an IssuerError. */
export async function fetchJson(url: string, request: JsonRequest = {}): Promise<Record<string, unknown>> {
  let text: string
  try {
    const response = await fetch(url, {
      ...request,
      headers: { accept: 'application/json', ...request.headers },
      redirect: 'error',
      signal: AbortSignal.timeout(fetchLimits.ms),
    })
    text = await readText(response, fetchLimits.bytes)
    if (!response.ok) throw new Error(`it sent status ${response.status}`)
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : 'the request failed'
    throw new IssuerError(`Cannot read ${clip(url)}: ${clip(why)}`, { cause })
  }
  const value = parsed(text)
  if (!isRecord(value)) throw new IssuerError(`The response of ${clip(url)} is not a JSON object`)
  return value
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

async function readText(response: Response, most: number): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  let bytes = 0
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length
    if (bytes > most) throw new Error(`its response is longer than ${most} bytes`)
    text += decoder.decode(chunk, { stream: true })
  }
  return text + decoder.decode()
}
