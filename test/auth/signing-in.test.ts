/** The client signs in when it is asked to, as seldom as possible, and with no more than it must. */
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import {
  bearer,
  type Client,
  type ConnectOptions,
  connect,
  fileStorage,
  memoryStorage,
  type OAuthOptions,
  oauth,
  type RevisionId,
} from 'vivarium/client'
import { fakeClock } from 'vivarium/testing'
import { browser, redirectUri, type Said, secret, startWorld, type Ways, type World } from './world.ts'

async function open(world: World, options: OAuthOptions = {}, more: ConnectOptions = {}): Promise<Client> {
  const mcp = await connect(world.url, { auth: oauth({ browser, ...options }), ...more })
  onTestFinished(() => mcp.close())
  return mcp
}

const scopesAsked = (world: World) => world.at('/authorize').map(({ query }) => query.get('scope'))
const said = async (mcp: Client, tool = 'echo') => (await mcp.callTool(tool, {})).text

describe('a client that signs in', () => {
  it.each<RevisionId>(['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25', '2026-07-28'])(
    'is let in at revision %s: what was refused with 401 is sent again, and says nothing about the era',
    async revision => {
      const world = await startWorld()
      const mcp = await open(world, {}, { revisions: [revision] })
      expect([mcp.revision, await said(mcp)]).toEqual([revision, 'hello'])
      expect([world.at('/authorize').length, world.at('/token').length]).toEqual([1, 1])
    },
  )

  it('finds out what the server speaks as if nothing had happened', async () => {
    expect((await open(await startWorld())).revision).toBe('2026-07-28')
  })

  it('asks for the resource in both requests, with PKCE and its way back', async () => {
    const world = await startWorld()
    await open(world)
    const [asked, redeemed] = [world.at('/authorize')[0]?.query, world.at('/token')[0]?.form]
    expect(Object.fromEntries(asked ?? [])).toMatchObject({
      response_type: 'code',
      resource: world.url,
      redirect_uri: redirectUri,
      code_challenge_method: 'S256',
    })
    expect(Object.fromEntries(redeemed ?? [])).toMatchObject({
      grant_type: 'authorization_code',
      resource: world.url,
      redirect_uri: redirectUri,
      client_id: asked?.get('client_id'),
      code_verifier: expect.any(String),
    })
  })

  it('registers as what it is', async () => {
    const world = await startWorld()
    await open(world, {}, { info: { name: 'my app', version: '1' } })
    expect(JSON.parse(world.at('/register')[0]?.body ?? '')).toMatchObject({
      client_name: 'my app',
      application_type: 'native',
      redirect_uris: [redirectUri],
      grant_types: ['authorization_code', 'refresh_token'],
      token_endpoint_auth_method: 'none',
    })
  })

  it('has its deadline stand still while the user signs in', async () => {
    const clock = fakeClock()
    const world = await startWorld()
    const slow = {
      ...browser,
      async authorize(url: URL, options: { signal: AbortSignal }) {
        clock.advance(5 * 60_000)
        return browser.authorize(url, options)
      },
    }
    const mcp = await open(world, { browser: slow }, { clock, timeout: '1s' })
    expect(await said(mcp)).toBe('hello')
  })

  it('is not asked twice for what it got once, by whatever connection', async () => {
    const world = await startWorld()
    const auth = oauth({ browser })
    for (let n = 0; n < 3; n++) {
      await using mcp = await connect(world.url, { auth })
      expect(await said(mcp)).toBe('hello')
    }
    expect([world.at('/register').length, world.at('/authorize').length]).toEqual([1, 1])
  })

  it('does it once however many calls are refused together', async () => {
    const world = await startWorld()
    const mcp = await open(world)
    world.tokens.clear()
    expect(await Promise.all(Array.from({ length: 20 }, () => said(mcp)))).toEqual(Array(20).fill('hello'))
    expect(world.at('/authorize')).toHaveLength(2)
  })

  it('gives up when nobody wants it any more', async () => {
    const world = await startWorld()
    const shown = Promise.withResolvers<AbortSignal>()
    const patient = {
      ...browser,
      authorize(_url: URL, { signal }: { signal: AbortSignal }) {
        shown.resolve(signal)
        return new Promise<never>(() => {})
      },
    }
    const stop = new AbortController()
    const opening = connect(world.url, { auth: oauth({ browser: patient }), signal: stop.signal })
    const signal = await shown.promise
    stop.abort(new Error('enough'))
    await expect(opening).rejects.toThrow('enough')
    expect(signal.aborted).toBe(true)
  })
})

