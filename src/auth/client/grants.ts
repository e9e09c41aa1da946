/** The ways to come by tokens, each as one small object; what is common to all is in `authorizer.ts`. */
import { clip } from '../../jsonrpc/limits.ts'
import { AuthorizationError, checkEndpoint, isLoopbackUrl } from './addresses.ts'
import { type AuthorizationRecords, type ClientRegistration, partyName } from './binding.ts'
import { type Browser, redirectUriOf, visit } from './browser.ts'
import type { DiscoveredAuthorization, OAuthScopes } from './discovery.ts'
import { type OutboundContext, speaksWith } from './options.ts'
import {
  type AuthorizationServer,
  type AuthServerLink,
  type ClientAuth,
  checkReturn,
  departFor,
  grantBy,
  grantByCredentials,
  type Identity,
  noSecret,
  type Parameters,
  redeemCode,
  registerClient,
  secretInBody,
  secretInHeader,
  type TokenAnswer,
} from './protocol.ts'

/** Everything that a grant may need to know. */
interface Asking {
  readonly found: DiscoveredAuthorization
  readonly scopes: OAuthScopes
  readonly context: OutboundContext
  readonly records: AuthorizationRecords
  readonly link: AuthServerLink
}

interface Granted {
  readonly identity: Identity
  readonly answer: TokenAnswer
}

/** One way to get tokens: what it needs to know, and the token request that it makes. */
export interface OAuthGrant {
  /** Whether refresh tokens are of use. */
  readonly refreshes: boolean
  /** As whom kept tokens were got, where that is known without asking anybody. */
  identity(asking: Omit<Asking, 'scopes' | 'link'>): Promise<Identity | undefined>
  obtain(asking: Asking): Promise<Granted>
}

interface CodeOptions extends ClientNames {
  readonly browser: Browser
}

/** A person signs in (OAuth 2.1 section 4.1, with PKCE). */
export function codeGrant(options: CodeOptions): OAuthGrant {
  return {
    refreshes: true,
    identity: ({ found, records, context }) => knownIdentity(options, found, records, context.clock.now()),
    async obtain({ found, scopes, context, records, link }) {
      checkPkce(found, context)
      const endpoint = checkEndpoint(found.server.authorization_endpoint, 'authorization endpoint', context.server)
      checkEndpoint(found.server.token_endpoint, 'token endpoint', context.server)
      const redirectUri = await redirectUriOf(options.browser)
      const identity = await identityFor(options, found, records, redirectUri, context, link)
      const parameters = {
        client_id: identity.id,
        redirect_uri: redirectUri,
        ...request(found, scopes),
        // OpenID providers give a refresh token only where the user is asked (OpenID Connect Core section 11).
        ...(scopes.includes('offline_access') ? { prompt: 'consent' } : {}),
      }
      const { url, state, verifier } = await departFor(endpoint, parameters)
      const back = await visit(options.browser, url, context.server, link.signal)
      const checked = checkReturn(found.server, identity.id, back, state)
      const { resource } = found
      const answer = await redeemCode(found.server, identity, checked, redirectUri, verifier, { resource }, link)
      return { identity, answer }
    },
  }
}

/** S256, or nothing. On newer revisions a server that does not say that it knows it is taken not to. */
function checkPkce({ server, old }: DiscoveredAuthorization, context: OutboundContext): void {
  const methods = server.code_challenge_methods_supported
  const mustSay = !old && speaksWith(context, 'announcesPkce')
  if (methods === undefined ? !mustSay : methods.includes('S256')) return
  throw new AuthorizationError(
    'pkce',
    `${clip(server.issuer)} does not say that it supports PKCE with S256 (code_challenge_methods_supported), so codes would be unprotected`,
  )
}

