/** Who may call no longer holds nothing: no connection, no session, no stream, no call, no question; at once, not at the next request. */
import { once } from 'node:events'
import { request } from 'node:http'
import { describe, expect, it, onTestFinished } from 'vitest'
import WebSocket from 'ws'
import type { OAuthResourceOptions } from '../../src/auth/resource/options.ts'
import type { GatewayOptions } from '../../src/gateway/index.ts'
import { createServer, oauth, type RevisionId } from '../../src/server/index.ts'
import { fakeClock } from '../../src/testing/index.ts'
import { testIssuer } from '../auth/issuer.ts'
import { inMemory } from '../gateway/open.ts'
import { clientOf, toolNames } from '../gateway/world.ts'
import { call as streamed, world } from '../reliability/stream-world.ts'
import { headersFor, httpPeer, json, open, send } from '../spec/http.ts'
import { enveloped } from '../spec/wire.ts'
import { bearerOf, clientAt, everyone, guardedGateway, onlyBob, restOf, tokens } from './guarded-gateway.ts'

const revision = '2026-07-28'
const session = '2025-11-25'
const call = (name: string) => ({ name, arguments: {} })

function bodyOf(method: string, params: Record<string, unknown>): string {
  return JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: enveloped(revision, params) })
}

describe('a token that a reload takes away', () => {
  it('ends the WebSocket that it opened, with the close code for who is not authorized', async () => {
    const { origin, reload } = await guardedGateway()
    const socket = new WebSocket(`${origin.replace('http', 'ws')}/ws`, 'mcp', { headers: bearerOf('ann') })
    onTestFinished(() => socket.terminate())
    await once(socket, 'open')
    const closed = once(socket, 'close')
    await reload(onlyBob)
    expect((await closed)[0]).toBe(3000)
  })

  it('ends no connection of others', async () => {
    const { origin, reload } = await guardedGateway()
    const bob = await clientAt(`${origin.replace('http', 'ws')}/ws`, 'bob')
    await reload(onlyBob)
    expect((await bob.callTool('pay', {})).text).toBe('pay 1')
  })

  it('is refused by the next request, although it was verified a moment ago', async () => {
    const { url, reload } = await guardedGateway()
    const ask = () =>
      send(url, { headers: { ...headersFor(revision, 'tools/list', {}), ...bearerOf('ann') }, body: bodyOf('tools/list', {}) })
    expect((await ask()).status).toBe(200)
    await reload(onlyBob)
    expect((await ask()).status).toBe(401)
  })

  it('ends its session, the stream of it and the calls in it', async () => {
    const { url, reload, hangs } = await guardedGateway()
    const peer = await httpPeer(url, session, {}, bearerOf('ann'))
    const headers = { ...headersFor(session, 'GET', {}, peer.session), ...bearerOf('ann'), accept: 'text/event-stream' }
    const { response } = await open(url, { method: 'GET', headers })
    const calling = peer.ask('tools/call', call('wait'))
    await expect.poll(() => hangs.now).toBe(1)
    await reload(onlyBob)
    await restOf(response)
    expect((await calling).text).toContain('access to this server was revoked')
    await expect.poll(() => hangs.cancelled).toBe(1)
    // Given back, the token finds no session any more.
    await reload(everyone)
    expect((await peer.ask('tools/list')).status).toBe(404)
  })

  it('ends the stream of the old pair, and with it what is posted to it', async () => {
    const { origin, reload } = await guardedGateway()
    const { response } = await open(`${origin}/sse`, {
      method: 'GET',
      headers: { accept: 'text/event-stream', ...bearerOf('ann') },
    })
    const [first] = (await once(response, 'data')) as [Buffer]
    const address = /data: (\S+)/.exec(String(first))?.[1] ?? ''
    const rest = restOf(response)
    await reload(onlyBob)
    await rest
    await reload(everyone)
    expect((await send(`${origin}${address}`, { headers: { ...json, ...bearerOf('ann') }, body: '{}' })).status).toBe(404)
  })

  it('stops calls without a session, and their answers say why', async () => {
    const { url, reload, hangs } = await guardedGateway()
    const peer = await httpPeer(url, revision, {}, bearerOf('ann'))
    const calling = peer.ask('tools/call', call('wait'))
    await expect.poll(() => hangs.now).toBe(1)
    await reload(onlyBob)
    expect((await calling).text).toContain('access to this server was revoked')
    await expect.poll(() => hangs.cancelled).toBe(1)
  })

  it('ends subscriptions/listen', async () => {
    const { url, reload } = await guardedGateway()
    const peer = await httpPeer(url, revision, {}, bearerOf('ann'))
    const { response } = await peer.open('subscriptions/listen', { notifications: { toolsListChanged: true } })
    await once(response, 'data')
    const rest = restOf(response)
    await reload(onlyBob)
    await rest
  })

  it('does not serve a request whose body it began to send before', async () => {
    const { url, bank, reload } = await guardedGateway()
    const body = bodyOf('tools/call', call('pay'))
    const headers = { ...headersFor(revision, 'tools/call', call('pay')), ...bearerOf('ann'), 'content-length': `${body.length}` }
    const sending = request(url, { method: 'POST', headers })
    const answered = once(sending, 'response')
    sending.write(body.slice(0, 10))
    // Its head is read before that of a request which comes after it and is answered.
    const peer = await httpPeer(url, revision, {}, bearerOf('bob'))
    await peer.ask('tools/list')
    await reload(onlyBob)
    sending.end(body.slice(10))
    const [response] = (await answered) as [{ statusCode: number }]
    expect([response.statusCode, bank.ran]).toEqual([401, []])
  })

  it('answers no question that its call has asked: the server behind hears that nobody will', async () => {
    // Its questions are pushed, so the gateway keeps the call while its caller is away with them.
    const old = createServer({ name: 'old', version: '1.0.0', log: 'silent', revisions: ['2025-11-25'] })
    onTestFinished(() => old.close())
    const answers: unknown[] = []
    old.tool('ask', {}, async (_, ctx) => {
      answers.push(await ctx.confirm('Close the account?').catch(() => 'nobody answers'))
      return 'asked'
    })
    const { url, reload } = await guardedGateway(everyone, { old: inMemory(old) })
    const peer = await httpPeer(url, revision, { elicitation: { form: {} } }, bearerOf('ann'))
    const { frame } = await peer.ask('tools/call', call('ask'))
    const { requestState, inputRequests } = frame['result'] as { requestState: string; inputRequests: Record<string, unknown> }
    const [key = ''] = Object.keys(inputRequests)
    await reload(onlyBob)
    await expect.poll(() => answers).toEqual(['nobody answers'])
    await reload(everyone)
    const inputResponses = { [key]: { action: 'accept', content: { confirm: true } } }
    const { text } = await peer.ask('tools/call', { ...call('ask'), requestState, inputResponses })
    expect([text.includes('is no longer open'), answers.length]).toEqual([true, 1])
  })

  it('and is replaced by another one ends what the old one opened', async () => {
    const { origin, url, reload } = await guardedGateway()
    const ann = await clientAt(`${origin.replace('http', 'ws')}/ws`, 'ann')
    const other = 'another-token-of-ann-0123456789'
    await reload({ ...everyone, auth: { tokens: { ...tokens, ann: other } } })
    await ann.ended
    const renewed = await clientAt(url, 'ann', { headers: { authorization: `Bearer ${other}` } })
    expect(await toolNames(renewed)).toContain('pay')
  })

  it('counts no more where the file now names an authorization server, although that counts only after a restart', async () => {
    const { url, reload } = await guardedGateway()
    const next = {
      auth: { issuer: 'https://login.example.com', resource: 'https://mcp.example.com/mcp' },
      clients: { ann: {}, bob: {} },
    }
    expect(await reload(next)).toMatchObject({ pending: ['auth'] })
    const headers = { ...headersFor(revision, 'tools/list', {}), ...bearerOf('ann') }
    expect((await send(url, { headers, body: bodyOf('tools/list', {}) })).status).toBe(401)
  })
})