describe('discovery', () => {
  it('asks at the path, then at the root, where the challenge names no metadata', async () => {
    const tried: string[] = []
    const routes = {
      '/.well-known/oauth-protected-resource/mcp': ({ path }: { path: string }): Said => ({ status: tried.push(path) && 404 }),
      '/.well-known/oauth-protected-resource': ({ path }: { path: string }): Said => {
        tried.push(path)
        return { body: { resource: world.origin, authorization_servers: [world.issuer] } }
      },
    }
    const world = await startWorld({ unnamed: true, routes })
    await open(world)
    expect(tried).toEqual(['/.well-known/oauth-protected-resource/mcp', '/.well-known/oauth-protected-resource'])
    expect(world.at('/authorize')[0]?.query.get('resource')).toBe(world.origin)
  })

  it('tries RFC 8414 with the path put in, then OpenID with it put in, then behind', async () => {
    const routes = {
      '/t/.well-known/openid-configuration': (): Said => ({ body: { ...whole(world), issuer: `${world.issuer}/t` } }),
    }
    const world = await startWorld({
      resource: (all, { issuer }) => ({ ...all, authorization_servers: [`${issuer}/t`] }),
      routes,
      back: back => back.delete('iss'),
    })
    await open(world)
    expect(world.seen.slice(0, 3).map(({ path }) => path)).toEqual([
      '/.well-known/oauth-authorization-server/t',
      '/.well-known/openid-configuration/t',
      '/t/.well-known/openid-configuration',
    ])
  })

  it('takes the server itself for the authorization server where 2025-03-26 is spoken and there is no metadata', async () => {
    const absent = () => ({ status: 404 })
    const routes: Ways['routes'] = {
      '/.well-known/oauth-protected-resource/mcp': absent,
      '/register': () => ({ status: 201, body: { client_id: 'old', client_secret: 'kept' } }),
      '/token': () => {
        world.tokens.set('old-token', { value: 'old-token', scope: '' })
        return { body: { access_token: 'old-token', token_type: 'bearer' } }
      },
      '/authorize': ({ query }) => ({ status: 302, headers: { location: `${redirectUri}?code=1&state=${query.get('state')}` } }),
    }
    const world = await startWorld({ unnamed: true, routes })
    expect(await said(await open(world))).toBe('hello')
    const strict = connect(world.url, { auth: oauth({ browser }), revisions: ['2025-11-25'] })
    await expect(strict).rejects.toMatchObject({ cause: { rule: 'resource-metadata' } })
  })
})

function whole({ issuer }: World) {
  return {
    authorization_endpoint: `${issuer}/authorize`,
    token_endpoint: `${issuer}/token`,
    registration_endpoint: `${issuer}/register`,
    code_challenge_methods_supported: ['S256'],
    token_endpoint_auth_methods_supported: ['none'],
  }
}

