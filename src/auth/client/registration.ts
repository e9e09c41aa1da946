/**
 * Under which name this client appears at an authorization server, in the order of 2026-07-28
 * basic/authorization/client-registration: one that was registered by hand, a metadata document of its own, registering now.
 */
import { clip } from '../../jsonrpc/limits.ts'
import { checkEndpoint, isLoopback } from './addresses.ts'
import { partyName } from './binding.ts'
import { authenticationBy, methodToRegister, secretMethod } from './client-authentication.ts'
import type { Surroundings } from './context.ts'
import type { Found } from './discovery.ts'
import { AuthorizationError } from './failure.ts'
import { type Identity, type Link, noSecret, register } from './protocol.ts'
import type { Records, Registration } from './records.ts'

export interface ClientNames {
  readonly clientId?: string | undefined
  readonly clientSecret?: string | undefined
  readonly clientMetadataUrl?: string | undefined
}

/** The name that the client has already, if it has one. */
export async function knownIdentity(
  names: ClientNames,
  found: Found,
  records: Records,
  now: number,
): Promise<Identity | undefined> {
  return fixedIdentity(names, found) ?? fromRegistration(await lasting(found, records, now))
}

/** The name under which it asks a user to come by, who must be sent back to `redirectUri`. */
export async function identityFor(
  names: ClientNames,
  found: Found,
  records: Records,
  redirectUri: string,
  context: Surroundings,
  link: Link,
): Promise<Identity> {
  const fixed = fixedIdentity(names, found)
  if (fixed !== undefined) return fixed
  const kept = await lasting(found, records, context.clock.now())
  const registration = kept?.redirectUri === redirectUri ? kept : await registerAt(found, redirectUri, context, link)
  if (registration !== kept) await records.keepRegistration(partyName(found.server), registration)
  return { id: registration.id, authentication: authenticationBy(registration.method, registration.secret) }
}

function fixedIdentity({ clientId, clientSecret, clientMetadataUrl }: ClientNames, { server }: Found): Identity | undefined {
  if (clientId !== undefined) {
    const method = clientSecret === undefined ? 'none' : secretMethod(server)
    return { id: clientId, authentication: authenticationBy(method, clientSecret) }
  }
  const takesUrls = server['client_id_metadata_document_supported'] === true
  return clientMetadataUrl !== undefined && takesUrls ? { id: clientMetadataUrl, authentication: noSecret() } : undefined
}

async function lasting({ server }: Found, records: Records, now: number): Promise<Registration | undefined> {
  const kept = await records.registration(partyName(server))
  return kept?.secretExpiresAt !== undefined && kept.secretExpiresAt <= now ? undefined : kept
}

function fromRegistration(registration: Registration | undefined): Identity | undefined {
  if (registration === undefined) return undefined
  return { id: registration.id, authentication: authenticationBy(registration.method, registration.secret) }
}

async function registerAt(found: Found, redirectUri: string, context: Surroundings, link: Link): Promise<Registration> {
  const { server } = found
  if (server.registration_endpoint === undefined) {
    throw new AuthorizationError(
      'registration',
      `${clip(server.issuer)} does not let clients register themselves; register one there and give its clientId`,
    )
  }
  checkEndpoint(server.registration_endpoint, 'registration endpoint', context.server)
  const method = methodToRegister(server)
  const got = await register(
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
  return url === null || (url.protocol !== 'https:' && url.protocol !== 'http:') || isLoopback(url)
}
