import { createHmac, generateKeyPairSync, sign } from 'node:crypto'
import { createServer as createHttp, type Server as HttpServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { base64url, type Members, type TestIssuer, testIssuer } from '../../../test/auth/issuer.ts'
import { createServer, oauth } from '../../server/index.ts'

const resource = 'https://api.example.com/mcp'
const server = createServer({ name: 'tickets', version: '1.0.0', sessions: false })
const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'touch' } })
const plain = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
let calls = 0
let issuer: TestIssuer
let decoy: HttpServer
let decoyUrl = ''
let decoyHits = 0
let url = ''

server.tool('touch', {}, () => {
  calls++
  return 'done'
})

beforeAll(async () => {
  issuer = await testIssuer()
  decoy = createHttp((_req, res) => {
    decoyHits++
    res.end(JSON.stringify({ keys: [foreign.jwk] }))
  })
  await new Promise<void>(resolve => decoy.listen(0, '127.0.0.1', () => resolve()))
  decoyUrl = `http://127.0.0.1:${(decoy.address() as AddressInfo).port}/jwks`
  const listening = await server.listen({ auth: oauth({ issuer: issuer.url, resource, scopes: ['tickets'] }) })
  url = listening.url
})

afterAll(async () => {
  await server.close()
  await issuer.close()
  await new Promise(resolve => decoy.close(resolve))
})

const foreign = (() => {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  return { privateKey, jwk: { ...publicKey.export({ format: 'jwk' }), kid: 'k1', use: 'sig', alg: 'RS256' } }
})()

/** Everything as in a good token, but signed by somebody else's key, under the header that is to make us take it. */
function forged(header: Members): string {
  const [, claims] = issuer.token(resource).split('.')
  const text = `${base64url({ alg: 'RS256', typ: 'at+jwt', kid: 'k1', ...header })}.${claims}`
  return `${text}.${base64url(sign('sha256', Buffer.from(text), foreign.privateKey))}`
}

/** The public key as if it were a shared secret: what a library without a list of algorithms would fall for. */
async function confused(form: (jwk: Members) => string): Promise<string> {
  const { keys } = (await (await fetch(`${issuer.url}/jwks`)).json()) as { keys: Members[] }
  const [, claims] = issuer.token(resource).split('.')
  const text = `${base64url({ alg: 'HS256', typ: 'at+jwt', kid: 'k1' })}.${claims}`
  return `${text}.${createHmac('sha256', form(keys[0] ?? {}))
    .update(text)
    .digest('base64url')}`
}

function altered(change: (parts: string[]) => unknown[]): string {
  return change(issuer.token(resource).split('.')).join('.')
}

const seconds = (): number => Math.floor(Date.now() / 1000)
const bearer = (token: string): readonly string[] => ['authorization', `Bearer ${token}`]

/** Raw headers and query of each case; the tokens are made when the issuer is there. */
type Case = () => readonly string[] | Promise<readonly string[]>

const audiences: readonly unknown[] = [
  'https://api.example.com/mcp/',
  'https://api.example.com/MCP',
  'https://api.example.com',
  'https://api.example.com/',
  'http://api.example.com/mcp',
  'https://API.example.com/mcp',
  'https://api.example.com:443/mcp',
  'https://api.example.com/mcp?x=1',
  'https://api.example.com/mcp#f',
  'https://api.example.com.evil.test/mcp',
  ['https://other.example.com/mcp', 'app'],
  { 0: resource },
  ' https://api.example.com/mcp',
  undefined,
  '',
  [[resource]],
]

