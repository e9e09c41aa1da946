/** Tokens that are JWTs (RFC 9068, and what issuers gave before it): the signature by the issuer's keys, then the claims. */
import type { LocalJWKSet } from 'jose/jwks/local'
import type { Clock } from '../../core/clock.ts'
import { isScope } from '../../core/scope.ts'
import type { Principal } from '../../jsonrpc/connection.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import { isSecure, type Settings } from './options.ts'
import type { Verifier } from './verifier.ts'

interface JwtOptions {
  readonly settings: Settings
  readonly audiences: () => readonly string[]
  readonly clock: Clock
  readonly failed: (error: unknown) => void
}

/** Verifies JWT access tokens (RFC 9068) by the published keys of their issuer. */
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

// What a token says → who it is, or why it is not good here. One place for JWTs and for what an issuer tells of other tokens.

interface Expected {
  readonly issuer: string
  readonly audiences: readonly string[]
  readonly now: number
}

/** How far our clock and the issuer's may differ. */
export const skewMs = 60_000

type Claims = Readonly<Record<string, unknown>>

/** A principal, or what is wrong with the token in the words that its bearer is told. */
export function principalOf(claims: Claims, { issuer, audiences, now }: Expected): Principal | string {
  const { iss, sub, exp, nbf } = claims
  if (iss !== issuer) return 'it is of another issuer'
  if (!namesOneOf(claims['aud'], audiences)) return 'it was made for another audience'
  // Without a subject all users of a client would be one.
  if (typeof sub !== 'string' || sub === '') return 'it names no subject'
  // Whoever cannot check the proof that belongs to it must not take such a token as one of a bearer (RFC 9449 §7.1).
  if (claims['cnf'] !== undefined) return 'it is bound to a key, and only bearer tokens are taken here'
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
  for (const url of metadataUrls(issuer)) {
    try {
      const metadata = await fetchJson(url)
      if (metadata['issuer'] !== issuer)
        throw new IssuerError(`The metadata at ${clip(url)} is of another issuer: ${clip(String(metadata['issuer']))}`)
      return checked(metadata[member], member, url)
    } catch (error) {
      failure = error
    }
  }
  throw failure
}

/** Where a path belongs differs between the two standards, and both are in use. */
function metadataUrls(issuer: string): string[] {
  const { origin, pathname } = new URL(issuer)
  const path = pathname.replace(/\/$/, '')
  const urls = [
    `${origin}/.well-known/oauth-authorization-server${path}`,
    `${origin}/.well-known/openid-configuration${path}`,
    `${origin}${path}/.well-known/openid-configuration`,
  ]
  return [...new Set(urls)]
}

function checked(address: unknown, member: string, url: string): string {
  if (typeof address === 'string' && URL.canParse(address) && isSecure(new URL(address))) return address
  throw new IssuerError(`The metadata at ${clip(url)} has no usable ${member}; name the address in the options of oauth`)
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
export async function fetchJson(url: string, request: JsonRequest = {}, limits = fetchLimits): Promise<Record<string, unknown>> {
  let text: string
  try {
    const response = await fetch(url, {
      ...request,
      headers: { accept: 'application/json', ...request.headers },
      redirect: 'error',
      signal: AbortSignal.timeout(limits.ms),
    })
    text = await readText(response, limits.bytes)
    if (!response.ok) throw new Error(`it answered with status ${response.status}`)
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : 'the request failed'
    throw new IssuerError(`Cannot read ${clip(url)}: ${clip(why)}`, { cause })
  }
  const value = parsed(text)
  if (!isRecord(value)) throw new IssuerError(`What ${clip(url)} answered is no JSON object`)
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
    if (bytes > most) throw new Error(`its answer is longer than ${most} bytes`)
    text += decoder.decode(chunk, { stream: true })
  }
  return text + decoder.decode()
}
