import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import {
  type Frame,
  modernServer,
  Refusal,
  type Script,
  type ScriptedServer,
  said,
  sessionServer,
  silence,
  toolList,
} from '../../test/client/scripted-server.ts'
import { createServer } from '../server/index.ts'
import { fakeClock } from '../testing/clock.ts'
import { connectInMemory } from '../testing/connect.ts'
import { connect } from './connect.ts'

const both = ['2025-11-25', '2026-07-28'] as const
const now = '2026-01-01T00:00:00Z'
const times = { createdAt: now, lastUpdatedAt: now }
/** A task in the words of the extension, and in those of the core form. */
const flat = (status: string, more: Frame = {}): Frame => ({
  taskId: 't1',
  status,
  ...times,
  ttlMs: 60_000,
  pollIntervalMs: 50,
  ...more,
})
const nested = (status: string, more: Frame = {}): Frame => ({
  taskId: 't1',
  status,
  ...times,
  ttl: 60_000,
  pollInterval: 50,
  ...more,
})

const taskCapability = { tasks: { requests: { tools: { call: {} } } }, tools: {} }

/** A session server whose tool `work` supports tasks so. */
function coreServer(taskSupport: string, script: Script = {}, capabilities: Frame = taskCapability): ScriptedServer {
  return sessionServer(
    {
      'tools/list': () => toolList({ name: 'work', execution: { taskSupport } }),
      'tools/call': () => said('directly'),
      ...script,
    },
    capabilities,
  )
}

