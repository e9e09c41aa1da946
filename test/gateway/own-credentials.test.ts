/** A gateway before servers that want to know who calls: it signs in for itself, or with what somebody's sign-in brought. */
import { generateKeyPairSync } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { clientCredentials, connect, memoryStorage, oauth, type TokenStorage } from '../../src/client/index.ts'
import { createGateway, type Gateway, type GatewayOptions, type GatewayServer } from '../../src/gateway/index.ts'
import { fakeClock } from '../../src/testing/index.ts'
import { testIssuer } from '../auth/issuer.ts'
import { startProvidedWorld } from '../auth/provided-world.ts'
import { cookieBrowser } from '../auth/provider.ts'
import { browser, redirectUri, secret, startWorld, type Ways, type World } from '../auth/world.ts'
import { clientOf, toolNames } from './world.ts'

const basic: Ways = {
  metadata: all => ({ ...all, token_endpoint_auth_methods_supported: ['client_secret_basic', 'private_key_jwt'] }),
}
const own = { clientId: 'gateway', clientSecret: `${secret}-of-the-gateway` }

async function before(server: GatewayServer, options: GatewayOptions = {}): Promise<Gateway> {
  const gateway = await createGateway({ servers: { notes: server }, log: 'silent', ...options })
  onTestFinished(() => gateway.close())
  await gateway.ready()
  return gateway
}

/** Everything that a gateway tells of itself. */
async function told(gateway: Gateway, traced: readonly unknown[]): Promise<string> {
  const whole = (_: string, value: unknown): unknown =>
    value instanceof Error ? { ...value, message: value.message, cause: value.cause } : value
  return JSON.stringify(
    [gateway.upstreams(), gateway.names(), await gateway.audit.read(), await gateway.approvals(), traced],
    whole,
  )
}

async function signedIn(world: World): Promise<TokenStorage> {
  const storage = memoryStorage()
  await (await connect(world.url, { auth: oauth({ storage, browser }) })).close()
  return storage
}

async function folder(files: Readonly<Record<string, string>>): Promise<(name: string) => string> {
  const path = await mkdtemp(join(tmpdir(), 'vivarium-gateway-auth-'))
  onTestFinished(() => rm(path, { recursive: true, force: true }))
  for (const [name, text] of Object.entries(files)) await writeFile(join(path, name), text)
  return name => join(path, name)
}

