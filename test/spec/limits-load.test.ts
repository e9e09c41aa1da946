/** Limits of how much at once and for how long (item 7, security §5): calls, sessions, streams, listeners, slow peers. */
import { connect } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { createServer, type Server, type ServerOptions } from '../../src/server/index.ts'
import { fakeClock } from '../../src/testing/clock.ts'
import { listenHttp } from '../../src/transports/http/listen.ts'
import { type Answer, begin, events, type HttpPeer, headersFor, httpPeer, json, open, send } from './http.ts'
import { callName, enveloped, errorOf, everyRevision, type Frame, helloParams, resultOf, speak, textOf } from './wire.ts'

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

interface Gated {
  readonly server: Server
  /** How many wait now. */
  readonly waiting: () => number
  readonly release: () => void
}

function make(limits: ServerOptions['limits'] = {}, more: Partial<ServerOptions> = {}): Gated {
  const server = createServer({ name: 'load', version: '1.0.0', revisions: everyRevision, limits, ...more })
  closers.push(() => server.close())
  let open: (() => void)[] = []
  server.tool('wait', {}, () => new Promise<string>(resolve => open.push(() => resolve('waited'))))
  server.tool('quick', {}, () => 'quick')
  server.resource('memo://one', { name: 'one' }, () => 'one')
  return {
    server,
    waiting: () => open.length,
    release: () => {
      for (const fn of open) fn()
      open = []
    },
  }
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise<void>(resolve => setImmediate(() => resolve()))
}

const busy = (revision: string): number => (revision === '2026-07-28' || revision === 'draft-2026-v1' ? -32603 : -32000)

describe.each(everyRevision)('calls in flight at %s', revision => {
  it('beyond the limit of a connection are refused by name; those that run are not dropped, others are not touched', async () => {
    const { server, waiting, release } = make({ callsPerConversation: 2 })
    const [wire, other] = [await speak(server, revision), await speak(server, revision)]
    const ids = [wire.begin(callName(revision), { name: 'wait' }), wire.begin(callName(revision), { name: 'wait' })]
    await until(() => waiting() === 2)
    const { code, message, data } = errorOf(await wire.ask(callName(revision), { name: 'quick' }))
    expect([code, message]).toEqual([busy(revision), expect.stringMatching(/2 calls.*\(callsPerConversation\)/)])
    expect(data).toEqual({ retryAfterMs: expect.any(Number) })
    expect(await other.ask(callName(revision), { name: 'quick' })).toHaveProperty('result')
    release()
    for (const id of ids) expect(await wire.next(frame => frame['id'] === id)).toHaveProperty('result')
    expect(await wire.ask(callName(revision), { name: 'quick' })).toHaveProperty('result')
  })

  it('beyond the limit of the process likewise', async () => {
    const { server, waiting, release } = make({ calls: 1 })
    const [wire, other] = [await speak(server, revision), await speak(server, revision)]
    wire.begin(callName(revision), { name: 'wait' }, 'w')
    await until(() => waiting() === 1)
    expect(errorOf(await other.ask(callName(revision), { name: 'quick' })).message).toMatch(/1 calls.*\(calls\)/)
    release()
    await wire.next(frame => frame['id'] === 'w')
    expect(await other.ask(callName(revision), { name: 'quick' })).toHaveProperty('result')
  })

  it('that were cancelled, or whose connection is gone, leave their place', async () => {
    const { server, waiting } = make({ calls: 1 })
    const wire = await speak(server, revision)
    const id = wire.begin(callName(revision), { name: 'wait' })
    await until(() => waiting() === 1)
    wire.tell(revision === 's3' ? 'cancel' : 'notifications/cancelled', revision === 's3' ? { id } : { requestId: id })
    await wire.quiet()
    expect(await wire.ask(callName(revision), { name: 'quick' })).toHaveProperty('result')
    wire.begin(callName(revision), { name: 'wait' })
    await until(() => waiting() === 2)
    await wire.close()
    const next = await speak(server, revision)
    await next.quiet()
    expect(await next.ask(callName(revision), { name: 'quick' })).toHaveProperty('result')
  })

  it('do not keep a ping or a cancel from being heard', async () => {
    const { server, waiting } = make({ callsPerConversation: 1 })
    const wire = await speak(server, revision)
    const id = wire.begin(callName(revision), { name: 'wait' })
    await until(() => waiting() === 1)
    if (!['2026-07-28', 'draft-2026-v1'].includes(revision)) expect(resultOf(await wire.ask('ping'))).toEqual({})
    wire.tell(revision === 's3' ? 'cancel' : 'notifications/cancelled', revision === 's3' ? { id } : { requestId: id })
    await wire.quiet()
    expect(await wire.ask(callName(revision), { name: 'quick' })).toHaveProperty('result')
  })
})