describe('rights that a reload takes away', () => {
  it('stop the call that needs them, while it is under way', async () => {
    const { url, hangs, reload } = await guardedGateway()
    const peer = await httpPeer(url, revision, {}, bearerOf('ann'))
    const calling = peer.ask('tools/call', call('wait'))
    await expect.poll(() => hangs.now).toBe(1)
    await reload({ ...everyone, clients: { ann: { tools: ['bank/pay'] }, bob: {} } })
    expect((await calling).text).toContain('There is no tool')
    await expect.poll(() => hangs.cancelled).toBe(1)
  })

  it('stop it also by a rule, with the rule in the answer', async () => {
    const { url, hangs, reload } = await guardedGateway()
    const ann = await clientAt(url, 'ann')
    const calling = ann.callTool('wait', {})
    await expect.poll(() => hangs.now).toBe(1)
    await reload({ ...everyone, rules: [{ name: 'no waiting', tool: 'wait', do: 'deny' }] })
    expect(await calling).toMatchObject({ isError: true, text: expect.stringContaining('no waiting') })
  })

  it('stop a call that waits for an approval: the yes that comes later does nothing', async () => {
    const rules: GatewayOptions['rules'] = [{ name: 'money', tool: 'pay', do: 'ask', by: 'operator', wait: '1m' }]
    const { gateway, url, bank, reload } = await guardedGateway({ ...everyone, rules })
    const ann = await clientAt(url, 'ann')
    const calling = ann.callTool('pay', {}).catch(error => ({ text: String(error) }))
    await expect.poll(async () => (await gateway.approvals()).length).toBe(1)
    const [waiting] = await gateway.approvals()
    await reload({ ...everyone, rules, clients: { ann: { tools: ['bank/read'] }, bob: {} } })
    expect((await calling).text).toContain('There is no tool')
    await gateway.approve(waiting?.id ?? '')
    expect(bank.ran).toEqual([])
  })

  it('end what is told of a resource that is watched', async () => {
    const { url, bank, reload } = await guardedGateway()
    const watch = async (name: 'ann' | 'bob') => {
      const client = await clientAt(url, name)
      const updates = client.resourceUpdates('note://1')[Symbol.asyncIterator]()
      const heard: string[] = []
      void (async () => {
        for (;;) {
          const { done, value } = await updates.next()
          if (done === true) return
          heard.push(value)
        }
      })().catch(() => {})
      return heard
    }
    const [ann, bob] = [await watch('ann'), await watch('bob')]
    await expect
      .poll(() => {
        bank.server.resourceUpdated('note://1')
        return Math.min(ann.length, bob.length)
      })
      .toBeGreaterThan(0)
    await reload({ ...everyone, clients: { ann: { resources: [] }, bob: {} } })
    const [before, bobBefore] = [ann.length, bob.length]
    bank.server.resourceUpdated('note://1')
    await expect.poll(() => bob.length).toBeGreaterThan(bobBefore)
    expect(ann.length).toBe(before)
  })
})

