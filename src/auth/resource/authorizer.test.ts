import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type TestIssuer, testIssuer } from '../../../test/auth/issuer.ts'
import type { Authorizer, CredentialDenial } from '../../core/credentials.ts'
import type { Principal } from '../../jsonrpc/connection.ts'
import { type FakeClock, fakeClock } from '../../testing/clock.ts'
import { createAuthorizer } from './authorizer.ts'
import { type OAuthResourceOptions, oauth } from './options.ts'

const resource = 'https://api.example.com/mcp'
const plain = { url: '/mcp', repeats: () => false }
let clock: FakeClock
let issuer: TestIssuer
let failures: unknown[] = []

beforeEach(async () => {
  clock = fakeClock()
  issuer = await testIssuer(clock.now)
  failures = []
})
afterEach(() => issuer.close())

function acceptor(options: Partial<OAuthResourceOptions> = {}): Authorizer {
  const settings = oauth({ issuer: issuer.url, resource, ...options })
  return createAuthorizer(settings, { clock, name: 'Tickets', failed: error => failures.push(error) })
}

const identify = (at: Authorizer, token: string) =>
  at.identify(name => (name === 'authorization' ? `Bearer ${token}` : undefined), plain)
const who = async (at: Authorizer, token: string) => (await identify(at, token)) as Principal & CredentialDenial
const jwksHits = () => issuer.hits.get('/jwks') ?? 0

describe('a principal', () => {
  it('is told by issuer, subject and client: the key of no two of them is the same', async () => {
    const at = acceptor()
    const tokens = [
      issuer.token(resource),
      issuer.token(resource, { sub: 'bob' }),
      issuer.token(resource, { client_id: 'other' }),
      issuer.token(resource, { client_id: undefined }),
      issuer.token(resource, { sub: 'ada","app' }),
    ]
    const found = await Promise.all(tokens.map(token => who(at, token)))
    expect(found[0]).toMatchObject({ issuer: issuer.url, subject: 'ada', client: 'app', scopes: ['tickets'] })
    expect(found[0]?.expiresAt).toBe(clock.now() + 300_000)
    expect(found[0]?.claims).toMatchObject({ aud: resource })
    expect(new Set(found.map(({ id }) => id)).size).toBe(tokens.length)
  })

  it('is the same whatever token of it comes', async () => {
    const at = acceptor()
    const [first, second] = [await who(at, issuer.token(resource)), await who(at, issuer.token(resource, { jti: 'x' }))]
    expect(first.id).toBe(second.id)
  })
})

describe('a token that was good', () => {
  it('lets in at once, without a promise and without another look at keys', async () => {
    const at = acceptor()
    const token = issuer.token(resource)
    const first = await who(at, token)
    issuer.down = true
    expect(identify(at, token)).toBe(first)
  })

  it('is looked at again when `cache` is over, and is refused once it has expired', async () => {
    const at = acceptor({ cache: '1h' })
    const token = issuer.token(resource)
    await who(at, token)
    clock.advance(299_000)
    expect(identify(at, token)).toMatchObject({ subject: 'ada' })
    clock.advance(30_000)
    expect(identify(at, token)).toBeInstanceOf(Promise)
    expect(await who(at, token)).toMatchObject({ subject: 'ada' })
    clock.advance(31_000)
    expect(await who(at, token)).toMatchObject({ status: 401, message: expect.stringContaining('expired') })
  })

  it('is verified once, however often it comes meanwhile', async () => {
    let looks = 0
    const at = acceptor({
      verify: async () => {
        looks++
        return { subject: 'ada' }
      },
    })
    await Promise.all([who(at, 'abc'), who(at, 'abc'), who(at, 'abc')])
    expect(looks).toBe(1)
  })
})

