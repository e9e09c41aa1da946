/** Tokens without a user, and tokens that only their owner can use. */
import { generateKeyPairSync } from 'node:crypto'
import { createLocalJWKSet, decodeJwt, jwtVerify } from 'jose'
import { describe, expect, it } from 'vitest'
import {
  clientCredentials,
  connect,
  enterprise,
  memoryStorage,
  oauth,
  type SigningAlgorithm,
  workloadIdentity,
} from 'vivarium/client'
import { browser, listen, type Said, type Seen, secret, startWorld, type Ways, type World } from './world.ts'

const takes = (...methods: string[]): Pick<Ways, 'metadata'> => ({
  metadata: all => ({ ...all, token_endpoint_auth_methods_supported: methods }),
})
const form = (world: World, at = 0) => Object.fromEntries(world.at('/token')[at]?.form ?? [])

async function call(world: World, auth: ReturnType<typeof oauth>): Promise<string> {
  await using mcp = await connect(world.url, { auth })
  return (await mcp.callTool('echo', {})).text
}

describe('a program that signs in for itself', () => {
  it('shows its secret in the header, where nothing else is listed, and asks for what the challenge names', async () => {
    const world = await startWorld({ ...takes('client_secret_basic'), challenge: 'scope="a b"' })
    expect(await call(world, clientCredentials({ clientId: 'my-app:1', clientSecret: 'a b&ü' }))).toBe('hello')
    const shown = Buffer.from(world.at('/token')[0]?.headers.authorization?.replace('Basic ', '') ?? '', 'base64').toString()
    expect(shown).toBe('my-app%3A1:a+b%26%C3%BC')
    expect(form(world)).toEqual({ grant_type: 'client_credentials', resource: world.url, scope: 'a b' })
  })

  it('shows it in the body where only that is taken', async () => {
    const world = await startWorld(takes('client_secret_post'))
    await call(world, clientCredentials({ clientId: 'app', clientSecret: 'hush' }))
    expect(form(world)).toMatchObject({ client_id: 'app', client_secret: 'hush' })
    expect(world.at('/token')[0]?.headers.authorization).toBeUndefined()
  })

  it.each<[SigningAlgorithm, () => ReturnType<typeof generateKeyPairSync>]>([
    ['ES256', () => generateKeyPairSync('ec', { namedCurve: 'P-256' })],
    ['RS256', () => generateKeyPairSync('rsa', { modulusLength: 2048 })],
    ['EdDSA', () => generateKeyPairSync('ed25519')],
  ])('signs an assertion of its own with %s', async (algorithm, make) => {
    const { privateKey, publicKey } = make()
    const world = await startWorld(takes('private_key_jwt'))
    const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }) as string
    await call(world, clientCredentials({ clientId: 'app', privateKey: pem, algorithm, keyId: 'k1' }))
    const keys = createLocalJWKSet({ keys: [{ ...publicKey.export({ format: 'jwk' }), kid: 'k1' }] })
    const options = { issuer: 'app', subject: 'app', audience: world.issuer }
    await expect(jwtVerify(form(world)['client_assertion'] ?? '', keys, options)).resolves.toBeDefined()
  })

  it('is told what is wrong with its key before anything is sent', async () => {
    const world = await startWorld(takes('private_key_jwt'))
    const opening = call(world, clientCredentials({ clientId: 'app', privateKey: `-----BEGIN ${secret}` }))
    await expect(opening).rejects.toMatchObject({ cause: { rule: 'options', message: expect.stringContaining('PKCS #8') } })
    await expect(opening).rejects.not.toThrow(secret)
    expect(world.at('/token')).toEqual([])
    expect(() => clientCredentials({ clientId: 'app' })).toThrow('privateKey')
  })

  it('gets a new token when the old one has run out', async () => {
    const world = await startWorld(takes('client_secret_basic'))
    await using mcp = await connect(world.url, { auth: clientCredentials({ clientId: 'app', clientSecret: 'hush' }) })
    world.tokens.clear()
    expect((await mcp.callTool('echo', {})).text).toBe('hello')
    expect(world.at('/token')).toHaveLength(2)
  })

  it('shows its secret to no other authorization server than its own', async () => {
    const world = await startWorld(takes('client_secret_basic'))
    const auth = clientCredentials({ clientId: 'app', clientSecret: secret, issuer: 'https://as.example' })
    await expect(call(world, auth)).rejects.toMatchObject({ cause: { rule: 'issuer-mismatch' } })
    expect(world.seen).toEqual([])
  })
})

describe('a workload', () => {
  it('shows the identity that its platform gives it for this authorization server', async () => {
    const world = await startWorld()
    const audiences: string[] = []
    const assertion = (audience: string): string => `signed.by.platform${audiences.push(audience)}`
    expect(await call(world, workloadIdentity({ assertion }))).toBe('hello')
    expect(audiences).toEqual([world.issuer])
    expect(form(world)).toEqual({
      grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer',
      assertion: 'signed.by.platform1',
      resource: world.url,
    })
  })

  it('does not try again, nor in another way, when it is refused', async () => {
    const world = await startWorld({ token: () => ({ error: 'invalid_grant' }) })
    await expect(call(world, workloadIdentity({ assertion: () => secret, clientId: 'w' }))).rejects.toMatchObject({
      cause: { code: 'invalid_grant', message: expect.not.stringContaining(secret) },
    })
    expect(world.at('/token')).toHaveLength(1)
  })
})

