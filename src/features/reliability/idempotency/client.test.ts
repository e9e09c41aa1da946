import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { revisions, world } from '../../../../test/reliability/keyed-world.ts'
import type { Client, ConnectOptions } from '../../../client/index.ts'
import type { RevisionId } from '../../../revisions/index.ts'
import { createServer, problem, type Server } from '../../../server/index.ts'
import { connectInMemory } from '../../../testing/index.ts'
import { idempotencyExtension } from './messages.ts'

const closing: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const each of closing.splice(0).reverse()) await each.close()
})

/** A client, and the keys of the calls it sends. */
async function meet(server: Server, revision: RevisionId, options: ConnectOptions = {}): Promise<[Client, unknown[]]> {
  const keys: unknown[] = []
  const mcp = await connectInMemory(server, {
    revision,
    ...options,
    onFrame: ({ way, text }) => {
      const { method, params } = JSON.parse(text)
      if (way === 'out' && method === 'tools/call') keys.push(params._meta?.[idempotencyExtension]?.idempotency_key)
    },
  })
  closing.push(server, mcp)
  return [mcp, keys]
}

describe.each(revisions)('a client at %s', revision => {
  it('makes a key for each call, another each time, where the server knows keys', async () => {
    const [mcp, keys] = await meet(world({ store: 'memory:' }).server, revision)
    await mcp.callTool('say')
    await mcp.callTool('say')
    expect(new Set(keys).size).toBe(2)
    expect(keys).toEqual([expect.stringMatching(/^[\w-]{36}$/), expect.stringMatching(/^[\w-]{36}$/)])
  })

  it('makes none for a tool that it knows to be read-only, nor for a server that knows no keys', async () => {
    const { server } = world({ store: 'memory:' })
    server.tool('look', { annotations: { readOnlyHint: true } }, () => 'seen')
    const [mcp, keys] = await meet(server, revision)
    for await (const _ of mcp.tools());
    await mcp.callTool('look')
    const [bare, others] = await meet(world().server, revision)
    await bare.callTool('say')
    expect([keys, others]).toEqual([[undefined], [undefined]])
  })

  it('uses the key that it is given, and refuses one that can be none', async () => {
    const [mcp, keys] = await meet(world().server, revision)
    expect((await mcp.callTool('say', {}, { idempotencyKey: 'mine' })).text).toBe('said 1')
    expect((await mcp.callTool('say', {}, { idempotencyKey: 'mine' })).text).toBe('said 1')
    expect(keys).toEqual(['mine', 'mine'])
    await expect(mcp.callTool('say', {}, { idempotencyKey: 'no key' })).rejects.toThrow(/idempotency key/)
  })

  it('E11-3: repeats a call under the same key', async () => {
    const server = createServer({ name: 'a', version: '1', store: 'memory:' })
    let runs = 0
    server.tool('flaky', {}, () => {
      if (++runs < 3) throw problem('SERVER_UNAVAILABLE', 'Not now')
      return `after ${runs}`
    })
    const [mcp, keys] = await meet(server, revision)
    expect((await mcp.callTool('flaky')).text).toBe('after 3')
    expect(keys).toHaveLength(3)
    expect(new Set(keys).size).toBe(1)
  })

  it('X2: sends the key again with the answers to what the call asked', async () => {
    const [mcp, keys] = await meet(world({ store: 'memory:' }).server, revision, {
      onElicit: () => ({ action: 'accept', content: { confirm: true } }),
    })
    expect((await mcp.callTool('ask')).text).toBe('true 1')
    expect(new Set(keys).size).toBe(1)
    expect(keys).toHaveLength(revision === '2026-07-28' ? 2 : 1)
  })

  it('E5-6: can ask what became of a call', async () => {
    const [mcp] = await meet(world({ store: 'memory:' }).server, revision, { retry: false })
    const out = await mcp.callTool('late', {}, { idempotencyKey: 'k' })
    expect(out.problem?.code).toBe('OPERATION_TIMEOUT')
    expect(await mcp.callStatus('k')).toMatchObject({ status: 'indeterminate', tool: 'late', startedAt: expect.any(Date) })
    expect(await mcp.callStatus('other')).toEqual({
      status: 'unknown',
      tool: undefined,
      startedAt: undefined,
      endedAt: undefined,
    })
  })
})

describe.each(revisions)('a call that becomes a task, at %s', revision => {
  it('gives the same task again', async () => {
    const made = world({ store: 'memory:' })
    let runs = 0
    made.server.tool('long', { task: { support: 'optional', pollInterval: 10 } }, async () => `done ${++runs}`)
    const [mcp] = await meet(made.server, revision)
    const options = { task: true, idempotencyKey: 'k' }
    const outs = [await mcp.callTool('long', {}, options), await mcp.callTool('long', {}, options)]
    expect(outs.map(({ text }) => text)).toEqual(['done 1', 'done 1'])
    expect(runs).toBe(1)
  })
})

it('a server that was restarted on the same file gives the outcome again', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'vivarium-restart-'))
  const store = `sqlite:${join(folder, 'a.db')}`
  const texts: string[] = []
  for (let turn = 0; turn < 2; turn++) {
    const { server } = world({ store })
    const mcp = await connectInMemory(server)
    texts.push((await mcp.callTool('say', {}, { idempotencyKey: 'k' })).text)
    await mcp.close()
    await server.close()
  }
  rmSync(folder, { recursive: true, force: true })
  expect(texts).toEqual(['said 1', 'said 1'])
})