describe('the issuer', () => {
  it('is asked for keys once for a flood of unknown key ids, and again after a pause', async () => {
    const at = acceptor()
    await who(at, issuer.token(resource))
    for (let n = 0; n < 50; n++) await who(at, issuer.token(resource, {}, { kid: `k${n}x` }))
    expect(jwksHits()).toBe(1)
    clock.advance(30_001)
    await Promise.all(Array.from({ length: 50 }, (_, n) => who(at, issuer.token(resource, {}, { kid: `k${n}y` }))))
    expect(jwksHits()).toBe(2)
  })

  it('may change its key: tokens of the new one are taken, of the old one no longer', async () => {
    const at = acceptor()
    const old = issuer.token(resource, { jti: '1' })
    await who(at, issuer.token(resource))
    issuer.rotate('k2')
    clock.advance(30_001)
    expect(await who(at, issuer.token(resource))).toMatchObject({ subject: 'ada' })
    expect(await who(at, old)).toMatchObject({ status: 401 })
  })

  it('that cannot be reached is no fault of the token: 503, and asked again only after a pause', async () => {
    const at = acceptor()
    issuer.down = true
    const answers = [await who(at, issuer.token(resource)), await who(at, issuer.token(resource, { jti: '2' }))]
    expect(answers.map(({ status, headers }) => [status, headers?.['retry-after']])).toEqual([
      [503, '5'],
      [503, '5'],
    ])
    expect(issuer.hits.get('/.well-known/oauth-authorization-server')).toBe(1)
    expect(failures).not.toEqual([])
    issuer.down = false
    clock.advance(5_001)
    expect(await who(at, issuer.token(resource))).toMatchObject({ subject: 'ada' })
  })

  it('may be away for a while: the keys that are known hold for an hour', async () => {
    const at = acceptor({ cache: 0 })
    await who(at, issuer.token(resource))
    issuer.down = true
    clock.advance(11 * 60_000)
    expect(await who(at, issuer.token(resource))).toMatchObject({ subject: 'ada' })
    clock.advance(50 * 60_000)
    expect(await who(at, issuer.token(resource))).toMatchObject({ status: 503 })
  })

  it('must call itself by the name that was given, or its keys are not taken', async () => {
    const settings = oauth({ issuer: issuer.url.replace('127.0.0.1', 'localhost'), resource })
    const at = createAuthorizer(settings, { clock })
    expect(await who(at, issuer.token(resource, { iss: settings.settings.issuer }))).toMatchObject({ status: 503 })
    expect(jwksHits()).toBe(0)
  })
})

describe('introspection', () => {
  const introspection = { clientId: 'rs', clientSecret: 's:cret' }
  const good = () => ({
    active: true,
    sub: 'ada',
    client_id: 'app',
    aud: resource,
    scope: 'tickets',
    exp: clock.now() / 1000 + 60,
  })

  it('takes the word of the issuer, found by its metadata, and remembers it for a short time only', async () => {
    const at = acceptor({ introspection })
    issuer.tokens.set('opaque', good())
    expect(await who(at, 'opaque')).toMatchObject({ subject: 'ada', issuer: issuer.url, client: 'app', scopes: ['tickets'] })
    issuer.tokens.delete('opaque')
    expect(await who(at, 'opaque')).toMatchObject({ subject: 'ada' })
    clock.advance(30_001)
    expect(await who(at, 'opaque')).toMatchObject({ status: 401, message: expect.stringContaining('not active') })
    expect(issuer.hits.get('/introspect')).toBe(2)
  })

  it.each<[string, object]>([
    ['has another audience', { aud: 'https://other.example.com' }],
    ['for no audience', { aud: undefined }],
    ['has another issuer', { iss: 'https://login.evil.test' }],
    ['without a subject', { sub: undefined }],
    ['that has expired', { exp: 1 }],
    ['that refreshes', { token_type: 'refresh_token' }],
    ['bound to a key', { cnf: { jkt: 'x' } }],
    ['that is active in other words', { active: 'true' }],
  ])('refuses one %s', async (_, change) => {
    const at = acceptor({ introspection })
    issuer.tokens.set('opaque', { ...good(), ...change })
    expect(await who(at, 'opaque')).toMatchObject({ status: 401 })
  })

  it('asks only so much at once for one address: some wait, and the rest are told to come back', async () => {
    const at = acceptor({ introspection })
    const answers = await Promise.all(Array.from({ length: 100 }, (_, n) => who(at, `t${n}`)))
    expect(answers.filter(({ status }) => status === 503)).toHaveLength(20)
    expect(issuer.hits.get('/introspect')).toBe(80)
  })
})

