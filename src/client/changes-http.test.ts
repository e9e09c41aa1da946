import type http from 'node:http'
import { afterEach, describe, expect, it } from 'vitest'
import { discovery } from '../../test/client/scripted-server.ts'
import { afterTest, cleanUp, events, json, type Seen, serve } from '../../test/transports/http-test-server.ts'
import { connect } from './connect.ts'

afterEach(cleanUp)

const idKey = 'io.modelcontextprotocol/subscriptionId'

type Listen = (seen: Seen, response: http.ServerResponse, nth: number) => void

/** A modern server whose listen requests are answered by the test. */
async function open(listen: Listen) {
  let count = 0
  const server = await serve((seen, response) => {
    if (seen.body.includes('"server/discover"')) json(response, 200, { jsonrpc: '2.0', id: seen.id, result: discovery() })
    else listen(seen, response, ++count)
  })
  const mcp = await connect(server.url)
  afterTest(() => mcp.close())
  return { server, mcp, listens: () => count }
}

function say(response: http.ServerResponse, method: string, params: object): void {
  response.write(`data: ${JSON.stringify({ jsonrpc: '2.0', method, params })}\n\n`)
}

/** Begins a stream and says that it hears all. */
function begin({ id }: Seen, response: http.ServerResponse): void {
  events(response)
  say(response, 'notifications/subscriptions/acknowledged', { notifications: { toolsListChanged: true }, _meta: { [idKey]: id } })
}

describe('listening over HTTP', () => {
  it('holds a stream of its own, which ends with the reading', async () => {
    const { server, mcp } = await open((seen, response) => {
      begin(seen, response)
      say(response, 'notifications/tools/list_changed', { _meta: { [idKey]: seen.id } })
    })
    for await (const _ of mcp.changes('tools')) break
    await expect.poll(() => server.seen[1]?.socket.destroyed).toBe(true)
  })

  it.each<[string, Listen]>([
    ['is cut', (_, response) => void response.socket?.destroy()],
    ['ends without a word', (_, response) => void response.end()],
    [
      'ends in good order',
      ({ id }, response) =>
        void response.end(`data: ${JSON.stringify({ jsonrpc: '2.0', id, result: { resultType: 'complete' } })}\n\n`),
    ],
  ])('begins anew when the stream %s, and has the reader look', async (_, end) => {
    const { mcp, listens } = await open((seen, response, nth) => {
      begin(seen, response)
      if (nth === 1) setImmediate(() => end(seen, response, nth))
    })
    expect((await mcp.changes('tools').next()).done).toBe(false)
    expect(listens()).toBe(2)
  })

  it.each([500, 502, 503, 429])('tries again after %i', async status => {
    const { mcp, listens } = await open((seen, response, nth) => {
      if (nth === 1) response.writeHead(status).end()
      else begin(seen, response)
    })
    expect((await mcp.changes('tools').next()).done).toBe(false)
    expect(listens()).toBe(2)
  })

  it.each([400, 401, 403, 404, 405])('fails the reader after %i', async status => {
    const { mcp, listens } = await open((_, response) => response.writeHead(status).end())
    await expect(mcp.changes('tools').next()).rejects.toMatchObject({ kind: 'status', status })
    expect(listens()).toBe(1)
  })

  it('ends with the client, whose other calls it never held up', async () => {
    const { mcp } = await open((seen, response) =>
      seen.body.includes('tools/list')
        ? json(response, 200, { jsonrpc: '2.0', id: seen.id, result: { tools: [] } })
        : begin(seen, response),
    )
    const changed = mcp.changes('tools').next()
    expect(await mcp.tools().next()).toEqual({ done: true, value: undefined })
    await mcp.close()
    expect(await changed).toEqual({ done: true, value: undefined })
  })
})