describe('a call that becomes a task', () => {
  // Before its answer is read, and after that, before anybody waits for the task.
  it.each(
    both.flatMap(revision => [
      { revision, when: 'its answer comes', give: (up: () => void) => up() },
      { revision, when: 'its answer has come', give: queueMicrotask },
    ]),
  )('at $revision and is given up as $when is cancelled at its server', async ({ revision, give }) => {
    const server = createServer({ name: 's', version: '1' })
    server.tool('work', { task: { support: 'required', pollInterval: '50ms' } }, () => new Promise<string>(() => {}))
    const call = new AbortController()
    const sent: string[] = []
    await using mcp = await connectInMemory(server, {
      revision,
      onFrame: ({ way, text }) => {
        if (way === 'out') sent.push(JSON.parse(text).method)
        else if (text.includes('"taskId"') && !call.signal.aborted) give(() => call.abort())
      },
    })
    await expect(mcp.callTool('work', {}, { task: true, signal: call.signal })).rejects.toThrow('aborted')
    await expect.poll(() => sent).toContain('tasks/cancel')
  })

  it.each(both)('at %s is looked after through the middleware', async revision => {
    const server = createServer({ name: 's', version: '1' })
    server.tool('work', { description: 'Works', task: { support: 'required', pollInterval: '50ms' } }, () => 'done')
    await using mcp = await connectInMemory(server, { revision })
    const methods: string[] = []
    mcp.use((call, next) => {
      methods.push(call.method)
      return next(call)
    })
    expect((await mcp.callTool('work')).text).toBe('done')
    expect(methods).toContain('tasks/get')
    expect(methods.includes('tasks/result')).toBe(revision === '2025-11-25')
    await server.close()
  })

  it.each(both)('at %s gives its result as any other call does', async revision => {
    const server = createServer({ name: 's', version: '1' })
    server.tool(
      'work',
      {
        description: 'Works',
        input: z.object({ n: z.number() }),
        output: z.object({ twice: z.number() }),
        task: { support: 'required', pollInterval: '50ms' },
      },
      ({ n }) => ({ twice: 2 * n }),
    )
    await using mcp = await connectInMemory(server, { revision })
    for await (const _ of mcp.tools());
    const out = await mcp.callTool('work', { n: 21 }, { output: z.object({ twice: z.number() }) })
    expect([out.structured, out.isError]).toEqual([{ twice: 42 }, false])
    await server.close()
  })

  it.each(both)('at %s tells how far it is while it runs', async revision => {
    const told: unknown[] = []
    let heard = Promise.withResolvers<void>()
    const server = createServer({ name: 's', version: '1' })
    server.tool('work', { description: 'Counts', task: { support: 'optional', pollInterval: '50ms' } }, async (_, ctx) => {
      for (let step = 1; step <= 3; step++) {
        ctx.progress(step, { total: 3, message: `step ${step}` })
        await heard.promise
        heard = Promise.withResolvers()
      }
      return 'done'
    })
    await using mcp = await connectInMemory(server, { revision })
    const onProgress = (step: unknown): void => {
      told.push(step)
      heard.resolve()
    }
    expect((await mcp.callTool('work', {}, { task: true, onProgress })).text).toBe('done')
    expect(told).toEqual([1, 2, 3].map(step => expect.objectContaining({ progress: step, total: 3, message: `step ${step}` })))
    await server.close()
  })

  it.each(both)('at %s may ask while it runs', async revision => {
    const server = createServer({ name: 's', version: '1' })
    server.tool('work', { description: 'Asks', task: { support: 'required', pollInterval: '50ms' } }, async (_, ctx) =>
      String(await ctx.confirm('Go on?')),
    )
    await using mcp = await connectInMemory(server, {
      revision,
      onElicit: () => ({ action: 'accept', content: { confirm: true } }),
    })
    for await (const _ of mcp.tools());
    expect((await mcp.callTool('work')).isError).toBe(false)
    await server.close()
  })

  it.each(both)('at %s is cancelled when it is given up', async revision => {
    const stopped = Promise.withResolvers<void>()
    const started = Promise.withResolvers<void>()
    const server = createServer({ name: 's', version: '1' })
    server.tool('work', { description: 'Waits', task: { support: 'required', pollInterval: '50ms' } }, (_, { signal }) => {
      signal.addEventListener('abort', () => stopped.resolve())
      started.resolve()
      return new Promise<string>(() => {})
    })
    await using mcp = await connectInMemory(server, { revision })
    for await (const _ of mcp.tools());
    const stop = new AbortController()
    const call = mcp.callTool('work', {}, { signal: stop.signal }).catch(error => error)
    await started.promise
    stop.abort(new Error('enough'))
    expect(await call).toMatchObject({ message: 'enough' })
    await stopped.promise
    await server.close()
  })

  it('keeps its promises like any other', async () => {
    const outputSchema = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] }
    const server = modernServer({
      'tools/list': () => toolList({ name: 'work', outputSchema }),
      'tools/call': () => ({ resultType: 'task', ...flat('working') }),
      'tasks/get': () => ({
        resultType: 'complete',
        ...flat('completed', { result: said('x', { structuredContent: { n: 'seven' } }) }),
      }),
    })
    await using mcp = await connect(server.connection)
    for await (const _ of mcp.tools());
    await expect(mcp.callTool('work')).rejects.toMatchObject({
      kind: 'invalid-result',
      message: expect.stringContaining('does not match its output schema'),
    })
  })
})

describe('a task that is malformed', () => {
  it.each<[string, unknown]>([
    ['no object', null],
    ['a list', []],
    ['without a result that is one', flat('completed', { result: null as unknown as Frame })],
    ['failed without an error that is one', flat('failed', { error: null })],
    ['failed with an error whose message is an object', flat('failed', { error: { code: 1, message: { toString: 1 } } })],
    ['cancelled with a message that is a number', flat('cancelled', { statusMessage: 7 })],
    ['to be looked at never again', flat('working', { pollIntervalMs: 'never' })],
    ['asking in a list', flat('input_required', { inputRequests: [1] })],
  ])('is refused as an invalid answer: %s', async (_, task) => {
    const clock = fakeClock()
    const server = modernServer({
      'tools/call': () => ({ resultType: 'task', ...flat('working') }),
      'tasks/get': () => (task === null || Array.isArray(task) ? task : { resultType: 'complete', ...(task as Frame) }),
    })
    await using mcp = await connect(server.connection, { clock })
    const call = mcp.callTool('work').catch(error => error)
    await server.saw('tools/call')
    await new Promise(setImmediate)
    clock.advance(1_000)
    expect(await call).toMatchObject({ name: 'McpError', kind: expect.stringMatching(/^invalid-/) })
  })

  it('in the core form is refused when its result is no object', async () => {
    const clock = fakeClock()
    const server = coreServer('required', {
      'tools/call': () => ({ task: nested('working') }),
      'tasks/get': () => nested('completed'),
      'tasks/result': () => 7,
    })
    await using mcp = await connect(server.connection, { clock, revisions: ['2025-11-25'] })
    for await (const _ of mcp.tools());
    const call = mcp.callTool('work').catch(error => error)
    await server.saw('tools/call')
    await new Promise(setImmediate)
    clock.advance(1_000)
    expect(await call).toMatchObject({ name: 'McpError', kind: expect.stringMatching(/^invalid-/) })
  })
})

