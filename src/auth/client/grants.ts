/** The ways to get tokens with OAuth, loaded when the first refusal asks for one; what is common to all is in `authorizer.ts`. */

import { toMilliseconds } from '../../core/clock.ts'
import type { Credentials } from '../../core/credentials.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { AuthorizationError, checkEndpoint, isLoopbackUrl } from '../addresses.ts'
import { OAuthAuthorizer } from './authorizer.ts'
import { type Browser, cli } from './browser.ts'
import type { DiscoveredAuthorization } from './discovery.ts'
import type { AuthorizationRecords, Binding } from './issuer-binding.ts'
import {
  type AuthorizationContext,
  anyRevisionHas,
  type ClientCredentialsOptions,
  type ClientKey,
  type CommonOptions,
  type EnterpriseOptions,
  type OAuthClientOptions,
  type OutboundContext,
  type SigningAlgorithm,
  type SigningKey,
  type WorkloadOptions,
} from './options.ts'
import {
  type AuthServerLink,
  authenticationBy,
  type Identity,
  noSecret,
  type Parameters,
  signedAssertion,
  startAuthorization,
  type TokenAnswer,
  TokenEndpoint,
} from './protocol.ts'
import { identityBySecret, identityFor, knownIdentity } from './registration.ts'
import { memoryStorage, type TokenStorage } from './storage.ts'

/** Everything that a grant may need to know. */
export interface GrantContext {
  readonly found: DiscoveredAuthorization
  readonly scopes: readonly string[]
  readonly context: OutboundContext
  readonly records: AuthorizationRecords
  readonly link: AuthServerLink
}

/** One way to get tokens: what it needs to know, and the token request that it makes. */
export interface OAuthGrant {
  /** Whether refresh tokens are of use. */
  readonly refreshes: boolean
  /** As whom kept tokens were got, where that is known without asking anybody. */
  identity(asking: Omit<GrantContext, 'scopes' | 'link'>): Promise<Identity | undefined>
  obtain(asking: GrantContext): Promise<{ readonly identity: Identity; readonly answer: TokenAnswer }>
}

/** Credentials for one MCP server, by this grant. */
export function authorizerFor(
  context: AuthorizationContext,
  options: CommonOptions & { readonly dpop?: boolean },
  binding: Binding,
  grant: OAuthGrant,
  storage: TokenStorage = memoryStorage(),
): Credentials {
  return new OAuthAuthorizer({
    context: { ...context, outbound: options.outbound ?? context.reach(options.allow ?? []) },
    grant,
    binding,
    storage,
    scopes: options.scopes ?? [],
    dpop: options.dpop ?? false,
    timeoutMs: toMilliseconds(options.timeout ?? '10m', 'timeout'),
  })
}

/** A person signs in (OAuth 2.1 section 4.1, with PKCE). */
export function codeGrant(options: OAuthClientOptions): OAuthGrant {
  const { browser = cli() } = options
  return {
    refreshes: true,
    identity: asking => knownIdentity(options, asking),
    async obtain(asking) {
      const { found, scopes, context, link } = asking
      checkPkce(found, context)
      const endpoint = checkEndpoint(found.server.authorization_endpoint, 'authorization endpoint', context.server)
      checkEndpoint(found.server.token_endpoint, 'token endpoint', context.server)
      const redirectUri = await redirectUriOf(browser)
      const identity = await identityFor(options, asking, redirectUri)
      const parameters = {
        client_id: identity.id,
        redirect_uri: redirectUri,
        ...request(asking),
        // OpenID providers give a refresh token only where the user is asked (OpenID Connect Core section 11).
        ...(scopes.includes('offline_access') ? { prompt: 'consent' } : {}),
      }
      const departure = await startAuthorization(endpoint, parameters)
      const back = await visit(browser, departure.url, context.server, link.signal)
      const tokens = new TokenEndpoint(found.server, identity, link)
      return { identity, answer: await tokens.redeemCode(departure, back, redirectUri, { resource: found.resource }) }
    },
  }
}

