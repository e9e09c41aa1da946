/** The ways to come by tokens, each as one small object; what is common to all is in `authorizer.ts`. */
import { clip } from '../../jsonrpc/limits.ts'
import { checkEndpoint } from './addresses.ts'
import { type Browser, redirectUriOf, visit } from './browser.ts'
import { type Surroundings, speaksSince } from './context.ts'
import type { Found } from './discovery.ts'
import { AuthorizationError } from './failure.ts'
import {
  type Answer,
  checkReturn,
  departFor,
  grantBy,
  grantByCredentials,
  type Identity,
  type Link,
  type Parameters,
  redeemCode,
} from './protocol.ts'
import type { Records } from './records.ts'
import { type ClientNames, identityFor, knownIdentity } from './registration.ts'
import type { Scopes } from './scopes.ts'

/** Everything that a grant may need to know. */
export interface Asking {
  readonly found: Found
  readonly scopes: Scopes
  readonly context: Surroundings
  readonly records: Records
  readonly link: Link
}

export interface Granted {
  readonly identity: Identity
  readonly answer: Answer
}

export interface Grant {
  /** Whether refresh tokens are of use. */
  readonly refreshes: boolean
  /** As whom kept tokens were got, where that is known without asking anybody. */
  identity(asking: Omit<Asking, 'scopes' | 'link'>): Promise<Identity | undefined>
  obtain(asking: Asking): Promise<Granted>
}

export interface CodeOptions extends ClientNames {
  readonly browser: Browser
}

/** A person signs in (OAuth 2.1 section 4.1, with PKCE). */
export function codeGrant(options: CodeOptions): Grant {
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

/** S256, or nothing. From 2025-11-25 on a server that does not say that it knows it is taken not to. */
function checkPkce({ server, old }: Found, context: Surroundings): void {
  const methods = server.code_challenge_methods_supported
  const mustSay = !old && speaksSince(context, '2025-11-25')
  if (methods === undefined ? !mustSay : methods.includes('S256')) return
  throw new AuthorizationError(
    'pkce',
    `${clip(server.issuer)} does not say that it supports PKCE with S256 (code_challenge_methods_supported), so codes would be unprotected`,
  )
}

/** A program acts for itself (OAuth 2.1 section 4.2). */
export function credentialsGrant(identify: (found: Found) => Promise<Identity>): Grant {
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
  identify: (found: Found) => Promise<Identity>,
  assert: (asking: Asking) => Promise<string>,
): Grant {
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

export interface IdentityProvider {
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

function request({ resource }: Found, scopes: Scopes): Parameters {
  return scopes.length === 0 ? { resource } : { resource, scope: scopes.join(' ') }
}
