import { once } from 'node:events'
import { createServer as createHttp } from 'node:http'
import type { AddressInfo } from 'node:net'
import express from 'express'
import fastify from 'fastify'
import { Hono } from 'hono'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { WebSocket } from 'ws'
import { type TestIssuer, testIssuer } from '../../test/auth/issuer.ts'
import { events, headersFor, httpPeer, open, send } from '../../test/spec/http.ts'
import { helloParams } from '../../test/spec/wire.ts'
import { fakeClock } from '../testing/clock.ts'
import { mcp as expressMcp } from './express.ts'
import { mcp as fastifyMcp } from './fastify.ts'
import { mcp as honoMcp } from './hono.ts'
import { createLog, createServer, oauth, type Server, type ServerOptions } from './index.ts'

const resource = 'https://api.example.com/mcp'
const metadataPath = '/.well-known/oauth-protected-resource/mcp'
const closers: (() => unknown)[] = []
let issuer: TestIssuer
/** Called when the work of `wait` was told to stop. */
let stopped = (): void => undefined

beforeAll(async () => {
  issuer = await testIssuer()
})
afterAll(() => issuer.close())
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

function tickets(options: Partial<ServerOptions> = {}): Server {
  const server = createServer({ name: 'tickets', version: '1.0.0', ...options })
  server.tool('who', {}, (_, { principal }) => `${principal?.subject} by ${principal?.client} with ${principal?.scopes}`)
  server.tool('wait', {}, async (_, ctx) => {
    ctx.progress(1)
    await once(ctx.signal, 'abort')
    stopped()
  })
  closers.push(() => server.close())
  return server
}

const auth = () => oauth({ issuer: issuer.url, resource, scopes: ['tickets'] })
const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'who' } }
const bearer = (audience = resource) => ({ authorization: `Bearer ${issuer.token(audience)}` })
const stateless = (name: string) => headersFor('2025-03-26', name, {})

/** Each way of serving HTTP, as an origin at which /mcp is. */
const faces: Record<string, () => Promise<string>> = {
  listen: async () => new URL((await tickets({ sessions: false }).listen({ auth: auth() })).url).origin,
  fetch: async () => serveWeb(tickets({ sessions: false }).fetchWith({ auth: auth() })),
  Express: async () => {
    const app = express().all(
      ['/mcp', '/.well-known/oauth-protected-resource{/*path}'],
      expressMcp(tickets({ sessions: false }), { auth: auth() }),
    )
    const http = createHttp(app).listen(0, '127.0.0.1')
    await once(http, 'listening')
    closers.push(() => http.close())
    return `http://127.0.0.1:${(http.address() as AddressInfo).port}`
  },
  Fastify: async () => {
    const app = fastify()
    await app.register(fastifyMcp, { server: tickets({ sessions: false }), auth: auth() })
    closers.push(() => app.close())
    return app.listen({ port: 0, host: '127.0.0.1' })
  },
  Hono: async () => {
    const handle = honoMcp(tickets({ sessions: false }), { auth: auth() })
    const app = new Hono().all('/mcp', handle).all('/.well-known/oauth-protected-resource/*', handle)
    return serveWeb(async request => app.fetch(request))
  },
}

async function serveWeb(handle: (request: Request) => Promise<Response>): Promise<string> {
  const http = createHttp(async (req, res) => {
    const body = req.method === 'POST' ? Buffer.concat(await req.toArray()) : null
    const headers = Object.entries(req.headers).map(([name, value]) => [name, String(value)] as [string, string])
    const answer = await handle(
      new Request(`http://${req.headers.host}${req.url}`, { method: req.method ?? 'GET', headers, body }),
    )
    res.writeHead(answer.status, Object.fromEntries(answer.headers))
    res.end(Buffer.from(await answer.arrayBuffer()))
  }).listen(0, '127.0.0.1')
  await once(http, 'listening')
  closers.push(() => http.close())
  return `http://127.0.0.1:${(http.address() as AddressInfo).port}`
}