describe('the core form (2025-11-25)', () => {
  it.each([
    ['required', undefined, true],
    ['required', false, true],
    ['optional', true, true],
    ['optional', undefined, false],
    ['forbidden', true, false],
  ] as const)('is asked for when a tool says %s and the caller %s: %s', async (support, task, expected) => {
    const server = coreServer(support, {
      'tools/call': params => (params['task'] === undefined ? said('directly') : { task: nested('working') }),
      'tasks/get': () => nested('completed'),
      'tasks/result': () => said('later'),
    })
    await using mcp = await connect(server.connection)
    for await (const _ of mcp.tools());
    const out = await mcp.callTool('work', {}, task === undefined ? {} : { task })
    expect(out.text).toBe(expected ? 'later' : 'directly')
    expect(server.params('tools/call')[0]?.['task']).toEqual(expected ? {} : undefined)
  })

  it('is found out for a tool that was never listed: it is refused like an unknown method, and did not run', async () => {
    const server = coreServer('required', {
      'tools/call': params => {
        if (params['task'] === undefined) throw new Refusal(-32601, 'only as a task')
        return { task: nested('working') }
      },
      'tasks/get': () => nested('completed'),
      'tasks/result': () => said('later'),
    })
    await using mcp = await connect(server.connection)
    expect((await mcp.callTool('work')).text).toBe('later')
    expect(server.params('tools/call')).toEqual([{ name: 'work' }, { name: 'work', task: {} }])
  })

  it('is no reason to send again what is refused for another reason', async () => {
    const refuse = (): never => {
      throw new Refusal(-32601, 'no such thing')
    }
    const server = coreServer('optional', { 'tools/call': refuse })
    await using mcp = await connect(server.connection)
    await expect(mcp.callTool('work')).rejects.toMatchObject({ code: -32601, message: 'no such thing' })
    expect(server.of('tools/call')).toHaveLength(1)
  })

  it('is not asked for where the server does not take tasks', async () => {
    const server = coreServer('optional', {}, { tools: {} })
    await using mcp = await connect(server.connection)
    for await (const _ of mcp.tools());
    await mcp.callTool('work', {}, { task: true })
    expect(server.params('tools/call')).toEqual([{ name: 'work', arguments: {} }])
  })

  it('throws the failure that tasks/result answers', async () => {
    const server = coreServer('required', {
      'tools/call': () => ({ task: nested('working') }),
      'tasks/get': () => nested('failed'),
      'tasks/result': () => {
        throw new Refusal(-32603, 'out of fuel')
      },
    })
    await using mcp = await connect(server.connection)
    for await (const _ of mcp.tools());
    await expect(mcp.callTool('work')).rejects.toMatchObject({ code: -32603, message: 'out of fuel' })
  })
})

