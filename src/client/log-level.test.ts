import { describe, expect, it } from 'vitest'
import { type Frame, modernServer, Refusal, sessionServer, toolList } from '../../test/client/scripted-server.ts'
import type { LogMessage } from '../features/mcp/logging/client.ts'
import { connect } from './connect.ts'

const levelOf = ({ params }: Frame) => ((params as Frame)['_meta'] as Frame)['io.modelcontextprotocol/logLevel']

describe('the log of a server', () => {
  it('comes to onLog as it was sent, on every wire', async () => {
    for (const server of [sessionServer(), modernServer()]) {
      const heard: LogMessage[] = []
      await using _ = await connect(server.connection, { onLog: message => heard.push(message) })
      await server.tell('notifications/message', { level: 'warning', logger: 'db', data: { slow: true } })
      expect(heard).toEqual([{ level: 'warning', logger: 'db', data: { slow: true } }])
    }
  })

  it('may hold nonsense, and its reader may fail: neither hurts', async () => {
    const server = sessionServer({ ping: () => ({}) })
    const fail = (): never => {
      throw new Error('full disk')
    }
    await using mcp = await connect(server.connection, { onLog: fail })
    for (const params of [{ level: 'loud', data: 1 }, { data: 1 }, { level: 'info', data: 1 }, { level: 'info' }])
      await server.tell('notifications/message', params)
    await mcp.ping()
  })
})

describe('the level of the log', () => {
  it('is told to the session on wires that have one', async () => {
    const server = sessionServer({ 'logging/setLevel': () => ({}) })
    await using mcp = await connect(server.connection)
    await mcp.setLogLevel('error')
    expect(server.params('logging/setLevel')).toEqual([{ level: 'error' }])
  })

  it('goes with each request on the stateless wire, and is absent without a wish: then nothing is logged (trap 11)', async () => {
    const server = modernServer({ 'tools/list': () => toolList() })
    await using mcp = await connect(server.connection)
    for await (const _ of mcp.tools());
    await mcp.setLogLevel('debug')
    for await (const _ of mcp.tools());
    expect(server.heard.map(levelOf)).toEqual([undefined, undefined, 'debug'])
  })

  it('may be wished for from the beginning: on the stateless wire by the first request', async () => {
    const server = modernServer()
    await using _ = await connect(server.connection, { logLevel: 'notice' })
    expect(server.heard.map(levelOf)).toEqual(['notice'])
  })

  it('may be wished for from the beginning: to a session that has a log', async () => {
    const server = sessionServer({ 'logging/setLevel': () => ({}) }, { logging: {} })
    await using _ = await connect(server.connection, { logLevel: 'notice' })
    expect(server.params('logging/setLevel')).toEqual([{ level: 'notice' }])
  })

  it('is not told to a session without a log, and a refusal does not keep us out', async () => {
    const without = sessionServer()
    await using _ = await connect(without.connection, { logLevel: 'notice' })
    expect(without.of('logging/setLevel')).toEqual([])
    const refuse = (): never => {
      throw new Refusal(-32603, 'level is broken')
    }
    const broken = sessionServer({ 'logging/setLevel': refuse }, { logging: {} })
    await using mcp = await connect(broken.connection, { logLevel: 'notice' })
    await expect(mcp.setLogLevel('info')).rejects.toMatchObject({ code: -32603 })
  })
})
