import { describe, expect, it } from 'vitest'
import { modernServer, type Script, said, sessionServer, silence } from '../../test/client/scripted-server.ts'
import { fakeClock } from '../testing/clock.ts'
import type { ConnectOptions } from './api.ts'
import { connect } from './connect.ts'

/** A client on a clock of its own, and a way to let it hear what is on its way before time moves. */
async function open(script: Script, options: ConnectOptions = {}) {
  const clock = fakeClock()
  const server = sessionServer(script)
  const mcp = await connect(server.connection, { clock, revisions: ['2025-11-25'], ...options })
  /** The deadlines are swept four times a second. */
  const pass = async (ms: number): Promise<void> => {
    for (let left = ms; left > 0; left -= 250) clock.advance(Math.min(left, 250))
    await new Promise(setImmediate)
  }
  return { clock, server, mcp, pass }
}

const mute = { 'tools/call': () => silence }

describe('the deadline of a call', () => {
  it('is 60 s unless something else is said, and the server is told that we gave up', async () => {
    const { server, mcp, pass } = await open(mute)
    await using _ = mcp
    const call = mcp.callTool('t').catch(error => error)
    const { id } = await server.saw('tools/call')
    await pass(59_000)
    expect(server.of('notifications/cancelled')).toEqual([])
    await pass(1_500)
    expect(await call).toMatchObject({ kind: 'timeout', message: expect.stringContaining('tools/call') })
    expect((await server.saw('notifications/cancelled'))['params']).toMatchObject({ requestId: id })
  })

  it('that passes says what was called, how long was waited, and which option makes that longer', async () => {
    const { server, mcp, pass } = await open(mute)
    await using _ = mcp
    const call = mcp.callTool('slow', {}, { timeout: '1500ms' }).catch(error => error)
    await server.saw('tools/call')
    await pass(2_000)
    expect((await call).message).toBe(
      'No response to tools/call "slow" within 1.5 s; if it may take longer, raise the option timeout of the call, or of connect',
    )
  })

  it.each<[string, ConnectOptions, { timeout?: '2s' }]>([
    ['for all calls', { timeout: '2s' }, {}],
    ['for one call', {}, { timeout: '2s' }],
    ['by the limits', { limits: { callTimeoutMs: 2_000 } }, {}],
  ])('may be set %s', async (_, options, request) => {
    const { server, mcp, pass } = await open(mute, options)
    await using __ = mcp
    const call = mcp.callTool('t', {}, request).catch(error => error)
    await server.saw('tools/call')
    await pass(2_500)
    expect(await call).toMatchObject({ kind: 'timeout' })
  })

  it('is moved by progress, but not beyond the total (H7)', async () => {
    const { server, mcp, pass } = await open(mute, { timeout: '10s', limits: { callTotalMs: 60_000 } })
    await using _ = mcp
    const heard: number[] = []
    let failed: unknown
    mcp.callTool('t', {}, { onProgress: ({ progress }) => heard.push(progress) }).catch(error => {
      failed = error
    })
    const { params } = await server.saw('tools/call')
    const { progressToken } = (params as { _meta: { progressToken: unknown } })._meta
    for (let n = 1; n <= 8; n++) {
      await server.tell('notifications/progress', { progressToken, progress: n })
      await pass(7_000)
      expect(failed).toBeUndefined()
    }
    expect(heard).toEqual([1, 2, 3, 4, 5, 6, 7, 8])
    await server.tell('notifications/progress', { progressToken, progress: 9 })
    await pass(5_000)
    expect(failed).toMatchObject({ kind: 'timeout' })
  })

  it('is not moved by progress that does not rise, nor is that passed on (trap 29)', async () => {
    const { server, mcp, pass } = await open(mute, { timeout: '10s' })
    await using _ = mcp
    const heard: number[] = []
    let failed: unknown
    mcp.callTool('t', {}, { onProgress: ({ progress }) => heard.push(progress) }).catch(error => {
      failed = error
    })
    const { id } = await server.saw('tools/call')
    await server.tell('notifications/progress', { progressToken: id, progress: 5 })
    for (const progress of [5, 4, -1, Number.NaN, 'six', null]) {
      await pass(1_900)
      await server.tell('notifications/progress', { progressToken: id, progress })
    }
    expect(heard).toEqual([5])
    expect(failed).toMatchObject({ kind: 'timeout' })
  })

  it('is not moved by progress for another token, or for the same in another type', async () => {
    const { server, mcp, pass } = await open(mute, { timeout: '10s' })
    await using _ = mcp
    const heard: unknown[] = []
    const call = mcp.callTool('t', {}, { onProgress: progress => heard.push(progress) }).catch(error => error)
    const { id } = await server.saw('tools/call')
    await pass(6_000)
    for (const progressToken of [String(id), 9_999, `${id}.0`])
      await server.tell('notifications/progress', { progressToken, progress: 1 })
    await pass(6_000)
    expect(await call).toMatchObject({ kind: 'timeout' })
    expect(heard).toEqual([])
  })

  it('has no progress to move it where nobody wants to hear any: no token is sent', async () => {
    const { server, mcp } = await open({ 'tools/call': () => said('ok') })
    await using _ = mcp
    await mcp.callTool('t')
    expect(server.of('tools/call')[0]?.['params']).toEqual({ name: 't' })
  })

  it('passes with the answer: what comes after it changes nothing', async () => {
    const { server, mcp, pass } = await open(mute)
    await using _ = mcp
    const heard: unknown[] = []
    const call = mcp.callTool('t', {}, { onProgress: progress => heard.push(progress) })
    const { id } = await server.saw('tools/call')
    server.send({ id, result: said('done') })
    expect((await call).text).toBe('done')
    await server.tell('notifications/progress', { progressToken: id, progress: 1 })
    server.send({ id, result: said('again') })
    await pass(120_000)
    expect(heard).toEqual([])
    expect(server.of('notifications/cancelled')).toEqual([])
  })

  it('that has passed leaves a late answer unheard', async () => {
    const events: string[] = []
    const { server, mcp, pass } = await open(mute, { onTrace: event => events.push(event) })
    await using _ = mcp
    const call = mcp.callTool('t', {}, { timeout: '1s' }).catch(error => error)
    const { id } = await server.saw('tools/call')
    await pass(1_500)
    expect(await call).toMatchObject({ kind: 'timeout' })
    server.send({ id, result: said('too late') })
    await server.tell('notifications/message', { level: 'info', data: '' })
    expect(events).toContain('answer-to-nothing')
  })

  it('holds for each round of a call that asks', async () => {
    const clock = fakeClock()
    let round = 0
    const server = modernServer({
      'tools/call': () => (round++ === 0 ? { resultType: 'input_required', requestState: 's' } : silence),
    })
    await using mcp = await connect(server.connection, { clock })
    const call = mcp.callTool('t', {}, { timeout: '1s' }).catch(error => error)
    await server.saw('tools/call', 2)
    clock.advance(1_500)
    expect(await call).toMatchObject({ kind: 'timeout' })
  })

  it('that is no duration is refused by name', async () => {
    const { mcp } = await open(mute)
    await using _ = mcp
    await expect(mcp.callTool('t', {}, { timeout: 'soon' as never })).rejects.toThrow('timeout: soon is not a duration')
    await expect(connect(sessionServer().connection, { probeTimeout: -1 })).rejects.toThrow('probeTimeout')
  })
})
