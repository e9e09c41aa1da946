/** What an author says about the tokens that a server takes. Checked at once; everything that verifies is loaded later. */
import { type Duration, toMilliseconds } from '../../core/clock.ts'
import { checkScopes } from '../../core/scope.ts'
import type { Principal } from '../../jsonrpc/connection.ts'
import { clip } from '../../jsonrpc/limits.ts'
import type { Awaitable } from '../../jsonrpc/message.ts'
import { carriesCredentials } from '../addresses.ts'

/** Options of a server whose tokens an authorization server issues. */
export interface OAuthResourceOptions {
  /**
   * The authorization server whose tokens are accepted: its issuer identifier, exactly as it names itself. An https URL, or http on loopback.
   * @pattern ^https://[^?#@\s]+$|^http://(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?(/[^?#\s]*)?$
   * @example https://login.example.com
   */
  readonly issuer: string
  /**
   * The URL by which clients reach this server. By default, on loopback, the listener's own.
   * @pattern ^https://[^?#@\s]+$|^http://(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?(/[^?#\s]*)?$
   * @example https://mcp.example.com/mcp
   */
  readonly resource?: string
  /** The audiences that a token may name. By default the resource. */
  readonly audience?: string | readonly string[]
  /**
   * Scopes that every request needs.
   * @default []
   * @pattern ^[\x21\x23-\x5b\x5d-\x7e]{1,255}$
   * @example ["tickets"]
   */
  readonly scopes?: readonly string[]
  /**
   * Scopes in the public metadata, from which clients choose what to request. By default those of `scopes`.
   * @pattern ^[\x21\x23-\x5b\x5d-\x7e]{1,255}$
   */
  readonly scopesSupported?: readonly string[]
  /**
   * The URL of the issuer's keys. By default the one in the issuer's metadata.
   * @pattern ^https://|^http://(localhost|127(\.\d{1,3}){3}|\[::1\])([:/]|$)
   */
  readonly jwksUri?: string
  /**
   * Signature algorithms that are accepted. By default RSA, ECDSA and EdDSA.
   * @minItems 1
   * @example ["RS256", "ES256"]
   */
  readonly algorithms?: readonly string[]
  /** Asks the issuer about each token (RFC 7662) instead of reading it: for tokens that are not JWTs, or that can be revoked. */
  readonly introspection?: IntrospectionOptions
  /** Verifies tokens in your own way instead: return who the caller is, or nothing for a token that is not valid here. */
  readonly verify?: VerifyToken
  /** How long a verified token is accepted without another look. By default 5 minutes, or 30 seconds if tokens are not read as JWTs. */
  readonly cache?: Duration
}

/** Options for tokens that only their issuer can read (RFC 7662). */
export interface IntrospectionOptions {
  /**
   * The introspection endpoint. By default the one in the issuer's metadata.
   * @pattern ^https://[^?#@\s]+$|^http://(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?(/[^?#\s]*)?$
   */
  readonly endpoint?: string
  /**
   * The client id by which the issuer knows this server.
   * @minLength 1
   */
  readonly clientId: string
  /**
   * The client secret of this server at the issuer.
   * @minLength 1
   * @example ${CLIENT_SECRET}
   */
  readonly clientSecret: string
}

/** Verifies a token in your own way. It must check that the token was issued for `resource`, and by whom. */
export type VerifyToken = (
  token: string,
  about: {
    /** The URL of this server, which the token must name as its audience. */
    readonly resource: string
    /** Aborted when the request is no longer waiting for the result. */
    readonly signal: AbortSignal
  },
) => Awaitable<VerifiedToken | undefined>

/** What `verify` returns about a token that it accepts. */
export interface VerifiedToken {
  /** The user, as the issuer names them. */
  readonly subject: string
  /** The OAuth client that acts for the user. */
  readonly client?: string
  /** The scopes of the token. Absent: none. */
  readonly scopes?: readonly string[]
  /** When the token expires, in milliseconds since the epoch. Absent: never. */
  readonly expiresAt?: number
  /** The issuer of the token. Default: the option `issuer`. */
  readonly issuer?: string
  /** All claims of the token, for your own checks in `ctx.principal`. */
  readonly claims?: Readonly<Record<string, unknown>>
}

/** The token verification that `oauth` returns. Pass it as `auth`. */
export interface ResourceAuthorization {
  /** The options, with defaults filled in. */
  readonly settings: Settings
  /** Notified when principals are disconnected. */
  readonly disconnects: Disconnects
  /**
   * Ends everything that is open for the principals that match (connections, sessions, streams and running requests) and forgets
   * their verified tokens. A caller whose token is still valid can come back, so revoke the token first.
   * @example auth.disconnect(({ subject }) => subject === 'ann')
   */
  disconnect(matches: (principal: Principal) => boolean): void
}