describe('scopes', () => {
  it('are those of the challenge before those that the metadata suggests, before none', async () => {
    const resource: Ways['resource'] = all => ({ ...all, scopes_supported: ['a', 'b'] })
    const worlds = [await startWorld({ challenge: 'scope="c"', resource }), await startWorld({ resource }), await startWorld()]
    for (const world of worlds) await open(world)
    expect(worlds.flatMap(scopesAsked)).toEqual(['c', 'a b', null])
  })

  it('include offline_access only where the authorization server lists it', async () => {
    const metadata: Ways['metadata'] = all => ({ ...all, scopes_supported: ['c', 'offline_access'] })
    const worlds = [await startWorld({ challenge: 'scope="c"', metadata }), await startWorld({ metadata })]
    for (const world of worlds) await open(world)
    expect(worlds.flatMap(scopesAsked)).toEqual(['c offline_access', null])
  })

  it('grow where a call needs more, and nothing of before is given up', async () => {
    const refuse: Ways['refuse'] = ({ body }, { scope }) =>
      body.includes('"write"') && !scope.includes('files:write')
        ? { status: 403, headers: { 'www-authenticate': 'Bearer error="insufficient_scope", scope="files:write"' } }
        : undefined
    const world = await startWorld({ challenge: 'scope="files:read"', refuse })
    const mcp = await open(world)
    expect(await said(mcp, 'write')).toBe('done')
    expect(await said(mcp, 'write')).toBe('done')
    expect(scopesAsked(world)).toEqual(['files:read', 'files:read files:write'])
  })
})

describe('a token that runs out', () => {
  const short = (more = {}): Ways => ({
    token: all => ({ ...all, expires_in: 100, refresh_token: `${secret}-r${++refreshes}`, ...more }),
  })
  let refreshes = 0
  const grants = (world: World) => world.at('/token').map(({ form }) => form.get('grant_type'))

  it('is renewed before it does, once for all calls, each time by the newest refresh token', async () => {
    const world = await startWorld(short())
    const clock = fakeClock()
    const mcp = await open(world, {}, { clock })
    for (let n = 0; n < 2; n++) {
      clock.advance(80_000)
      await Promise.all(Array.from({ length: 10 }, () => said(mcp)))
    }
    expect(grants(world)).toEqual(['authorization_code', 'refresh_token', 'refresh_token'])
    const used = world.at('/token').map(({ form }) => form.get('refresh_token'))
    expect(used[1]).not.toBe(used[2])
    expect(world.at('/token')[1]?.form.get('resource')).toBe(world.url)
  })

  it('is renewed after it did, and the user not asked', async () => {
    const world = await startWorld(short())
    const mcp = await open(world)
    world.tokens.clear()
    expect(await said(mcp)).toBe('hello')
    expect(grants(world)).toEqual(['authorization_code', 'refresh_token'])
  })

  it('has the user sign in again where it cannot be renewed', async () => {
    const world = await startWorld({
      token: (all, { form }) =>
        form.get('grant_type') === 'refresh_token'
          ? { error: 'invalid_grant' }
          : { ...all, refresh_token: secret, expires_in: 100 },
    })
    const clock = fakeClock()
    const mcp = await open(world, {}, { clock })
    clock.advance(200_000)
    world.tokens.clear()
    expect(await said(mcp)).toBe('hello')
    expect(grants(world)).toEqual(['authorization_code', 'refresh_token', 'authorization_code'])
  })
})

describe('an authorization server that is down for a while', () => {
  it('costs nothing while the token still does, and the user is not asked when it is back', async () => {
    let down = false
    const grants: (string | null)[] = []
    const world = await startWorld({
      token: (all, { form }) => {
        grants.push(form.get('grant_type'))
        return down ? { status: 503, body: 'busy' } : { ...all, refresh_token: secret, expires_in: 100 }
      },
    })
    const clock = fakeClock()
    const mcp = await open(world, {}, { clock })
    down = true
    clock.advance(80_000)
    expect(await said(mcp)).toBe('hello')
    world.tokens.clear()
    await expect(said(mcp)).rejects.toMatchObject({ kind: 'unauthorized', cause: { rule: 'token-request' } })
    down = false
    expect(await said(mcp)).toBe('hello')
    expect(new Set(grants.slice(1))).toEqual(new Set(['refresh_token']))
  })
})

