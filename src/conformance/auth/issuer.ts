/**
 * An authorization server on this machine: metadata, keys, and tokens of every kind. Nothing of our own authorization code signs or
 * reads here, so that it cannot judge itself.
 */
import { createHmac, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { createServer } from 'node:http'
import { listenHere } from '../wire/http-call.ts'

/** How the authorization server is started. */
export interface IssuerOptions {
  /** Default: one that is free. */
  readonly port?: number
}

/** What the tokens of a trial must have for the server that is judged to take them. */
export interface TrialOptions {
  /** The address of the server that is judged, as its tokens must name it. */
  readonly resource: string
  /** What the server wants every token to have. */
  readonly scopes?: readonly string[]
}

/** An authorization server that runs until it is closed. */
export interface Issuer {
  /** The issuer identifier: what the server that is judged is configured with. */
  readonly url: string
  trial(options: TrialOptions): AuthTrial
  close(): Promise<void>
}

const KEY_ID = 'kit-1'

/** @example await using issuer = await startIssuer(); await judge(url, { auth: issuer.trial({ resource: url }) }) */
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

/** How a token differs from one that the server should take. */
export interface TokenFlaw {
  /** Default: the resource. `null`: none at all. */
  readonly audience?: string | null
  readonly issuer?: string
  readonly subject?: string
  /** Default: all that the server wants. */
  readonly scope?: string
  /** From now. Default 300; below 0 it has expired. */
  readonly expiresInSeconds?: number
  readonly notBeforeSeconds?: number
  /** `none`: unsigned; `HS256`: signed with the public key as a secret; `other`: by a key that the issuer does not have. */
  readonly signature?: 'none' | 'HS256' | 'other'
}

/** How the kit gets tokens for the server that is judged. */
export interface AuthTrial {
  /** Makes a token that the server should take, but for its flaw. */
  token(flaw?: TokenFlaw): Promise<string>
  /** Whether tokens without a scope must be refused. Default false. */
  readonly scoped?: boolean
}
