/** A small issuer on loopback that a test can turn good or bad: metadata, keys, introspection, and tokens signed as told. */
import { generateKeyPairSync, type KeyObject, sign as signBytes } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export type Members = Readonly<Record<string, unknown>>

export interface TestIssuer {
  readonly url: string
  /** How often each path was asked for. */
  readonly hits: Map<string, number>
  /** What it says of opaque tokens. */
  readonly tokens: Map<string, Members>
  /** While true, every answer is a 500. */
  down: boolean
  /** Replaces the signing key; the old one is no longer published. */
  rotate(kid: string): void
  /** A good token for `audience`, with claims and header changed as told; undefined leaves one out. */
  token(audience: unknown, claims?: Members, header?: Members): string
  close(): Promise<void>
}

export function base64url(value: Members | string | Buffer): string {
  return Buffer.from(typeof value === 'string' || Buffer.isBuffer(value) ? value : JSON.stringify(value)).toString('base64url')
}

/** `now`: by whose clock the tokens are made. */
export async function testIssuer(now: () => number = Date.now): Promise<TestIssuer> {
  const hits = new Map<string, number>()
  const tokens = new Map<string, Members>()
  let key = keyNamed('k1')
  const http = createServer((req, res) => answer(req, res).catch(() => res.destroy()))
  await new Promise<void>(resolve => http.listen(0, '127.0.0.1', () => resolve()))
  const url = `http://127.0.0.1:${(http.address() as AddressInfo).port}`

  async function answer(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const path = req.url ?? ''
    hits.set(path, (hits.get(path) ?? 0) + 1)
    const body = issuer.down ? undefined : await documentAt(path, req)
    res.writeHead(body === undefined ? (issuer.down ? 500 : 404) : 200, { 'content-type': 'application/json' })
    res.end(JSON.stringify(body ?? {}))
  }

  async function documentAt(path: string, req: IncomingMessage): Promise<unknown> {
    if (path === '/.well-known/oauth-authorization-server')
      return { issuer: url, jwks_uri: `${url}/jwks`, introspection_endpoint: `${url}/introspect` }
    if (path === '/jwks') return { keys: [key.jwk] }
    if (path !== '/introspect') return undefined
    const form = new URLSearchParams(Buffer.concat(await req.toArray()).toString())
    const known = req.headers.authorization === `Basic ${Buffer.from('rs:s%3Acret').toString('base64')}`
    return (known ? tokens.get(form.get('token') ?? '') : undefined) ?? { active: false }
  }

  const issuer: TestIssuer = {
    url,
    hits,
    tokens,
    down: false,
    rotate: kid => {
      key = keyNamed(kid)
    },
    token: (audience, claims = {}, header = {}) => {
      const at = Math.floor(now() / 1000)
      const standard = { iss: url, sub: 'ada', client_id: 'app', aud: audience, iat: at, exp: at + 300, scope: 'tickets' }
      const head = base64url({ alg: 'RS256', typ: 'at+jwt', kid: key.kid, ...header })
      const text = `${head}.${base64url({ ...standard, ...claims })}`
      return `${text}.${base64url(signBytes('sha256', Buffer.from(text), key.private))}`
    },
    close: () =>
      new Promise(resolve => {
        http.close(() => resolve())
        http.closeAllConnections()
      }),
  }
  return issuer
}

interface SigningKey {
  readonly kid: string
  readonly private: KeyObject
  readonly jwk: Members
}

/** Making one takes long, and no test minds that another has the same. */
const made = new Map<string, SigningKey>()

function keyNamed(kid: string): SigningKey {
  const known = made.get(kid)
  if (known !== undefined) return known
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const key = { kid, private: privateKey, jwk: { ...publicKey.export({ format: 'jwk' }), kid, use: 'sig', alg: 'RS256' } }
  made.set(kid, key)
  return key
}
