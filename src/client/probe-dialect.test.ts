import { describe, expect, it } from 'vitest'
import { type Frame, hello, Refusal, type Script, ScriptedServer, silence } from '../../test/client/scripted-server.ts'
import { fakeClock } from '../testing/clock.ts'
import { connect } from './connect.ts'

const dialectHello = {
  server: { name: 'old', version: '3' },
  serverCapabilities: { supportsToolDiscovery: true, supportsResourceDiscovery: true, supportsNotifications: true },
}
const spoken = { revisions: ['2026-07-28', '2025-11-25', 's3'] } as const

/** Refuses whatever initialize does not name the dialect's version. */
function dialectOnly(code: number): Script {
  return {
    initialize: params => {
      if (params['mcpVersion'] === undefined) throw new Refusal(code, 'mcpVersion is missing')
      return dialectHello
    },
    shutdown: () => null,
  }
}

describe('probing: a server of the dialect', () => {
  it('that answers the official initialize in its own way is taken at its word (rev §3.3 a)', async () => {
    const server = new ScriptedServer({ initialize: () => dialectHello, shutdown: () => null })
    await using mcp = await connect(server.connection, spoken)
    expect([mcp.revision, mcp.server]).toEqual(['s3', { name: 'old', version: '3' }])
    expect(mcp.capabilities).toEqual({ tools: { listChanged: true }, resources: { listChanged: true } })
    await server.saw('initialized')
    expect(server.of('initialize')).toHaveLength(1)
  })

  it.each([4001, -32602, -32603, -32600])(
    'that refuses with %i is asked once more in the dialect, under a new id (rev §3.3 b)',
    async code => {
      const server = new ScriptedServer(dialectOnly(code))
      await using mcp = await connect(server.connection, spoken)
      expect(mcp.revision).toBe('s3')
      const [official, dialect] = server.of('initialize')
      expect(dialect?.['params']).toEqual({
        mcpVersion: '2025-06-18',
        clientCapabilities: { supportsProgress: true, supportsCancellation: true },
      })
      expect(dialect?.['id']).not.toBe(official?.['id'])
      expect((await server.saw('initialized'))['params']).toEqual({})
    },
  )

  it('that refuses with anything else fails as itself (rev §3.3 c)', async () => {
    const server = new ScriptedServer(dialectOnly(-32001))
    await expect(connect(server.connection, spoken)).rejects.toMatchObject({ code: -32001 })
    expect(server.of('initialize')).toHaveLength(1)
  })

  it('must answer with its own keys the second time too', async () => {
    const script: Script = {
      initialize: params => {
        if (params['mcpVersion'] === undefined) throw new Refusal(-32602)
        return { welcome: true }
      },
    }
    await expect(connect(new ScriptedServer(script).connection, spoken)).rejects.toMatchObject({ kind: 'invalid-result' })
  })

  it('is spoken to at once by a client that speaks nothing else', async () => {
    const server = new ScriptedServer(dialectOnly(-32602))
    await using mcp = await connect(server.connection, { revisions: ['s3'] })
    expect(mcp.revision).toBe('s3')
    expect(server.of('initialize')).toHaveLength(1)
  })

  it('is refused unless the dialect is enabled', async () => {
    await expect(connect(new ScriptedServer(dialectOnly(-32602)).connection)).rejects.toMatchObject({ code: -32602 })
    const server = new ScriptedServer({ initialize: () => dialectHello })
    await expect(connect(server.connection)).rejects.toMatchObject({ kind: 'invalid-result' })
  })

  it('does not draw an official server into the dialect', async () => {
    const server = new ScriptedServer({ initialize: () => ({ ...hello(), ...dialectHello }) })
    await using mcp = await connect(server.connection, spoken)
    expect(mcp.revision).toBe('2025-11-25')
  })
})

describe('a server of the dialect', () => {
  async function open(script: Script = {}) {
    const server = new ScriptedServer({ ...dialectOnly(-32602), ...script })
    return { server, mcp: await connect(server.connection, spoken) }
  }

  it('is told of the end: shutdown, then exit (rev §3.1)', async () => {
    const { server, mcp } = await open()
    await mcp.close()
    const last = server.heard.slice(-2).map(({ method }) => method)
    expect(last).toEqual(['shutdown', 'exit'])
    expect(server.closed).toBe(true)
  })

  it('that does not answer shutdown is left all the same', async () => {
    const clock = fakeClock()
    const server = new ScriptedServer({ ...dialectOnly(-32602), shutdown: () => silence })
    const mcp = await connect(server.connection, { ...spoken, clock })
    const closing = mcp.close()
    await server.saw('shutdown')
    clock.advance(2_000)
    await closing
    expect(server.closed).toBe(true)
  })

  it('has its tools called by tools/invoke and their output read as text and structure', async () => {
    const { server, mcp } = await open({
      'tools/invoke': ({ arguments: args }) => ({ status: 'success', output: { got: args } }),
    })
    await using _ = mcp
    const out = await mcp.callTool('echo', { a: 1 })
    expect(out).toMatchObject({ structured: { got: { a: 1 } }, text: '{"got":{"a":1}}', isError: false })
    expect(server.params('tools/invoke')).toEqual([{ name: 'echo', arguments: { a: 1 } }])
  })

  it('is told that a call is given up by cancel with the request’s id, and may answer that or not', async () => {
    const { server, mcp } = await open({ 'tools/invoke': () => silence })
    await using _ = mcp
    const stop = new AbortController()
    const call = mcp.callTool('slow', {}, { signal: stop.signal }).catch(error => error)
    const { id } = await server.saw('tools/invoke')
    stop.abort(new Error('enough'))
    expect(await call).toMatchObject({ message: 'enough' })
    expect((await server.saw('cancel'))['params']).toEqual({ id })
    server.send({ id: id as number, result: { status: 'cancelled', output: null } })
    server.on('tools/invoke', () => ({ status: 'success', output: 'still here' }))
    expect((await mcp.callTool('quick')).text).toBe('still here')
  })

  it('names updated resources by URI or by name: the updates come by URI', async () => {
    const list = [{ uri: 'file:///a', name: 'alpha' }, { uri: 'file:///b', name: 'beta' }, { name: 'gamma' }]
    const { server, mcp } = await open({ 'resources/list': () => list })
    await using _ = mcp
    const listed: Frame[] = []
    for await (const resource of mcp.resources()) listed.push({ ...resource })
    expect(listed[2]).toEqual({ name: 'gamma', uri: 'gamma' })
    const updates = mcp.resourceUpdates('file:///a')
    const first = updates.next()
    await server.tell('resources/changed', { updated: ['beta', 'alpha'] })
    expect(await first).toEqual({ done: false, value: 'file:///a' })
    const second = updates.next()
    await server.tell('resources/changed', { updated: ['file:///a'] })
    expect(await second).toEqual({ done: false, value: 'file:///a' })
    await updates.return()
    expect(server.of('resources/subscribe')).toEqual([])
  })

  it.each([['unknown'], ['twin']])('that names %s, which is no one resource we know, has changed its list', async id => {
    const list = [
      { uri: 'file:///1', name: 'twin' },
      { uri: 'file:///2', name: 'twin' },
    ]
    const { server, mcp } = await open({ 'resources/list': () => list })
    await using _ = mcp
    for await (const __ of mcp.resources());
    const changed = mcp.changes('resources').next()
    await server.tell('resources/changed', { updated: [id] })
    expect((await changed).done).toBe(false)
  })
})
