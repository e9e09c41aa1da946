import { describe, expect, it } from 'vitest'
import type { Caller, Lane, Principal, SendHints } from '../jsonrpc/connection.ts'
import { createServer, type Server, type ServerOptions } from '../server/index.ts'
import { fakeClock } from '../testing/index.ts'

interface Answer {
  readonly status: number
  readonly frame: { error?: { code: number; message: string }; result?: unknown } | undefined
  readonly session: string | undefined
}

/** One exchange over HTTP, without the socket. */
function post(
  server: Server,
  body: object | undefined,
  headers: Record<string, string> = {},
  principal?: Principal,
): Promise<Answer> {
  return new Promise(resolve => {
    const caller: Caller = { carrier: 'http', connection: {}, principal, header: name => headers[name] }
    const settle = (frame: string | undefined, hints: SendHints | undefined, standard: number): void =>
      resolve({
        status: hints?.status ?? standard,
        frame: frame === undefined ? undefined : JSON.parse(frame),
        session: hints?.headers?.['mcp-session-id'],
      })
    const lane: Lane = {
      send: (frame, hints) => settle(frame, hints, 200),
      end: hints => settle(undefined, hints, 202),
      closed: false,
      onClose: () => {},
    }
    if (body === undefined) server.acceptor.leave(caller, lane)
    else server.acceptor.deliver(JSON.stringify(body), caller, lane)
  })
}

const hello = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'raw', version: '1' } },
}
const ping = { jsonrpc: '2.0', id: 2, method: 'ping' }
const make = (options: Partial<ServerOptions> = {}): Server => createServer({ name: 'seats', version: '1.0.0', ...options })

async function open(server: Server, principal?: Principal): Promise<Record<string, string>> {
  const { session } = await post(server, hello, {}, principal)
  return { 'mcp-session-id': session ?? '' }
}

describe('sessions over HTTP (trap 24)', () => {
  it('are named by the answer to initialize, and serve whoever names them', async () => {
    const server = make()
    const headers = await open(server)
    expect(headers['mcp-session-id']).toMatch(/^[\x21-\x7e]{32,}$/)
    expect(await post(server, ping, headers)).toMatchObject({ status: 200, frame: { id: 2, result: {} } })
  })

  it('are demanded with 400, unknown with 404, and gone after DELETE', async () => {
    const server = make()
    const headers = await open(server)
    expect((await post(server, ping)).status).toBe(400)
    for (const id of ['constructor', '__proto__', 'nonsense'])
      expect((await post(server, ping, { 'mcp-session-id': id })).status).toBe(404)
    expect((await post(server, undefined, headers)).status).toBe(200)
    expect((await post(server, ping, headers)).status).toBe(404)
    expect((await post(server, undefined, headers)).status).toBe(404)
  })

  it('of another principal are answered exactly like unknown ones', async () => {
    const server = make()
    const headers = await open(server, { id: 'ada' })
    const unknown = await post(server, ping, { 'mcp-session-id': 'nonsense' }, { id: 'eve' })
    for (const principal of [{ id: 'eve' }, undefined]) expect(await post(server, ping, headers, principal)).toEqual(unknown)
    expect((await post(server, ping, headers, { id: 'ada' })).status).toBe(200)
  })

  it('end when idle for too long, but not while they are used', async () => {
    const clock = fakeClock()
    const server = make({ clock })
    const [used, idle] = [await open(server), await open(server)]
    for (let minute = 0; minute < 15; minute++) {
      clock.advance(60_000)
      expect((await post(server, ping, used)).status).toBe(200)
    }
    expect((await post(server, ping, idle)).status).toBe(404)
  })

  it('are capped in all and per principal, with a wait to go with the refusal', async () => {
    const server = make({ limits: { sessions: 3, sessionsPerPrincipal: 2 } })
    const ada = { id: 'ada' }
    for (const principal of [ada, ada]) expect((await post(server, hello, {}, principal)).status).toBe(200)
    expect(await post(server, hello, {}, ada)).toMatchObject({
      status: 503,
      frame: { error: { message: expect.stringContaining('2 sessions') } },
    })
    expect((await post(server, hello, {}, { id: 'bob' })).status).toBe(200)
    expect(await post(server, hello)).toMatchObject({
      status: 503,
      frame: { error: { message: expect.stringContaining('3 sessions') } },
    })
  })

  it('are not kept alive by those who do not own them', async () => {
    const clock = fakeClock()
    const server = make({ clock })
    const headers = await open(server, { id: 'ada' })
    for (let minute = 0; minute < 12; minute++) {
      clock.advance(60_000)
      await post(server, ping, headers, { id: 'eve' })
    }
    expect((await post(server, ping, headers, { id: 'ada' })).status).toBe(404)
  })

  it('that are idle past their time make room for new ones of their principal at once, not at the next sweep', async () => {
    const clock = fakeClock()
    const server = make({ clock, limits: { sessionsPerPrincipal: 1, sessionIdleMs: 100_000 } })
    const ada = { id: 'ada' }
    clock.advance(1)
    await open(server, ada)
    clock.advance(100_001)
    expect((await post(server, hello, {}, ada)).status).toBe(200)
  })

  it('that were held open by a stream have their time again when it breaks', async () => {
    const clock = fakeClock()
    const server = make({ clock })
    const headers = await open(server)
    const lane = { send: () => {}, end: () => {}, closed: false, onClose: () => {} }
    server.acceptor.listen({ carrier: 'http', connection: {}, header: name => headers[name] }, lane)
    clock.advance(3_600_000)
    lane.closed = true
    clock.advance(120_000)
    expect((await post(server, ping, headers)).status).toBe(200)
  })

  it('can be done without: then each post stands alone', async () => {
    const server = make({ sessions: false })
    expect(await post(server, hello)).toMatchObject({ status: 200, session: undefined })
    expect(await post(server, ping, { 'mcp-protocol-version': '2025-11-25' })).toMatchObject({
      status: 200,
      frame: { result: {} },
    })
    expect((await post(server, undefined)).status).toBe(405)
  })
})
