/** What an author says about the tokens that a server takes. Checked at once; everything that verifies is loaded later. */
import { type Duration, toMilliseconds } from '../../core/clock.ts'
import { checkScopes } from '../../core/scope.ts'
import type { Principal } from '../../jsonrpc/connection.ts'
import { clip } from '../../jsonrpc/limits.ts'
import type { Awaitable } from '../../jsonrpc/message.ts'
import { carriesCredentials } from '../addresses.ts'

/** Options of a server whose tokens an authorization server issues. */
export interface OAuthResourceOptions {
  /** The authorization server whose tokens are taken: its issuer identifier, letter for letter as it calls itself. */
  readonly issuer: string
  /** The URL by which clients reach this server. Default, on loopback: the listener's own. */
  readonly resource?: string
  /** What a token may name as its audience. Default: the resource. */
  readonly audience?: string | readonly string[]
  /** Scopes that every request needs. */
  readonly scopes?: readonly string[]
  /** Scopes named in the public metadata, from which clients choose what to ask for. Default: `scopes`. */
  readonly scopesSupported?: readonly string[]
  /** Where the issuer's keys are. Default: where its metadata says. */
  readonly jwksUri?: string
  /** Signatures that are taken. Default: RSA, ECDSA and EdDSA. */
  readonly algorithms?: readonly string[]
  /** Ask the issuer about each token (RFC 7662) instead of reading it: for tokens that are no JWTs, or can be revoked. */
  readonly introspection?: IntrospectionOptions
  /** Verify tokens in your own way instead: give who it is, or nothing for a token that is not good here. */
  readonly verify?: VerifyToken
  /** The longest time for which a token that was good counts as good without another look. Default 5m; 30s unless it is a JWT. */
  readonly cache?: Duration
}

/** Options for tokens that only their issuer can read (RFC 7662). */
export interface IntrospectionOptions {
  /** Default: where the issuer's metadata says. */
  readonly endpoint?: string
  /** By which this server makes itself known to the issuer. */
  readonly clientId: string
  /** With which this server identifies itself to the authorization server. */
  readonly clientSecret: string
}

/** The function must see to it that the token was made for `resource`, and by whom. */
export type VerifyToken = (
  token: string,
  about: { readonly resource: string; readonly signal: AbortSignal },
) => Awaitable<VerifiedToken | undefined>

/** What a verifier found out about a token that it accepts. */
export interface VerifiedToken {
  /** The user, as the issuer names it. */
  readonly subject: string
  /** The program that acts for the user. */
  readonly client?: string
  /** What the token allows. Absent: nothing is said. */
  readonly scopes?: readonly string[]
  /** Milliseconds since the epoch. */
  readonly expiresAt?: number
  /** Default: the option `issuer`. */
  readonly issuer?: string
  /** All that the token says, for the author's own checks. */
  readonly claims?: Readonly<Record<string, unknown>>
}

/** What `oauth` made of the options. */
export interface ResourceAuthorization {
  readonly settings: Settings
  /** Who has to hear of principals that are disconnected. */
  readonly disconnects: Disconnects
  /**
   * Forgets the verified tokens of these principals and ends everything that is open for them: connections, sessions, streams and
   * requests under way. Whoever has a token that is still valid may come back; make the token invalid first.
   * @example auth.disconnect(({ subject }) => subject === 'ann')
   */
  disconnect(matches: (principal: Principal) => boolean): void
}

/** The options of either way, completed by their defaults. */
export interface Settings {
  /** Letter for letter as the issuer calls itself. */
  readonly issuer: string
  /** Whether the public metadata names the issuer. False: no authorization server gives these tokens. */
  readonly announced: boolean
  readonly resource: string | undefined
  /** Empty: the resource. */
  readonly audiences: readonly string[]
  readonly scopes: readonly string[]
  /** Named in the public metadata. */
  readonly scopesSupported: readonly string[]
  /** Where the issuer's keys are; undefined: where its metadata says. */
  readonly jwksUri: string | undefined
  /** Signatures of any other algorithm are refused. */
  readonly algorithms: readonly string[]
  readonly introspection: IntrospectionOptions | undefined
  /** The author's own verification, in place of keys and introspection. */
  readonly verify: VerifyToken | undefined
  /** How long a verified token is not verified again. */
  readonly cacheMs: number
}

/** How long a token that was handed out counts without another look: whoever takes one back says so by `disconnect`. */
const handedOutMs = 30_000

/** A key set is public: with these algorithms whoever has read it could sign. */
const unsafe = /^(?:none|hs\d*)$/i
const standardAlgorithms = 'RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512 EdDSA Ed25519'.split(' ')

/**
 * Takes bearer tokens of an OAuth 2.1 authorization server: `server.listen({ host, auth: oauth({ issuer, resource }) })`.
 * @example
 * await server.listen({ auth: oauth({ issuer: 'https://login.example.com', scopes: ['tickets'] }) })
 */
export function oauth(options: OAuthResourceOptions): ResourceAuthorization {
  const { issuer, resource, audience, scopes = [], verify, introspection, jwksUri, algorithms = standardAlgorithms } = options
  checkUrl('issuer', issuer)
  for (const [name, url] of Object.entries({ resource, jwksUri, 'introspection.endpoint': introspection?.endpoint }))
    if (url !== undefined) checkUrl(name, url)
  if (verify !== undefined && introspection !== undefined)
    throw new TypeError('oauth: verify and introspection are two ways to the same end; give one')
  const bad = algorithms.find(algorithm => unsafe.test(algorithm))
  if (bad !== undefined || algorithms.length === 0)
    throw new TypeError(`oauth: algorithms holds ${bad ?? 'nothing'}; name those by which your issuer signs, such as RS256`)
  if (introspection !== undefined && !(introspection.clientId && introspection.clientSecret))
    throw new TypeError('oauth: introspection needs the clientId and clientSecret that the issuer knows this server by')
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

/**
 * Principals that may call no longer. One place tells all who remember them: verified tokens are forgotten, and what is open for them
 * (connections, sessions, streams, requests under way) ends.
 */
type MatchesPrincipal = (principal: Principal) => boolean

class Disconnects {
  readonly #listeners = new Set<(matches: MatchesPrincipal) => void>()

  /** Called in the order in which they came, until the returned function is called. */
  listen(listener: (matches: MatchesPrincipal) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  announce(matches: MatchesPrincipal): void {
    for (const listener of [...this.#listeners]) listener(matches)
  }
}
