/**
 * The one place that knows the package oauth4webapi: PKCE, token requests, client authentication, DPoP and the checks of
 * answers are its work. Its errors hold whole answers, tokens included, so none of them leaves this file.
 */
import * as oauth from 'oauth4webapi'
import { type Outbound, OutboundError } from '../../core/outbound.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { AuthorizationError, type AuthorizationRule } from '../addresses.ts'
import type { PrivateJwk } from './issuer-binding.ts'

export type { AuthorizationServer } from 'oauth4webapi'

type Key = CryptoKey

/** How requests to an authorization server are made. */
export interface AuthServerLink {
  /** By which every request to the authorization server goes. */
  readonly outbound: Outbound
  readonly signal: AbortSignal
  /** Rejects where this authorization server is not the one that credentials are meant for. */
  readonly admit: (server: oauth.AuthorizationServer) => Promise<void>
  /** Proves the possession of a key with each token request. */
  readonly dpop?: oauth.DPoPHandle | undefined
}

/** One client, as an authorization server knows it. */
export interface Identity {
  readonly id: string
  /** How the client proves itself at the token endpoint. */
  readonly authentication: oauth.ClientAuth
}

/** The answer of a token endpoint. */
export type TokenAnswer = oauth.TokenEndpointResponse
/** Parameters of a request to an authorization server, by name. */
export type Parameters = Record<string, string>

// ── reading what servers say ────────────────────────────────────────────────────────────────────────────────────────

/** What a refusal asks for. */
export interface Challenge {
  readonly scope?: string | undefined
  /** The address of the resource's metadata. */
  readonly resource_metadata?: string | undefined
  /** The proof of possession must hold the nonce of the resource (RFC 9449 section 9). */
  readonly wantsNonce: boolean
}

/** The challenge of a WWW-Authenticate header; an empty one where it cannot be read. */
export async function readChallenge(header: string | undefined): Promise<Challenge> {
  const challenges = await challengesIn(header)
  const wantsNonce = challenges.some(({ scheme, parameters }) => scheme === 'dpop' && parameters.error === 'use_dpop_nonce')
  const { scope, resource_metadata } = challenges.find(({ scheme }) => scheme === 'bearer' || scheme === 'dpop')?.parameters ?? {}
  return { scope, resource_metadata, wantsNonce }
}

async function challengesIn(header: string | undefined): Promise<readonly oauth.WWWAuthenticateChallenge[]> {
  if (header === undefined || header.length > 4096) return []
  const answer = new Response(null, { status: 401, headers: { 'www-authenticate': header } })
  const nowhere = new URL('https://localhost/')
  try {
    await oauth.protectedResourceRequest('-', 'GET', nowhere, new Headers(), null, { [oauth.customFetch]: async () => answer })
  } catch (error) {
    if (error instanceof oauth.WWWAuthenticateChallengeError) return error.cause
  }
  return []
}

/** The metadata of an authorization server, which must name itself exactly as it was named (RFC 8414 section 3.3). */
export async function readServerMetadata(response: Response, issuer: string): Promise<oauth.AuthorizationServer> {
  const metadata = await told('server-metadata', 'The metadata of the authorization server', () =>
    oauth.processDiscoveryResponse(new URL(issuer), response),
  )
  if (metadata.issuer === issuer) return metadata
  throw new AuthorizationError('issuer-mismatch', mismatch(metadata.issuer, issuer))
}

function mismatch(said: string, issuer: string): string {
  return `The metadata of ${clip(issuer)} names the issuer ${clip(said)}; both must be identical`
}

// ── clients ─────────────────────────────────────────────────────────────────────────────────────────────────────────

type ClientMetadata = Partial<oauth.OmitSymbolProperties<oauth.Client>>

/** Registers this client at the authorization server (RFC 7591). */
export async function registerClient(server: oauth.AuthorizationServer, metadata: ClientMetadata, link: AuthServerLink) {
  return told('registration', 'The authorization server refused to register this client', async () =>
    oauth.processDynamicClientRegistrationResponse(
      await lenient(await oauth.dynamicClientRegistrationRequest(server, metadata, settings({ ...link, dpop: undefined }))),
    ),
  )
}

