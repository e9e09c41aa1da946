/** A secret goes to the party it was meant for: no metadata, challenge, redirect or reconnect moves it elsewhere. */
import { generateKeyPairSync } from 'node:crypto'
import { describe, expect, it, onTestFinished } from 'vitest'
import {
  type Authorization,
  clientCredentials,
  connect,
  enterprise,
  memoryStorage,
  oauth,
  type TokenStorage,
  workloadIdentity,
} from 'vivarium/client'
import { createGateway } from 'vivarium/gateway'
import { browser, listen, secret, startWorld, type Ways, type World } from '../auth/world.ts'
import { startDecoy, textOf } from './decoys.ts'

const basic: Pick<Ways, 'metadata'> = {
  metadata: all => ({ ...all, token_endpoint_auth_methods_supported: ['client_secret_basic', 'private_key_jwt'] }),
}

async function call(url: string, auth: Authorization): Promise<string> {
  await using mcp = await connect(url, { auth })
  return (await mcp.callTool('echo', {})).text
}

/** What the authorization server of a world was shown beside its metadata being read. */
const shown = (world: World): string[] => world.seen.filter(({ path }) => !path.startsWith('/.well-known')).map(textOf)

const refused = (rule: string) => ({ kind: 'unauthorized', cause: { name: 'AuthorizationError', rule } })

/** A server that names its own authorization server until it is told to name that of somebody else. */
async function startMoving(more: Ways = {}) {
  const thief = await startWorld(basic)
  let moved = false
  const world = await startWorld({
    ...basic,
    ...more,
    resource: all => (moved ? { ...all, authorization_servers: [thief.issuer] } : all),
  })
  const move = (): void => {
    moved = true
    world.tokens.clear()
  }
  return { world, thief, move }
}

const pem = () => generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ type: 'pkcs8', format: 'pem' }) as string

/** Every way to sign in that holds something worth stealing. */
const ways: Readonly<Record<string, (idp: string) => Authorization>> = {
  'a client secret': () => clientCredentials({ clientId: 'app', clientSecret: secret }),
  'the signature of a private key': () => clientCredentials({ clientId: 'app', privateKey: pem() }),
  'the identity of a workload': () => workloadIdentity({ assertion: () => secret }),
  'an enterprise grant and its client secret': idp =>
    enterprise({
      clientId: 'app',
      clientSecret: secret,
      identityProvider: { tokenEndpoint: `${idp}/token`, clientId: 'sso', subjectToken: () => 'id-token' },
    }),
  'a client secret beside a sign-in': () => oauth({ browser, clientId: 'app', clientSecret: secret }),
}

async function startIdentityProvider(): Promise<string> {
  return listen((request, response) => {
    request.resume()
    const said = {
      access_token: 'jag',
      token_type: 'N_A',
      issued_token_type: 'urn:ietf:params:oauth:token-type:id-jag',
    }
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(said))
  })
}

