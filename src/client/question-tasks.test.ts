import { afterEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { RawPeer } from '../../test/tasks/raw-peer.ts'
import { afterTest, cleanUp } from '../../test/transports/http-test-server.ts'
import { createServer } from '../server/index.ts'
import { connectInMemory, memoryPair, type PassedFrame } from '../testing/index.ts'
import type { ConnectOptions } from './api.ts'
import type { Client } from './client.ts'
import { connect } from './connect.ts'

afterEach(cleanUp)

const said = { role: 'assistant', content: { type: 'text', text: 'dish' }, model: 'm' } as const
const question = { messages: [{ role: 'user', content: { type: 'text', text: 'Rhyme!' } }], maxTokens: 5 } as const

/** A server whose tools ask for tasks. */
function asking() {
  const server = createServer({ name: 'asks', version: '1.0.0' })
  server.tool('rhyme', {}, async (_, ctx) => JSON.stringify(await ctx.sample(question, { task: { ttl: '1m' } })))
  server.tool('name', {}, async (_, ctx) => {
    const answer = await ctx.elicit({ message: 'Who?', schema: z.object({ name: z.string() }), task: true })
    return answer.action === 'accept' ? answer.content.name : answer.action
  })
  server.tool('sure', { task: { support: 'optional', pollInterval: '50ms' } }, async (_, ctx) =>
    String(await ctx.confirm('Sure?', { task: true })),
  )
  afterTest(() => server.close())
  return server
}

const answering: ConnectOptions = {
  onSample: () => said,
  onElicit: () => ({ action: 'accept', content: { name: 'Ann', confirm: true } }),
}

/** What the server sent by method, in the order in which it was sent first. */
function methods(frames: readonly PassedFrame[]): string[] {
  const sent = frames.filter(({ way }) => way === 'in').map(({ text }) => JSON.parse(text).method as string | undefined)
  return [...new Set(sent.filter(method => method !== undefined))]
}

describe('a question that a server wants answered as a task', () => {
  it('is worked out by the client, looked after and fetched', async () => {
    const frames: PassedFrame[] = []
    await using mcp = await connectInMemory(asking(), {
      revision: '2025-11-25',
      onFrame: frame => frames.push(frame),
      ...answering,
    })
    expect(JSON.parse((await mcp.callTool('rhyme')).text)).toMatchObject(said)
    expect((await mcp.callTool('name')).text).toBe('Ann')
    expect(methods(frames)).toEqual(['sampling/createMessage', 'tasks/get', 'tasks/result', 'elicitation/create'])
  })

  it('travels on the stream of its call over HTTP', async () => {
    const { url } = await asking().listen()
    const mcp = await connect(url, { revisions: ['2025-11-25'], ...answering })
    afterTest(() => mcp.close())
    expect((await mcp.callTool('name')).text).toBe('Ann')
  })

  it('may be that of a call that is a task itself', async () => {
    await using mcp = await connectInMemory(asking(), { revision: '2025-11-25', ...answering })
    for await (const _ of mcp.tools());
    expect((await mcp.callTool('sure', {}, { task: true })).text).toBe('true')
  })

  it.each(['2025-06-18', '2026-07-28'] as const)('is asked as usual at %s', async revision => {
    const frames: PassedFrame[] = []
    await using mcp = await connectInMemory(asking(), { revision, onFrame: frame => frames.push(frame), ...answering })
    expect((await mcp.callTool('name')).text).toBe('Ann')
    expect(JSON.stringify(frames)).not.toContain('tasks/get')
  })

  it('is asked as usual where the client runs no such tasks', async () => {
    const [near, far] = memoryPair()
    asking().acceptor.accept(far)
    const peer = new RawPeer(near)
    const asked: unknown[] = []
    peer.onRequest = request => {
      asked.push(request['params'])
      return said
    }
    const capabilities = { sampling: {}, tasks: { requests: { elicitation: { create: {} } } } }
    await peer.result('initialize', { protocolVersion: '2025-11-25', capabilities, clientInfo: { name: 'c', version: '1' } })
    peer.send({ jsonrpc: '2.0', method: 'notifications/initialized' })
    await peer.result('tools/call', { name: 'rhyme' })
    expect(asked).toEqual([question])
  })

  it('is cancelled with the call that asked', async () => {
    const given = Promise.withResolvers<AbortSignal>()
    await using mcp = await connectInMemory(asking(), {
      revision: '2025-11-25',
      onSample: (_, { signal }) => {
        given.resolve(signal)
        return new Promise(() => {})
      },
    })
    const stop = new AbortController()
    const call = mcp.callTool('rhyme', {}, { signal: stop.signal }).catch(error => error)
    const signal = await given.promise
    stop.abort(new Error('enough'))
    expect(await call).toMatchObject({ message: 'enough' })
    await expect.poll(() => signal.aborted).toBe(true)
  })
})

describe('a client that runs what it is asked as tasks', () => {
  /** Our client, opened by a server that speaks raw frames. */
  async function raw(options: ConnectOptions = answering) {
    const [near, far] = memoryPair()
    const server = new RawPeer(far)
    let declared: unknown
    server.onRequest = ({ method, params }) => {
      if (method !== 'initialize') return {}
      declared = (params as { capabilities: { tasks?: unknown } }).capabilities.tasks
      return { protocolVersion: '2025-11-25', capabilities: {}, serverInfo: { name: 's', version: '1' } }
    }
    const mcp: Client = await connect(near, { revisions: ['2025-11-25'], ...options })
    afterTest(() => mcp.close())
    return { server, mcp, declared }
  }

  it('declares those that it answers', async () => {
    const requests = { sampling: { createMessage: {} }, elicitation: { create: {} } }
    expect((await raw()).declared).toEqual({ list: {}, cancel: {}, requests })
    expect((await raw({ onSample: () => said })).declared).toMatchObject({ requests: { sampling: { createMessage: {} } } })
    expect((await raw({})).declared).toBeUndefined()
  })

  it('lists them, says how they stand, and gives the result with the name of its task', async () => {
    const { server } = await raw()
    const { task } = (await server.result('sampling/createMessage', { ...question, task: { ttl: 60_000 } })) as {
      task: { taskId: string }
    }
    expect(task).toMatchObject({ status: 'working', ttl: 60_000, pollInterval: 500 })
    const { taskId } = task
    const related = { 'io.modelcontextprotocol/related-task': { taskId } }
    expect(await server.result('tasks/result', { taskId })).toEqual({ ...said, _meta: related })
    expect(await server.result('tasks/get', { taskId })).toMatchObject({ taskId, status: 'completed' })
    expect(await server.result('tasks/list')).toMatchObject({ tasks: [{ taskId, status: 'completed' }] })
    expect(await server.code('tasks/cancel', { taskId })).toBe(-32602)
    expect(await server.code('tasks/get', { taskId: 'none' })).toBe(-32602)
  })

  it('gives the failure of its handler as that of the question', async () => {
    const { server } = await raw({
      onElicit: () => {
        throw new Error('secret')
      },
    })
    const params = { mode: 'form', message: 'Who?', requestedSchema: { type: 'object', properties: {} }, task: {} }
    const { task } = (await server.result('elicitation/create', params)) as { task: { taskId: string } }
    const answer = await server.request('tasks/result', { taskId: task.taskId })
    expect(answer).toMatchObject({ error: { code: -32603 } })
    expect(JSON.stringify(answer)).not.toContain('secret')
    expect(await server.result('tasks/get', { taskId: task.taskId })).toMatchObject({ status: 'failed' })
  })

  it('stops one that is cancelled', async () => {
    const given = Promise.withResolvers<AbortSignal>()
    const { server } = await raw({
      onSample: (_, { signal }) => {
        given.resolve(signal)
        return new Promise(() => {})
      },
    })
    const { task } = (await server.result('sampling/createMessage', { ...question, task: {} })) as { task: { taskId: string } }
    const signal = await given.promise
    expect(await server.result('tasks/cancel', { taskId: task.taskId })).toMatchObject({ status: 'cancelled' })
    expect(signal.aborted).toBe(true)
  })

  it('refuses a wish that is none, and has no such methods without handlers', async () => {
    const { server } = await raw()
    expect(await server.code('sampling/createMessage', { ...question, task: { ttl: -1 } })).toBe(-32602)
    const { server: other } = await raw({})
    expect(await other.code('tasks/list')).toBe(-32601)
  })
})