describe('the extension (2026-07-28)', () => {
  it('is the server’s choice: the client only declares it', async () => {
    const looks = [flat('working'), flat('working', { statusMessage: 'half' }), flat('completed', { result: said('later') })]
    const server = modernServer({
      'tools/call': () => ({ resultType: 'task', ...flat('working') }),
      'tasks/get': () => ({ resultType: 'complete', ...looks.shift() }),
    })
    await using mcp = await connect(server.connection)
    expect((await mcp.callTool('work', {}, { task: true })).text).toBe('later')
    expect(server.params('tools/call')).toEqual([{ name: 'work', arguments: {} }])
    const declared = { extensions: { 'io.modelcontextprotocol/tasks': {} } }
    expect(server.of('tools/call')[0]).toMatchObject({
      params: { _meta: { 'io.modelcontextprotocol/clientCapabilities': declared } },
    })
  })

  it('is declared when the server says that the tool runs no other way', async () => {
    const declared = (params: Frame) => JSON.stringify(params).includes('io.modelcontextprotocol/tasks')
    const server = modernServer({
      'tools/call': params => {
        if (declared(params)) return { resultType: 'task', ...flat('working') }
        throw new Refusal(-32021, 'a task', { requiredCapabilities: { extensions: { 'io.modelcontextprotocol/tasks': {} } } })
      },
      'tasks/get': () => flat('completed', { result: said('later') }),
    })
    await using mcp = await connect(server.connection)
    expect((await mcp.callTool('work')).text).toBe('later')
    expect(server.of('tools/call').map(({ params }) => declared(params as Frame))).toEqual([false, true])
    expect(server.of('tasks/get').every(({ params }) => declared(params as Frame))).toBe(true)
  })

  it('throws the failure that the task holds, and returns that of the tool', async () => {
    const failed = flat('failed', { error: { code: -32603, message: 'out of fuel' } })
    const server = modernServer({ 'tools/call': () => ({ resultType: 'task', ...flat('working') }), 'tasks/get': () => failed })
    await using mcp = await connect(server.connection)
    await expect(mcp.callTool('work')).rejects.toMatchObject({ code: -32603, message: 'out of fuel' })
    server.on('tasks/get', () => flat('completed', { result: said('broken', { isError: true }) }))
    expect(await mcp.callTool('work')).toMatchObject({ isError: true, text: 'broken' })
  })

  it('may follow questions: those are over before the task begins', async () => {
    let round = 0
    const server = modernServer({
      'tools/call': () =>
        round++ === 0 ? { resultType: 'input_required', requestState: 's' } : { resultType: 'task', ...flat('working') },
      'tasks/get': () => flat('completed', { result: said('after all') }),
    })
    await using mcp = await connect(server.connection)
    expect((await mcp.callTool('work')).text).toBe('after all')
  })

  it.each<[string, Frame]>([
    ['without an id', { resultType: 'task', status: 'working' }],
    ['without a status', { resultType: 'task', taskId: 't1' }],
    ['with an odd id', { resultType: 'task', taskId: 7, status: 'working' }],
  ])('%s is a broken answer', async (_, result) => {
    const server = modernServer({ 'tools/call': () => result })
    await using mcp = await connect(server.connection)
    await expect(mcp.callTool('work')).rejects.toMatchObject({ name: 'McpError', message: expect.stringContaining('malformed') })
  })

  it('is no answer to a prompt or a resource', async () => {
    const task = () => ({ resultType: 'task', ...flat('working') })
    const server = modernServer({ 'prompts/get': task, 'resources/read': task })
    await using mcp = await connect(server.connection)
    await expect(mcp.getPrompt('p')).rejects.toMatchObject({ kind: 'invalid-result' })
    await expect(mcp.readResource('x:1')).rejects.toMatchObject({ kind: 'invalid-result' })
  })

  it('that never ends is given up when its time to live is over', async () => {
    const clock = fakeClock()
    const server = modernServer({
      'tools/call': () => ({ resultType: 'task', ...flat('working', { ttlMs: 5_000, pollIntervalMs: 1_000 }) }),
      'tasks/get': () => silence,
      'tasks/cancel': () => ({}),
    })
    await using mcp = await connect(server.connection, { clock })
    const call = mcp.callTool('work').catch(error => error)
    await server.saw('tools/call')
    await new Promise(setImmediate)
    for (let n = 0; n < 30; n++) {
      clock.advance(250)
      await new Promise(setImmediate)
    }
    expect(await call).toMatchObject({ kind: 'timeout' })
    await server.saw('tasks/cancel')
  })
})
