/** Authorization servers that are wrong, broken or mean harm: each is met with words, none gets what is not for it. */
import { access } from 'node:fs/promises'
import { describe, expect, it } from 'vitest'
import { type AuthorizationError, ConnectionError, connect, type OAuthOptions, oauth } from 'vivarium/client'
import { browser, secret, startDecoy, startWorld, type Ways, type World } from './world.ts'

/** Connects, which must fail for a reason that authorization gives. */
async function refusal(world: World, options: OAuthOptions = {}): Promise<AuthorizationError> {
  const error: unknown = await connect(world.url, { auth: oauth({ browser, ...options }) }).then(
    () => expect.unreachable('it was let in'),
    (thrown: unknown) => thrown,
  )
  expect(error).toBeInstanceOf(ConnectionError)
  const { kind, message, cause } = error as ConnectionError
  expect(kind).toBe('unauthorized')
  expect(message).not.toContain(secret)
  expect(message).not.toMatch(/[\u0000-\u001f\u007f-\u009f]/)
  expect(cause).toMatchObject({ name: 'AuthorizationError', message })
  expect(JSON.stringify(cause)).not.toContain(secret)
  return cause as AuthorizationError
}

const set = (name: string, value: unknown): Pick<Ways, 'metadata'> => ({ metadata: all => ({ ...all, [name]: value }) })
const without = (name: string): Pick<Ways, 'metadata'> => ({
  metadata: all => Object.fromEntries(Object.entries(all).filter(([key]) => key !== name)),
})

/** Parameters of the way back; undefined ones go. */
const replace = (parameters: Readonly<Record<string, string | undefined>>) => (back: URLSearchParams) => {
  for (const [name, value] of Object.entries(parameters)) {
    if (value === undefined) back.delete(name)
    else back.set(name, value)
  }
}

describe('before a user is sent anywhere, the client stops at', () => {
  it.each<[string, Ways, string, RegExp]>([
    ['metadata that does not speak of PKCE', without('code_challenge_methods_supported'), 'pkce', /S256/],
    ['metadata with plain PKCE only', set('code_challenge_methods_supported', ['plain']), 'pkce', /S256/],
    ['metadata of another issuer', set('issuer', 'https://honest.example'), 'server-metadata', /issuer/],
    [
      'an issuer that differs by a trailing slash',
      { metadata: (all, { issuer }) => ({ ...all, issuer: `${issuer}/` }) },
      'issuer-mismatch',
      /both must be identical/,
    ],
    ['metadata without an issuer', without('issuer'), 'server-metadata', /issuer/],
    [
      'a resource of another origin',
      { resource: all => ({ ...all, resource: 'https://evil.example/mcp' }) },
      'resource-mismatch',
      /evil\.example/,
    ],
    [
      'a resource whose path only begins alike',
      { resource: (all, { origin }) => ({ ...all, resource: `${origin}/m` }) },
      'resource-mismatch',
      /address/,
    ],
    [
      'a resource below the server',
      { resource: (all, { url }) => ({ ...all, resource: `${url}/admin` }) },
      'resource-mismatch',
      /address/,
    ],
    [
      'resource metadata without a resource',
      { resource: ({ authorization_servers }) => ({ authorization_servers }) },
      'resource-mismatch',
      /no resource/,
    ],
    [
      'resource metadata without an authorization server',
      { resource: ({ resource }) => ({ resource, authorization_servers: [] }) },
      'resource-metadata',
      /names no authorization server/,
    ],
    [
      'an authorization server by plain http elsewhere',
      { resource: all => ({ ...all, authorization_servers: ['http://as.example'] }) },
      'address',
      /https/,
    ],
    [
      'an authorization server that is a script',
      { resource: all => ({ ...all, authorization_servers: ['javascript:alert(1)'] }) },
      'address',
      /https/,
    ],
    [
      'resource metadata that is a web page',
      { routes: { '/.well-known/oauth-protected-resource/mcp': () => ({ body: '<html>' }) } },
      'resource-metadata',
      /not JSON/,
    ],
    [
      'server metadata that is a web page',
      { routes: { '/.well-known/oauth-authorization-server': () => ({ body: '<html>' }) } },
      'server-metadata',
      /content-type|JSON/,
    ],
    [
      'server metadata that is nowhere',
      { routes: { '/.well-known/oauth-authorization-server': () => ({ status: 404 }) } },
      'server-metadata',
      /no metadata at the well-known addresses/,
    ],
    [
      'server metadata that fails',
      { routes: { '/.well-known/oauth-authorization-server': () => ({ status: 500 }) } },
      'server-metadata',
      /HTTP 500/,
    ],
    ['giant server metadata', { metadata: all => ({ ...all, padding: 'x'.repeat(70_000) }) }, 'address', /65536 bytes/],
    ['giant resource metadata', { resource: all => ({ ...all, padding: 'x'.repeat(70_000) }) }, 'address', /65536 bytes/],
    ['a token endpoint in a file', set('token_endpoint', 'file:///etc/passwd'), 'address', /token endpoint/],
    ['a token endpoint with a password', set('token_endpoint', 'https://user:pass@as.example/token'), 'address', /password/],
    [
      'a registration endpoint by plain http elsewhere',
      set('registration_endpoint', 'http://as.example/register'),
      'address',
      /registration endpoint/,
    ],
    ['no way to register', without('registration_endpoint'), 'registration', /clientId/],
    [
      'a registration that is refused, in odd characters',
      {
        routes: {
          '/register': () => ({
            status: 400,
            body: { error: 'invalid_redirect_uri', error_description: 'no\u001b[2J\u0007 way\r\nX: y' },
          }),
        },
      },
      'registration',
      /invalid_redirect_uri.*no.* way/,
    ],
    [
      'a registration without a client id',
      { routes: { '/register': () => ({ status: 201, body: {} }) } },
      'registration',
      /client_id/,
    ],
    [
      'a registration that is a web page',
      { routes: { '/register': () => ({ status: 200, body: '<html>' }) } },
      'registration',
      /JSON|content-type/,
    ],
  ])('%s', async (_what, ways, rule, words) => {
    const world = await startWorld(ways)
    const { rule: stopped, message } = await refusal(world)
    expect(message).toMatch(words)
    expect(stopped).toBe(rule)
    expect([world.at('/authorize'), world.at('/token')]).toEqual([[], []])
  })

  it.each([
    'javascript:alert(1)',
    'JaVaScRiPt:alert(1)',
    'file:///etc/passwd',
    ' data:text/html,x',
    '$(touch MARKER)',
    '-oProxyCommand=touch MARKER',
    '`touch MARKER`',
    'http://as.example/authorize',
    'ftp://as.example/',
    'https://',
    '',
  ])('an authorization endpoint of %j, which no browser is given', async endpoint => {
    const shown: URL[] = []
    const watching = { ...browser, authorize: async (url: URL) => `http://127.0.0.1/${shown.push(url)}` }
    const world = await startWorld(set('authorization_endpoint', endpoint))
    const { rule } = await refusal(world, { browser: watching })
    expect([rule, shown, world.at('/token')]).toEqual(['address', [], []])
    await expect(access('MARKER')).rejects.toThrow('ENOENT')
  })
})