/** The options of `oauth`, with defaults filled in. */
export interface Settings {
  /** The issuer identifier, exactly as the issuer writes it. */
  readonly issuer: string
  /** Whether the public metadata names the issuer. False if no authorization server issues the tokens. */
  readonly announced: boolean
  /** The URL by which clients reach this server. Undefined: the address of the listener. */
  readonly resource: string | undefined
  /** The audiences that a token may name. Empty: the resource. */
  readonly audiences: readonly string[]
  /** Scopes that every request needs. */
  readonly scopes: readonly string[]
  /** The scopes in the public metadata. */
  readonly scopesSupported: readonly string[]
  /** The URL of the issuer's keys. Undefined: as its metadata says. */
  readonly jwksUri: string | undefined
  /** The signature algorithms that are accepted. */
  readonly algorithms: readonly string[]
  /** How the issuer is asked about a token. Undefined: tokens are verified by their signature. */
  readonly introspection: IntrospectionOptions | undefined
  /** Your own verification, used instead of keys and introspection. */
  readonly verify: VerifyToken | undefined
  /** How long a verified token is accepted without another check, in milliseconds. */
  readonly cacheMs: number
}

/** How long a token that was handed out counts without another look: whoever takes one back says so by `disconnect`. */
const handedOutMs = 30_000

/** A key set is public: with these algorithms whoever has read it could sign. */
const unsafe = /^(?:none|hs\d*)$/i
const standardAlgorithms = 'RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512 EdDSA Ed25519'.split(' ')

/**
 * Accepts bearer tokens of an OAuth 2.1 authorization server. Pass the result as `auth` to `listen`, `fetchWith` or an adapter.
 * @example
 * await server.listen({ auth: oauth({ issuer: 'https://login.example.com', scopes: ['tickets'] }) })
 */
export function oauth(options: OAuthResourceOptions): ResourceAuthorization {
  const { issuer, resource, audience, scopes = [], verify, introspection, jwksUri, algorithms = standardAlgorithms } = options
  checkUrl('issuer', issuer)
  for (const [name, url] of Object.entries({ resource, jwksUri, 'introspection.endpoint': introspection?.endpoint }))
    if (url !== undefined) checkUrl(name, url)
  if (verify !== undefined && introspection !== undefined)
    throw new TypeError('oauth: verify and introspection exclude each other; give one of them')
  const bad = algorithms.find(algorithm => unsafe.test(algorithm))
  if (bad !== undefined || algorithms.length === 0)
    throw new TypeError(`oauth: algorithms contains ${bad ?? 'nothing'}; name the algorithms of your issuer, such as RS256`)
  if (introspection !== undefined && !(introspection.clientId && introspection.clientSecret))
    throw new TypeError(
      'oauth: introspection needs the clientId and clientSecret under which this server is registered at the issuer',
    )
  const scopesSupported = options.scopesSupported ?? scopes
  checkScopes([...scopes, ...scopesSupported], 'oauth')
  const cache = options.cache ?? (verify === undefined && introspection === undefined ? '5m' : '30s')
  const audiences = audience === undefined ? [] : typeof audience === 'string' ? [audience] : audience
  const cacheMs = toMilliseconds(cache, 'cache')
  const given = { issuer, resource, audiences, scopes, scopesSupported, jwksUri, algorithms, introspection, verify, cacheMs }
  return authorizationOf({ ...given, announced: true })
}

/** Tokens that no authorization server gives: whoever runs the server hands them out. `issuer` is a name that no public issuer has. */
export function handedOutTokens(options: {
  readonly issuer: string
  readonly resource?: string | undefined
  readonly verify: VerifyToken
}): ResourceAuthorization {
  const { issuer, resource, verify } = options
  if (resource !== undefined) checkUrl('resource', resource, 'auth')
  const nothing = { audiences: [], scopes: [], scopesSupported: [], jwksUri: undefined, algorithms: [], introspection: undefined }
  return authorizationOf({ ...nothing, issuer, resource, verify, cacheMs: handedOutMs, announced: false })
}

function authorizationOf(settings: Settings): ResourceAuthorization {
  const disconnects = new Disconnects()
  return { settings, disconnects, disconnect: matches => disconnects.announce(matches) }
}

/** Where nothing else says by which address a server is reached, the settings must. */
export function checkResource({ settings }: ResourceAuthorization): void {
  if (settings.resource === undefined && settings.announced)
    throw new TypeError('oauth needs the option resource here: the URL by which clients reach this server')
}

function checkUrl(name: string, value: string, where = 'oauth'): void {
  const url = URL.canParse(value) ? new URL(value) : undefined
  if (url === undefined || !carriesCredentials(url))
    throw new TypeError(`${where}: ${name} is "${clip(String(value))}"; give an https URL (http only on loopback)`)
  if (url.hash !== '' || url.username !== '' || url.password !== '' || (url.search !== '' && name !== 'jwksUri'))
    throw new TypeError(`${where}: ${name} must be a plain URL, without user, query and fragment`)
}

/** Selects principals. */
type MatchesPrincipal = (principal: Principal) => boolean

/** Notifies everything that holds connections of principals that may no longer call. */
class Disconnects {
  readonly #listeners = new Set<(matches: MatchesPrincipal) => void>()

  /** Adds a listener. The returned function removes it. */
  listen(listener: (matches: MatchesPrincipal) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Ends everything that is open for the principals that match. */
  announce(matches: MatchesPrincipal): void {
    for (const listener of [...this.#listeners]) listener(matches)
  }
}
