/** The ways to authorize with OAuth, built when the first refusal asks for one. */

import { toMilliseconds } from '../../core/clock.ts'
import type { Credentials } from '../../core/credentials.ts'
import { OAuthAuthorizer } from './authorizer.ts'
import type { Binding } from './binding.ts'
import { cli } from './browser.ts'
import type { DiscoveredAuthorization } from './discovery.ts'
import {
  assertionGrant,
  authenticationBy,
  codeGrant,
  credentialsGrant,
  exchangeForGrant,
  type OAuthGrant,
  secretMethod,
} from './grants.ts'
import {
  type AuthorizationContext,
  type ClientCredentialsOptions,
  type ClientKey,
  type CommonOptions,
  type EnterpriseOptions,
  type OAuthClientOptions,
  signingKey,
  type WorkloadOptions,
} from './options.ts'
import { type Identity, noSecret, signedAssertion } from './protocol.ts'
import { memoryStorage, type TokenStorage } from './storage.ts'

/** Credentials by the authorization code grant. */
export function byCode(
  context: AuthorizationContext,
  options: OAuthClientOptions,
  binding: Binding,
  storage: TokenStorage,
): Credentials {
  const { browser = cli(), clientId, clientSecret, clientMetadataUrl } = options
  return authorizerFor(context, options, binding, codeGrant({ browser, clientId, clientSecret, clientMetadataUrl }), storage)
}

/** Credentials by the client credentials grant. */
export function byCredentials(context: AuthorizationContext, options: ClientCredentialsOptions, binding: Binding): Credentials {
  return authorizerFor(context, options, binding, credentialsGrant(identifier(options)))
}

/** Credentials by an assertion of the platform on which this workload runs. */
export function byWorkload(context: AuthorizationContext, options: WorkloadOptions, binding: Binding): Credentials {
  const { assertion, clientId = '' } = options
  const identity: Identity = {
    id: clientId === '' ? 'workload' : clientId,
    authentication: clientId === '' ? () => {} : noSecret(),
  }
  const assert = async ({ found }: { readonly found: DiscoveredAuthorization }): Promise<string> => assertion(found.server.issuer)
  return authorizerFor(
    context,
    options,
    binding,
    assertionGrant(async () => identity, assert),
  )
}

/** Credentials by an assertion that the identity provider of a company issues for its user. */
export function byEnterprise(context: AuthorizationContext, options: EnterpriseOptions, binding: Binding): Credentials {
  const { identityProvider: provider } = options
  const grant = assertionGrant(identifier(options), async asking =>
    exchangeForGrant(
      {
        tokenEndpoint: provider.tokenEndpoint,
        identity: { id: provider.clientId, authentication: await providerAuthentication(provider) },
        subjectToken: await provider.subjectToken(),
        subjectTokenType: provider.subjectTokenType ?? 'urn:ietf:params:oauth:token-type:id_token',
      },
      asking,
    ),
  )
  return authorizerFor(context, options, binding, grant)
}

function authorizerFor(
  context: AuthorizationContext,
  options: CommonOptions & { readonly dpop?: boolean },
  binding: Binding,
  grant: OAuthGrant,
  storage = memoryStorage(),
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

/** The client as it was registered by hand. */
function identifier(options: ClientKey & { readonly clientId: string }): (found: DiscoveredAuthorization) => Promise<Identity> {
  const { clientId: id, clientSecret } = options
  return async ({ server }) => {
    if (options.privateKey !== undefined) return { id, authentication: await assertionBy(options) }
    const method = clientSecret === undefined ? 'none' : secretMethod(server)
    return { id, authentication: authenticationBy(method, clientSecret) }
  }
}

async function providerAuthentication(provider: ClientKey): Promise<Identity['authentication']> {
  if (provider.privateKey !== undefined) return assertionBy(provider)
  return authenticationBy(provider.clientSecret === undefined ? 'none' : 'client_secret_post', provider.clientSecret)
}

async function assertionBy({ privateKey = '', algorithm = 'ES256', keyId }: ClientKey): Promise<Identity['authentication']> {
  return signedAssertion(await signingKey(privateKey, algorithm), keyId)
}