/** A program acts for itself (OAuth 2.1 section 4.2). */
export function credentialsGrant(identify: (found: DiscoveredAuthorization) => Promise<Identity>): OAuthGrant {
  return {
    refreshes: false,
    identity: ({ found }) => identify(found),
    async obtain({ found, scopes, context, link }) {
      checkEndpoint(found.server.token_endpoint, 'token endpoint', context.server)
      const identity = await identify(found)
      return { identity, answer: await grantByCredentials(found.server, identity, request(found, scopes), link) }
    },
  }
}

const jwtBearer = 'urn:ietf:params:oauth:grant-type:jwt-bearer'

/** An assertion that somebody else has signed is given for a token (RFC 7523 section 2.1). */
export function assertionGrant(
  identify: (found: DiscoveredAuthorization) => Promise<Identity>,
  assert: (asking: Asking) => Promise<string>,
): OAuthGrant {
  return {
    refreshes: false,
    identity: ({ found }) => identify(found),
    async obtain(asking) {
      const { found, scopes, context, link } = asking
      checkEndpoint(found.server.token_endpoint, 'token endpoint', context.server)
      const identity = await identify(found)
      const assertion = await assert(asking)
      return {
        identity,
        answer: await grantBy(jwtBearer, found.server, identity, { assertion, ...request(found, scopes) }, link),
      }
    },
  }
}

interface IdentityProvider {
  readonly tokenEndpoint: string
  readonly identity: Identity
  readonly subjectToken: string
  readonly subjectTokenType: string
}

const jag = 'urn:ietf:params:oauth:token-type:id-jag'

/** A sign-in at the enterprise's identity provider is exchanged for a grant at another authorization server (RFC 8693). */
export async function exchangeForGrant(provider: IdentityProvider, { found, scopes, context, link }: Asking): Promise<string> {
  const endpoint = checkEndpoint(provider.tokenEndpoint, 'token endpoint of the identity provider', context.server)
  const server = { issuer: endpoint.origin, token_endpoint: endpoint.href }
  const parameters = {
    requested_token_type: jag,
    audience: found.server.issuer,
    ...request(found, scopes),
    subject_token: provider.subjectToken,
    subject_token_type: provider.subjectTokenType,
  }
  const exchange = 'urn:ietf:params:oauth:grant-type:token-exchange'
  // It is the user who names this endpoint, not a peer.
  const plain = { ...link, dpop: undefined, admit: async () => {} }
  const answer = await grantBy(exchange, server, provider.identity, parameters, plain, { n_a: () => undefined })
  if (answer['issued_token_type'] === jag) return answer.access_token
  throw new AuthorizationError(
    'token-type',
    'The identity provider gave something else than an identity assertion grant (id-jag); it must support enterprise-managed authorization',
  )
}

function request({ resource }: DiscoveredAuthorization, scopes: OAuthScopes): Parameters {
  return scopes.length === 0 ? { resource } : { resource, scope: scopes.join(' ') }
}

/**
 * Under which name this client appears at an authorization server, in the order of 2026-07-28
 * basic/authorization/client-registration: one that was registered by hand, a metadata document of its own, registering now.
 */
interface ClientNames {
  readonly clientId?: string | undefined
  readonly clientSecret?: string | undefined
  readonly clientMetadataUrl?: string | undefined
}

/** The name that the client has already, if it has one. */
async function knownIdentity(
  names: ClientNames,
  found: DiscoveredAuthorization,
  records: AuthorizationRecords,
  now: number,
): Promise<Identity | undefined> {
  return fixedIdentity(names, found) ?? fromRegistration(await lasting(found, records, now))
}

/** The name under which it asks a user to come by, who must be sent back to `redirectUri`. */
async function identityFor(
  names: ClientNames,
  found: DiscoveredAuthorization,
  records: AuthorizationRecords,
  redirectUri: string,
  context: OutboundContext,
  link: AuthServerLink,
): Promise<Identity> {
  const fixed = fixedIdentity(names, found)
  if (fixed !== undefined) return fixed
  const kept = await lasting(found, records, context.clock.now())
  const registration = kept?.redirectUri === redirectUri ? kept : await registerAt(found, redirectUri, context, link)
  if (registration !== kept) await records.keepRegistration(partyName(found.server), registration)
  return { id: registration.id, authentication: authenticationBy(registration.method, registration.secret) }
}