describe.each<RevisionId>([session, revision])('a call that goes on as a task, at %s,', wire => {
  const brewing = async () => {
    const hangs = { now: 0, cancelled: 0 }
    const kitchen = createServer({ name: 'kitchen', version: '1.0.0', log: 'silent' })
    onTestFinished(() => kitchen.close())
    kitchen.tool('brew', { task: { support: 'required', pollInterval: '50ms' } }, (_, { signal }) => {
      hangs.now++
      return new Promise<string>((_resolve, reject) => {
        signal.addEventListener('abort', () => {
          hangs.cancelled++
          reject(new Error('cancelled'))
        })
      })
    })
    const guarded = await guardedGateway(everyone, { kitchen: inMemory(kitchen) })
    const ann = await clientAt(guarded.url, 'ann', { revisions: [wire] })
    const calling = ann.callTool('brew', {}, { task: true }).then(
      ({ text }) => text,
      error => String(error),
    )
    // It has its answer, and is worked on in the background.
    await expect.poll(() => hangs.now).toBe(1)
    return { ...guarded, brew: hangs, calling }
  }

  it('is stopped when its token is taken away', async () => {
    const { reload, brew } = await brewing()
    await reload(onlyBob)
    await expect.poll(() => brew.cancelled).toBe(1)
  })

  it('is stopped by a rule that refuses it from now on, and its task says so', async () => {
    const { reload, brew, calling } = await brewing()
    await reload({ ...everyone, rules: [{ name: 'no-coffee', tool: 'brew', client: 'ann', do: 'deny' }] })
    await expect.poll(() => brew.cancelled).toBe(1)
    expect(await calling).toContain('Rule no-coffee denies brew of kitchen')
  })

  it('goes on where others lose their rights', async () => {
    const { reload, brew } = await brewing()
    await reload({ ...everyone, rules: [{ name: 'no-coffee', tool: 'brew', client: 'bob', do: 'deny' }] })
    expect(brew.cancelled).toBe(0)
  })
})