describe('a gateway that signs in for itself', () => {
  it('shows its secret at the authorization server alone, asks for the scopes of its entry, and calls with the token', async () => {
    const world = await startWorld(basic)
    const gateway = await before({ target: world.url, auth: { ...own, scopes: ['notes:read'], issuer: world.issuer } })
    expect((await (await clientOf(gateway)).callTool('echo', {})).text).toBe('hello')
    expect(Object.fromEntries(world.at('/token')[0]?.form ?? [])).toEqual({
      grant_type: 'client_credentials',
      resource: world.url,
      scope: 'notes:read',
    })
    expect(world.heard.some(({ headers, body }) => JSON.stringify([headers, body]).includes(own.clientSecret))).toBe(false)
  })

  it('takes a way that a program made of vivarium/client', async () => {
    const world = await startWorld(basic)
    const gateway = await before({ target: world.url, auth: clientCredentials(own) })
    expect(gateway.upstreams()).toMatchObject([{ status: 'up', tools: 2 }])
  })

  it('reads secrets and keys from the files that its own file names, each time that they are needed', async () => {
    const world = await startWorld(basic)
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }) as string
    const at = await folder({
      'gateway.json': JSON.stringify({
        servers: {
          bySecret: { url: world.url, auth: { clientId: 'gateway', clientSecretFile: 'secret' } },
          byKey: { url: world.url, auth: { clientId: 'gateway', privateKeyFile: './key.pem', keyId: 'k1' } },
        },
      }),
      secret: 'hush\n',
      'key.pem': pem,
    })
    const gateway = await createGateway({ config: at('gateway.json'), log: 'silent' })
    onTestFinished(() => gateway.close())
    await gateway.ready()
    expect(gateway.upstreams().map(({ status }) => status)).toEqual(['up', 'up'])
    const shown = world.at('/token').map(({ headers, form }) => [headers.authorization, form.get('client_assertion_type')])
    const type = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'
    expect(shown).toEqual(
      expect.arrayContaining([
        [`Basic ${Buffer.from('gateway:hush').toString('base64')}`, null],
        [undefined, type],
      ]),
    )
  })

  it('gets one token for thirty calls whose token has run out', async () => {
    const world = await startWorld(basic)
    const client = await clientOf(await before({ target: world.url, auth: own }))
    const asked = world.at('/token').length
    world.tokens.clear()
    const said = await Promise.all(Array.from({ length: 30 }, () => client.callTool('echo', {})))
    expect(said.map(({ text }) => text)).toEqual(Array.from({ length: 30 }, () => 'hello'))
    expect(world.at('/token').length - asked).toBe(1)
  })

  it('says by the name of the server that its credentials are not taken, and never what they are', async () => {
    const world = await startWorld({ ...basic, token: () => ({ error: 'invalid_client', error_description: 'no such client' }) })
    const traced: unknown[] = []
    const onTrace = (event: string, detail: unknown): void => void traced.push([event, detail])
    const gateway = await before({ target: world.url, auth: own }, { onTrace })
    expect(gateway.upstreams()).toMatchObject([
      {
        status: 'down',
        why: {
          code: 'CREDENTIALS_REFUSED',
          message: expect.stringMatching(/^The server "notes" .*invalid_client/),
          fix: 'Correct auth in its entry',
        },
      },
    ])
    expect(await told(gateway, traced)).not.toContain(secret)
  })

  it('refuses what it cannot use before it connects to anybody', async () => {
    const made = (server: GatewayServer) => before(server).catch((error: Error) => error.message)
    expect(await made({ target: 'http://mcp.example/mcp', auth: own })).toContain('unencrypted over http')
    expect(await made({ target: { command: 'node' }, auth: own })).toContain('auth is only for servers with a url')
    expect(await made({ target: 'https://mcp.example/mcp', auth: { clientId: 'x' } })).toContain(
      'has no credentials of the gateway',
    )
  })
})

