import { request } from 'node:http'
import { afterEach, describe, expect, it } from 'vitest'
import { envelope, type Frame } from '../../../../test/raw-wire.ts'
import { createServer, type Server } from '../../../server/server.ts'

const servers: Server[] = []

afterEach(async () => {
  for (const server of servers.splice(0)) await server.close()
})

async function desk(
  limits: NonNullable<Parameters<typeof createServer>[0]['limits']> = {},
): Promise<{ server: Server; url: string }> {
  const server = createServer({ name: 'desk', version: '1', limits })
  servers.push(server)
  server.tool('first', {}, () => 'x')
  server.resource('note://first', { name: 'first' }, () => 'x')
  const { url } = await server.listen({ port: 0 })
  return { server, url }
}

const types = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }

function post(url: string, body: Frame, headers: Record<string, string>): Promise<Response> {
  return fetch(url, { method: 'POST', headers: { ...types, ...headers }, body: JSON.stringify({ jsonrpc: '2.0', ...body }) })
}

const params = { notifications: { toolsListChanged: true }, _meta: envelope('2026-07-28') }
const listenHeaders = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'subscriptions/listen' }

function listen(url: string, id: string | number): Promise<Response> {
  return post(url, { id, method: 'subscriptions/listen', params }, listenHeaders)
}

/** Listens on a socket of its own and, once that is acknowledged, gives the way to cut it. */
function listenOnSocket(url: string): Promise<() => void> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method: 'POST', agent: false, headers: { ...types, ...listenHeaders } }, response => {
      response.once('data', () => resolve(() => sent.destroy()))
    })
    sent.once('error', reject)
    sent.end(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'subscriptions/listen', params }))
  })
}

/** The messages of an event stream, one by one. */
async function* messages({ body }: Response): AsyncGenerator<Frame> {
  const decoder = new TextDecoder()
  let text = ''
  for await (const chunk of body as ReadableStream<Uint8Array>) {
    text += decoder.decode(chunk, { stream: true })
    for (let at = text.indexOf('\n\n'); at !== -1; at = text.indexOf('\n\n')) {
      const data = /^data: ?(.+)$/m.exec(text.slice(0, at))?.[1]
      text = text.slice(at + 2)
      if (data !== undefined) yield JSON.parse(data)
    }
  }
}

async function next(stream: AsyncGenerator<Frame>): Promise<Frame | undefined> {
  const { value } = await stream.next()
  return value ?? undefined
}

describe('changes over HTTP', () => {
  it('come on the stream of a listen request, which ends with a result when the server closes (rev E §2.7)', async () => {
    const { server, url } = await desk()
    const stream = messages(await listen(url, 7))
    expect(await next(stream)).toMatchObject({ method: 'notifications/subscriptions/acknowledged' })
    server.tool('second', {}, () => 'x')
    expect(await next(stream)).toMatchObject({ method: 'notifications/tools/list_changed' })
    const closed = server.close()
    expect(await next(stream)).toMatchObject({ id: 7, result: { _meta: { 'io.modelcontextprotocol/subscriptionId': 7 } } })
    expect(await next(stream)).toBeUndefined()
    await closed
  })

  it('need no place any more once the listener has hung up, which is how it cancels (trap 12)', async () => {
    const { url } = await desk({ listeners: 1 })
    const hangUp = await listenOnSocket(url)
    const refused = await listen(url, 2)
    expect([refused.status, await refused.json()]).toMatchObject([
      503,
      { error: { message: expect.stringContaining('1 subscriptions') } },
    ])
    hangUp()
    // The hanging up travels by itself: it may arrive after the next request.
    let second = await listen(url, 3)
    for (; second.status === 503; second = await listen(url, 3)) await second.text()
    expect(await next(messages(second))).toMatchObject({ method: 'notifications/subscriptions/acknowledged' })
  })

  it('come on the GET stream of a session, and updates only after a subscribe (trap 14)', async () => {
    const { server, url } = await desk()
    const clientInfo = { name: 'raw', version: '1' }
    const opened = await post(
      url,
      { id: 1, method: 'initialize', params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo } },
      {},
    )
    const session = { 'mcp-session-id': opened.headers.get('mcp-session-id') as string, 'mcp-protocol-version': '2025-06-18' }
    await opened.text()
    await post(url, { method: 'notifications/initialized' }, session)
    const leaving = new AbortController()
    const stream = messages(await fetch(url, { headers: { ...session, accept: 'text/event-stream' }, signal: leaving.signal }))
    server.resourceUpdated('note://first')
    server.tool('second', {}, () => 'x')
    expect(await next(stream)).toMatchObject({ method: 'notifications/tools/list_changed' })
    await (await post(url, { id: 2, method: 'resources/subscribe', params: { uri: 'note://first' } }, session)).text()
    server.resourceUpdated('note://first')
    expect(await next(stream)).toMatchObject({ method: 'notifications/resources/updated', params: { uri: 'note://first' } })
    leaving.abort()
  })

  it('cannot be subscribed to without a session', async () => {
    const server = createServer({ name: 'desk', version: '1', sessions: false })
    servers.push(server)
    server.resource('note://first', { name: 'first' }, () => 'x')
    const { url } = await server.listen({ port: 0 })
    const answer = await post(
      url,
      { id: 1, method: 'resources/subscribe', params: { uri: 'note://first' } },
      { 'mcp-protocol-version': '2025-06-18' },
    )
    expect(await answer.json()).toMatchObject({ error: { code: -32600, message: expect.stringContaining('session') } })
  })
})