describe('a caller that is none of the clients which are named', () => {
  it('finds nothing, and is told why nothing is done for it', async () => {
    const { url, bank } = await guardedGateway({ clients: { ann: {} } })
    const peer = await httpPeer(url, revision)
    for (const [method, member] of [
      ['tools/list', 'tools'],
      ['prompts/list', 'prompts'],
      ['resources/list', 'resources'],
    ] as const)
      expect((await peer.ask(method)).frame).toMatchObject({ result: { [member]: [] } })
    const requests: [string, Record<string, unknown>][] = [
      ['tools/call', call('pay')],
      ['prompts/get', { name: 'greet' }],
      ['resources/read', { uri: 'note://1' }],
      ['completion/complete', { ref: { type: 'ref/prompt', name: 'greet' }, argument: { name: 'a', value: '' } }],
      ['subscriptions/listen', { notifications: { resourceSubscriptions: ['note://1'] } }],
    ]
    for (const [method, params] of requests)
      expect([method, (await peer.ask(method, params)).text]).toEqual([method, expect.stringContaining('has no client')])
    expect(bank.ran).toEqual([])
  })

  it('is so also on a pipe, and after a reload that names clients for the first time', async () => {
    const { gateway, url, reload } = await guardedGateway({})
    const piped = await clientOf(gateway)
    expect(await toolNames(piped)).toContain('pay')
    const peer = await httpPeer(url, revision)
    expect((await peer.ask('tools/call', call('pay'))).text).toContain('pay 1')
    await reload({ clients: { ann: {} } })
    expect((await peer.ask('tools/call', call('pay'))).text).toContain('no client')
    expect(await toolNames(piped)).toEqual([])
    expect(await piped.callTool('pay', {})).toMatchObject({ isError: true, text: expect.stringContaining('no client "local"') })
  })
})

describe('a token of an authorization server', () => {
  const withIssuer = async (clients: NonNullable<GatewayOptions['clients']>) => {
    const issuer = await testIssuer()
    onTestFinished(() => issuer.close())
    const auth = { issuer: issuer.url }
    const guarded = await guardedGateway({ auth, clients })
    return { ...guarded, auth, token: (claims?: object) => issuer.token(guarded.url, { ...claims }), issuer }
  }

  it('whose client is removed has its connections ended, and sees nothing when it comes back', async () => {
    const { origin, url, auth, token, reload } = await withIssuer({ people: { principals: 'ada' } })
    const headers = { authorization: `Bearer ${token()}` }
    const ada = await clientAt(`${origin.replace('http', 'ws')}/ws`, 'ann', { headers })
    expect(await toolNames(ada)).toContain('pay')
    await reload({ auth, clients: { people: { principals: 'bob' } } })
    await ada.ended
    const again = await clientAt(url, 'ann', { headers })
    expect(await toolNames(again)).toEqual([])
    expect(await again.callTool('pay', {})).toMatchObject({
      isError: true,
      text: expect.stringContaining('the gateway has no client for it'),
    })
  })
})

