import { describe, expect, it } from 'vitest'
import { createServer } from '../../server/index.ts'
import { httpClientConnection as fetchClientConnection } from './client.web.ts'

const envelope = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
}

describe('a caller who leaves while the answer is streamed', () => {
  it('is noticed by the request alone, on runtimes that never cancel the body (rev E §1.2)', async () => {
    const { promise: stopped, resolve } = Promise.withResolvers<string>()
    await using server = createServer({ name: 'gone', version: '1.0.0' })
    server.tool('wait', {}, async (_, ctx) => {
      ctx.signal.addEventListener('abort', () => resolve('stopped'))
      ctx.progress(1)
      await stopped
    })
    const leave = new AbortController()
    const body = JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'wait', _meta: { ...envelope, progressToken: 1 } },
    })
    const headers = {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': 'tools/call',
      'mcp-name': 'wait',
    }
    const response = await server.fetch(
      new Request('http://localhost/mcp', { method: 'POST', headers, body, signal: leave.signal }),
    )
    expect(response.headers.get('content-type')).toMatch(/event-stream/)
    leave.abort()
    expect(await stopped).toBe('stopped')
  })

  it('cancels the body itself, for a fetch that pays no heed to its signal', async () => {
    const { promise: cancelled, resolve } = Promise.withResolvers<string>()
    const stream = new ReadableStream({ cancel: () => resolve('cancelled') })
    const answer = async () => new Response(stream, { headers: { 'content-type': 'text/event-stream' } })
    const connection = fetchClientConnection('http://localhost/mcp', { fetch: answer })
    const leave = new AbortController()
    connection.start({ frame: () => undefined, fault: () => undefined, closed: () => undefined })
    const sent = connection.send('{"jsonrpc":"2.0","id":1,"method":"tools/list"}', { id: 1, signal: leave.signal })
    setImmediate(() => leave.abort())
    await expect(sent).rejects.toMatchObject({ kind: 'aborted' })
    expect(await cancelled).toBe('cancelled')
    await connection.close()
  })
})