describe('verify', () => {
  it('decides alone, and is told for which server', async () => {
    const at = acceptor({
      verify: (token, about) => (token === 'good' && about.resource === resource ? { subject: 'ada' } : undefined),
    })
    expect(await who(at, 'good')).toMatchObject({ subject: 'ada', scopes: [], issuer: issuer.url })
    expect(await who(at, 'bad')).toMatchObject({ status: 401 })
  })

  it('that throws or never answers lets nobody in, and blames no token', async () => {
    const broken = acceptor({ verify: () => Promise.reject(new Error('database gone')) })
    expect(await who(broken, 'abc')).toMatchObject({ status: 503, message: expect.not.stringContaining('database') })
    const slow = acceptor({ verify: () => new Promise(() => {}) })
    const waiting = who(slow, 'abc')
    clock.advance(10_000)
    expect(await waiting).toMatchObject({ status: 503 })
  })

  it('must name a subject', async () => {
    const at = acceptor({ verify: () => ({ subject: '' }) })
    expect(await who(at, 'abc')).toMatchObject({ status: 401 })
  })
})

describe('what is said to those who stay outside', () => {
  const metadata = 'resource_metadata="https://api.example.com/.well-known/oauth-protected-resource/mcp"'

  it('without a token: where to get one and for which scopes, and no error', async () => {
    const found = (await acceptor({ scopes: ['a', 'b'] }).identify(() => undefined, plain)) as CredentialDenial
    expect([found.status, found.headers]).toEqual([401, { 'www-authenticate': `Bearer ${metadata}, scope="a b"` }])
  })

  it('with a bad one: that, and the error', async () => {
    const { headers } = await who(acceptor(), 'abc')
    const description = 'error_description="The token is not valid: it is not a valid JWT"'
    expect(headers).toEqual({ 'www-authenticate': `Bearer error="invalid_token", ${description}, ${metadata}` })
  })

  it('with too few scopes: 403, and what was granted together with what is missing', async () => {
    const found = await who(acceptor({ scopes: ['tickets', 'admin'] }), issuer.token(resource, { scope: 'tickets read"x' }))
    expect(found.status).toBe(403)
    expect(found.headers?.['www-authenticate']).toMatch(/^Bearer error="insufficient_scope".*scope="tickets admin"$/)
  })

  it('the metadata: at the well-known path before that of the resource, and at the bare one', () => {
    const at = acceptor({ scopes: ['tickets'] })
    const text = at.document('/.well-known/oauth-protected-resource/mcp') ?? ''
    expect(JSON.parse(text)).toEqual({
      resource,
      authorization_servers: [issuer.url],
      scopes_supported: ['tickets'],
      bearer_methods_supported: ['header'],
      resource_name: 'Tickets',
    })
    expect(at.document('/.well-known/oauth-protected-resource')).toBe(text)
    expect(at.document('/.well-known/oauth-protected-resource/other')).toBeUndefined()
    expect(at.document('/mcp')).toBeUndefined()
  })
})

describe('oauth', () => {
  it.each<[string, Partial<OAuthResourceOptions>, RegExp]>([
    ['an issuer that is no URL', { issuer: 'login' }, /issuer is "login"; give an https URL/],
    ['an issuer without encryption', { issuer: 'http://login.example.com' }, /give an https URL/],
    ['a resource with a fragment', { resource: 'https://a.test/mcp#x' }, /plain URL/],
    ['a resource with a query', { resource: 'https://a.test/mcp?x' }, /plain URL/],
    ['keys without encryption', { jwksUri: 'http://a.test/jwks' }, /jwksUri/],
    ['unsigned tokens', { algorithms: ['RS256', 'none'] }, /algorithms contains none/],
    ['shared secrets', { algorithms: ['HS256'] }, /algorithms contains HS256/],
    ['no algorithm', { algorithms: [] }, /algorithms contains nothing/],
    ['a scope with a blank', { scopes: ['a b'] }, /"a b" is not a scope/],
    ['a scope with a quote', { scopesSupported: ['a"'] }, /is not a scope/],
    ['two ways to verify', { verify: () => undefined, introspection: { clientId: 'a', clientSecret: 'b' } }, /give one/],
    ['introspection without a secret', { introspection: { clientId: 'a', clientSecret: '' } }, /clientSecret/],
  ])('refuses %s at once', (_, options, message) => {
    expect(() => oauth({ issuer: 'https://login.example.com', ...options })).toThrow(message)
  })
})