/** Small departures from RFC 7591 that are seen in the wild and do no harm: 200 for 201, a secret that does not say it lasts. */
async function lenient(response: Response): Promise<Response> {
  if (response.status !== 200 && response.status !== 201) return response
  const text = await response.text()
  let body: unknown
  try {
    body = JSON.parse(text)
  } catch {
    return new Response(text, { status: 201, headers: response.headers })
  }
  const complete = typeof body === 'object' && body !== null ? { client_secret_expires_at: 0, ...body } : body
  return new Response(JSON.stringify(complete), { status: 201, headers: { 'content-type': 'application/json' } })
}

/** Client authentication of a public client: none. */
export const noSecret = oauth.None

/** Client authentication by a JWT that the client signs with its private key (RFC 7523). */
export function signedAssertion(key: Key, kid?: string): oauth.ClientAuth {
  return oauth.PrivateKeyJwt(kid === undefined ? key : { key, kid })
}

/**
 * The library escapes also what needs no escaping, and servers that do not undo it then see another name. This is the same
 * encoding (RFC 6749 appendix B) as browsers write it.
 */
function secretInHeader(secret: string): oauth.ClientAuth {
  const encode = (text: string): string => new URLSearchParams({ '': text }).toString().slice(1)
  return (_server, client, _body, headers) => {
    headers.set('authorization', `Basic ${btoa(`${encode(client.client_id)}:${encode(secret)}`)}`)
  }
}

/** How a client proves itself at the token endpoint, by the name of the method in the metadata. */
export function authenticationBy(method: string, secret: string | undefined): oauth.ClientAuth {
  if (method === 'none') return noSecret()
  if (secret === undefined || secret === '') {
    throw new AuthorizationError(
      'registration',
      `The authorization server requires ${method}, but the client has no secret; set clientSecret`,
    )
  }
  if (method === 'client_secret_basic') return secretInHeader(secret)
  if (method === 'client_secret_post') return oauth.ClientSecretPost(secret)
  throw new AuthorizationError(
    'registration',
    `The authorization server registered the client for ${method}, which is not supported`,
  )
}

// ── the authorization code ──────────────────────────────────────────────────────────────────────────────────────────

/** What must be remembered between leaving for the authorization server and coming back. */
interface Departure {
  readonly url: URL
  readonly state: string
  readonly verifier: string
}

/** Makes the address to which the browser is sent, with PKCE, and what its return is checked against. */
export async function startAuthorization(endpoint: URL, parameters: Parameters): Promise<Departure> {
  const verifier = oauth.generateRandomCodeVerifier()
  const state = oauth.generateRandomState()
  const url = new URL(endpoint)
  const all = {
    response_type: 'code',
    ...parameters,
    state,
    code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
  }
  for (const [name, value] of Object.entries(all)) url.searchParams.set(name, value)
  return { url, state, verifier }
}

// ── token requests ──────────────────────────────────────────────────────────────────────────────────────────────────

/** The token endpoint of an authorization server, as one client uses it. */
export class TokenEndpoint {
  readonly #server: oauth.AuthorizationServer
  readonly #client: oauth.Client
  readonly #authentication: oauth.ClientAuth
  readonly #link: AuthServerLink

  constructor(server: oauth.AuthorizationServer, { id, authentication }: Identity, link: AuthServerLink) {
    this.#server = server
    this.#client = { client_id: id }
    this.#authentication = authentication
    this.#link = link
  }

