/**
 * An authorization server on this machine: metadata, keys, and tokens of every kind. Nothing of our own authorization code signs or
 * reads here, so that it cannot judge itself.
 */
import { createHmac, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { createServer } from 'node:http'
import { listenHere } from '../wire/http-call.ts'

/** Options of `startIssuer`. */
export interface IssuerOptions {
  /** The port. Default: any free port. */
  readonly port?: number
}

/** What a server requires of a token. */
export interface TrialOptions {
  /** The address of the server, which its tokens must name. */
  readonly resource: string
  /** The scopes that every token needs. Default: none. */
  readonly scopes?: readonly string[]
}

/** An authorization server that runs until it is closed. */
export interface Issuer {
  /** The issuer identifier: configure the server with it. */
  readonly url: string
  /** Creates tokens for one server; pass the result to `judge` as `auth`. */
  trial(options: TrialOptions): AuthTrial
  /** Stops the authorization server. */
  close(): Promise<void>
}

const KEY_ID = 'kit-1'

/**
 * Starts an authorization server on this machine, which issues the tokens that the scenarios about authorization need.
 * @example await using issuer = await startIssuer(); await judge(url, { auth: issuer.trial({ resource: url }) })
 */
export async function startIssuer({ port = 0 }: IssuerOptions = {}): Promise<Issuer & AsyncDisposable> {
  const own = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const other = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const jwk = { ...own.publicKey.export({ format: 'jwk' }), kid: KEY_ID, use: 'sig', alg: 'RS256' }
  const server = createServer((request, response) => {
    const pathname = (request.url ?? '/').split('?', 1)[0] ?? '/'
    const body = pathname === '/jwks' ? { keys: [jwk] } : /^\/\.well-known\//.test(pathname) ? metadata(url) : undefined
    response.writeHead(body === undefined ? 404 : 200, { 'content-type': 'application/json' })
    response.end(JSON.stringify(body ?? { error: 'not_found' }))
  })
  const { origin: url, close } = await listenHere(server, port)
  const keys = { own: own.privateKey, other: other.privateKey, shown: own.publicKey }
  return { url, trial: options => trialOf(url, keys, options), close, [Symbol.asyncDispose]: close }
}

function metadata(issuer: string) {
  return {
    issuer,
    jwks_uri: `${issuer}/jwks`,
    authorization_endpoint: `${issuer}/authorize`,
    token_endpoint: `${issuer}/token`,
    response_types_supported: ['code'],
    code_challenge_methods_supported: ['S256'],
  }
}

interface Keys {
  readonly own: KeyObject
  readonly other: KeyObject
  readonly shown: KeyObject
}

function trialOf(issuer: string, keys: Keys, { resource, scopes = [] }: TrialOptions): AuthTrial {
  return {
    scoped: scopes.length > 0,
    token: async (flaw = {}) => signed(claims(issuer, resource, scopes, flaw), flaw, keys),
  }
}

function claims(issuer: string, resource: string, scopes: readonly string[], flaw: TokenFlaw): Record<string, unknown> {
  const now = Math.floor(Date.now() / 1000)
  const { audience = resource, expiresInSeconds = 300, notBeforeSeconds } = flaw
  return {
    iss: flaw.issuer ?? issuer,
    sub: flaw.subject ?? 'kit-user',
    client_id: 'kit',
    iat: now + Math.min(0, expiresInSeconds) - 1,
    exp: now + expiresInSeconds,
    scope: flaw.scope ?? scopes.join(' '),
    jti: crypto.randomUUID(),
    ...(audience === null ? {} : { aud: audience }),
    ...(notBeforeSeconds === undefined ? {} : { nbf: now + notBeforeSeconds }),
  }
}

function signed(body: Record<string, unknown>, { signature }: TokenFlaw, keys: Keys): string {
  const alg = signature === 'none' || signature === 'HS256' ? signature : 'RS256'
  const head = { alg, typ: 'at+jwt', ...(signature === 'none' ? {} : { kid: KEY_ID }) }
  const text = `${encoded(head)}.${encoded(body)}`
  if (signature === 'none') return `${text}.`
  if (signature === 'HS256') {
    const secret = keys.shown.export({ format: 'pem', type: 'spki' })
    return `${text}.${createHmac('sha256', secret).update(text).digest('base64url')}`
  }
  const key = signature === 'other' ? keys.other : keys.own
  return `${text}.${sign('sha256', Buffer.from(text), key).toString('base64url')}`
}

function encoded(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}

// ── What whoever judges a guarded server gives to the kit, so that it can come with tokens of every kind.

/** How a token differs from one that the server should accept. */
export interface TokenFlaw {
  /** The audience. `null`: none. Default: the resource. */
  readonly audience?: string | null
  /** The issuer that the token names. Default: this authorization server. */
  readonly issuer?: string
  /** The subject that the token names. Default: a fixed test user. */
  readonly subject?: string
  /** The scopes. Default: those that the server requires. */
  readonly scope?: string
  /** Seconds until the token expires; below 0 it has expired. Default 300. */
  readonly expiresInSeconds?: number
  /** The token is valid only after this many seconds from now. Default: at once. */
  readonly notBeforeSeconds?: number
  /**
   * `none`: unsigned. `HS256`: signed with the public key as a secret. `other`: signed with a key that the issuer does not have.
   * Default: signed correctly.
   */
  readonly signature?: 'none' | 'HS256' | 'other'
}

/** Issues tokens for the server under test. */
export interface AuthTrial {
  /** Issues a token that the server should accept, except for its flaw. */
  token(flaw?: TokenFlaw): Promise<string>
  /** Whether tokens without a scope must be refused. Default false. */
  readonly scoped?: boolean
}
