import { describe, expect, it } from 'vitest'
import { fakeClock } from '../testing/clock.ts'
import { connect } from './connect.ts'
import type { ConnectOptions } from './options.ts'
import { modernServer, Refusal, type Script, sessionServer, silence } from './scripted-server.ts'

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

  it('end with the client', async () => {
    const { server, mcp, pass } = await open({ ping: () => ({}) })
    await pass(30_000)
    await mcp.close()
    await pass(90_000)
    expect(server.of('ping')).toHaveLength(1)
  })

  it('are not sent on wires without ping', async () => {
    const clock = fakeClock()
    const server = modernServer()
    await using mcp = await connect(server.connection, { clock, healthCheck: 1_000 })
    clock.advance(10_000)
    await new Promise(setImmediate)
    expect(server.heard).toHaveLength(1)
    await expect(mcp.ping()).rejects.toMatchObject({ kind: 'method-not-found', message: expect.stringContaining('2026-07-28') })
  })
})
