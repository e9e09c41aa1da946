/** Credentials on every carrier that has headers: the old pair, WebSockets, streams, and what they are kept from. */
import { describe, expect, it, onTestFinished } from 'vitest'
import { bearer, connect, oauth } from 'vivarium/client'
import { fakeClock } from 'vivarium/testing'
import { browser, secret, startDecoy, startWorld, type World } from './world.ts'

const tokenless = ({ heard }: World) => heard.filter(({ headers }) => headers.authorization === undefined)

describe('a client that signs in', () => {
  it('opens the old pair with its token, and posts with it', async () => {
    const world = await startWorld()
    await using mcp = await connect(`${world.origin}/sse`, { auth: oauth({ browser }), revisions: ['2024-11-05'] })
    expect((await mcp.callTool('echo', {})).text).toBe('hello')
    expect(world.heard.filter(({ path }) => path === '/sse/message').length).toBeGreaterThan(1)
    expect(tokenless(world).map(({ method, path }) => `${method} ${path}`)).toEqual(['POST /sse'])
    expect(world.at('/authorize')[0]?.query.get('resource')).toBe(`${world.origin}/sse`)
  })

  it('opens a WebSocket with its token, and what was to be sent waits for it', async () => {
    const world = await startWorld()
    const clock = fakeClock()
    const slow = {
      ...browser,
      async authorize(url: URL, options: { signal: AbortSignal }) {
        clock.advance(5 * 60_000)
        return browser.authorize(url, options)
      },
    }
    await using mcp = await connect(`${world.origin.replace('http', 'ws')}/ws`, {
      auth: oauth({ browser: slow }),
      clock,
      timeout: '1s',
    })
    expect([mcp.revision, (await mcp.callTool('echo', {})).text]).toEqual(['2026-07-28', 'hello'])
    expect(world.heard.map(({ headers }) => headers.authorization !== undefined)).toEqual([false, true])
  })

  it('has a WebSocket refused for the reason that authorization gives', async () => {
    const world = await startWorld({ back: back => back.set('state', 'forged') })
    const opening = connect(`${world.origin.replace('http', 'ws')}/ws`, { auth: oauth({ browser }) })
    await expect(opening).rejects.toMatchObject({ kind: 'unauthorized', cause: { rule: 'authorization-response' } })
  })

  it('has its stream for what is said unasked opened with its token too', async () => {
    const world = await startWorld()
    await using mcp = await connect(world.url, { auth: oauth({ browser }), revisions: ['2025-11-25'] })
    await mcp.callTool('echo', {})
    const streams = (): readonly unknown[] => world.heard.filter(({ method }) => method === 'GET')
    await expect.poll(streams).toMatchObject([{ headers: { authorization: expect.stringContaining('Bearer') } }])
  })

  it('says farewell with its token, and does not sign in for it', async () => {
    const world = await startWorld()
    const mcp = await connect(world.url, { auth: oauth({ browser }), revisions: ['2025-11-25'] })
    world.tokens.clear()
    await mcp.close()
    expect(world.heard.at(-1)).toMatchObject({ method: 'DELETE', headers: { authorization: expect.any(String) } })
    expect(world.at('/authorize')).toHaveLength(1)
  })

  it('uses a fetch that the caller brings', async () => {
    const world = await startWorld()
    await using mcp = await connect(world.url, { auth: oauth({ browser }), fetch })
    expect((await mcp.callTool('echo', {})).text).toBe('hello')
  })
})

describe('a token', () => {
  it.each([301, 302, 307, 308])('does not follow a redirect (%i) to another origin', async status => {
    const decoy = await startDecoy()
    const world = await startWorld({ refuse: () => ({ status, headers: { location: `${decoy.origin}/mcp` } }) })
    await expect(connect(world.url, { auth: oauth({ browser }) })).rejects.toThrow('redirects')
    expect(decoy.hits()).toBe(0)
  })

  it('does not go to where the old pair would have it posted', async () => {
    const decoy = await startDecoy()
    const headers = { 'content-type': 'text/event-stream' }
    const world = await startWorld({
      refuse: ({ method }) =>
        method === 'GET' ? { headers, body: `event: endpoint\ndata: ${decoy.origin}/m\n\n` } : { status: 405 },
    })
    const opening = connect(`${world.origin}/sse`, { auth: oauth({ browser }), revisions: ['2024-11-05'] })
    await expect(opening).rejects.toThrow()
    expect(decoy.hits()).toBe(0)
  })

  it('is in no event that is traced', async () => {
    const world = await startWorld({
      token: (all, { form }) =>
        form.get('grant_type') === 'refresh_token'
          ? { error: 'invalid_grant', error_description: 'no' }
          : { ...all, refresh_token: secret },
    })
    const events: unknown[] = []
    const onTrace = (event: string, detail: unknown): void => void events.push(event, detail)
    await using mcp = await connect(world.url, { auth: oauth({ browser }), onTrace })
    world.tokens.clear()
    await mcp.callTool('echo', {})
    expect(events).toContain('token-refresh-failed')
    expect(
      events.map(item => (item instanceof Error ? `${item.message} ${JSON.stringify(item)}` : String(item))).join(' '),
    ).not.toContain(secret)
  })

  it('that somebody else takes care of goes with a WebSocket, too', async () => {
    const world = await startWorld()
    world.tokens.set('mine', { value: 'mine', scope: '' })
    const mcp = await connect(`${world.origin.replace('http', 'ws')}/ws`, { auth: bearer('mine') })
    onTestFinished(() => mcp.close())
    expect((await mcp.callTool('echo', {})).text).toBe('hello')
  })
})