describe.each(Object.entries(ways))('%s', (_what, make) => {
  it('is not shown to the authorization server that the metadata names at the next connection', async () => {
    const { world, thief, move } = await startMoving()
    const auth = make(await startIdentityProvider())
    expect(await call(world.url, auth)).toBe('hello')
    move()
    const again = call(world.url, auth)
    await expect(again).rejects.toMatchObject(refused('issuer-mismatch'))
    await expect(again).rejects.toThrow(world.issuer)
    await expect(again).rejects.toThrow('issuer')
    expect(shown(thief)).toEqual([])
  })

  it('is not shown to the authorization server of another MCP server that is connected to with it', async () => {
    const [world, other] = [await startWorld(basic), await startWorld(basic)]
    const auth = make(await startIdentityProvider())
    expect(await call(world.url, auth)).toBe('hello')
    await expect(call(other.url, auth)).rejects.toMatchObject(refused('issuer-mismatch'))
    expect(shown(other)).toEqual([])
  })

  it('is shown to one authorization server only, where two connections are opened at once', async () => {
    const worlds = [await startWorld(basic), await startWorld(basic)]
    const auth = make(await startIdentityProvider())
    const outcomes = await Promise.allSettled(worlds.map(({ url }) => call(url, auth)))
    expect(outcomes.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
    expect(worlds.filter(world => world.at('/token').length > 0)).toHaveLength(1)
  })

  it('stays with the first authorization server although that one refused it', async () => {
    const { world, thief, move } = await startMoving({ token: () => ({ error: 'invalid_client' }) })
    const auth = make(await startIdentityProvider())
    await expect(call(world.url, auth)).rejects.toThrow('invalid_client')
    move()
    await expect(call(world.url, auth)).rejects.toMatchObject(refused('issuer-mismatch'))
    expect(thief.at('/token')).toEqual([])
  })
})

describe('a server that takes its metadata away, and so claims to be its own authorization server (2025-03-26)', () => {
  async function startBare() {
    const asked: string[] = []
    const world = await startWorld({
      unnamed: true,
      routes: {
        '/.well-known/oauth-protected-resource/mcp': () => ({ status: 404 }),
        '/token': seen => {
          asked.push(textOf(seen))
          return { body: { access_token: 'stolen', token_type: 'Bearer' } }
        },
      },
    })
    return { world, asked }
  }

  it('is not shown a secret for which the option issuer names another one', async () => {
    const { world, asked } = await startBare()
    const auth = clientCredentials({ clientId: 'app', clientSecret: secret, issuer: 'https://login.example' })
    const opening = call(world.url, auth)
    await expect(opening).rejects.toMatchObject(refused('issuer-mismatch'))
    await expect(opening).rejects.toThrow('https://login.example')
    expect(asked).toEqual([])
  })

  it('is not shown a secret that another one has had before', async () => {
    const honest = await startWorld(basic)
    const auth = clientCredentials({ clientId: 'app', clientSecret: secret })
    expect(await call(honest.url, auth)).toBe('hello')
    const { world, asked } = await startBare()
    await expect(call(world.url, auth)).rejects.toMatchObject(refused('issuer-mismatch'))
    expect(asked).toEqual([])
  })

  it('is shown one that the option issuer names it for', async () => {
    const { world, asked } = await startBare()
    const auth = clientCredentials({ clientId: 'app', clientSecret: secret, issuer: world.origin })
    await expect(call(world.url, auth)).rejects.toMatchObject(refused('refused-again'))
    expect(asked.join()).toContain(secret)
  })
})

describe('where the issuer stays and its metadata names a token endpoint at another origin from now on', () => {
  /** The metadata of one issuer whose token endpoint moves. */
  async function startElsewhere(more: Ways = {}) {
    const thief = await startDecoy()
    const place = { moved: false }
    const world = await startWorld({
      ...more,
      metadata: (all, itself) => {
        const told = { ...all, token_endpoint_auth_methods_supported: ['client_secret_basic'] }
        return place.moved ? { ...told, token_endpoint: `${thief.origin}/token` } : (more.metadata?.(told, itself) ?? told)
      },
    })
    const move = (): void => {
      place.moved = true
      world.tokens.clear()
    }
    return { world, thief, move }
  }

  it('a client secret is not sent there', async () => {
    const { world, thief, move } = await startElsewhere()
    const auth = clientCredentials({ clientId: 'app', clientSecret: secret, issuer: world.issuer })
    expect(await call(world.url, auth)).toBe('hello')
    move()
    const again = call(world.url, auth)
    await expect(again).rejects.toMatchObject(refused('issuer-mismatch'))
    await expect(again).rejects.toThrow('tokenEndpoint')
    expect(thief.came).toEqual([])
  })

  it('a client secret is not sent there even at first, where the option tokenEndpoint names the right one', async () => {
    const { world, thief, move } = await startElsewhere()
    move()
    const tokenEndpoint = `${world.issuer}/token`
    await expect(
      call(world.url, clientCredentials({ clientId: 'app', clientSecret: secret, tokenEndpoint })),
    ).rejects.toMatchObject(refused('issuer-mismatch'))
    expect(thief.came).toEqual([])
  })

  it('neither a refresh token nor the secret of a registration is sent there: the user signs in anew', async () => {
    const register = { status: 201, body: { client_id: 'registered', client_secret: secret, client_secret_expires_at: 0 } }
    const { world, thief, move } = await startElsewhere({
      token: said => ({ ...said, refresh_token: `${secret}-refresh` }),
      routes: { '/register': () => register },
    })
    const storage = memoryStorage()
    expect(await call(world.url, oauth({ browser, storage }))).toBe('hello')
    move()
    await expect(call(world.url, oauth({ browser, storage }))).rejects.toThrow()
    expect([world.at('/register').length, world.at('/authorize').length]).toEqual([2, 2])
    expect(thief.came.join()).not.toContain('refresh')
  })

  it('an issuer whose token endpoint has always been elsewhere is used as it is', async () => {
    const elsewhere = await startWorld()
    const world: World = await startWorld({
      metadata: all => ({
        ...all,
        token_endpoint: `${elsewhere.issuer}/token`,
        token_endpoint_auth_methods_supported: ['client_secret_basic'],
      }),
      verify: async token => elsewhere.tokens.get(token),
    })
    const auth = clientCredentials({ clientId: 'app', clientSecret: secret })
    expect([await call(world.url, auth), await call(world.url, auth)]).toEqual(['hello', 'hello'])
  })
})

describe('what is kept between runs', () => {
  const options = (storage: TokenStorage) => ({ browser, clientId: 'app', clientSecret: secret, storage })

  it('binds the secret of the next run too', async () => {
    const { world, thief, move } = await startMoving()
    const storage = memoryStorage()
    expect(await call(world.url, oauth(options(storage)))).toBe('hello')
    move()
    await expect(call(world.url, oauth(options(storage)))).rejects.toMatchObject(refused('issuer-mismatch'))
    expect(shown(thief)).toEqual([])
  })

  it('binds the secret of the next run also at another MCP server', async () => {
    const [world, other] = [await startWorld(basic), await startWorld(basic)]
    const storage = memoryStorage()
    const run = (): Authorization => oauth({ browser, clientId: 'app', clientSecret: secret, storage })
    expect(await call(world.url, run())).toBe('hello')
    await expect(call(other.url, run())).rejects.toMatchObject(refused('issuer-mismatch'))
    expect(shown(other)).toEqual([])
  })

  it('binds a secret although it cannot be read: nothing is sent before it can, or before issuer is given', async () => {
    const world = await startWorld(basic)
    const broken: TokenStorage = { ...memoryStorage(), get: () => Promise.reject(new Error('The disk is gone')) }
    const opening = call(world.url, oauth(options(broken)))
    await expect(opening).rejects.toMatchObject(refused('options'))
    await expect(opening).rejects.toThrow('issuer')
    expect(shown(world)).toEqual([])
    expect(await call(world.url, oauth({ ...options(broken), issuer: world.issuer }))).toBe('hello')
  })

  it('lets the option issuer say that the client has moved', async () => {
    const { world, thief, move } = await startMoving({
      verify: async token => thief.tokens.get(token) ?? world.tokens.get(token),
    })
    const storage = memoryStorage()
    expect(await call(world.url, oauth(options(storage)))).toBe('hello')
    move()
    expect(await call(world.url, oauth({ ...options(storage), issuer: thief.issuer }))).toBe('hello')
  })
})

describe('metadata', () => {
  it('of an authorization server is not taken from another origin to which its own redirects', async () => {
    const thief = await startDecoy((response, path) => {
      const said = path.startsWith('/.well-known')
        ? {
            issuer: world.issuer,
            token_endpoint: `${thief.origin}/token`,
            token_endpoint_auth_methods_supported: ['client_secret_basic'],
          }
        : { access_token: 'stolen', token_type: 'Bearer' }
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(said))
    })
    const redirect = { status: 302, headers: { location: `${thief.origin}/.well-known/oauth-authorization-server` } }
    const world: World = await startWorld({ routes: { '/.well-known/oauth-authorization-server': () => redirect } })
    const auth = clientCredentials({ clientId: 'app', clientSecret: secret, issuer: world.issuer })
    await expect(call(world.url, auth)).rejects.toMatchObject(refused('server-metadata'))
    expect(thief.came.join()).not.toContain(secret)
  })

  it('at another origin that a challenge names is read without credentials and without the headers of the user', async () => {
    const elsewhere = await startDecoy()
    const world = await startWorld({
      unnamed: true,
      challenge: `resource_metadata="${elsewhere.origin}/metadata"`,
    })
    const opening = connect(world.url, {
      auth: clientCredentials({ clientId: 'app', clientSecret: secret }),
      headers: { 'x-api-key': secret, cookie: `session=${secret}` },
    })
    await expect(opening).rejects.toMatchObject({ kind: 'unauthorized' })
    expect(elsewhere.came).toHaveLength(1)
    expect(elsewhere.came.join()).not.toContain(secret)
  })
})

describe('a gateway that signs in for itself', () => {
  const own = { clientId: 'gateway', clientSecret: secret }

  it('does not show its secret to the authorization server that the server behind it names at the next connection', async () => {
    const { world, thief, move } = await startMoving()
    const entry = (more: { readonly headers?: Readonly<Record<string, string>> } = {}) => ({
      servers: { notes: { target: world.url, auth: own, ...more } },
    })
    const gateway = await createGateway({ log: 'silent', ...entry() })
    onTestFinished(() => gateway.close())
    await gateway.ready()
    expect(gateway.upstreams()).toMatchObject([{ status: 'up' }])
    move()
    // Another header means another connection; to whom the secret belongs is the same.
    await gateway.reload(entry({ headers: { 'x-round': '2' } }))
    await gateway.ready()
    expect(shown(thief)).toEqual([])
    const fix = expect.stringContaining('set issuer')
    expect(gateway.upstreams()).toMatchObject([{ status: 'down', why: { code: 'CREDENTIALS_REFUSED', fix } }])
  })
})
