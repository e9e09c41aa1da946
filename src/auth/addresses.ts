/**
 * Which addresses credentials may travel to, which ones a peer may name, and where an issuer's metadata may be. What DNS says of
 * them is the outbound guard's matter.
 */
import { clip } from '../jsonrpc/limits.ts'

/** Names and literals that lead to this machine. */
export function isLoopbackUrl({ hostname }: URL): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d{1,3}){3}$/.test(hostname)
}

/** Whether credentials, tokens and keys may travel there: encrypted, or on this machine. */
export function carriesCredentials(server: URL): boolean {
  return server.protocol === 'https:' || (server.protocol === 'http:' && isLoopbackUrl(server))
}

/** Credentials go to a server by https; by http only where both ends are this machine. */
export function checkServer(server: URL): void {
  if (carriesCredentials(server)) return
  throw new AuthorizationError(
    'address',
    `Credentials are not sent to ${clip(server.origin)} over plain http, where others can read them; use https`,
  )
}

/**
 * An address that metadata names, e.g. a token endpoint: https, or http on this machine where the server is on it too.
 * Allowed by what it is after parsing, so that no spelling of another scheme gets through.
 */
export function checkEndpoint(value: unknown, name: string, server: URL): URL {
  const url = typeof value === 'string' && value.length <= 2048 ? URL.parse(value) : null
  if (url === null) throw new AuthorizationError('address', `The metadata has no valid URL for the ${name}`)
  const loopback = url.protocol === 'http:' && isLoopbackUrl(url) && isLoopbackUrl(server)
  if (url.protocol !== 'https:' && !loopback) {
    throw new AuthorizationError('address', `The ${name} ${clip(String(value))} is refused: only https addresses are used`)
  }
  if (url.username !== '' || url.password !== '' || url.hash !== '') {
    throw new AuthorizationError(
      'address',
      `The ${name} ${clip(url.origin)} is refused: it contains a user name, password or fragment`,
    )
  }
  return url
}

/** Where the metadata of an issuer may be (RFC 8414, OpenID Connect Discovery): where a path belongs differs between the two. */
export function metadataUrls({ origin, pathname }: URL): readonly string[] {
  const path = pathname.replace(/\/$/, '')
  return [
    `${origin}/.well-known/oauth-authorization-server${path}`,
    `${origin}/.well-known/openid-configuration${path}`,
    ...(path === '' ? [] : [`${origin}${path}/.well-known/openid-configuration`]),
  ]
}

// Why credentials could not be had. Says which rule refused and what would help; never holds a token.

/** The rules by which the client can stop an authorization. Each names one step of the flow. */
export type AuthorizationRule =
  | 'address'
  | 'challenge'
  | 'resource-metadata'
  | 'resource-mismatch'
  | 'server-metadata'
  | 'issuer-mismatch'
  | 'pkce'
  | 'registration'
  | 'browser'
  | 'authorization-response'
  | 'token-request'
  | 'token-type'
  | 'refused-again'
  | 'scope'
  | 'options'

/** An authorization that the client stopped, with the rule that stopped it. */
export class AuthorizationError extends Error {
  /** Always `AuthorizationError`. */
  override readonly name = 'AuthorizationError'
  /** The rule that stopped it. */
  readonly rule: AuthorizationRule
  /** The error code of the authorization server (`access_denied`, `invalid_grant`, …), where it gave one. */
  readonly code: string | undefined

  constructor(rule: AuthorizationRule, message: string, code?: string) {
    super(message)
    this.rule = rule
    this.code = code
  }
}