const cases: Record<string, Case> = {
  ...Object.fromEntries(
    audiences.map(aud => [`made for the audience ${JSON.stringify(aud)}`, () => bearer(issuer.token(aud))] as const),
  ),
  'has another issuer': () => bearer(issuer.token(resource, { iss: 'https://login.evil.test' })),
  'of the issuer with a slash behind': () => bearer(issuer.token(resource, { iss: `${issuer.url}/` })),
  'of nobody': () => bearer(issuer.token(resource, { iss: undefined })),
  'of two issuers': () => bearer(issuer.token(resource, { iss: [issuer.url] })),
  'expired for more than the clocks may differ': () => bearer(issuer.token(resource, { exp: seconds() - 61 })),
  'without an end': () => bearer(issuer.token(resource, { exp: undefined })),
  'whose end is no number': () => bearer(issuer.token(resource, { exp: `${seconds() + 300}` })),
  'not valid yet': () => bearer(issuer.token(resource, { nbf: seconds() + 90 })),
  'without a subject': () => bearer(issuer.token(resource, { sub: undefined })),
  'with an empty subject': () => bearer(issuer.token(resource, { sub: '' })),
  'whose subject is no text': () => bearer(issuer.token(resource, { sub: 7 })),
  'bound to a key that the bearer does not show': () => bearer(issuer.token(resource, { cnf: { jkt: 'x' } })),
  'of another kind (identity)': () => bearer(issuer.token(resource, {}, { typ: 'id+jwt' })),
  'of another kind (proof)': () => bearer(issuer.token(resource, {}, { typ: 'dpop+jwt' })),
  'unsigned (alg none)': () => bearer(altered(([, claims]) => [base64url({ alg: 'none', typ: 'at+jwt' }), claims, ''])),
  'unsigned, with the old signature': () =>
    bearer(altered(([, claims, signature]) => [base64url({ alg: 'nOnE', kid: 'k1' }), claims, signature])),
  'signed with the public key as a secret (JWK)': async () => bearer(await confused(jwk => JSON.stringify(jwk))),
  'signed with the public modulus as a secret': async () => bearer(await confused(jwk => String(jwk['n']))),
  'that names an unknown key': () => bearer(issuer.token(resource, {}, { kid: 'k9' })),
  'that names a key like a path': () => bearer(issuer.token(resource, {}, { kid: '../../../dev/null' })),
  'signed by another key under the known name': () => bearer(forged({})),
  'that brings the address of its keys (jku)': () => bearer(forged({ jku: decoyUrl })),
  'that brings the address of its certificate (x5u)': () => bearer(forged({ x5u: decoyUrl })),
  'that brings its own key (jwk)': () => bearer(forged({ jwk: foreign.jwk })),
  'that brings its own certificate (x5c)': () => bearer(forged({ x5c: [base64url('not one')] })),
  'with a critical extension that nobody knows': () => bearer(issuer.token(resource, {}, { crit: ['x'], x: 1 })),
  'with an unencoded payload (b64)': () => bearer(issuer.token(resource, {}, { crit: ['b64'], b64: false })),
  'whose claims were changed': () =>
    bearer(altered(([head, , signature]) => [head, base64url({ iss: issuer.url, sub: 'root', aud: resource }), signature])),
  'whose header was changed': () =>
    bearer(altered(([, claims, signature]) => [base64url({ alg: 'RS512', kid: 'k1' }), claims, signature])),
  'whose signature was changed': () =>
    bearer(altered(([head, claims, signature = '']) => [head, claims, `${signature.slice(0, -4)}AAAA`])),
  'whose signature is missing': () => bearer(altered(([head, claims]) => [head, claims, ''])),
  'cut in two': () => bearer(altered(([head, claims]) => [head, claims])),
  'with five parts': () => bearer(altered(parts => [...parts, 'a', 'b'])),
  'whose header is no JSON': () => bearer(altered(([, ...rest]) => [base64url('{'), ...rest])),
  'whose claims are an array': () => bearer(altered(([head, , signature]) => [head, base64url('[]'), signature])),
  'that is no token at all': () => bearer('password'),
  'that is empty': () => ['authorization', 'Bearer '],
  'with a blank in it': () => bearer(`${issuer.token(resource)} x`),
  'with a tab before it': () => ['authorization', `Bearer\t${issuer.token(resource)}`],
  'with control characters': () => bearer(`${issuer.token(resource)}\u0085`),
  'in quotes': () => bearer(`"${issuer.token(resource)}"`),
  'under another scheme': () => ['authorization', `Basic ${issuer.token(resource)}`],
  'under DPoP': () => ['authorization', `DPoP ${issuer.token(resource)}`],
  'without a scheme': () => ['authorization', issuer.token(resource)],
  'after another one (two headers)': () => [...bearer(issuer.token(resource)), ...bearer(issuer.token(resource))],
  'before a bad one (two headers)': () => [...bearer(issuer.token(resource)), 'Authorization', 'Bearer bad'],
  'twice in one header': () => ['authorization', `Bearer ${issuer.token(resource)}, Bearer ${issuer.token(resource)}`],
  'in a cookie': () => ['cookie', `access_token=${issuer.token(resource)}`],
  'in another header': () => [
    'x-access-token',
    issuer.token(resource),
    'proxy-authorization',
    `Bearer ${issuer.token(resource)}`,
  ],
  'in the body alone': () => [],
}

