/** A redirect moves nothing that belongs to one origin: keys, headers of the user, tokens, conversations. */
import { createHash } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { bearer, type ConnectOptions, clientCredentials, connect } from 'vivarium/client'
import { createGateway } from 'vivarium/gateway'
import { anthropic, type Model, openai } from 'vivarium/host'
import { createServer } from 'vivarium/server'
import { listen, secret, startWorld } from '../auth/world.ts'
import { trial } from '../cli/trial.ts'
import { type Decoy, startDecoy } from './decoys.ts'

/** Sends everybody to the decoy, on every path and for every method. */
async function redirectingTo(decoy: Decoy, status: number): Promise<string> {
  return listen(
    (request, response) => {
      request.resume()
      response.writeHead(status, { location: `${decoy.origin}${request.url}` }).end()
    },
    (request, socket) =>
      socket.end(`HTTP/1.1 ${status} No\r\nlocation: ${decoy.origin}${request.url}\r\ncontent-length: 0\r\n\r\n`),
  )
}

const statuses = [301, 302, 303, 307, 308]

describe.each(statuses)('a redirect with HTTP %i', status => {
  const headers = { 'x-api-key': secret, cookie: `session=${secret}` }
  it.each<[string, string, ConnectOptions]>([
    ['of an MCP server takes no headers along', 'http', { headers }],
    ['of an MCP server takes no headers along, whoever fetches', 'http', { headers, fetch: globalThis.fetch }],
    ['of a WebSocket takes no headers along', 'ws', { headers }],
    ['of an MCP server takes no token along', 'http', { auth: bearer(secret) }],
  ])('%s', async (_what, scheme, options) => {
    const decoy = await startDecoy()
    const origin = await redirectingTo(decoy, status)
    await expect(connect(`${origin.replace('http', scheme)}/mcp`, options)).rejects.toThrow(`${status}`)
    expect(decoy.came).toEqual([])
  })

  const models: Readonly<Record<string, (baseURL: string) => Model>> = {
    Anthropic: baseURL => anthropic({ apiKey: secret, baseURL }),
    OpenAI: baseURL => openai({ apiKey: secret, baseURL }),
  }
  it.each(Object.entries(models))(
    'of a provider like %s takes neither the key nor the conversation along',
    async (_name, make) => {
      const decoy = await startDecoy()
      const origin = await redirectingTo(decoy, status)
      const asked = {
        system: [],
        messages: [{ role: 'user', content: [{ type: 'text', text: 'Our plans' }] }],
        tools: [],
      } as const
      const answering = make(`${origin}/v1`).generate(asked, { signal: new AbortController().signal })
      const read = async (): Promise<void> => {
        for await (const _ of answering);
      }
      const failed = await read().catch(String)
      expect(decoy.came).toEqual([])
      expect(failed).toMatch(new RegExp(`redirects to ${decoy.origin}.*not sent there`))
    },
  )
})

it('a server that answers a POST with nothing and a GET with a redirect gets no header moved by vivarium doctor', async () => {
  const decoy = await startDecoy()
  const origin = await listen((request, response) => {
    request.resume()
    if (request.method === 'POST') response.writeHead(404).end()
    else response.writeHead(307, { location: `${decoy.origin}/sse` }).end()
  })
  const { run } = await trial()
  const { code, out } = await run(['doctor', '--timeout', '4s', '--no-auth', '--header', `X-Key: ${secret}`, `${origin}/mcp`])
  expect([code, out]).toEqual([4, expect.stringContaining('HTTP 404')])
  expect(decoy.came).toEqual([])
})

it('the address in a data reference is fetched without the headers of the user', async () => {
  const decoy = await startDecoy()
  const server = createServer({ name: 'files', version: '1.0.0', log: 'silent' })
  onTestFinished(() => server.close())
  const { url } = await server.listen({ port: 0 })
  await using mcp = await connect(url, { headers: { 'x-api-key': secret, cookie: `session=${secret}` } })
  const value = createHash('sha256').update('{}').digest('hex')
  const reference = {
    type: 'data_reference',
    ref_id: 'r1',
    origin_server: 'files',
    mime_type: 'application/json',
    size_bytes: 2,
    access_url: `${decoy.origin}/r1`,
    checksum: { algorithm: 'sha256', value },
  }
  for await (const _ of await mcp.readReference(reference));
  expect(decoy.came).toHaveLength(1)
  expect(decoy.came.join()).not.toContain(secret)
})

describe('a key in the address of a server', () => {
  const key = `key=${secret}-key`

  it('is told to no authorization server, also not as the name of the resource', async () => {
    const asked: string[] = []
    const world = await startWorld({
      unnamed: true,
      routes: {
        '/.well-known/oauth-protected-resource/mcp': () => ({ status: 404 }),
        '/.well-known/oauth-authorization-server': () => ({ status: 404 }),
        '/token': ({ body }) => {
          asked.push(body)
          return { body: { error: 'invalid_client' }, status: 400 }
        },
      },
    })
    const auth = clientCredentials({ clientId: 'app', clientSecret: 'hush' })
    await expect(connect(`${world.url}?${key}`, { auth })).rejects.toThrow('invalid_client')
    expect(asked).toHaveLength(1)
    expect(asked.join()).not.toContain(secret)
  })

  it('stands in no error about metadata of another server', async () => {
    const world = await startWorld({ resource: all => ({ ...all, resource: 'https://elsewhere.example/mcp' }) })
    const auth = clientCredentials({ clientId: 'app', clientSecret: 'hush' })
    const failed = await connect(`${world.url}?${key}`, { auth }).catch(String)
    expect(failed).toContain('elsewhere.example')
    expect(failed).not.toContain(secret)
  })

  it('stands in nothing that a gateway tells of a server that needs a sign-in', async () => {
    // Its tokens would be those of whoever runs it.
    const home = await mkdtemp(join(tmpdir(), 'vivarium-home-'))
    for (const name of ['XDG_DATA_HOME', 'XDG_CONFIG_HOME']) vi.stubEnv(name, home)
    onTestFinished(async () => {
      vi.unstubAllEnvs()
      await rm(home, { recursive: true, force: true })
    })
    const world = await startWorld()
    const gateway = await createGateway({
      log: 'silent',
      servers: { notes: { target: `${world.url}?${key}`, auth: 'sign-in' } },
    })
    onTestFinished(() => gateway.close())
    await gateway.ready()
    const told = JSON.stringify(gateway.upstreams())
    expect(told).toContain('SIGN_IN_NEEDED')
    expect(told).not.toContain(secret)
  })
})