describe('what was got at one authorization server', () => {
  it('is never shown at another: the client registers anew', async () => {
    const second = await startWorld()
    let moved = false
    const first = await startWorld({ resource: all => (moved ? { ...all, authorization_servers: [second.issuer] } : all) })
    const mcp = await open(first)
    moved = true
    first.tokens.clear()
    const admit = second.tokens.set.bind(second.tokens)
    second.tokens.set = (key, token) => {
      first.tokens.set(key, token)
      return admit(key, token)
    }
    expect(await said(mcp)).toBe('hello')
    const old = first.at('/authorize')[0]?.query.get('client_id') ?? ''
    expect(second.at('/register')).toHaveLength(1)
    expect(second.seen.some(({ query, body }) => query.get('client_id') === old || body.includes(old))).toBe(false)
    expect([first.at('/token').length, second.at('/token').length]).toEqual([1, 1])
  })

  it('is an error where the client was registered by hand', async () => {
    const second = await startWorld()
    let moved = false
    const first = await startWorld({ resource: all => (moved ? { ...all, authorization_servers: [second.issuer] } : all) })
    const mcp = await open(first, { clientId: 'by-hand', clientSecret: secret })
    moved = true
    first.tokens.clear()
    await expect(said(mcp)).rejects.toMatchObject({ kind: 'unauthorized', cause: { rule: 'issuer-mismatch' } })
    expect(second.seen).toEqual([])
  })
})

describe('tokens in a file', () => {
  it('serve the next process, encrypted, and readable by their owner alone', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'tokens-'))
    onTestFinished(() => rm(folder, { recursive: true }))
    const path = join(folder, 'kept', 'tokens')
    const world = await startWorld()
    for (let n = 0; n < 2; n++) {
      const storage = fileStorage(path, { secret: 'a secret of some length' })
      await using mcp = await connect(world.url, { auth: oauth({ browser, storage }) })
      expect(await said(mcp)).toBe('hello')
    }
    expect(world.at('/authorize')).toHaveLength(1)
    expect((await stat(path)).mode & 0o777).toBe(0o600)
    expect((await readFile(path)).includes(secret)).toBe(false)
  })

  it('of which nothing can be read cost a sign-in, not the connection', async () => {
    const broken = {
      ...memoryStorage(),
      get: () => Promise.reject(new Error('disk')),
      set: () => Promise.reject(new Error('disk')),
    }
    const events: string[] = []
    const mcp = await open(await startWorld(), { storage: broken }, { onTrace: event => events.push(event) })
    expect(await said(mcp)).toBe('hello')
    expect(events).toContain('token-storage-failed')
  })
})

describe('a token that is already there', () => {
  it('is sent, and asked for again when it is refused', async () => {
    const world = await startWorld()
    world.tokens.set('second', { value: 'second', scope: '' })
    const given = ['first', 'second']
    await using mcp = await connect(world.url, { auth: bearer(() => given.shift() ?? 'second') })
    expect(await said(mcp)).toBe('hello')
    expect(world.seen).toEqual([])
  })

  it('that is refused for good is an error', async () => {
    const world = await startWorld()
    await expect(connect(world.url, { auth: bearer(secret) })).rejects.toMatchObject({
      kind: 'unauthorized',
      cause: { rule: 'refused-again' },
    })
    expect(world.heard).toHaveLength(1)
  })
})

describe('the option auth', () => {
  it('is named where it is missed', async () => {
    const world = await startWorld()
    await expect(connect(world.url)).rejects.toMatchObject({
      kind: 'status',
      status: 401,
      message: expect.stringContaining('option auth'),
    })
  })

  it('is refused where it cannot be kept safe or makes no sense', async () => {
    await expect(connect('http://mcp.example/mcp', { auth: oauth() })).rejects.toMatchObject({ rule: 'address' })
    await expect(connect('http://mcp.example/mcp', { auth: bearer('t') })).rejects.toMatchObject({ rule: 'address' })
    await expect(connect({ command: 'true' }, { auth: oauth() })).rejects.toThrow('env')
    await expect(connect('https://mcp.example/', { auth: oauth(), headers: { Authorization: 'x' } })).rejects.toThrow(
      'Set only one of them',
    )
    expect(() => oauth({ clientMetadataUrl: 'http://app.example/client.json' })).toThrow('https')
    expect(() => fileStorage('x', { secret: 'short' })).toThrow('16')
  })
})