interface Seen {
  readonly status: number
  readonly challenge: string
}

function post(path: string, headers: readonly string[]): Promise<Seen> {
  return new Promise((resolve, reject) => {
    const target = new URL(path, url)
    const raw = ['host', target.host, ...Object.entries(plain).flat(), 'content-length', `${body.length}`, ...headers]
    const sent = request(target, { method: 'POST', headers: raw, agent: false }, res => {
      res.resume()
      resolve({ status: res.statusCode ?? 0, challenge: String(res.headers['www-authenticate']) })
    })
    sent.on('error', reject)
    sent.end(body)
  })
}

describe('a token', () => {
  it('that is good lets in, also late and early by what clocks differ, and as an older kind', async () => {
    const good = [
      issuer.token(resource),
      issuer.token(['x', resource]),
      issuer.token(resource, { exp: seconds() - 30 }),
      issuer.token(resource, { nbf: seconds() + 30 }),
      issuer.token(resource, { scope: undefined, scp: ['tickets'] }, { typ: 'JWT' }),
      issuer.token(resource, { scope: ['tickets'] }, { typ: undefined }),
    ]
    for (const token of good) expect(await post('/mcp', bearer(token))).toMatchObject({ status: 200 })
    expect(await post('/mcp', ['authorization', `bEARER  ${good[0]}`])).toMatchObject({ status: 200 })
    expect(calls).toBe(good.length + 1)
  })

  it.each(Object.entries(cases))('%s is refused with a 401', async (_, headers) => {
    const before = calls
    const seen = await post('/mcp', await headers())
    expect(seen.status).toBe(401)
    expect(seen.challenge).toContain('resource_metadata="https://api.example.com/.well-known/oauth-protected-resource/mcp"')
    expect(seen.challenge).toContain('scope="tickets"')
    expect(calls).toBe(before)
  })

  it.each(['access_token', 'acce%73s_token'])('in the query (%s) is refused, whatever the header says', async name => {
    const token = issuer.token(resource)
    expect(await post(`/mcp?${name}=${token}`, bearer(token))).toMatchObject({ status: 401 })
    expect((await post(`/mcp?a=1&${name}=${token}`, [])).challenge).toContain('error="invalid_request"')
  })

  it('of 100 KB is refused by either face, unread', async () => {
    const auth = oauth({ issuer: issuer.url, resource })
    const long = { ...plain, host: 'localhost', authorization: `Bearer ${'a'.repeat(100_000)}` }
    const answer = await server.fetchWith({ auth })(new Request('http://localhost/mcp', { method: 'POST', headers: long, body }))
    expect(answer.status).toBe(401)
    // Node takes headers of 16 KiB in all.
    expect(await post('/mcp', bearer('a'.repeat(100_000)))).toMatchObject({ status: 431 })
  })

  it('never made us fetch what it named, nor ask the issuer for keys more often than the pause allows', () => {
    expect(decoyHits).toBe(0)
    // One more by the test itself for each of the two that are signed with the public key.
    expect(issuer.hits.get('/jwks')).toBeLessThanOrEqual(2 + 2)
    expect(Object.keys(cases).length + 3).toBeGreaterThanOrEqual(36)
  })
})
