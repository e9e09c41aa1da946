/** Against an authorization server that others have written: registration, PKCE, resource indicators, refresh. */
import { describe, expect, it, onTestFinished } from 'vitest'
import { type Client, connect, oauth } from 'vivarium/client'
import { fakeClock } from 'vivarium/testing'
import { type ProvidedWorld, startProvidedWorld } from './provided-world.ts'
import { cookieBrowser } from './provider.ts'
import { redirectUri } from './world.ts'

async function open({ world }: ProvidedWorld, more = {}): Promise<Client> {
  const mcp = await connect(world.url, { auth: oauth({ browser: cookieBrowser(redirectUri) }), ...more })
  onTestFinished(() => mcp.close())
  return mcp
}

describe('with oidc-provider', () => {
  it('a client registers, its user signs in, and its token is good for this server alone', async () => {
    const both = await startProvidedWorld()
    const mcp = await open(both)
    expect((await mcp.callTool('echo', {})).text).toBe('hello')
    const { seen } = both.provider
    expect(seen.filter(line => /reg|token/.test(line))).toEqual(['POST /reg', 'POST /token'])
    const token = both.world.heard.at(-1)?.headers.authorization?.replace('Bearer ', '') ?? ''
    expect(await both.provider.provider.AccessToken.find(token)).toMatchObject({ aud: both.world.url, scope: 'tools' })
  })

  it('a token that runs out is renewed, and the user not asked', async () => {
    const both = await startProvidedWorld()
    const clock = fakeClock()
    const mcp = await open(both, { clock })
    const first = both.world.heard.at(-1)?.headers.authorization
    clock.advance(50_000)
    expect((await mcp.callTool('echo', {})).text).toBe('hello')
    expect(both.world.heard.at(-1)?.headers.authorization).not.toBe(first)
    expect(both.provider.seen.filter(line => /\/(auth|token)$/.test(line))).toEqual(['GET /auth', 'POST /token', 'POST /token'])
  })
})
