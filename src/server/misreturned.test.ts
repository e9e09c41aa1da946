/** Handlers that return what is no result: the log names them and says what to return. */
import { afterAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { createLog } from '../core/log.ts'
import { connectInMemory } from '../testing/connect.ts'
import { createServer } from './index.ts'

const lines: string[] = []
const log = createLog({ level: 'error', write: line => lines.push(line) })
const server = createServer({ name: 'wrong', version: '1.0.0', log })
afterAll(() => server.close())
const cycle = { self: undefined as unknown }
cycle.self = cycle

const returns: readonly [name: string, value: unknown, fix: RegExp][] = [
  ['sdk', { content: [{ type: 'text', text: 'x' }] }, /return reply\(\{ content/],
  ['bigint', { n: 1n }, /BigInt/],
  ['cycle', cycle, /circular/],
  ['map', new Map([['a', 1]]), /Object\.fromEntries/],
  ['set', new Set([1]), /\[\.\.\.values\]/],
  ['bytes', new Uint8Array([1, 2]), /image\(bytes/],
  ['buffer', Buffer.from('x'), /image\(bytes/],
  ['function', () => 'x', /returned a function/],
  ['error', new Error('x'), /throw it/],
]

async function called(work: (mcp: Awaited<ReturnType<typeof connectInMemory>>) => Promise<unknown>): Promise<string> {
  lines.length = 0
  await using mcp = await connectInMemory(server)
  const failure = await work(mcp).catch(error => error)
  expect(failure).toBeInstanceOf(Error)
  return String(failure)
}

describe('a tool that returns no result', () => {
  it.each(returns)('(%s) is named in the log, with what to return instead', async (name, value, fix) => {
    server.tool(name, {}, () => value)
    expect(await called(mcp => mcp.callTool(name))).toMatch(fix)
    expect(lines.join()).toMatch(fix)
    expect(lines.join()).toContain(`name=${name}`)
  })

  it('because it does not fit its output schema is logged with the path', async () => {
    server.tool('typed', { output: z.object({ id: z.string() }) }, () => ({ id: 7 }) as never)
    await called(mcp => mcp.callTool('typed'))
    expect(lines.join()).toMatch(/name=typed.*does not match its output schema: id: /)
  })

  it('but the shape of other libraries is told of reply beside its schema', async () => {
    server.tool('both', { output: z.object({ id: z.string() }) }, () => ({ content: [{ type: 'text', text: 'x' }] }) as never)
    expect(await called(mcp => mcp.callTool('both'))).toContain('return reply({ content, structured })')
  })

  it.each([[{}], [[]], [0], [null], [{ 0: 'a' }]])('is none that returns %j', async value => {
    const tool = server.tool('plain', {}, () => value)
    await using mcp = await connectInMemory(server)
    expect((await mcp.callTool('plain')).structured).toEqual(value)
    tool.remove()
  })
})

describe('a resource or a prompt that returns no content', () => {
  it('is named in the log', async () => {
    server.resource('note://1', { name: 'one' }, () => ({ content: 'x' }) as never)
    server.prompt('greet', {}, () => 7 as never)
    await called(mcp => mcp.readResource('note://1'))
    expect(lines.join()).toMatch(/name=note:\/\/1.*must return text, bytes/)
    await called(mcp => mcp.getPrompt('greet'))
    expect(lines.join()).toMatch(/name=greet.*must return text, messages/)
  })
})