function fixedIdentity(
  { clientId, clientSecret, clientMetadataUrl }: ClientNames,
  { server }: DiscoveredAuthorization,
): Identity | undefined {
  if (clientId !== undefined) {
    const method = clientSecret === undefined ? 'none' : secretMethod(server)
    return { id: clientId, authentication: authenticationBy(method, clientSecret) }
  }
  const takesUrls = server['client_id_metadata_document_supported'] === true
  return clientMetadataUrl !== undefined && takesUrls ? { id: clientMetadataUrl, authentication: noSecret() } : undefined
}

async function lasting(
  { server }: DiscoveredAuthorization,
  records: AuthorizationRecords,
  now: number,
): Promise<ClientRegistration | undefined> {
  const kept = await records.registration(partyName(server))
  return kept?.secretExpiresAt !== undefined && kept.secretExpiresAt <= now ? undefined : kept
}

function fromRegistration(registration: ClientRegistration | undefined): Identity | undefined {
  if (registration === undefined) return undefined
  return { id: registration.id, authentication: authenticationBy(registration.method, registration.secret) }
}

async function registerAt(
  found: DiscoveredAuthorization,
  redirectUri: string,
  context: OutboundContext,
  link: AuthServerLink,
): Promise<ClientRegistration> {
  const { server } = found
  if (server.registration_endpoint === undefined) {
    throw new AuthorizationError(
      'registration',
      `${clip(server.issuer)} does not let clients register themselves; register one there and give its clientId`,
    )
  }
  checkEndpoint(server.registration_endpoint, 'registration endpoint', context.server)
  const method = methodToRegister(server)
  const got = await registerClient(
    server,
    {
      client_name: context.clientName,
      redirect_uris: [redirectUri],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: method,
      // Left out it means "web", for which some servers refuse redirects to this machine.
      application_type: isLocal(redirectUri) ? 'native' : 'web',
    },
    link,
  )
  const secret = typeof got.client_secret === 'string' && got.client_secret !== '' ? got.client_secret : undefined
  const expires = typeof got['client_secret_expires_at'] === 'number' ? got['client_secret_expires_at'] : 0
  return {
    id: got.client_id,
    redirectUri,
    method: methodGiven(got['token_endpoint_auth_method'], method, secret),
    ...(secret === undefined ? {} : { secret }),
    ...(secret !== undefined && expires > 0 ? { secretExpiresAt: expires * 1000 } : {}),
  }
}

/** The server has the last word; where it says nothing, it gave what was asked for. */
function methodGiven(given: unknown, asked: string, secret: string | undefined): string {
  if (typeof given === 'string') return given
  return secret === undefined ? 'none' : asked
}

function isLocal(redirectUri: string): boolean {
  const url = URL.parse(redirectUri)
  return url === null || (url.protocol !== 'https:' && url.protocol !== 'http:') || isLoopbackUrl(url)
}

// How a client proves itself at a token endpoint, chosen by what the authorization server lists.

/** Without a list it is this one (RFC 8414 section 2). */
const standard = 'client_secret_basic'

function methodsOf(server: AuthorizationServer): readonly string[] {
  return server.token_endpoint_auth_methods_supported ?? [standard]
}

/** What to register as: an application on somebody's machine keeps no secrets, unless it is made to. */
function methodToRegister(server: AuthorizationServer): string {
  const methods = methodsOf(server)
  return ['none', standard, 'client_secret_post'].find(method => methods.includes(method)) ?? standard
}

/** For a client with a secret. */
export function secretMethod(server: AuthorizationServer): string {
  const methods = methodsOf(server)
  return [standard, 'client_secret_post', 'none'].find(method => methods.includes(method)) ?? standard
}

/** How a client proves itself at the token endpoint, by the name of the method in the metadata. */
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
