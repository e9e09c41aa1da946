import { describe, expect, it } from 'vitest'
import { modernServer, type Script, said, sessionServer, toolList } from '../../test/client/scripted-server.ts'
import { connect } from './connect.ts'

async function open(script: Script) {
  const server = sessionServer(script)
  return { server, mcp: await connect(server.connection) }
}

const echo: Script = { 'tools/call': params => said(JSON.stringify(params['arguments'] ?? null)) }

describe('middleware', () => {
  it('wraps in the order in which it was given, the first outermost', async () => {
    const { mcp } = await open(echo)
    await using _ = mcp
    const steps: string[] = []
    for (const name of ['a', 'b']) {
      mcp.use(async (call, next) => {
        steps.push(`${name} in`)
        const result = await next(call)
        steps.push(`${name} out`)
        return result
      })
    }
    await mcp.callTool('t')
    expect(steps).toEqual(['a in', 'b in', 'b out', 'a out'])
  })

  it('sees every call by its method and params, lists and pings too', async () => {
    const { mcp } = await open({ ...echo, 'tools/list': () => toolList(), ping: () => ({}) })
    await using _ = mcp
    const seen: unknown[] = []
    mcp.use((call, next) => {
      seen.push([call.method, call.params])
      return next(call)
    })
    for await (const __ of mcp.tools());
    await mcp.callTool('t', { a: 1 })
    await mcp.ping()
    expect(seen).toEqual([
      ['tools/list', {}],
      ['tools/call', { name: 't', arguments: { a: 1 } }],
      ['ping', {}],
    ])
  })

  it('may change what goes out and what comes back', async () => {
    const { server, mcp } = await open(echo)
    await using _ = mcp
    mcp.use(async (call, next) => {
      const result = (await next({ ...call, params: { ...call.params, arguments: { b: 2 } } })) as object
      return { ...result, structuredContent: 'added' }
    })
    expect(await mcp.callTool('t', { a: 1 })).toMatchObject({ text: '{"b":2}', structured: 'added' })
    expect(server.params('tools/call')).toEqual([{ name: 't', arguments: { b: 2 } }])
  })

  it('may answer by itself, or refuse', async () => {
    const { server, mcp } = await open(echo)
    await using _ = mcp
    mcp.use(async call => {
      if (call.params['name'] === 'forbidden') throw new Error('not allowed')
      return said('from memory')
    })
    expect((await mcp.callTool('t')).text).toBe('from memory')
    await expect(mcp.callTool('forbidden')).rejects.toThrow('not allowed')
    expect(server.of('tools/call')).toEqual([])
  })

  it('sees each round of a call that asks', async () => {
    let round = 0
    const server = modernServer({
      'tools/call': () => (round++ === 0 ? { resultType: 'input_required', requestState: 's' } : said('ok')),
    })
    await using mcp = await connect(server.connection)
    const seen: unknown[] = []
    mcp.use((call, next) => {
      seen.push(call.params['requestState'])
      return next(call)
    })
    await mcp.callTool('t')
    expect(seen).toEqual([undefined, 's'])
  })

  it('concerns calls from then on, not those under way', async () => {
    const { server, mcp } = await open({ 'tools/call': () => new Promise(resolve => setImmediate(() => resolve(said('ok')))) })
    await using _ = mcp
    const first = mcp.callTool('t')
    let count = 0
    mcp.use((call, next) => {
      count++
      return next(call)
    })
    await first
    expect(count).toBe(0)
    await mcp.callTool('t')
    expect([count, server.of('tools/call').length]).toEqual([1, 2])
  })
})
