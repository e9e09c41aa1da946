/** Answers that are longer than this client takes, from a real process over its pipes. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Client } from './client.ts'
import { connect } from './connect.ts'

/** Answers a call by `shape`: the id before the result, behind it, or not at all. `wait` is answered when `go` was called. */
const program = `
const say = text => process.stdout.write(text + '\\n')
const ok = (id, result) => say(JSON.stringify({ jsonrpc: '2.0', id, result }))
let waiting
require('node:readline').createInterface({ input: process.stdin }).on('line', line => {
  const { id, method, params } = JSON.parse(line)
  if (method === 'initialize') return ok(id, { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'big', version: '1' } })
  if (method === 'tools/list') return ok(id, { tools: ['big', 'wait', 'go'].map(name => ({ name, inputSchema: { type: 'object' } })) })
  if (method !== 'tools/call') return id === undefined ? undefined : say(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32601, message: 'no' } }))
  if (params.name === 'wait') return void (waiting = id)
  if (params.name === 'go') return ok(waiting, { content: [] }), ok(id, { content: [] })
  const result = '{"content":[{"type":"text","text":"' + 'x'.repeat(300000) + '"}]}'
  const { shape } = params.arguments
  if (shape === 'latin1' || shape === 'twice') {
    process.stdout.write(Buffer.from('{"jsonrpc":"2.0","id":' + id + ',"result":{"content":[{"type":"text","text":"caf\\xe9"}]}}\\n', 'latin1'))
    return shape === 'twice' ? ok(id, { content: [{ type: 'text', text: 'right' }] }) : undefined
  }
  if (shape === 'before') say('{"jsonrpc":"2.0","id":' + id + ',"result":' + result + '}')
  else if (shape === 'behind') say('{"result":' + result + ',"jsonrpc":"2.0","id":' + id + '}')
  else say('[{"jsonrpc":"2.0","id":' + id + ',"result":' + result + '}]')
})`

describe('an answer that is longer than limits.frameBytes, over stdio', () => {
  let mcp: Client
  beforeAll(async () => {
    const limits = { frameBytes: 100_000 }
    mcp = await connect({ command: process.execPath, args: ['-e', program] }, { limits, retry: false, revisions: ['2025-06-18'] })
  })
  afterAll(() => mcp.close())

  const told = expect.stringContaining("longer than 100000 bytes, this client's limit; raise limits.frameBytes")

  it.each(['before', 'behind'])('fails its call at once, and no other, where its id stands %s the result', async shape => {
    const other = mcp.callTool('wait')
    await expect(mcp.callTool('big', { shape })).rejects.toMatchObject({ message: told })
    await mcp.callTool('go')
    expect((await other).content).toEqual([])
  })

  it('fails what is under way where nobody can tell whose it was, and the connection goes on', async () => {
    const failed = await Promise.allSettled([mcp.callTool('wait'), mcp.callTool('big', { shape: 'batch' })])
    expect(failed).toMatchObject([{ reason: { message: told } }, { reason: { message: told } }])
    await mcp.callTool('go')
  })
})

describe('an answer that is not UTF-8, over stdio', () => {
  it('is dropped where one follows that can be read, and fails its call alone where none does', async () => {
    await using mcp = await connect(
      { command: process.execPath, args: ['-e', program] },
      { retry: false, revisions: ['2025-06-18'] },
    )
    const other = mcp.callTool('wait')
    expect((await mcp.callTool('big', { shape: 'twice' })).text).toBe('right')
    await expect(mcp.callTool('big', { shape: 'latin1' })).rejects.toThrow('The response is not valid UTF-8')
    await mcp.callTool('go')
    expect((await other).content).toEqual([])
  })
})

it('a request that is longer than the server takes is refused under its id, over stdio', async () => {
  const module = JSON.stringify(new URL('../server/index.ts', import.meta.url).href)
  const served = `import { createServer } from ${module}
    const server = createServer({ name: 'small', version: '1.0.0', limits: { frameBytes: 50_000 } })
    server.tool('take', { description: 'Takes' }, () => 'taken')
    await server.stdio()`
  await using small = await connect({ command: process.execPath, args: ['--input-type=module', '-e', served] }, { retry: false })
  await expect(small.callTool('take', { text: 'x'.repeat(100_000) })).rejects.toThrow('frameBytes')
  expect((await small.callTool('take')).text).toBe('taken')
})