describe.each(Object.entries(faces))('a protected server by %s', (_, serve) => {
  it('lets in who brings a good token, and tells the handler who it is', async () => {
    const origin = await serve()
    const answer = await send(`${origin}/mcp`, { headers: { ...stateless('tools/call'), ...bearer() }, body: call })
    expect(answer.frame).toMatchObject({ result: { content: [{ text: 'ada by app with tickets' }] } })
  })

  it('answers 401 with a challenge to whoever brings none, by any method, before anything else is looked at', async () => {
    const origin = await serve()
    for (const method of ['POST', 'GET', 'DELETE', 'PUT']) {
      const answer = await send(`${origin}/mcp`, { method, headers: { 'content-type': 'text/plain' } })
      expect(answer.status).toBe(401)
      expect(answer.headers['www-authenticate']).toBe(
        `Bearer resource_metadata="https://api.example.com${metadataPath}", scope="tickets"`,
      )
      expect(answer.frame).toMatchObject({ jsonrpc: '2.0', error: { code: -32600 } })
    }
  })

  it('answers 403 to a token without the scopes that all need', async () => {
    const origin = await serve()
    const weak = { authorization: `Bearer ${issuer.token(resource, { scope: 'read' })}` }
    const answer = await send(`${origin}/mcp`, { headers: { ...stateless('tools/call'), ...weak }, body: call })
    expect(answer.status).toBe(403)
    expect(answer.headers['www-authenticate']).toMatch(/^Bearer error="insufficient_scope".*scope="read tickets"$/)
  })

  it('serves its metadata (RFC 9728) to anyone, from any origin, and by GET alone', async () => {
    const origin = await serve()
    const headers = { origin: 'https://anywhere.example' }
    for (const path of [metadataPath, '/.well-known/oauth-protected-resource']) {
      const answer = await send(origin + path, { method: 'GET', headers })
      expect(answer.status).toBe(200)
      expect(answer.headers).toMatchObject({ 'access-control-allow-origin': '*', 'content-type': 'application/json' })
      expect(answer.frame).toMatchObject({ resource, authorization_servers: [issuer.url], resource_name: 'tickets' })
    }
    const at = (method: string) => send(origin + metadataPath, { method, headers })
    expect(await at('HEAD')).toMatchObject({ status: 200, text: '' })
    expect(await at('OPTIONS')).toMatchObject({ status: 204, headers: { 'access-control-allow-origin': '*' } })
    expect(await at('POST')).toMatchObject({ status: 405, headers: { allow: 'GET, HEAD, OPTIONS' } })
  })

  it('answers to the name in its own address, and to no other', async () => {
    const origin = await serve()
    const named = await send(origin + metadataPath, { method: 'GET', headers: { host: 'api.example.com' } })
    expect(named.status).toBe(200)
    expect((await send(`${origin}/mcp`, { headers: { host: 'api.example.com' } })).status).toBe(401)
    expect((await send(`${origin}/mcp`, { headers: { host: 'evil.example' } })).status).toBe(403)
  })

  it('does not serve its metadata under a name that is not its own', async () => {
    const answer = await send((await serve()) + metadataPath, { method: 'GET', headers: { host: 'evil.example' } })
    expect(answer.status).toBe(403)
  })
})

describe('listen', () => {
  it('on loopback knows its own address as the resource', async () => {
    const { url } = await tickets({ sessions: false }).listen({ auth: oauth({ issuer: issuer.url }) })
    const answer = await send(url, { headers: { ...stateless('tools/call'), ...bearer(url) }, body: call })
    expect(answer.status).toBe(200)
    const { frame } = await send(new URL(metadataPath, url).href, { method: 'GET', headers: {} })
    expect(frame).toMatchObject({ resource: url })
  })

  it('elsewhere wants authorization or a word against it, and with it the address that others use', async () => {
    const server = tickets()
    await expect(server.listen({ host: '0.0.0.0' })).rejects.toThrow("or set auth: 'none'")
    await expect(server.listen({ host: '0.0.0.0', auth: oauth({ issuer: issuer.url }) })).rejects.toThrow('option resource')
    await expect(server.listen({ host: '0.0.0.0', auth: auth() })).resolves.toBeDefined()
  })

  it('serves no metadata and asks for nothing where there is no authorization', async () => {
    const { url } = await tickets({ sessions: false }).listen()
    expect((await send(new URL(metadataPath, url).href, { method: 'GET', headers: {} })).status).toBe(404)
    expect((await send(url, { headers: stateless('tools/call'), body: call })).status).toBe(200)
  })

  it('fetchWith wants the resource at once', () => {
    expect(() => tickets().fetchWith({ auth: oauth({ issuer: issuer.url }) })).toThrow('option resource')
  })
})

