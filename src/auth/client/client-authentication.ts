/** How a client proves itself at a token endpoint, chosen by what the authorization server lists. */
import { AuthorizationError } from './failure.ts'
import { type AuthorizationServer, type ClientAuth, noSecret, secretInBody, secretInHeader } from './protocol.ts'

/** Without a list it is this one (RFC 8414 section 2). */
const standard = 'client_secret_basic'

function methodsOf(server: AuthorizationServer): readonly string[] {
  return server.token_endpoint_auth_methods_supported ?? [standard]
}

/** What to register as: an application on somebody's machine keeps no secrets, unless it is made to. */
export function methodToRegister(server: AuthorizationServer): string {
  const methods = methodsOf(server)
  return ['none', standard, 'client_secret_post'].find(method => methods.includes(method)) ?? standard
}

/** For a client with a secret. */
export function secretMethod(server: AuthorizationServer): string {
  const methods = methodsOf(server)
  return [standard, 'client_secret_post', 'none'].find(method => methods.includes(method)) ?? standard
}

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