/** The redirect URI of a browser, checked: https, or http on the loopback interface. */
async function redirectUriOf({ redirectUri }: Browser): Promise<string> {
  const given = typeof redirectUri === 'string' ? redirectUri : await redirectUri()
  const url = URL.parse(given)
  if (url === null || url.hash !== '' || (url.protocol === 'http:' && !isLoopbackUrl(url))) {
    throw new AuthorizationError(
      'options',
      'redirectUri must be an https address, an address of this machine, or have a custom scheme',
    )
  }
  return given
}

/** What the authorization server said, as parameters. */
async function visit(browser: Browser, url: URL, server: URL, signal: AbortSignal): Promise<URLSearchParams> {
  checkEndpoint(url.href, 'authorization endpoint', server)
  const back = await returned(browser, url, signal)
  if (back instanceof URLSearchParams) return back
  const parsed = back instanceof URL ? back : URL.parse(back)
  if (parsed === null)
    throw new AuthorizationError('browser', 'authorize returned no address; it must return the address of the callback')
  return parsed.searchParams
}

async function returned(browser: Browser, url: URL, signal: AbortSignal): Promise<URL | URLSearchParams | string> {
  try {
    return await browser.authorize(url, { signal })
  } catch (error) {
    signal.throwIfAborted()
    if (error instanceof AuthorizationError) throw error
    const why = error instanceof Error ? error.message : 'unknown reason'
    throw new AuthorizationError('browser', `The sign-in did not complete: ${why}`)
  }
}

/** S256, or nothing. On newer revisions a server that does not say that it knows it is taken not to. */
function checkPkce({ server, old }: DiscoveredAuthorization, context: OutboundContext): void {
  const methods = server.code_challenge_methods_supported
  const mustSay = !old && anyRevisionHas(context, 'announcesPkce')
  if (methods === undefined ? !mustSay : methods.includes('S256')) return
  throw new AuthorizationError(
    'pkce',
    `${clip(server.issuer)} does not declare PKCE with S256 (code_challenge_methods_supported), which is required to protect codes`,
  )
}

/** A program acts for itself (OAuth 2.1 section 4.2). */
export function credentialsGrant(options: ClientCredentialsOptions): OAuthGrant {
  return programGrant(identifier(options), (tokens, parameters) => tokens.grantByCredentials(parameters))
}

/** An assertion of the platform on which this workload runs is given for a token. */
export function workloadGrant({ assertion, clientId = '' }: WorkloadOptions): OAuthGrant {
  const named = clientId !== ''
  const identity: Identity = { id: named ? clientId : 'workload', authentication: named ? noSecret() : () => {} }
  return assertionGrant(
    async () => identity,
    async ({ found }) => assertion(found.server.issuer),
  )
}

/** An assertion that the identity provider of a company issues for its user is given for a token. */
export function enterpriseGrant(options: EnterpriseOptions): OAuthGrant {
  return assertionGrant(identifier(options), asking => exchangeForGrant(options.identityProvider, asking))
}

/** A program gets tokens, and no refresh tokens, without anybody being asked. */
function programGrant(
  identify: (found: DiscoveredAuthorization) => Promise<Identity>,
  ask: (tokens: TokenEndpoint, parameters: Parameters, asking: GrantContext) => Promise<TokenAnswer>,
): OAuthGrant {
  return {
    refreshes: false,
    identity: ({ found }) => identify(found),
    async obtain(asking) {
      const { found, context, link } = asking
      checkEndpoint(found.server.token_endpoint, 'token endpoint', context.server)
      const identity = await identify(found)
      return { identity, answer: await ask(new TokenEndpoint(found.server, identity, link), request(asking), asking) }
    },
  }
}

const jwtBearer = 'urn:ietf:params:oauth:grant-type:jwt-bearer'

/** An assertion that somebody else has signed is given for a token (RFC 7523 section 2.1). */
function assertionGrant(
  identify: (found: DiscoveredAuthorization) => Promise<Identity>,
  assert: (asking: GrantContext) => Promise<string>,
): OAuthGrant {
  return programGrant(identify, async (tokens, parameters, asking) =>
    tokens.grantBy(jwtBearer, { assertion: await assert(asking), ...parameters }),
  )
}

