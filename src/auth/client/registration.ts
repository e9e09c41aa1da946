/**
 * Under which name this client appears at an authorization server, in the order of 2026-07-28
 * basic/authorization/client-registration: one that was registered by hand, a metadata document of its own, registering now. And
 * how it proves itself there.
 */
import { clip } from '../../jsonrpc/limits.ts'
import { AuthorizationError, checkEndpoint, isLoopbackUrl } from '../addresses.ts'
import type { DiscoveredAuthorization } from './discovery.ts'
import type { GrantContext } from './grants.ts'
import type { AuthorizationRecords, ClientRegistration } from './issuer-binding.ts'
import type { OAuthClientOptions } from './options.ts'
import { type AuthorizationServer, authenticationBy, type Identity, noSecret, registerClient } from './protocol.ts'

/** The name that the client has already, if it has one. */
export async function knownIdentity(
  options: OAuthClientOptions,
  { found, records, context }: Pick<GrantContext, 'found' | 'records' | 'context'>,
): Promise<Identity | undefined> {
  const fixed = fixedIdentity(options, found)
  if (fixed !== undefined) return fixed
  const stored = await lasting(found, records, context.clock.now())
  return stored && identityOf(stored)
}

/** The name under which it asks a user to come by, who must be sent back to `redirectUri`. */
export async function identityFor(options: OAuthClientOptions, asking: GrantContext, redirectUri: string): Promise<Identity> {
  const { found, records, context } = asking
  const fixed = fixedIdentity(options, found)
  if (fixed !== undefined) return fixed
  const stored = await lasting(found, records, context.clock.now())
  if (stored?.redirectUri === redirectUri) return identityOf(stored)
  const registration = await registerAt(asking, redirectUri)
  await records.keepRegistration(found.server, registration)
  return identityOf(registration)
}

function fixedIdentity(
  { clientId, clientSecret, clientMetadataUrl }: OAuthClientOptions,
  { server }: DiscoveredAuthorization,
): Identity | undefined {
  if (clientId !== undefined) return identityBySecret(clientId, clientSecret, server)
  const takesUrls = server['client_id_metadata_document_supported'] === true
  return clientMetadataUrl !== undefined && takesUrls ? { id: clientMetadataUrl, authentication: noSecret() } : undefined
}

/** A client that was registered by hand, with a secret or without. */
export function identityBySecret(id: string, secret: string | undefined, server: AuthorizationServer): Identity {
  return { id, authentication: authenticationBy(secret === undefined ? 'none' : secretMethod(server), secret) }
}

async function lasting(
  { server }: DiscoveredAuthorization,
  records: AuthorizationRecords,
  now: number,
): Promise<ClientRegistration | undefined> {
  const stored = await records.registration(server)
  return stored?.secretExpiresAt !== undefined && stored.secretExpiresAt <= now ? undefined : stored
}

function identityOf({ id, method, secret }: ClientRegistration): Identity {
  return { id, authentication: authenticationBy(method, secret) }
}

async function registerAt({ found, context, link }: GrantContext, redirectUri: string): Promise<ClientRegistration> {
  const { server } = found
  if (server.registration_endpoint === undefined) {
    throw new AuthorizationError(
      'registration',
      `${clip(server.issuer)} does not support dynamic client registration; register a client there and set its clientId`,
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
function secretMethod(server: AuthorizationServer): string {
  const methods = methodsOf(server)
  return [standard, 'client_secret_post', 'none'].find(method => methods.includes(method)) ?? standard
}