describe('the log', () => {
  it('tells why tokens cannot be verified, once for many, and never a token', async () => {
    const lines: string[] = []
    const log = createLog({ level: 'error', format: 'json', write: line => lines.push(line) })
    const verify = (token: string) => Promise.reject(new Error(`no database for ${token}`))
    const { url } = await tickets({ log }).listen({ auth: oauth({ issuer: issuer.url, verify }) })
    for (const token of ['c4nary-one', 'c4nary-two']) {
      const answer = await send(url, { headers: { authorization: `Bearer ${token}` } })
      expect([answer.status, answer.headers['retry-after']]).toEqual([503, '5'])
    }
    expect(lines.map(line => JSON.parse(line))).toMatchObject([{ event: 'authorization' }])
    expect(lines.join()).not.toContain('c4nary')
  })
})

describe('a WebSocket', () => {
  const wsUrl = (url: string) => url.replace('http', 'ws').replace('/mcp', '/ws')

  it('is refused with the challenge before the upgrade', async () => {
    const { url } = await tickets().listen({ auth: auth(), wsPath: '/ws' })
    const client = new WebSocket(wsUrl(url), ['mcp']).on('error', () => {})
    const [, response] = await once(client, 'unexpected-response')
    expect(response.statusCode).toBe(401)
    expect(response.headers['www-authenticate']).toContain('resource_metadata=')
    client.terminate()
  })

  it('knows its principal, and ends with the token that opened it', async () => {
    const clock = fakeClock(Date.now())
    const { url } = await tickets({ clock }).listen({ auth: auth(), wsPath: '/ws' })
    const client = new WebSocket(wsUrl(url), ['mcp'], { headers: bearer() })
    await once(client, 'open')
    const ask = async (frame: object) => {
      client.send(JSON.stringify(frame))
      return JSON.parse(String((await once(client, 'message'))[0]))
    }
    await ask({ jsonrpc: '2.0', id: 0, method: 'initialize', params: helloParams('2025-11-25') })
    expect(await ask(call)).toMatchObject({ result: { content: [{ text: 'ada by app with tickets' }] } })
    // In steps between which it gives signs of life: the pong goes out before the second question, so it is there before its answer.
    for (let passed = 0; passed < 300_000 + 40_000; passed += 20_000) {
      clock.advance(20_000)
      expect(await ask(call)).toBeDefined()
      expect(await ask(call)).toBeDefined()
    }
    const closed = once(client, 'close')
    clock.advance(20_000)
    const [code] = await closed
    expect(code).toBe(3000)
  })
})

describe('an event stream', () => {
  it.each(['2025-06-18', '2025-11-25'] as const)(
    'of %s ends with the token that opened it, and its session does not',
    async revision => {
      const clock = fakeClock(Date.now())
      const { url } = await tickets({ clock, limits: { sessionIdleMs: 3_600_000 } }).listen({ auth: auth() })
      const peer = await httpPeer(url, revision, {}, bearer())
      const { response } = await open(url, {
        method: 'GET',
        headers: { ...headersFor(revision, '', {}, peer.session), ...bearer() },
      })
      expect(response.statusCode).toBe(200)
      const ended = vi.fn()
      response.on('end', ended).resume()
      clock.advance(300_000 + 59_000)
      await peer.ask('ping')
      expect(ended).not.toHaveBeenCalled()
      clock.advance(2_000)
      await once(response, 'close')
      const at = Math.floor(clock.now() / 1000)
      const fresh = { authorization: `Bearer ${issuer.token(resource, { exp: at + 300 })}` }
      const answer = await peer.ask('tools/call', { name: 'who' }, { headers: fresh })
      expect(answer.frame).toMatchObject({ result: { content: [{ text: 'ada by app with tickets' }] } })
    },
  )

  it('that answers a call of 2026-07-28 ends too, and with it the work', async () => {
    const clock = fakeClock(Date.now())
    const { url } = await tickets({ clock }).listen({ auth: auth() })
    const peer = await httpPeer(url, '2026-07-28', {}, bearer())
    const { response } = await peer.open('tools/call', { name: 'wait', _meta: { progressToken: 1 } })
    const heard = events(response)
    expect((await heard.next()).value).toMatchObject({ frame: { method: 'notifications/progress' } })
    const over = new Promise<void>(resolve => {
      stopped = resolve
    })
    clock.advance(300_000 + 61_000)
    await over
    expect(await heard.next()).toMatchObject({ done: true })
  })
})
