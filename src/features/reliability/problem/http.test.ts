import { Agent } from 'node:http'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type HttpPeer, headersFor, httpPeer, send } from '../../../../test/spec/http.ts'
import { enveloped, errorOf, resultOf } from '../../../../test/spec/wire.ts'
import { type Client, connect } from '../../../client/index.ts'
import type { RevisionId } from '../../../revisions/index.ts'
import { createServer, problem, type Server } from '../../../server/index.ts'

const revisions: readonly RevisionId[] = ['2025-11-25', '2026-07-28']
let server: Server
let url: string

beforeAll(async () => {
  server = createServer({ name: 'door', version: '1.0.0', log: 'silent', limits: { frameBytes: 10_000 } })
  server.tool('limited', {}, () => {
    throw problem('RATE_LIMIT_EXCEEDED', 'The upstream has enough', { retryAfter: 3_000 })
  })
  server.tool('unauthorized', {}, () => {
    throw problem('AUTHENTICATION_REQUIRED', 'Sign in upstream')
  })
  server.tool('rare', { rate: { perSecond: 0.25, burst: 1 }, annotations: { readOnlyHint: true } }, () => 'now')
  url = (await server.listen()).url
})
afterAll(() => server.close())

const call = (mcp: Client): Promise<unknown> => mcp.callTool('rare').catch(error => error)

describe.each(revisions)('HTTP statuses at %s', revision => {
  let peer: HttpPeer
  beforeAll(async () => {
    peer = await httpPeer(url, revision)
  })

  it.each(['limited', 'unauthorized'])('E11-1: a tool that failed (%s) is answered with 200', async name => {
    const { status, frame, headers } = await peer.ask('tools/call', { name })
    expect([status, resultOf(frame)['isError'], headers['retry-after']]).toEqual([200, true, undefined])
  })

  it('E11-1: a limit of the server itself is answered with 429 and Retry-After', async () => {
    // Limits count by connection where nobody is known.
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    const params = { name: 'rare' }
    const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: enveloped(revision, params) }
    const ask = () => send(url, { agent, headers: headersFor(revision, 'tools/call', params, peer.session), body })
    const answers = [await ask(), await ask()]
    agent.destroy()
    const refused = answers.find(({ status }) => status === 429)
    expect(refused?.headers['retry-after']).toMatch(/^[1-4]$/)
    expect(errorOf(refused?.frame ?? {}).message).toMatch(/Retry in \d+ ms/)
  })

  it('E11-1: a body that is too long is answered with 413', async () => {
    const { status } = await peer.ask('tools/call', { name: 'limited', arguments: { long: 'x'.repeat(20_000) } })
    expect(status).toBe(413)
  })

  it('E11-3: a client waits as long as the refusal says', async () => {
    const mcp = await connect(url, { revisions: [revision], retry: { totalMs: 1 } })
    for await (const _ of mcp.tools());
    const failed = [await call(mcp), await call(mcp), await call(mcp)]
    const error = failed.find(end => end instanceof Error)
    expect(error).toMatchObject({ status: 429, data: { retryAfterMs: expect.any(Number) } })
    await mcp.close()
  })
})