  /**
   * Exchanges an authorization code for tokens. First checks how the user came back: state, and issuer by exact comparison
   * (RFC 9207). Nothing is sent when that fails.
   */
  async redeemCode(
    { state, verifier }: Departure,
    back: URLSearchParams,
    redirectUri: string,
    parameters: Parameters,
  ): Promise<TokenAnswer> {
    const checked = await told('authorization-response', 'The response of the authorization server is not valid', async () =>
      oauth.validateAuthResponse(this.#server, this.#client, back, state),
    )
    return this.#ask(
      (...to) => oauth.authorizationCodeGrantRequest(...to, checked, redirectUri, verifier, this.#settings(parameters)),
      response => oauth.processAuthorizationCodeResponse(this.#server, this.#client, response),
    )
  }

  /** Exchanges a refresh token for new tokens. */
  refresh(token: string, parameters: Parameters): Promise<TokenAnswer> {
    return this.#ask(
      (...to) => oauth.refreshTokenGrantRequest(...to, token, this.#settings(parameters)),
      response => oauth.processRefreshTokenResponse(this.#server, this.#client, response),
    )
  }

  /** Gets tokens by the client's own credentials. */
  grantByCredentials(parameters: Parameters): Promise<TokenAnswer> {
    return this.#ask(
      (...to) => oauth.clientCredentialsGrantRequest(...to, parameters, this.#settings()),
      response => oauth.processClientCredentialsResponse(this.#server, this.#client, response),
    )
  }

  /** Any other grant, by its name. `recognizedTokenTypes`: what else than an access token it may bring. */
  grantBy(grant: string, parameters: Parameters, recognizedTokenTypes: oauth.RecognizedTokenTypes = {}): Promise<TokenAnswer> {
    return this.#ask(
      (...to) => oauth.genericTokenEndpointRequest(...to, grant, parameters, this.#settings()),
      response => oauth.processGenericTokenEndpointResponse(this.#server, this.#client, response, { recognizedTokenTypes }),
    )
  }

  /** A server may ask for a nonce of its own in the proof (RFC 9449 section 8); then it has not looked at the rest yet. */
  async #ask(
    send: (server: oauth.AuthorizationServer, client: oauth.Client, by: oauth.ClientAuth) => Promise<Response>,
    read: (response: Response) => Promise<TokenAnswer>,
  ): Promise<TokenAnswer> {
    const attempt = async () => read(await send(this.#server, this.#client, this.#authentication))
    return told('token-request', 'The authorization server issued no token', async () => {
      await this.#link.admit(this.#server)
      try {
        return await attempt()
      } catch (error) {
        if (this.#link.dpop === undefined || !oauth.isDPoPNonceError(error)) throw error
        return attempt()
      }
    })
  }

  #settings(additionalParameters: Parameters = {}): oauth.TokenEndpointRequestOptions {
    return { ...settings(this.#link), additionalParameters }
  }
}

// ── proof of possession ─────────────────────────────────────────────────────────────────────────────────────────────

/** Signs the DPoP proofs of one key pair (RFC 9449). */
export interface Prover {
  /** The private key, to be kept with the tokens: they are of no use without it. */
  readonly key: PrivateJwk
  /** For token requests. */
  readonly handle: oauth.DPoPHandle
  /** Headers of one request to the resource, with a proof of its own. */
  headers(token: string, method: string, url: URL): Promise<Readonly<Record<string, string>>>
  /** The resource named the nonce that further proofs must hold. */
  take(nonce: string): void
}

const dpopAlgorithm = { name: 'ECDSA', namedCurve: 'P-256' }

/** Makes a key pair and the signer of its proofs. */
export async function newProver(): Promise<Prover> {
  const pair = await oauth.generateKeyPair('ES256', { extractable: true })
  return proverOf(pair, await crypto.subtle.exportKey('jwk', pair.privateKey))
}

/** The signer of proofs by a key that was kept. */
export async function storedProver(key: PrivateJwk): Promise<Prover> {
  const { kty = '', crv = '', x = '', y = '' } = key
  const [privateKey, publicKey] = await Promise.all([
    crypto.subtle.importKey('jwk', key, dpopAlgorithm, false, ['sign']),
    crypto.subtle.importKey('jwk', { kty, crv, x, y }, dpopAlgorithm, true, ['verify']),
  ])
  return proverOf({ privateKey, publicKey }, key)
}

/** Makes the signer of proofs for a key pair; remembers the last nonce of the resource. */
function proverOf(pair: CryptoKeyPair, key: PrivateJwk): Prover {
  let nonce: string | undefined
  const client = {}
  const forResource = oauth.DPoP(client, pair, {
    [oauth.modifyAssertion]: (_header, payload) => {
      if (nonce !== undefined) payload['nonce'] = nonce
    },
  })
  return {
    key,
    handle: oauth.DPoP(client, pair),
    async headers(token, method, url) {
      let made: Readonly<Record<string, string>> = {}
      // Only the headers are wanted: the request itself is the carrier's to make.
      const fetch = async (_url: string, { headers }: { readonly headers: Record<string, string> }): Promise<Response> => {
        made = headers
        return new Response()
      }
      const options = { DPoP: forResource, [oauth.customFetch]: fetch, [oauth.allowInsecureRequests]: true }
      await oauth.protectedResourceRequest(token, method, url, new Headers(), null, options)
      return made
    },
    take: given => {
      nonce = given
    },
  }
}

// ── requests and failures ───────────────────────────────────────────────────────────────────────────────────────────

/** Which addresses may be reached is decided before, by what they are and where they lead. */
function settings({ outbound, signal, dpop }: Omit<AuthServerLink, 'admit'>) {
  const fetch = (url: string, { headers, method, body, signal: aborted }: oauth.CustomFetchOptions<string, unknown>) => {
    const given = typeof body === 'string' || body instanceof URLSearchParams ? { body } : {}
    return outbound(url, { method, headers, redirect: 'manual', ...given, ...(aborted === undefined ? {} : { signal: aborted }) })
  }
  return {
    [oauth.customFetch]: fetch,
    [oauth.allowInsecureRequests]: true,
    signal,
    ...(dpop === undefined ? {} : { DPoP: dpop }),
  }
}

async function told<T>(rule: AuthorizationRule, what: string, fn: () => Promise<T>): Promise<T> {
  try {
    return await fn()
  } catch (error) {
    throw translate(error, rule, what)
  }
}

/** In our own words, without what the library hangs on its errors. */
function translate(error: unknown, rule: AuthorizationRule, what: string): Error {
  if (error instanceof AuthorizationError) return error
  if (error instanceof oauth.ResponseBodyError || error instanceof oauth.AuthorizationResponseError) {
    const said = error.error_description === undefined ? '' : `: ${clip(error.error_description)}`
    return new AuthorizationError(rule, `${what} (${clip(error.error)})${said}`, clip(error.error))
  }
  if (error instanceof oauth.WWWAuthenticateChallengeError) {
    const code = error.cause.map(({ parameters }) => parameters.error).find(named => named !== undefined)
    return new AuthorizationError(
      rule,
      `${what} (HTTP ${error.status}${code === undefined ? '' : `, ${clip(code)}`})`,
      code && clip(code),
    )
  }
  if (error instanceof oauth.UnsupportedOperationError) {
    return new AuthorizationError('token-type', `${what}: ${unquoted(error.message)}; only Bearer and DPoP tokens are used`)
  }
  if (error instanceof oauth.OperationProcessingError) {
    return new AuthorizationError(rule, `${what}: ${unquoted(error.message)}${statusOf(error.cause)}`)
  }
  if (error instanceof OutboundError)
    return new AuthorizationError(error.kind === 'refused' ? 'address' : rule, `${what}: ${error.message}`)
  if (error instanceof DOMException && error.name === 'AbortError') return error
  return new AuthorizationError(rule, `${what}: ${error instanceof Error ? clip(error.message) : 'the request failed'}`)
}

function unquoted(text: string): string {
  return clip(text.replaceAll('"', ''), 160)
}

function statusOf(cause: unknown): string {
  return cause instanceof Response && cause.status !== 200 ? `, HTTP ${cause.status}` : ''
}