const jag = 'urn:ietf:params:oauth:token-type:id-jag'
const tokenExchange = 'urn:ietf:params:oauth:grant-type:token-exchange'

/** A sign-in at the enterprise's identity provider is exchanged for a grant at another authorization server (RFC 8693). */
async function exchangeForGrant(provider: EnterpriseOptions['identityProvider'], asking: GrantContext): Promise<string> {
  const authentication = await providerAuthentication(provider)
  const subjectToken = await provider.subjectToken()
  const { found, context, link } = asking
  const endpoint = checkEndpoint(provider.tokenEndpoint, 'token endpoint of the identity provider', context.server)
  const server = { issuer: endpoint.origin, token_endpoint: endpoint.href }
  const parameters = {
    requested_token_type: jag,
    audience: found.server.issuer,
    ...request(asking),
    subject_token: subjectToken,
    subject_token_type: provider.subjectTokenType ?? 'urn:ietf:params:oauth:token-type:id_token',
  }
  // It is the user who names this endpoint, not a peer.
  const plain = { ...link, dpop: undefined, admit: async () => {} }
  const tokens = new TokenEndpoint(server, { id: provider.clientId, authentication }, plain)
  const answer = await tokens.grantBy(tokenExchange, parameters, { n_a: () => undefined })
  if (answer['issued_token_type'] === jag) return answer.access_token
  throw new AuthorizationError(
    'token-type',
    'The identity provider did not issue an identity assertion grant (id-jag); it must support enterprise-managed authorization',
  )
}

function request({ found: { resource }, scopes }: GrantContext): Parameters {
  return scopes.length === 0 ? { resource } : { resource, scope: scopes.join(' ') }
}

/** The client as it was registered by hand. */
function identifier(options: ClientKey & { readonly clientId: string }): (found: DiscoveredAuthorization) => Promise<Identity> {
  const { clientId: id, clientSecret } = options
  return async ({ server }) => {
    if (options.privateKey !== undefined) return { id, authentication: await assertionBy(options) }
    return identityBySecret(id, clientSecret, server)
  }
}

async function providerAuthentication(provider: ClientKey): Promise<Identity['authentication']> {
  if (provider.privateKey !== undefined) return assertionBy(provider)
  return authenticationBy(provider.clientSecret === undefined ? 'none' : 'client_secret_post', provider.clientSecret)
}

async function assertionBy({ privateKey = '', algorithm = 'ES256', keyId }: ClientKey): Promise<Identity['authentication']> {
  return signedAssertion(await signingKey(privateKey, algorithm), keyId)
}

// Private keys as operators have them: PKCS #8 in PEM.

const keyParameters: Readonly<Record<SigningAlgorithm, EcKeyImportParams | RsaHashedImportParams | Algorithm>> = {
  ES256: { name: 'ECDSA', namedCurve: 'P-256' },
  ES384: { name: 'ECDSA', namedCurve: 'P-384' },
  ES512: { name: 'ECDSA', namedCurve: 'P-521' },
  RS256: { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' },
  PS256: { name: 'RSA-PSS', hash: 'SHA-256' },
  EdDSA: { name: 'Ed25519' },
}

/** The key as WebCrypto wants it; a text is read as a PKCS #8 PEM block. */
async function signingKey(key: string | SigningKey, algorithm: SigningAlgorithm): Promise<SigningKey> {
  if (typeof key !== 'string') return key
  const body = /-----BEGIN PRIVATE KEY-----([A-Za-z0-9+/=\s]+)-----END PRIVATE KEY-----/.exec(key)?.[1]
  try {
    const bytes = Uint8Array.from(atob((body ?? '-').replace(/\s/g, '')), char => char.charCodeAt(0))
    return await crypto.subtle.importKey('pkcs8', bytes, keyParameters[algorithm], false, ['sign'])
  } catch {
    throw new AuthorizationError('options', `privateKey is not a valid ${algorithm} key in PEM (PKCS #8, BEGIN PRIVATE KEY)`)
  }
}
