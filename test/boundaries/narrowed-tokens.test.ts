/** A right that is taken away, or comes to be needed, counts for what is open too: not only whole tokens are taken back, but scopes. */
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { describe, expect, it, onTestFinished } from 'vitest'
import WebSocket from 'ws'
import { createServer, oauth, type Server } from '../../src/server/index.ts'
import { type FakeClock, fakeClock } from '../../src/testing/index.ts'
import { events, type HttpPeer, headersFor, httpPeer, open } from '../spec/http.ts'
import { restOf } from './guarded-gateway.ts'

const session = '2025-11-25'
const listening = '2026-07-28'
const scopes = ['secret']

interface Vault {
  readonly server: Server
  readonly url: string
  readonly socketUrl: string
  readonly clock: FakeClock
}

/** `secret://1` needs a scope, `open://1` none. `rights`: the scopes of each token, all of them of one user. */
async function vault(rights: Map<string, readonly string[]>): Promise<Vault> {
  const clock = fakeClock(Date.now())
  const server = createServer({ name: 'vault', version: '1.0.0', log: 'silent', clock })
  onTestFinished(() => server.close())
  server.resource('secret://1', { name: 'secret', scopes }, () => 'secret')
  server.resource('open://1', { name: 'open' }, () => 'open')
  server.tool('open-vault', { scopes }, () => 'gold')
  const auth = oauth({
    issuer: 'https://login.example.com',
    resource: 'https://api.example.com/mcp',
    verify: token => {
      const has = rights.get(token)
      return has && { subject: 'ann', scopes: has }
    },
  })
  const { port } = await server.listen({ auth, wsPath: '/ws' })
  return { server, clock, url: `http://127.0.0.1:${port}/mcp`, socketUrl: `ws://127.0.0.1:${port}/ws` }
}

const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

/** The addresses that a stream names, as they come. */
function collect(response: IncomingMessage): string[] {
  onTestFinished(() => void response.destroy())
  const heard: string[] = []
  void (async () => {
    for await (const { frame } of events(response)) {
      const uri = (frame?.['params'] as { uri?: string } | undefined)?.uri
      if (frame !== undefined) heard.push(uri ?? 'acknowledged')
    }
  })().catch(() => {})
  return heard
}

/** What is said unasked in a session to whoever listens with this token. */
async function hearing(url: string, peer: HttpPeer, token: string): Promise<string[]> {
  const headers = { ...headersFor(session, 'GET', {}, peer.session), ...bearer(token), accept: 'text/event-stream' }
  return collect((await open(url, { method: 'GET', headers })).response)
}

/** Both resources change; what is told of the open one shows that all was told. */
async function change({ server, clock }: Vault, heard: readonly string[]): Promise<void> {
  const before = heard.filter(uri => uri === 'open://1').length
  server.resourceUpdated('secret://1')
  server.resourceUpdated('open://1')
  await expect
    .poll(() => {
      clock.advance(1)
      return heard.filter(uri => uri === 'open://1').length
    })
    .toBeGreaterThan(before)
}