describe('a gateway for which somebody signed in', () => {
  it('uses the tokens that were kept, and renews one that runs out once for thirty calls (oidc-provider)', async () => {
    const { world, provider } = await startProvidedWorld()
    const { url } = world
    const tokens = memoryStorage()
    const clock = fakeClock()
    await (await connect(url, { clock, auth: oauth({ storage: tokens, browser: cookieBrowser(redirectUri) }) })).close()
    const gateway = await before({ target: url, auth: 'sign-in' }, { tokens, clock })
    const client = await clientOf(gateway, { clock })
    expect((await client.callTool('echo', {})).text).toBe('hello')
    const first = world.heard.at(-1)?.headers.authorization
    const count = (): number => provider.seen.filter(line => line === 'POST /token').length
    const asked = count()
    clock.advance(50_000)
    const said = await Promise.all(Array.from({ length: 30 }, () => client.callTool('echo', {})))
    expect(new Set(said.map(({ text }) => text))).toEqual(new Set(['hello']))
    expect([count() - asked, provider.seen.filter(line => line === 'GET /auth').length]).toEqual([1, 1])
    expect(world.heard.at(-1)?.headers.authorization).not.toBe(first)
  })

  it('says that nobody did, with what to do, and registers no client for it', async () => {
    const world = await startWorld()
    const at = await folder({ 'gateway.yaml': `servers:\n  notes: { url: '${world.url}', auth: sign-in }\n` })
    const gateway = await createGateway({ config: at('gateway.yaml'), tokens: memoryStorage(), log: 'silent' })
    onTestFinished(() => gateway.close())
    await gateway.ready()
    expect(gateway.upstreams()).toMatchObject([
      {
        status: 'down',
        why: {
          code: 'SIGN_IN_NEEDED',
          message: 'The server "notes" needs a sign-in',
          fix: `Sign in: vivarium gateway ${at('gateway.yaml')} --sign-in notes`,
        },
      },
    ])
    expect(world.at('/register')).toEqual([])
  })

  it('comes up by itself once somebody has', async () => {
    const world = await startWorld()
    const tokens = memoryStorage()
    const gateway = await before({ target: world.url, auth: 'sign-in' }, { tokens })
    expect(gateway.upstreams()[0]?.status).toBe('down')
    await (await connect(world.url, { auth: oauth({ storage: tokens, browser }) })).close()
    gateway.retry('notes')
    await expect.poll(() => gateway.upstreams()[0]?.status).toBe('up')
  })

  it('tells callers, by the name of the server, when the sign-in was revoked; others go on', async () => {
    let revoked = false
    const world = await startWorld({
      metadata: all => ({ ...all, scopes_supported: ['offline_access'] }),
      token: said => (revoked ? { error: 'invalid_grant' } : { ...said, refresh_token: `${secret}-refresh` }),
    })
    const tokens = await signedIn(world)
    const traced: unknown[] = []
    const onTrace = (event: string, detail: unknown): void => void traced.push([event, detail])
    const other = await startWorld(basic)
    const servers = { notes: { target: world.url, auth: 'sign-in' }, other: { target: other.url, auth: own } } as const
    const gateway = await createGateway({ servers, tokens, onTrace, log: 'silent' })
    onTestFinished(() => gateway.close())
    await gateway.ready()
    const client = await clientOf(gateway)
    expect((await client.callTool('notes_echo', {})).text).toBe('hello')
    revoked = true
    world.tokens.clear()
    const failed = await client.callTool('notes_echo', {})
    expect(failed).toMatchObject({ isError: true, text: expect.stringMatching(/"notes" needs a sign-in.*--sign-in/s) })
    await expect
      .poll(() => gateway.upstreams()[0])
      .toMatchObject({ status: 'down', why: { code: 'SIGN_IN_NEEDED', fix: expect.stringContaining('oauth()') } })
    await expect.poll(() => toolNames(client)).toEqual(['other_echo', 'other_write'])
    await expect(client.callTool('notes_echo', {})).resolves.toMatchObject({
      isError: true,
      text: expect.stringContaining('needs a sign-in'),
    })
    expect((await client.callTool('other_echo', {})).text).toBe('hello')
    expect(await told(gateway, traced)).not.toContain(secret)
  })

  it('loses only the call that lacks a right, not the server', async () => {
    const refuse: Ways['refuse'] = ({ body }) =>
      body.includes('"write"') ? { status: 403, headers: { 'www-authenticate': 'Bearer error="insufficient_scope"' } } : undefined
    const world = await startWorld({ ...basic, refuse })
    const gateway = await before({ target: world.url, auth: own })
    const client = await clientOf(gateway)
    expect(await client.callTool('write', {})).toMatchObject({ isError: true, text: expect.stringContaining('scope') })
    expect([(await client.callTool('echo', {})).text, gateway.upstreams()[0]?.status]).toEqual(['hello', 'up'])
  })
})

describe('a server that wants to know who calls', () => {
  it('and whose entry says nothing of it is told of as such', async () => {
    const gateway = await before((await startWorld()).url)
    expect(gateway.upstreams()).toMatchObject([
      { status: 'down', why: { code: 'SIGN_IN_NEEDED', fix: expect.stringContaining('auth: sign-in') } },
    ])
  })

  it('never sees what a caller showed to the gateway', async () => {
    const issuer = await testIssuer()
    onTestFinished(() => issuer.close())
    const world = await startWorld(basic)
    const gateway = await before({ target: world.url, auth: own }, { auth: { issuer: issuer.url } })
    const { url } = await gateway.listen()
    const token = issuer.token(url)
    await using client = await connect(url, { headers: { authorization: `Bearer ${token}`, 'x-api-key': token } })
    world.tokens.clear()
    expect((await client.callTool('echo', {})).text).toBe('hello')
    const signature = token.split('.')[2] ?? token
    const everything = JSON.stringify([world.heard, world.seen.map(({ form, ...rest }) => [Object.fromEntries(form), rest])])
    expect(everything).not.toContain(signature)
    const shown = world.heard.map(({ headers }) => headers.authorization).filter(value => value !== undefined)
    expect(shown.length).toBeGreaterThan(1)
    expect(shown.every(value => value.startsWith(`Bearer ${secret}-token-`))).toBe(true)
  })
})
