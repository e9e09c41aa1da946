/** Where a gateway listens and who may call it there: fixed tokens are authorization, and what --check finds right is what starts. */
import { describe, expect, it, onTestFinished } from 'vitest'
import { connect } from '../../src/client/index.ts'
import { createGateway, type GatewayOptions } from '../../src/gateway/index.ts'
import { trial } from '../cli/trial.ts'
import { toolNames, upstreamOf } from '../gateway/world.ts'
import { json, send } from '../spec/http.ts'
import { bearerOf, tokens } from './guarded-gateway.ts'

const resource = 'https://mcp.example.com/mcp'

async function opened(options: GatewayOptions) {
  const gateway = await createGateway({ log: 'silent', servers: { bank: upstreamOf().target }, ...options })
  onTestFinished(() => gateway.close())
  await gateway.ready()
  return gateway
}

describe('fixed tokens', () => {
  it('serve an address that others reach, by the name that resource has', async () => {
    const gateway = await opened({ auth: { tokens, resource }, listen: { host: '0.0.0.0' } })
    const { port } = await gateway.listen()
    const url = `http://127.0.0.1:${port}/mcp`
    const named = (host: string) => send(url, { headers: { ...json, ...bearerOf('ann'), host }, body: '{}' })
    expect([(await named('mcp.example.com')).status, (await named('evil.example')).status]).toEqual([400, 403])
    await using ann = await connect(url, { headers: bearerOf('ann') })
    expect(await toolNames(ann)).toContain('pay')
    expect((await send(url, { headers: { ...json, authorization: 'Bearer something-else' }, body: '{}' })).status).toBe(401)
  })

  it('need the resource there, and say so in the words of the settings', async () => {
    const gateway = await opened({ auth: { tokens }, listen: { host: '0.0.0.0' } })
    await expect(gateway.listen()).rejects.toThrow(/Add auth\.resource/)
  })

  it('are asked for also where `auth` is given as undefined, which says nothing', async () => {
    const gateway = await opened({ auth: { tokens } })
    const where: object = { auth: undefined }
    const { port } = await gateway.listen(where)
    expect((await send(`http://127.0.0.1:${port}/mcp`, { headers: json, body: '{}' })).status).toBe(401)
  })

  it('serve web-standard requests without any address', async () => {
    const gateway = await opened({ auth: { tokens } })
    const ask = (token: string) =>
      gateway.fetch(
        new Request('http://127.0.0.1/mcp', {
          method: 'POST',
          headers: { ...json, authorization: `Bearer ${token}` },
          body: '{}',
        }),
      )
    expect([(await ask(tokens.ann)).status, (await ask('something-else')).status]).toEqual([400, 401])
  })

  it('are given by nobody on the web: no challenge and no document names an authorization server', async () => {
    const gateway = await opened({ auth: { tokens, resource } })
    const { url, port } = await gateway.listen()
    for (const headers of [json, { ...json, authorization: 'Bearer wrong' }]) {
      const { status, text, headers: said } = await send(url, { headers, body: '{}' })
      expect([status, said['www-authenticate']]).toEqual([401, expect.stringMatching(/^Bearer .*realm=/)])
      expect(`${text} ${said['www-authenticate']}`).not.toMatch(
        /invalid\/|gateway\.invalid|resource_metadata|authorization server/,
      )
    }
    for (const path of ['/.well-known/oauth-protected-resource', '/.well-known/oauth-protected-resource/mcp'])
      expect((await send(`http://127.0.0.1:${port}${path}`, { method: 'GET' })).status).toBe(404)
  })

  it('are named by no placeholder in what is written down or told of a caller', async () => {
    const gateway = await opened({ auth: { tokens }, rules: [{ name: 'money', tool: 'pay', do: 'ask', by: 'operator' }] })
    const { url } = await gateway.listen()
    await using ann = await connect(url, { headers: bearerOf('ann') })
    await ann.callTool('read', {})
    await ann.callTool('pay', {})
    const all = JSON.stringify([await gateway.audit.read(), await gateway.approvals()])
    expect([all.includes('ann'), all.includes('gateway.invalid')]).toEqual([true, false])
  })
})

describe('auth: none', () => {
  it('beside auth is refused: no token would be checked', async () => {
    const gateway = await opened({ auth: { tokens, resource } })
    await expect(gateway.listen({ auth: 'none' })).rejects.toThrow(/cannot be combined with auth/)
    await expect(gateway.listen({ auth: 'none', host: '0.0.0.0' })).rejects.toThrow(/cannot be combined with auth/)
  })

  it('opens a gateway that has no auth', async () => {
    const gateway = await opened({})
    await expect(gateway.listen({ host: '0.0.0.0' })).rejects.toThrow(/auth is not set, so anybody could call it/)
    expect((await gateway.listen({ host: '0.0.0.0', auth: 'none' })).port).toBeGreaterThan(0)
  })
})

const withTokens = `auth: { tokens: { ann: ${tokens.ann} } }`
const servers = 'servers: { bank: { url: "http://127.0.0.1:9/mcp" } }'
const cases: [name: string, file: string, options: string[], says: string][] = [
  ['tokens without a resource on all addresses', `listen: { host: 0.0.0.0 }\n${withTokens}`, [], 'auth.resource is missing'],
  ['all addresses without auth', 'listen: { host: 0.0.0.0 }', [], 'auth is not set, so anybody could call it'],
  ['--host without auth', 'names: short', ['--host', '0.0.0.0'], 'auth is not set, so anybody could call it'],
  ['--unprotected beside auth', withTokens, ['--unprotected'], 'cannot be combined with auth'],
  ['two paths that are one', 'listen: { path: /a, wsPath: /a }', [], 'three different paths'],
  ['a host that is no name', 'listen: { hosts: ["https://x/"] }', [], 'hosts has'],
]

it.each(cases)('--check says what the start would say: %s', { timeout: 60_000 }, async (_, file, options, says) => {
  const it = await trial({ 'gateway.yaml': `${servers}\n${file}\n` })
  const [checked, started] = await Promise.all([
    it.run(['gateway', 'gateway.yaml', '--check', ...options]),
    it.run(['gateway', 'gateway.yaml', '--port', '0', ...options]),
  ])
  expect([checked.code, started.code]).toEqual([1, 1])
  expect([checked.out + checked.err, started.err]).toEqual([expect.stringContaining(says), expect.stringContaining(says)])
})