describe('a server that takes tokens', () => {
  const guardedServer = async (options: Partial<OAuthResourceOptions>, clock = fakeClock(Date.now())) => {
    const server = createServer({ name: 'tickets', version: '1.0.0', log: 'silent', clock })
    onTestFinished(() => server.close())
    server.tool('who', {}, (_, { principal }) => String(principal?.subject))
    const auth = oauth({ issuer: 'https://login.example.com', resource: 'https://api.example.com/mcp', ...options })
    const { port } = await server.listen({ auth, wsPath: '/ws' })
    return { auth, clock, url: `http://127.0.0.1:${port}/mcp`, socketUrl: `ws://127.0.0.1:${port}/ws` }
  }
  const socketAt = async (url: string, token: string): Promise<WebSocket> => {
    const socket = new WebSocket(url, 'mcp', { headers: { authorization: `Bearer ${token}` } })
    onTestFinished(() => socket.terminate())
    await once(socket, 'open')
    return socket
  }

  it('ends what a principal has open when its author disconnects it, and nothing else', async () => {
    const { auth, socketUrl } = await guardedServer({ verify: token => ({ subject: token }) })
    const [ann, bob] = [await socketAt(socketUrl, 'ann'), await socketAt(socketUrl, 'bob')]
    const closed = once(ann, 'close')
    auth.disconnect(({ subject }) => subject === 'ann')
    expect((await closed)[0]).toBe(3000)
    expect(bob.readyState).toBe(WebSocket.OPEN)
  })

  it('stops a stream whose reader is away, and may come back for it, when it disconnects its principal', async () => {
    const { server, allow, done, stop } = world()
    onTestFinished(() => server.close())
    const auth = oauth({ issuer: 'https://login.example.com', verify: token => ({ subject: token }) })
    const { url } = await server.listen({ auth })
    const capabilities = { extensions: { 'dev.vivarium/streaming': {} } }
    const peer = await httpPeer(url, revision, capabilities, { authorization: 'Bearer ann' })
    allow(1)
    const { response } = await peer.open('tools/call', streamed('steps', { of: 'a', count: 2 }))
    await Promise.all([done(1), once(response, 'data')])
    const [reader] = server.engine.inFlight.alone
    response.destroy()
    await expect.poll(() => reader?.answered).toBe(true)
    auth.disconnect(({ subject }) => subject === 'ann')
    await stop()
  })

  it('does not let in a token that was just being verified when its bearer was disconnected', async () => {
    const good = new Set(['ann'])
    const [asked, answer] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const verify = async (token: string) => {
      const found = good.has(token) ? { subject: token } : undefined
      asked.resolve()
      await answer.promise
      return found
    }
    const { auth, url } = await guardedServer({ verify })
    const headers = { ...headersFor(revision, 'tools/call', call('who')), authorization: 'Bearer ann' }
    const answered = send(url, { headers, body: bodyOf('tools/call', call('who')) })
    await asked.promise
    good.delete('ann')
    auth.disconnect(({ subject }) => subject === 'ann')
    answer.resolve()
    expect((await answered).status).toBe(401)
  })

  it('ends the connection of a token that its issuer takes back, though it never expires', async () => {
    const issuer = await testIssuer()
    onTestFinished(() => issuer.close())
    const about = { active: true, sub: 'ann', aud: 'https://api.example.com/mcp' }
    issuer.tokens.set('opaque', about)
    const introspection = { clientId: 'rs', clientSecret: 's:cret' }
    const { clock, socketUrl, url } = await guardedServer({ issuer: issuer.url, introspection })
    const socket = await socketAt(socketUrl, 'opaque')
    const peer = await httpPeer(url, revision, {}, { authorization: 'Bearer opaque' })
    const { response } = await peer.open('subscriptions/listen', { notifications: { toolsListChanged: true } })
    await once(response, 'data')
    const closed = once(socket, 'close')
    const rest = restOf(response)
    issuer.tokens.delete('opaque')
    await expect
      .poll(() => {
        clock.advance(15_000)
        return socket.readyState
      })
      .toBe(WebSocket.CLOSED)
    expect((await closed)[0]).toBe(3000)
    await rest
  })

  it('keeps the connection while its issuer cannot be asked, and ends it when the token expires', async () => {
    const issuer = await testIssuer()
    onTestFinished(() => issuer.close())
    const clock = fakeClock(Date.now())
    const exp = Math.floor(clock.now() / 1000) + 600
    issuer.tokens.set('opaque', { active: true, sub: 'ann', aud: 'https://api.example.com/mcp', exp })
    const introspection = { clientId: 'rs', clientSecret: 's:cret' }
    const { socketUrl } = await guardedServer({ issuer: issuer.url, introspection }, clock)
    const socket = await socketAt(socketUrl, 'opaque')
    issuer.down = true
    const asked = () => issuer.hits.get('/introspect') ?? 0
    const before = asked()
    await expect
      .poll(() => {
        clock.advance(15_000)
        return asked()
      })
      .toBeGreaterThan(before)
    expect(socket.readyState).toBe(WebSocket.OPEN)
    const closed = once(socket, 'close')
    clock.advance(700_000)
    await closed
  })
})
