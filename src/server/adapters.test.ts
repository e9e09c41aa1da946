import { createServer as createHttpServer, type Server as HttpServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import express from 'express'
import fastify from 'fastify'
import { Hono } from 'hono'
import { afterEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { connect } from '../client/index.ts'
import { mcp as expressMcp } from './express.ts'
import { mcp as fastifyMcp } from './fastify.ts'
import { mcp as honoMcp } from './hono.ts'
import { createServer, type Server } from './index.ts'

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

function greeter(): Server {
  const server = createServer({ name: 'greeter', version: '1.0.0', secret: 'a secret of at least thirty-two characters' })
  server.tool('greet', { input: z.object({ name: z.string() }) }, async ({ name }, ctx) => {
    ctx.progress(1, { total: 1 })
    return `${(await ctx.confirm('Politely?')) ? 'Good day' : 'Hi'}, ${name}`
  })
  closers.push(() => server.close())
  return server
}

async function listen(http: HttpServer): Promise<string> {
  await new Promise<void>(resolve => http.listen(0, '127.0.0.1', () => resolve()))
  closers.push(
    () => new Promise(resolve => http.close(resolve)),
    () => http.closeAllConnections(),
  )
  return `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`
}

const frameworks: Record<string, (server: Server) => Promise<string>> = {
  'Express without a body parser': async server => listen(createHttpServer(express().all('/mcp', expressMcp(server)))),
  'Express behind its JSON parser': async server =>
    listen(createHttpServer(express().use(express.json()).all('/mcp', expressMcp(server)))),
  Fastify: async server => {
    const app = fastify()
    await app.register(fastifyMcp, { server })
    closers.push(() => app.close())
    return `${await app.listen({ port: 0, host: '127.0.0.1' })}/mcp`
  },
  Hono: async server => {
    const app = new Hono().all('/mcp', honoMcp(server))
    return listen(
      createHttpServer(async (req, res) => {
        const answer = await app.fetch(webRequest(req))
        res.writeHead(answer.status, Object.fromEntries(answer.headers))
        for await (const chunk of answer.body ?? []) res.write(chunk)
        res.end()
      }),
    )
  },
}

/** What a web-standard runtime would hand over. */
function webRequest(req: IncomingMessage): Request {
  const body = req.method === 'POST' ? { body: Readable.toWeb(req), duplex: 'half' } : {}
  return new Request(`http://${req.headers.host}${req.url}`, {
    method: req.method ?? 'GET',
    headers: req.headers as Record<string, string>,
    ...body,
  } as RequestInit)
}

describe.each(Object.entries(frameworks))('a server mounted in %s', (_name, mount) => {
  it.each(['2025-11-25', '2026-07-28'] as const)(
    'answers a client at %s, with progress and a question on the way',
    async revision => {
      const url = await mount(greeter())
      const progress: number[] = []
      const mcp = await connect(url, {
        revisions: [revision],
        onElicit: () => ({ action: 'accept', content: { confirm: true } }),
      })
      closers.push(() => mcp.close())
      const out = await mcp.callTool('greet', { name: 'Ada' }, { onProgress: step => progress.push(step.progress) })
      expect([mcp.revision, out.text]).toEqual([revision, 'Good day, Ada'])
      expect(progress.length).toBeGreaterThan(0)
    },
  )
})

it.each(Object.entries(frameworks))('a server mounted in %s takes no longer bodies than it says', async (_name, mount) => {
  const server = createServer({ name: 'short', version: '1.0.0', log: 'silent', limits: { frameBytes: 2_000 } })
  closers.push(() => server.close())
  server.tool('greet', { input: { type: 'object' } }, () => 'hello')
  const url = await mount(server)
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
  const post = async (long: string): Promise<number> => {
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: long, version: '1' } }
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params })
    return (await fetch(url, { method: 'POST', headers, body })).status
  }
  expect([await post('short'), await post('x'.repeat(3_000))]).toEqual([200, 413])
})

describe('the web-standard face', () => {
  it('refuses to ask without a secret, because another process may get the answer', async () => {
    const server = createServer({ name: 'forgetful', version: '1.0.0' })
    server.tool('ask', {}, (_, ctx) => ctx.confirm('Sure?'))
    closers.push(() => server.close())
    const mcp = await connect('http://localhost/mcp', {
      revisions: ['2026-07-28'],
      onElicit: () => ({ action: 'accept', content: { confirm: true } }),
      fetch: (input, init) => server.fetch(new Request(input, init)),
    })
    await expect(mcp.callTool('ask')).rejects.toThrow(/secret/)
    await mcp.close()
  })
})