describe('over HTTP', () => {
  it.each(['2025-11-25', '2026-07-28'] as const)('%s: too many calls are 503 and a time to wait', async revision => {
    const { server, waiting, release } = make({ calls: 1 })
    const { url } = await server.listen({ closeMs: 10 })
    const peer = await httpPeer(url, revision)
    const first = peer.ask('tools/call', { name: 'wait' })
    await until(() => waiting() === 1)
    const refused = await peer.ask('tools/call', { name: 'quick' })
    expect([refused.status, refused.headers['retry-after'], errorOf(refused.frame).code]).toEqual([503, '1', busy(revision)])
    release()
    expect(textOf((await first).frame)).toBe('waited')
    expect((await peer.ask('tools/call', { name: 'quick' })).status).toBe(200)
  })

  it.each(['2026-07-28', 'draft-2026-v1'] as const)(
    '%s: calls of one principal beyond its limit are 503 by name, and another principal still gets in',
    async revision => {
      const { server, waiting, release } = make({ callsPerConversation: 2 })
      const { url, close } = await listenHttp(server.acceptor, { identify: header => ({ id: header('authorization') ?? '' }) })
      closers.push(close)
      const peer = await httpPeer(url, revision)
      const call = (name: string, who: string): Promise<Answer> =>
        peer.ask('tools/call', { name }, { headers: { authorization: who } })
      const first = [call('wait', 'ada'), call('wait', 'ada')]
      await until(() => waiting() === 2)
      const refused = await call('quick', 'ada')
      expect([refused.status, refused.headers['retry-after'], errorOf(refused.frame)]).toEqual([
        503,
        '1',
        {
          code: busy(revision),
          message: expect.stringMatching(/2 of your calls.*\(callsPerConversation\)/),
          data: { retryAfterMs: 1000 },
        },
      ])
      expect((await call('quick', 'bob')).status).toBe(200)
      release()
      for (const { frame } of await Promise.all(first)) expect(textOf(frame)).toBe('waited')
      expect((await call('quick', 'ada')).status).toBe(200)
    },
  )

  it('a principal whose calls were hung up on has its places back; without one only the total counts', async () => {
    const { server, waiting, release } = make({ callsPerConversation: 1 })
    const { url, close } = await listenHttp(server.acceptor, {
      identify: header => (header('authorization') === undefined ? undefined : { id: header('authorization') ?? '' }),
    })
    closers.push(close)
    const peer = await httpPeer(url, '2026-07-28')
    const params = enveloped('2026-07-28', { name: 'wait' }, {})
    const headers = { ...headersFor('2026-07-28', 'tools/call', params), authorization: 'ada' }
    const gone = begin(url, { headers, body: { jsonrpc: '2.0', id: 1, method: 'tools/call', params } })
    await until(() => waiting() === 1)
    gone.destroy()
    const quick = (): Promise<Answer> => peer.ask('tools/call', { name: 'quick' }, { headers: { authorization: 'ada' } })
    let again = await quick()
    while (again.status === 503) again = await quick()
    expect(again.status).toBe(200)
    const nobody = [peer.ask('tools/call', { name: 'wait' }), peer.ask('tools/call', { name: 'wait' })]
    await until(() => waiting() === 3)
    release()
    for (const { status } of await Promise.all(nobody)) expect(status).toBe(200)
  })

  const hello = (url: string, headers: Record<string, string> = {}): Promise<Answer> =>
    send(url, {
      headers: { ...json, ...headers },
      body: { jsonrpc: '2.0', id: 0, method: 'initialize', params: helloParams('2025-11-25') },
    })

  it('sessions beyond the limit are 503 by name while all are used; an ended one makes room', async () => {
    const { server } = make({ sessions: 2 })
    const { url } = await server.listen()
    const [one] = [await httpPeer(url, '2025-11-25'), await httpPeer(url, '2025-11-25')]
    const refused = await hello(url)
    expect([refused.status, refused.headers['retry-after'], errorOf(refused.frame).message]).toEqual([
      503,
      '10',
      expect.stringMatching(/2 sessions.*\(sessions\)/),
    ])
    expect(refused.headers['mcp-session-id']).toBeUndefined()
    await send(url, { method: 'DELETE', headers: headersFor('2025-11-25', '', {}, one?.session) })
    expect((await hello(url)).status).toBe(200)
  })

  it('sessions of one principal have a limit of their own', async () => {
    const { server } = make({ sessionsPerPrincipal: 1 })
    const { url, close } = await listenHttp(server.acceptor, { identify: header => ({ id: header('authorization') ?? '' }) })
    closers.push(close)
    expect((await hello(url, { authorization: 'ada' })).status).toBe(200)
    const refused = await hello(url, { authorization: 'ada' })
    expect([refused.status, errorOf(refused.frame).message]).toEqual([
      503,
      expect.stringMatching(/1 sessions.*\(sessionsPerPrincipal\)/),
    ])
    expect((await hello(url, { authorization: 'bob' })).status).toBe(200)
  })

  it('sessions that nobody used for too long are gone: 404; used ones stay', async () => {
    const clock = fakeClock()
    const { server } = make({ sessionIdleMs: 60_000 }, { clock })
    const { url } = await server.listen()
    const [idle, used] = [await httpPeer(url, '2025-11-25'), await httpPeer(url, '2025-06-18')]
    for (let minute = 0; minute < 3; minute++) {
      clock.advance(30_000)
      expect((await used.ask('ping')).status).toBe(200)
    }
    expect((await idle.ask('ping')).status).toBe(404)
  })

  it('a full table gives up what is idle past its time before it refuses', async () => {
    const clock = fakeClock()
    const { server } = make({ sessions: 1, sessionIdleMs: 30_000 }, { clock })
    const { url } = await server.listen()
    await httpPeer(url, '2025-11-25')
    expect((await hello(url)).status).toBe(503)
    clock.advance(30_001)
    expect((await hello(url)).status).toBe(200)
  })

  it('event streams beyond the limit are 503 by name, and JSON answers need none', async () => {
    const { server } = make()
    const { url } = await server.listen({ limits: { streams: 1 }, closeMs: 10 })
    const [ada, bob] = [await httpPeer(url, '2025-11-25'), await httpPeer(url, '2025-11-25')]
    const stream = await open(url, { method: 'GET', headers: headersFor('2025-11-25', '', {}, ada.session) })
    expect(stream.response.statusCode).toBe(200)
    const refused = await send(url, { method: 'GET', headers: headersFor('2025-11-25', '', {}, bob.session) })
    expect([refused.status, errorOf(refused.frame).message]).toEqual([503, expect.stringContaining('(streams)')])
    expect((await bob.ask('tools/call', { name: 'quick' })).status).toBe(200)
    stream.request.destroy()
  })

  it('a sender that is too slow is cut, and others are served meanwhile', async () => {
    const { server } = make()
    const { url, port } = await server.listen({ limits: { headersMs: 200, requestMs: 300 } })
    const cut = new Promise<void>(resolve => {
      const socket = connect(port, '127.0.0.1', () =>
        socket.write('POST /mcp HTTP/1.1\r\nHost: localhost\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{'),
      )
      socket.resume()
      socket.on('error', () => {})
      socket.on('close', () => resolve())
    })
    expect((await (await httpPeer(url, '2026-07-28')).ask('tools/call', { name: 'quick' })).status).toBe(200)
    await cut
  })

  it('a reader that does not read is cut when its queue is full, and others are served', async () => {
    const { server } = make({ rates: false })
    let stopped = false
    server.tool('flood', {}, async (_, ctx) => {
      ctx.signal.addEventListener('abort', () => {
        stopped = true
      })
      while (!stopped) {
        ctx.log('info', 'x'.repeat(100_000))
        await new Promise<void>(resolve => setImmediate(() => resolve()))
      }
      return 'over'
    })
    const { url, port } = await server.listen({
      limits: { queueBytes: 64_000, queueCeiling: 512_000, stallMs: 100 },
      closeMs: 10,
    })
    const body = JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: enveloped('2026-07-28', { name: 'flood', _meta: { 'io.modelcontextprotocol/logLevel': 'info' } }),
    })
    const head = Object.entries(headersFor('2026-07-28', 'tools/call', { name: 'flood' })).map(
      ([name, value]) => `${name}: ${value}\r\n`,
    )
    const socket = connect(port, '127.0.0.1', () =>
      socket.write(
        `POST /mcp HTTP/1.1\r\nHost: localhost\r\n${head.join('')}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
      ),
    )
    socket.on('error', () => {})
    socket.pause()
    expect((await (await httpPeer(url, '2026-07-28')).ask('tools/call', { name: 'quick' })).status).toBe(200)
    await until(() => stopped)
    expect(stopped).toBe(true)
    socket.destroy()
  })
})

describe('listening', () => {
  const params = { notifications: { toolsListChanged: true } }

  it.each(['2026-07-28', 'draft-2026-v1'] as const)(
    '%s: beyond the limit of a connection, and of all, it is refused by name',
    async revision => {
      const { server } = make({ listenersPerCaller: 1, listeners: 2 })
      const wires = [await speak(server, revision), await speak(server, revision), await speak(server, revision)]
      const [one, two, three] = wires as [Wire3, Wire3, Wire3]
      for (const wire of [one, two]) {
        wire.begin('subscriptions/listen', params)
        await wire.next(frame => frame['method'] !== undefined)
      }
      expect(errorOf(await one.ask('subscriptions/listen', params)).message).toMatch(/1 subscriptions.*\(listenersPerCaller\)/)
      expect(errorOf(await three.ask('subscriptions/listen', params)).message).toMatch(/2 subscriptions.*\(listeners\)/)
      await one.close()
      await three.quiet()
      three.begin('subscriptions/listen', params)
      expect((await three.next(frame => frame['method'] !== undefined))['method']).toBe(
        'notifications/subscriptions/acknowledged',
      )
    },
  )

  it('is counted per principal, whatever connections it has', async () => {
    const { server } = make({ listenersPerCaller: 1 })
    const [one, two, eve] = [
      await speak(server, '2026-07-28', { principal: 'ada' }),
      await speak(server, '2026-07-28', { principal: 'ada' }),
      await speak(server, '2026-07-28', { principal: 'eve' }),
    ]
    one.begin('subscriptions/listen', params)
    await one.next(frame => frame['method'] !== undefined)
    expect(errorOf(await two.ask('subscriptions/listen', params)).code).toBe(-32603)
    eve.begin('subscriptions/listen', params)
    await eve.next(frame => frame['method'] !== undefined)
  })

  it('over HTTP is 503, and the place is free when the listener hangs up', async () => {
    const { server } = make({ listeners: 1 })
    const { url } = await server.listen({ closeMs: 10 })
    const peer = await httpPeer(url, '2026-07-28')
    const first = await peer.open('subscriptions/listen', params)
    await events(first.response).next()
    const refused = await peer.ask('subscriptions/listen', params)
    expect([refused.status, refused.headers['retry-after']]).toEqual([503, '10'])
    first.request.destroy()
    let again = await retry(peer)
    while (again.response.statusCode === 503) again = await retry(peer)
    expect(again.response.statusCode).toBe(200)
    again.request.destroy()
  })

  const retry = (peer: HttpPeer) => peer.open('subscriptions/listen', params)

  it.each(['2024-11-05', '2025-11-25'] as const)('%s: resources watched in one session have a limit', async revision => {
    const { server } = make({ subscriptions: 2 })
    const wire = await speak(server, revision)
    const watch = (uri: string): Promise<Frame> => wire.ask('resources/subscribe', { uri })
    for (const uri of ['memo://1', 'memo://2', 'memo://1']) expect(resultOf(await watch(uri))).toEqual({})
    expect(errorOf(await watch('memo://3')).message).toMatch(/2 subscriptions.*\(subscriptions\)/)
    await wire.ask('resources/unsubscribe', { uri: 'memo://1' })
    expect(resultOf(await watch('memo://3'))).toEqual({})
  })

  it.each(['2024-11-05', '2025-11-25', '2026-07-28'] as const)(
    '%s: a URI to watch has a length, so that what is remembered has one too',
    async revision => {
      const { server } = make()
      const wire = await speak(server, revision)
      const long = `memo://${'x'.repeat(10_000)}`
      const stateless = revision === '2026-07-28'
      const refused = stateless
        ? await wire.ask('subscriptions/listen', { notifications: { resourceSubscriptions: ['memo://one', long] } })
        : await wire.ask('resources/subscribe', { uri: long })
      expect([errorOf(refused).code, errorOf(refused).message]).toEqual([-32602, expect.stringContaining('8192')])
      expect(JSON.stringify(refused).length).toBeLessThan(400)
      expect(await wire.ask('tools/list')).toHaveProperty('result')
    },
  )

  it('and so have those named in one listen request', async () => {
    const { server } = make({ subscriptions: 2 })
    const wire = await speak(server, '2026-07-28')
    const notifications = { resourceSubscriptions: ['memo://1', 'memo://2', 'memo://3'] }
    expect(errorOf(await wire.ask('subscriptions/listen', { notifications })).message).toMatch(/3.*2.*\(subscriptions\)/)
    wire.begin('subscriptions/listen', { notifications: { resourceSubscriptions: ['memo://1', 'memo://1', 'memo://2'] } })
    await wire.next(frame => frame['method'] !== undefined)
  })
})

describe('time', () => {
  it.each(everyRevision)(
    '%s: a tool with a timeout is told to stop and answered at once, whether it does or not',
    async revision => {
      const clock = fakeClock()
      const { server } = make({}, { clock })
      let stopped = false
      server.tool('slow', { timeout: '5s' }, (_, ctx) => {
        ctx.signal.addEventListener('abort', () => {
          stopped = true
        })
        return new Promise<string>(() => {})
      })
      const wire = await speak(server, revision)
      const id = wire.begin(callName(revision), { name: 'slow' })
      await wire.quiet()
      clock.advance(5_001)
      const answer = await wire.next(frame => frame['id'] === id && frame['method'] === undefined)
      expect([stopped, JSON.stringify(answer)]).toEqual([true, expect.stringContaining('5000 ms')])
      expect(await wire.ask(callName(revision), { name: 'quick' })).toHaveProperty('result')
    },
  )
})

type Wire3 = Awaited<ReturnType<typeof speak>>