describe('a token that loses a scope, and stays valid,', () => {
  it('has its WebSocket ended: what it opened had more rights', async () => {
    const rights = new Map([['opaque', scopes as readonly string[]]])
    const { socketUrl, clock } = await vault(rights)
    const socket = new WebSocket(socketUrl, 'mcp', { headers: bearer('opaque') })
    onTestFinished(() => socket.terminate())
    await once(socket, 'open')
    rights.set('opaque', [])
    await expect
      .poll(() => {
        clock.advance(15_000)
        return socket.readyState
      })
      .toBe(WebSocket.CLOSED)
  })

  it('has the stream of subscriptions/listen ended', async () => {
    const rights = new Map([['opaque', scopes as readonly string[]]])
    const { url, clock } = await vault(rights)
    const peer = await httpPeer(url, listening, {}, bearer('opaque'))
    const { response } = await peer.open('subscriptions/listen', { notifications: { resourceSubscriptions: ['secret://1'] } })
    await once(response, 'data')
    rights.set('opaque', [])
    let ended = false
    void restOf(response).then(() => {
      ended = true
    })
    await expect
      .poll(() => {
        clock.advance(15_000)
        return ended
      })
      .toBe(true)
  })

  it('keeps its WebSocket where it gets a scope more, or the same again', async () => {
    const rights = new Map([['opaque', scopes as readonly string[]]])
    const { socketUrl, clock } = await vault(rights)
    const socket = new WebSocket(socketUrl, 'mcp', { headers: bearer('opaque') })
    onTestFinished(() => socket.terminate())
    await once(socket, 'open')
    rights.set('opaque', ['more', ...scopes])
    for (let i = 0; i < 10; i++) {
      clock.advance(15_000)
      await new Promise(resolve => setImmediate(resolve))
    }
    expect(socket.readyState).toBe(WebSocket.OPEN)
  })
})

describe('a session that watches a resource', () => {
  it('hears of it no more when it goes on with a token that may not read it', async () => {
    const made = await vault(
      new Map([
        ['wide', scopes as readonly string[]],
        ['narrow', []],
      ]),
    )
    const peer = await httpPeer(made.url, session, {}, bearer('wide'))
    for (const uri of ['secret://1', 'open://1']) expect((await peer.ask('resources/subscribe', { uri })).status).toBe(200)
    const refused = await peer.ask('resources/subscribe', { uri: 'secret://1' }, { headers: bearer('narrow') })
    expect(refused.status).toBe(403)
    const heard = await hearing(made.url, peer, 'narrow')
    await change(made, heard)
    expect(heard).not.toContain('secret://1')
  })

  it('hears of it again with a token that may', async () => {
    const made = await vault(
      new Map([
        ['wide', scopes as readonly string[]],
        ['narrow', []],
      ]),
    )
    const peer = await httpPeer(made.url, session, {}, bearer('wide'))
    for (const uri of ['secret://1', 'open://1']) await peer.ask('resources/subscribe', { uri })
    const heard = await hearing(made.url, peer, 'narrow')
    await change(made, heard)
    const again = await hearing(made.url, peer, 'wide')
    await change(made, again)
    expect([heard.includes('secret://1'), again.includes('secret://1')]).toEqual([false, true])
  })

  it.each(['gets scopes later', 'was not there yet'])('hears nothing of one that %s, whatever was allowed before', async when => {
    const made = await vault(new Map([['narrow', []]]))
    const { server } = made
    const late = when === 'gets scopes later' ? server.resource('late://1', { name: 'late' }, () => '') : undefined
    const peer = await httpPeer(made.url, session, {}, bearer('narrow'))
    for (const uri of ['late://1', 'open://1']) expect((await peer.ask('resources/subscribe', { uri })).status).toBe(200)
    const heard = await hearing(made.url, peer, 'narrow')
    if (late === undefined) server.resource('late://1', { name: 'late', scopes }, () => '')
    else late.update({ scopes })
    server.resourceUpdated('late://1')
    await change(made, heard)
    expect(heard).not.toContain('late://1')
  })

  it('hears nothing of it by subscriptions/listen either', async () => {
    const made = await vault(new Map([['narrow', []]]))
    const { server } = made
    const late = server.resource('late://1', { name: 'late' }, () => '')
    const peer = await httpPeer(made.url, listening, {}, bearer('narrow'))
    const { response } = await peer.open('subscriptions/listen', {
      notifications: { resourceSubscriptions: ['late://1', 'open://1'] },
    })
    const heard = collect(response)
    await expect.poll(() => heard).toEqual(['acknowledged'])
    late.update({ scopes })
    server.resourceUpdated('late://1')
    await change(made, heard)
    expect(heard).not.toContain('late://1')
  })
})