describe('an enterprise', () => {
  const jag = 'urn:ietf:params:oauth:token-type:id-jag'

  /** An identity provider that answers like this. */
  async function provider(said: Readonly<Record<string, string>>) {
    const asked: URLSearchParams[] = []
    const origin = await listen(async (request, response) => {
      let body = ''
      for await (const part of request) body += part
      asked.push(new URLSearchParams(body))
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(said))
    })
    return { tokenEndpoint: `${origin}/token`, clientId: 'sso', subjectToken: async () => 'id.token.here', asked }
  }

  it('has a sign-in at its identity provider serve for other servers', async () => {
    const identityProvider = await provider({ access_token: 'the.jag.itself', issued_token_type: jag, token_type: 'N_A' })
    const world = await startWorld({ ...takes('client_secret_basic'), challenge: 'scope="chat"' })
    expect(await call(world, enterprise({ clientId: 'app', clientSecret: 'hush', identityProvider }))).toBe('hello')
    expect(Object.fromEntries(identityProvider.asked[0] ?? [])).toEqual({
      grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
      requested_token_type: jag,
      audience: world.issuer,
      resource: world.url,
      scope: 'chat',
      subject_token: 'id.token.here',
      subject_token_type: 'urn:ietf:params:oauth:token-type:id_token',
      client_id: 'sso',
    })
    expect(form(world)).toMatchObject({ grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer', assertion: 'the.jag.itself' })
    expect(world.at('/token')[0]?.headers.authorization).toMatch(/^Basic /)
  })

  it('does not hand on what is no grant', async () => {
    const identityProvider = await provider({ access_token: secret, issued_token_type: 'urn:x', token_type: 'Bearer' })
    const world = await startWorld()
    const opening = call(world, enterprise({ clientId: 'app', identityProvider }))
    await expect(opening).rejects.toMatchObject({ cause: { rule: 'token-type' } })
    expect(world.at('/token')).toEqual([])
  })
})

describe('a token that is bound to a key (DPoP)', () => {
  const proofOf = ({ headers }: Seen) => decodeJwt(String(headers['dpop']))
  const challenge = (nonce: string): Said => ({
    status: 401,
    headers: { 'www-authenticate': 'DPoP error="use_dpop_nonce"', 'dpop-nonce': nonce },
  })

  it('is asked for and used with a proof of its own for each request', async () => {
    const world = await startWorld({ token: all => ({ ...all, token_type: 'DPoP' }) })
    expect(await call(world, oauth({ browser, dpop: true }))).toBe('hello')
    const sent = world.heard.filter(({ headers }) => headers.authorization?.startsWith('DPoP '))
    expect(sent.length).toBeGreaterThan(1)
    for (const item of sent) expect(proofOf(item)).toMatchObject({ htm: 'POST', htu: world.url, ath: expect.any(String) })
    expect(new Set(sent.map(item => proofOf(item).jti)).size).toBe(sent.length)
    expect(proofOf(world.at('/token')[0] as Seen)).toMatchObject({ htm: 'POST', htu: `${world.issuer}/token` })
  })

  it('takes the nonces of both servers, also when they change', async () => {
    let nonce = 1
    const world = await startWorld({
      token: (all, seen) =>
        proofOf(seen)['nonce'] === 'as-1'
          ? { ...all, token_type: 'DPoP' }
          : { status: 400, headers: { 'dpop-nonce': 'as-1' }, body: { error: 'use_dpop_nonce' } },
      refuse: seen => (proofOf(seen)['nonce'] === `rs-${nonce}` ? undefined : challenge(`rs-${nonce}`)),
    })
    await using mcp = await connect(world.url, { auth: oauth({ browser, dpop: true }) })
    nonce++
    expect((await mcp.callTool('echo', {})).text).toBe('hello')
    expect([world.at('/token').length, world.at('/authorize').length]).toEqual([2, 1])
  })

  it('is not asked for again and again where no nonce is ever good enough', async () => {
    let nonce = 0
    const world = await startWorld({ token: all => ({ ...all, token_type: 'DPoP' }), refuse: () => challenge(`${nonce++}`) })
    await expect(call(world, oauth({ browser, dpop: true }))).rejects.toMatchObject({ kind: 'unauthorized' })
    expect([nonce < 10, world.at('/authorize').length]).toEqual([true, 1])
  })

  it('is kept with its key, and serves again', async () => {
    const world = await startWorld({ token: all => ({ ...all, token_type: 'DPoP' }) })
    const storage = memoryStorage()
    for (let n = 0; n < 2; n++) expect(await call(world, oauth({ browser, dpop: true, storage }))).toBe('hello')
    expect(world.at('/token')).toHaveLength(1)
    const keys = world.heard.filter(({ headers }) => headers['dpop']).map(({ headers }) => String(headers['dpop']).split('.')[0])
    expect(new Set(keys).size).toBe(1)
  })
})
