import { Agent } from 'node:http'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type HttpPeer, headersFor, httpPeer, send } from '../../../../test/spec/http.ts'
import { enveloped, resultOf } from '../../../../test/spec/wire.ts'
import type { RevisionId } from '../../../revisions/index.ts'
import { createServer, type Server } from '../../../server/index.ts'

const revisions: readonly RevisionId[] = ['2025-11-25', '2026-07-28']

describe.each(revisions)('limits over HTTP at %s', revision => {
  let server: Server
  let url: string
  let peer: HttpPeer
  beforeAll(async () => {
    server = createServer({ name: 'door', version: '1.0.0', log: 'silent' })
    server.tool('scarce', { quota: { calls: 2, per: '1d' } }, () => 'one less')
    server.tool('metered', { cost: { category: 'metered', estimatedUnits: 2 }, quota: { units: 9, per: '1h' } }, () => 'paid')
    server.tool('rare', { rate: { perSecond: 0.25, burst: 1 } }, () => 'now')
    server.tool('plain', {}, () => 'plain')
    url = (await server.listen()).url
    peer = await httpPeer(url, revision)
  })
  afterAll(() => server.close())

  const limits = async (name: string) => {
    const { headers, status, frame } = await peer.ask('tools/call', { name })
    return { status, frame, policy: headers['ratelimit-policy'], limit: headers['ratelimit'], wait: headers['retry-after'] }
  }

  it('E3-5: an answer names the quota and what is left of it', async () => {
    const { policy, limit } = await limits('metered')
    expect(policy).toBe('"metered";q=9;w=3600;qu="units"')
    expect(limit).toMatch(/^"metered";r=7;t=\d{1,4}$/)
  })

  it('E3-5: a quota that is used up is told with Retry-After, RateLimit and RateLimit-Policy', async () => {
    expect((await limits('scarce')).limit).toMatch(/^"scarce";r=1;t=\d+$/)
    await limits('scarce')
    const { status, frame, policy, limit, wait } = await limits('scarce')
    expect([status, resultOf(frame)['isError']]).toEqual([200, true])
    expect(policy).toBe('"scarce";q=2;w=86400')
    expect(limit).toBe(`"scarce";r=0;t=${wait}`)
    expect(Number(wait)).toBeGreaterThan(0)
  })

  it('E3-5: so is a rate that was exceeded', async () => {
    // Limits count by connection where nobody is known.
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    const params = { name: 'rare' }
    const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: enveloped(revision, params) }
    const ask = () => send(url, { agent, headers: headersFor(revision, 'tools/call', params, peer.session), body })
    const [fine, refused] = [await ask(), await ask()]
    agent.destroy()
    const policy = '"rate";q=1;w=4'
    expect(fine).toMatchObject({ status: 200, headers: { 'ratelimit-policy': policy, ratelimit: '"rate";r=0;t=4' } })
    expect(refused).toMatchObject({ status: 429, headers: { 'ratelimit-policy': policy } })
    expect(refused.headers['ratelimit']).toMatch(/^"rate";r=0;t=[34]$/)
    expect(refused.headers['retry-after']).toMatch(/^[34]$/)
  })

  it('a tool without limits of its own says nothing of them', async () => {
    expect(await limits('plain')).toMatchObject({ policy: undefined, limit: undefined, wait: undefined })
  })
})
