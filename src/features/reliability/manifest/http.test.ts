import { createServer as createHttpServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import express from 'express'
import { afterEach, expect, it } from 'vitest'
import { connect } from '../../../client/index.ts'
import { mcp } from '../../../server/express.ts'
import { createServer, oauth, type Server, type ServerOptions } from '../../../server/index.ts'

const open: (() => Promise<unknown> | unknown)[] = []
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close()
})

function make(options: Partial<ServerOptions> = {}): Server {
  const server = createServer({
    name: 'tracker',
    version: '1.0.0',
    log: 'silent',
    manifest: { http: true },
    cache: { ttl: '2m', scope: 'public' },
    ...options,
  })
  open.push(() => server.close())
  server.tool('close_ticket', { description: 'Closes', scopes: ['write'] }, () => 'closed')
  return server
}

it('E1-1: the manifest is at the address of the server and /capabilities, with its revision as ETag', async () => {
  const { url } = await make().listen()
  const answer = await fetch(`${url}/capabilities`)
  const etag = answer.headers.get('etag') ?? ''
  expect(answer.status).toBe(200)
  expect(answer.headers.get('content-type')).toBe('application/json')
  expect(answer.headers.get('cache-control')).toBe('public, max-age=120')
  const client = await connect(url)
  open.push(() => client.close())
  const manifest = await client.manifest()
  expect(etag).toBe(`"${manifest.revision}"`)
  expect(await answer.json()).toEqual(manifest.document)
})

it('E1-4: whoever has that revision is told so, without the manifest', async () => {
  const server = make()
  const { url } = await server.listen()
  const etag = (await fetch(`${url}/capabilities`)).headers.get('etag') ?? ''
  const again = await fetch(`${url}/capabilities`, { headers: { 'if-none-match': `"other", W/${etag}` } })
  expect([again.status, await again.text()]).toEqual([304, ''])
  server.tool('more', {}, () => '')
  expect((await fetch(`${url}/capabilities`, { headers: { 'if-none-match': etag } })).status).toBe(200)
})

it('E1-8: with counters of a caller it is for that caller alone', async () => {
  const { url } = await make({ manifest: { http: true, counters: true } }).listen()
  const answer = await fetch(`${url}/capabilities`)
  expect(answer.headers.get('cache-control')).toBe('private, max-age=120')
  expect(await answer.json()).toMatchObject({ rate_limits: { remaining: 2000 } })
})

it('the web-standard face and frameworks serve it, too', async () => {
  const server = make()
  const answer = await server.fetch(new Request('http://localhost/mcp/capabilities'))
  expect(await answer.json()).toMatchObject({ tools: [{ name: 'close_ticket' }] })
  expect((await server.fetch(new Request('http://localhost/mcp/capabilities', { method: 'HEAD' }))).status).toBe(200)
  const app = express()
  app.use('/deep/mcp', mcp(server))
  const http = createHttpServer(app).listen(0, '127.0.0.1')
  await new Promise(resolve => http.once('listening', resolve))
  open.push(() => new Promise(resolve => http.close(resolve)))
  const { port } = http.address() as AddressInfo
  const mounted = await fetch(`http://127.0.0.1:${port}/deep/mcp/capabilities`)
  expect(await mounted.json()).toMatchObject({ tools: [{ name: 'close_ticket' }] })
})

it('it is read and nothing else, by those who may call, under names that are ours', async () => {
  const server = make()
  const { url } = await server.listen()
  const posted = await fetch(`${url}/capabilities`, { method: 'POST', body: '{}' })
  expect([posted.status, posted.headers.get('allow')]).toEqual([405, 'GET, HEAD'])
  const foreign = await fetch(`${url}/capabilities`, { headers: { origin: 'https://evil.example' } })
  expect(foreign.status).toBe(403)
  const verify = () => undefined
  const guarded = await make().listen({ auth: oauth({ issuer: 'https://issuer.example', verify }) })
  const refused = await fetch(`${guarded.url}/capabilities`)
  expect(refused.status).toBe(401)
  expect(await refused.text()).not.toContain('close_ticket')
})

it('it is not there unless it is wanted', async () => {
  const { url } = await make({ manifest: true }).listen()
  expect((await fetch(`${url}/capabilities`)).status).toBe(404)
})
