import { afterEach, describe, expect, it } from 'vitest'
import { discovery, modernServer, Refusal, type Script, sessionServer, silence } from '../../test/client/scripted-server.ts'
import { cleanUp, json, serve } from '../../test/transports/http-test-server.ts'
import { fakeClock } from '../testing/clock.ts'
import type { ConnectOptions } from './api.ts'
import { connect } from './connect.ts'

afterEach(cleanUp)

async function open(script: Script, options: ConnectOptions = { healthCheck: '30s' }) {
  const clock = fakeClock()
  const server = sessionServer(script)
  const mcp = await connect(server.connection, { clock, revisions: ['2025-11-25'], ...options })
  const pass = async (ms: number): Promise<void> => {
    clock.advance(ms)
    await new Promise(setImmediate)
  }
  return { server, mcp, pass }
}

describe('health checks', () => {
  it('are off unless they are asked for', async () => {
    const { server, mcp, pass } = await open({ ping: () => ({}) }, {})
    await using _ = mcp
    await pass(3_600_000)
    expect(server.of('ping')).toEqual([])
  })

  it('are pings, again and again', async () => {
    const { server, mcp, pass } = await open({ ping: () => ({}) })
    await using _ = mcp
    for (let n = 0; n < 5; n++) await pass(30_000)
    expect(server.of('ping')).toHaveLength(5)
  })

  it('take any answer for a sign of life', async () => {
    const { server, mcp, pass } = await open({
      ping: () => {
        throw new Refusal(-32601)
      },
    })
    await using _ = mcp
    for (let n = 0; n < 3; n++) await pass(30_000)
    expect(server.of('ping')).toHaveLength(3)
  })

  it('let a server go that stays silent, and say so to all who wait', async () => {
    const { server, mcp, pass } = await open({ ping: () => silence, 'tools/call': () => silence })
    const call = mcp.callTool('t', {}, { timeout: '10m' }).catch(error => error)
    const changed = mcp.changes('tools').next()
    changed.catch(() => {})
    await server.saw('tools/call')
    await pass(30_000)
    await server.saw('ping')
    await pass(30_500)
    expect(await call).toMatchObject({
      name: 'ConnectionError',
      message: expect.stringContaining('did not answer a ping within 30000 ms'),
    })
    await expect(changed).rejects.toMatchObject({ kind: 'lost' })
    await expect(mcp.callTool('t')).rejects.toMatchObject({ message: expect.stringContaining('ping') })
    expect(server.closed).toBe(true)
  })

  it('that are patient keep a server that is slow', async () => {
    const { server, mcp, pass } = await open({ ping: () => silence }, { healthCheck: { every: '30s', patient: true } })
    await using _ = mcp
    for (let n = 0; n < 4; n++) await pass(30_500)
    expect(server.of('ping').length).toBeGreaterThan(1)
    expect(server.closed).toBe(false)
  })

  it('over HTTP take a refusal for a sign of life, but not the word of a proxy that nobody is behind it', async () => {
    const clock = fakeClock()
    const refusals = [429, 401, 500]
    const server = await serve(({ id }, response) => {
      const before = server.seen.length - 1
      if (before === 0) json(response, 200, { jsonrpc: '2.0', id, result: discovery() })
      else response.writeHead(refusals[before - 1] ?? 502).end()
    })
    await using mcp = await connect(server.url, {
      clock,
      revisions: ['2026-07-28'],
      healthCheck: { every: 1_000, patient: true },
    })
    let over = false
    mcp.ended.then(() => {
      over = true
    })
    const pass = () => {
      clock.advance(1_000)
      return over
    }
    await expect.poll(pass, { interval: 20 }).toBe(true)
    expect(server.seen.length).toBeGreaterThan(1 + refusals.length)
    expect(await mcp.ended).toMatchObject({ kind: 'lost' })
  })

  it('end with the client', async () => {
    const { server, mcp, pass } = await open({ ping: () => ({}) })
    await pass(30_000)
    await mcp.close()
    await pass(90_000)
    expect(server.of('ping')).toHaveLength(1)
  })

  it('ask who is there on wires without ping, and let go of a server that is gone', async () => {
    const clock = fakeClock()
    const server = modernServer()
    await using mcp = await connect(server.connection, { clock, healthCheck: 1_000 })
    for (let n = 0; n < 3; n++) {
      clock.advance(1_000)
      await new Promise(setImmediate)
    }
    expect(server.heard.map(({ method }) => method)).toEqual(Array.from({ length: 4 }, () => 'server/discover'))
    await expect(mcp.ping()).rejects.toMatchObject({ kind: 'method-not-found', message: expect.stringContaining('2026-07-28') })
  })
})