describe('the way back is refused, and no code is sent anywhere, with', () => {
  it.each<[string, Ways, RegExp]>([
    ['no issuer though one is promised', { back: back => back.delete('iss') }, /iss/],
    ['another issuer', { back: back => back.set('iss', 'https://evil.example') }, /iss/],
    [
      'another issuer though none is promised',
      { ...without('authorization_response_iss_parameter_supported'), back: back => back.set('iss', 'https://evil.example') },
      /iss/,
    ],
    ['an issuer that is only equal after normalizing', { back: back => back.set('iss', `${back.get('iss')}/`) }, /iss/],
    ['the issuer twice', { back: back => back.append('iss', 'https://evil.example') }, /iss/],
    ['another state', { back: back => back.set('state', 'forged') }, /state/],
    ['no state', { back: back => back.delete('state') }, /state/],
    ['the state twice', { back: back => back.append('state', 'forged') }, /state/],
    ['neither code nor error', { back: back => back.delete('code') }, /code/],
    ['a token instead of a code', { back: replace({ code: undefined, token: 'x' }) }, /implicit/],
  ])('%s', async (_what, ways, words) => {
    const world = await startWorld(ways)
    const { message } = await refusal(world)
    expect(message).toMatch(words)
    expect(world.at('/token')).toEqual([])
  })

  it('an error, whose words are shown without control characters', async () => {
    const world = await startWorld({
      back: replace({ code: undefined, error: 'access_denied', error_description: 'not\u0007you\n' }),
    })
    expect(await refusal(world)).toMatchObject({
      rule: 'authorization-response',
      code: 'access_denied',
      message: expect.stringContaining('not'),
    })
    expect(world.at('/token')).toEqual([])
  })

  it('an error under another issuer, whose words are not shown', async () => {
    const world = await startWorld({
      back: replace({ iss: 'https://evil.example', error: 'server_error', error_description: 'call 555' }),
    })
    expect((await refusal(world)).message).not.toMatch(/555|server_error/)
  })

  it('the code of an honest server that a dishonest one had shown (mix-up)', async () => {
    const honest = await startWorld()
    const dishonest = await startWorld({ metadata: all => ({ ...all, authorization_endpoint: `${honest.issuer}/authorize` }) })
    await refusal(dishonest)
    expect(honest.at('/authorize')).toHaveLength(1)
    expect([...dishonest.at('/token'), ...honest.at('/token')]).toEqual([])
  })

  it('the answer to an earlier sign-in (replay)', async () => {
    const old: string[] = []
    const replaying = {
      ...browser,
      async authorize(url: URL, options: { signal: AbortSignal }) {
        old.push(String(await browser.authorize(url, options)))
        return old[0] as string
      },
    }
    const world = await startWorld({ token: () => ({ error: 'invalid_grant' }) })
    const auth = oauth({ browser: replaying })
    await expect(connect(world.url, { auth })).rejects.toThrow('invalid_grant')
    await expect(connect(world.url, { auth })).rejects.toThrow('state')
    expect(world.at('/token')).toHaveLength(1)
  })
})

describe('a token is not taken', () => {
  it.each<[string, NonNullable<Ways['token']>, string, RegExp]>([
    ['of another type', all => ({ ...all, token_type: 'mac' }), 'token-type', /token_type/],
    ['bound to a key though that was not asked for', all => ({ ...all, token_type: 'DPoP' }), 'token-type', /dpop/],
    ['without a type', ({ access_token }) => ({ access_token }), 'token-request', /token_type/],
    ['that is empty', all => ({ ...all, access_token: '' }), 'token-request', /access_token/],
    ['that would break out of its header', all => ({ ...all, access_token: `${secret}\r\nX-Evil: 1` }), 'token-type', /header/],
    ['with a lifetime that is none', all => ({ ...all, expires_in: 'soon' }), 'token-request', /expires_in/],
    ['from a web page', () => ({ body: `<html>${secret}` }), 'token-request', /JSON|content-type/],
    ['from an answer without end', () => ({ body: { access_token: 'x'.repeat(100_000) } }), 'token-request', /65536/],
    ['from a failing server', () => ({ status: 500, body: secret }), 'token-request', /HTTP 500/],
    [
      'where the server gives an error in odd characters',
      () => ({ error: 'invalid_grant', error_description: '\u001b]0;pwned\u0007' }),
      'token-request',
      /invalid_grant/,
    ],
  ])('%s', async (_what, token, rule, words) => {
    const world = await startWorld({ token })
    const { rule: stopped, message } = await refusal(world)
    expect(message).toMatch(words)
    expect(stopped).toBe(rule)
    expect(world.heard.filter(({ headers }) => headers.authorization !== undefined)).toEqual([])
  })

  it.each([301, 302, 307, 308])('from where a redirect (%i) of the token endpoint leads', async status => {
    const decoy = await startDecoy()
    const world = await startWorld({ token: () => ({ status, headers: { location: `${decoy.origin}/token` } }) })
    expect((await refusal(world)).message).toContain(`HTTP ${status}`)
    expect([world.at('/token').length, decoy.hits()]).toEqual([1, 0])
  })

  it('from a server that takes longer than the option timeout allows', async () => {
    const never = new Promise<never>(() => {})
    const world = await startWorld({ routes: { '/token': () => never } })
    expect(await refusal(world, { timeout: '300ms' })).toMatchObject({ message: expect.stringContaining('300 ms') })
  })

  it('that is not bound to a key though that was demanded', async () => {
    const world = await startWorld()
    expect(await refusal(world, { dpop: true })).toMatchObject({ rule: 'token-type', message: expect.stringContaining('DPoP') })
  })
})

describe('a server that is never content', () => {
  it('with any token (401) has the user sign in once', async () => {
    const world = await startWorld({
      refuse: () => ({ status: 401, headers: { 'www-authenticate': 'Bearer error="invalid_token"' } }),
    })
    expect(await refusal(world)).toMatchObject({ rule: 'refused-again', message: expect.stringContaining('just issued') })
    expect(world.at('/authorize')).toHaveLength(1)
  })

  it('with a scope that it was given (403) has the user sign in once', async () => {
    const headers = { 'www-authenticate': 'Bearer error="insufficient_scope", scope="admin"' }
    const world = await startWorld({ challenge: 'scope="admin"', refuse: () => ({ status: 403, headers }) })
    expect(await refusal(world)).toMatchObject({ rule: 'scope', message: expect.stringContaining('admin') })
    expect(world.at('/authorize')).toHaveLength(1)
  })

  it('and thinks of a new scope each time (403) has the user sign in three times', async () => {
    let asked = 0
    const refuse = () => ({
      status: 403,
      headers: { 'www-authenticate': `Bearer error="insufficient_scope", scope="s${++asked}"` },
    })
    const world = await startWorld({ refuse })
    expect(await refusal(world)).toMatchObject({ rule: 'scope', message: expect.stringContaining('4 times') })
    expect(world.at('/authorize')).toHaveLength(3)
  })

  it('and names no scope (403) is passed on as it is', async () => {
    const world = await startWorld({
      refuse: () => ({ status: 403, headers: { 'www-authenticate': 'Bearer error="insufficient_scope"' } }),
    })
    expect(await refusal(world)).toMatchObject({ rule: 'scope' })
    expect(world.at('/authorize')).toHaveLength(1)
  })
})
