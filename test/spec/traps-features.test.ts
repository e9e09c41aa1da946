/** Arguments, schemas, pages, progress, completion and tasks where the wires differ: traps 26 and 28–30. */
import { afterEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { createServer, jsonSchema, type Server } from '../../src/server/index.ts'
import { expectLog } from '../log-lines/lines.ts'
import {
  callName,
  errorOf,
  everyRevision,
  type Frame,
  official,
  requestRevisions,
  resultOf,
  sessionRevisions,
  speak,
} from './wire.ts'

expectLog('internal', /can't resolve reference https:\/\/example\.com/)
expectLog('tool-failed', /tool=breaks error="Error: broken/)

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

function make(more: (server: Server) => void = () => {}): Server {
  const server = createServer({ name: 'features', version: '1.0.0', revisions: everyRevision, pageSize: 2 })
  closers.push(() => server.close())
  server.tool('named', { input: z.object({ name: z.string(), age: z.number().optional() }) }, ({ name }) => name)
  server.tool(
    'schema',
    { input: jsonSchema({ type: 'object', properties: { count: { type: 'integer', minimum: 1 } }, required: ['count'] }) },
    () => 'ok',
  )
  server.tool('bare', {}, args => JSON.stringify(args))
  server.resource('memo://one', { name: 'one' }, () => 'one')
  server.resource('memo://none', { name: 'none' }, () => undefined)
  server.resource('memo://empty', { name: 'empty' }, () => [])
  server.prompt(
    'brief',
    { arguments: { topic: { required: true, complete: () => Array.from({ length: 250 }, (_, at) => `v${at}`) } } },
    ({ topic }) => topic,
  )
  more(server)
  return server
}

describe('trap 26: bad arguments of a tool', () => {
  it.each(everyRevision)(
    '%s: a result that says so, which models can read and mend; 4001 on the dialect; the field is named',
    async revision => {
      const wire = await speak(make(), revision)
      for (const [name, args, field] of [
        ['named', { name: 7 }, 'name'],
        ['named', {}, 'name'],
        ['schema', { count: 0 }, 'count'],
        ['schema', {}, 'count'],
      ] as const) {
        const answer = await wire.ask(callName(revision), { name, arguments: args })
        if (revision !== 's3') {
          const { isError, content } = resultOf(answer)
          expect([isError, JSON.stringify(content)]).toEqual([true, expect.stringContaining(field)])
        } else {
          const { code, message } = errorOf(answer)
          expect([code, message]).toEqual([4001, expect.stringContaining(field)])
        }
      }
    },
  )

  it.each(everyRevision)('%s: arguments that are no object are a malformed request', async revision => {
    const wire = await speak(make(), revision)
    for (const args of [[], 'x', 7, null]) {
      expect(errorOf(await wire.ask(callName(revision), { name: 'named', arguments: args })).code).toBe(-32602)
    }
  })

  it.each(everyRevision)('%s: a tool that takes nothing gets an empty object, whatever is sent', async revision => {
    const wire = await speak(make(), revision)
    const { content, output } = resultOf(await wire.ask(callName(revision), { name: 'bare', arguments: { random_string: 'x' } }))
    expect(revision === 's3' ? output : (content as Frame[])[0]?.['text']).toBe('{}')
  })

  it.each(everyRevision)('%s: an unknown tool or prompt is −32602, and so are names of Object.prototype', async revision => {
    const wire = await speak(make(), revision)
    for (const name of ['nobody', 'constructor', '__proto__', 'toString', '']) {
      expect(errorOf(await wire.ask(callName(revision), { name })).code).toBe(-32602)
      expect(errorOf(await wire.ask('prompts/get', { name })).code).toBe(-32602)
    }
  })

  it.each(everyRevision)('%s: a prompt without what it needs is −32602 and names it', async revision => {
    const wire = await speak(make(), revision)
    for (const args of [undefined, {}, { topic: 7 }, []]) {
      const { code, message } = errorOf(
        await wire.ask('prompts/get', { name: 'brief', ...(args === undefined ? {} : { arguments: args }) }),
      )
      expect(code).toBe(-32602)
      expect(message).toMatch(/topic|arguments/)
    }
  })

  it.each(everyRevision)(
    '%s: a resource that is not there is −32002 up to D, −32602 on E; never an empty list',
    async revision => {
      const wire = await speak(make(), revision)
      for (const uri of ['memo://nobody', 'memo://none', 'memo://empty', 'constructor']) {
        const { code, data } = errorOf(await wire.ask('resources/read', { uri }))
        expect([code, data]).toEqual([revision === '2026-07-28' ? -32602 : -32002, { uri }])
      }
    },
  )

  it('goes by HTTP 200 in every one of these cases (§1.3)', async () => {
    const server = make()
    const { url } = await server.listen()
    const { httpPeer } = await import('./http.ts')
    for (const revision of ['2025-06-18', '2025-11-25', '2026-07-28'] as const) {
      const peer = await httpPeer(url, revision)
      const statuses = [
        await peer.ask('tools/call', { name: 'nobody' }),
        await peer.ask('tools/call', { name: 'named', arguments: {} }),
        await peer.ask('resources/read', { uri: 'memo://nobody' }),
        await peer.ask('prompts/get', { name: 'nobody' }),
        await peer.ask('tools/list', { cursor: 'made up' }),
      ].map(({ status }) => status)
      expect(statuses).toEqual([200, 200, 200, 200, 200])
    }
  })
})

describe('trap 28: the dialect of schemas', () => {
  const make2 = (schema: Frame) => () =>
    make(server => server.tool('t', { input: jsonSchema({ type: 'object', ...schema }) }, () => 'ok'))

  it('without a word it is 2020-12', async () => {
    const prefixed = { properties: { pair: { type: 'array', prefixItems: [{ type: 'string' }], items: false } } }
    const wire = await speak(make2(prefixed)(), '2025-11-25')
    expect(resultOf(await wire.ask('tools/call', { name: 't', arguments: { pair: ['x'] } }))['isError']).toBe(undefined)
    expect(resultOf(await wire.ask('tools/call', { name: 't', arguments: { pair: ['x', 'y'] } }))['isError']).toBe(true)
  })

  it('one that is not known is an error, not a pass', () => {
    expect(make2({ $schema: 'http://json-schema.org/draft-04/schema#' })).toThrow()
  })

  it('keeps keywords that it does not know', async () => {
    const wire = await speak(make2({ properties: { a: { type: 'string', 'x-vendor': { deep: [1] } } } })(), '2026-07-28')
    let cursor: unknown
    let found: Frame | undefined
    do {
      const page: Frame = resultOf(await wire.ask('tools/list', cursor === undefined ? {} : { cursor }))
      found ??= (page['tools'] as readonly Frame[]).find(tool => tool['name'] === 't')
      cursor = page['nextCursor']
    } while (cursor !== undefined)
    expect(found?.['inputSchema']).toEqual({ type: 'object', properties: { a: { type: 'string', 'x-vendor': { deep: [1] } } } })
  })

  it('fetches nothing: a reference to the network fails the call, with no request made', async () => {
    const remote = { properties: { a: { $ref: 'https://example.com/schema.json' } } }
    let server: Server | undefined
    try {
      server = make2(remote)()
    } catch (error) {
      return expect(String(error)).toMatch(/example\.com/)
    }
    const wire = await speak(server, '2025-11-25')
    expect(await wire.ask('tools/call', { name: 't', arguments: { a: 1 } })).toHaveProperty('error')
  })
})

describe('trap 29: pages, progress, completion', () => {
  it.each(official)('%s: pages end by the absence of a cursor alone, and together are the list', async revision => {
    const wire = await speak(make(), revision)
    const names: unknown[] = []
    let params: Frame = {}
    for (let page = 0; page < 5; page++) {
      const { tools, nextCursor } = resultOf(await wire.ask('tools/list', params))
      names.push(...(tools as readonly Frame[]).map(tool => tool['name']))
      if (nextCursor === undefined) break
      params = { cursor: nextCursor }
    }
    expect(names).toEqual(['named', 'schema', 'bare'])
  })

  it.each(official)(
    '%s: a cursor that this list did not give is −32602: made up, empty, tampered with, of another list',
    async revision => {
      const wire = await speak(
        make(server => server.resource('memo://two', { name: 'two' }, () => 'two')),
        revision,
      )
      const { nextCursor } = resultOf(await wire.ask('tools/list'))
      const good = String(nextCursor)
      const flipped = `${good.slice(0, -2)}${good.at(-2) === 'A' ? 'B' : 'A'}${good.at(-1)}`
      for (const cursor of ['', 'x', flipped, 'x'.repeat(100_000), 7, null]) {
        expect(errorOf(await wire.ask('tools/list', { cursor })).code).toBe(-32602)
      }
      expect(errorOf(await wire.ask('resources/list', { cursor: good })).code).toBe(-32602)
      expect(await wire.ask('tools/list', { cursor: good })).toHaveProperty('result')
    },
  )

  it('the dialect has no pages: it gets everything', async () => {
    const wire = await speak(make(), 's3')
    expect((await wire.ask('tools/list'))['result']).toHaveLength(3)
  })

  it.each(official)('%s: progress rises, keeps the type of its token, is a number, and stops at the answer', async revision => {
    let late = (): void => {}
    const wire = await speak(
      make(server =>
        server.tool('work', {}, (_, ctx) => {
          for (const step of [1, 1, 0, Number.NaN, 2, Number.POSITIVE_INFINITY, 3]) ctx.progress(step, { message: 'm' })
          ctx.progress(4, { total: Number.NaN })
          late = () => ctx.progress(9)
          return 'done'
        }),
      ),
      revision,
    )
    for (const progressToken of ['7', 7, 0, '']) {
      await wire.ask('tools/call', { name: 'work', _meta: { progressToken } })
      late()
      const said = (await wire.quiet())
        .filter(frame => frame['method'] === 'notifications/progress')
        .map(frame => frame['params'] as Frame)
      const own = said.filter(params => params['progressToken'] === progressToken)
      expect(own.map(({ progress }) => progress)).toEqual([1, 2, 3, 4])
      expect(own.map(({ message, total }) => [message, total])).toEqual([
        ...Array.from({ length: 3 }, () => [revision === '2024-11-05' ? undefined : 'm', undefined]),
        [undefined, undefined],
      ])
    }
  })

  it.each(official)('%s: without a token there is no progress, nor with one that is none', async revision => {
    const wire = await speak(
      make(server =>
        server.tool('work', {}, (_, ctx) => {
          ctx.progress(1)
          return 'done'
        }),
      ),
      revision,
    )
    for (const _meta of [{}, { progressToken: null }, { progressToken: 1.5 }, { progressToken: {} }]) {
      await wire.ask('tools/call', { name: 'work', _meta })
    }
    expect((await wire.quiet()).filter(frame => frame['method'] !== undefined)).toEqual([])
  })

  it('the dialect counts in percent, never falling, a message alone repeating the last (§3.1)', async () => {
    const wire = await speak(
      make(server =>
        server.tool('work', {}, (_, ctx) => {
          ctx.progress(1, { total: 4 })
          ctx.progress(2, { total: 100, message: 'less' })
          ctx.progress(3)
          ctx.progress(4, { message: 'talk' })
          ctx.progress(9, { total: 3, message: 'over' })
          return 'done'
        }),
      ),
      's3',
    )
    const id = wire.begin('tools/invoke', { name: 'work' }, 'job')
    await wire.next(frame => frame['id'] === id && frame['method'] === undefined)
    const said = wire.heard.filter(frame => frame['method'] === 'progress').map(frame => frame['params'])
    expect(said).toEqual([
      { id, percent: 25 },
      { id, percent: 25, message: 'less' },
      { id, percent: 25, message: 'talk' },
      { id, percent: 100, message: 'over' },
    ])
  })

  it.each(everyRevision)('%s: completion gives at most a hundred values and says that there are more', async revision => {
    const wire = await speak(make(), revision)
    const params = { ref: { type: 'ref/prompt', name: 'brief' }, argument: { name: 'topic', value: '' } }
    const { values, total, hasMore } = resultOf(await wire.ask('completion/complete', params))['completion'] as Frame
    expect([(values as unknown[]).length, total, hasMore]).toEqual([100, 250, true])
  })

  it.each(everyRevision)('%s: completion of what is not there is −32602', async revision => {
    const wire = await speak(make(), revision)
    const argument = { name: 'topic', value: '' }
    for (const params of [
      { ref: { type: 'ref/prompt', name: 'nobody' }, argument },
      { ref: { type: 'ref/resource', uri: 'nobody://{x}' }, argument },
      { ref: { type: 'ref/other', name: 'x' }, argument },
      { ref: { type: 'ref/prompt' }, argument },
      { ref: { type: 'ref/prompt', name: 'brief' }, argument: { name: 'constructor', value: '' } },
      { ref: { type: 'ref/prompt', name: 'brief' }, argument: { name: 'topic', value: 7 } },
      {},
    ]) {
      expect(errorOf(await wire.ask('completion/complete', params)).code).toBe(-32602)
    }
  })
})

describe('trap 30: tasks, two forms that do not mix', () => {
  const extension = { extensions: { 'io.modelcontextprotocol/tasks': {} } }
  const withTasks = (): Server =>
    make(server => {
      server.tool('long', { task: 'optional' }, () => 'done')
      server.tool('must', { task: 'required' }, () => 'done')
      server.tool('breaks', { task: 'optional' }, () => {
        throw new Error('broken')
      })
    })

  async function ended(wire: Awaited<ReturnType<typeof speak>>, taskId: unknown): Promise<Frame> {
    for (;;) {
      const task = resultOf(await wire.ask('tasks/get', { taskId }))
      if (task['status'] !== 'working') return task
      await new Promise<void>(resolve => setImmediate(() => resolve()))
    }
  }

  it('2025-11-25: the caller asks, the task is nested, the result is fetched, an error result is a failure', async () => {
    const wire = await speak(withTasks(), '2025-11-25')
    const created = resultOf(await wire.ask('tools/call', { name: 'breaks', task: { ttl: 60_000 } }))
    const task = created['task'] as Frame
    expect(Object.keys(task).sort()).toEqual(['createdAt', 'lastUpdatedAt', 'pollInterval', 'status', 'taskId', 'ttl'])
    expect((await ended(wire, task['taskId']))['status']).toBe('failed')
    const result = resultOf(await wire.ask('tasks/result', { taskId: task['taskId'] }))
    expect([result['isError'], result['_meta']]).toEqual([
      true,
      { 'io.modelcontextprotocol/related-task': { taskId: task['taskId'] } },
    ])
    expect(await wire.ask('tasks/update', { taskId: task['taskId'], inputResponses: {} })).toMatchObject({
      error: { code: -32601 },
    })
  })

  it('2025-11-25: taskSupport is held to: −32601 either way', async () => {
    const wire = await speak(withTasks(), '2025-11-25')
    expect(errorOf(await wire.ask('tools/call', { name: 'must' })).code).toBe(-32601)
    expect(errorOf(await wire.ask('tools/call', { name: 'bare', task: {} })).code).toBe(-32601)
    for (const task of [7, [], { ttl: -1 }, { ttl: 'x' }]) {
      expect(errorOf(await wire.ask('tools/call', { name: 'long', task })).code).toBe(-32602)
    }
  })

  it('2026-07-28: the server decides, the task is flat, the result is inline, an error result is completed', async () => {
    const wire = await speak(withTasks(), '2026-07-28', { capabilities: extension })
    const task = resultOf(await wire.ask('tools/call', { name: 'breaks' }))
    expect([task['resultType'], Object.keys(task).sort()]).toEqual([
      'task',
      ['_meta', 'createdAt', 'lastUpdatedAt', 'pollIntervalMs', 'resultType', 'status', 'taskId', 'ttlMs'],
    ])
    const done = await ended(wire, task['taskId'])
    expect([done['resultType'], done['status'], (done['result'] as Frame)['isError']]).toEqual(['complete', 'completed', true])
    expect(errorOf(await wire.ask('tasks/result', { taskId: task['taskId'] })).code).toBe(-32601)
    expect(errorOf(await wire.ask('tasks/list')).code).toBe(-32601)
  })

  it('2026-07-28: who did not declare it gets no task, ignores params.task, and −32021 from tasks/*', async () => {
    const wire = await speak(withTasks(), '2026-07-28', { capabilities: { tasks: { requests: { tools: { call: {} } } } } })
    expect(resultOf(await wire.ask('tools/call', { name: 'long', task: { ttl: 1000 } }))).toMatchObject({
      resultType: 'complete',
      content: [{ text: 'done' }],
    })
    const missing = { requiredCapabilities: extension }
    for (const [method, params] of [
      ['tools/call', { name: 'must' }],
      ['tasks/get', { taskId: 'x' }],
      ['tasks/update', { taskId: 'x', inputResponses: {} }],
      ['tasks/cancel', { taskId: 'x' }],
      ['subscriptions/listen', { notifications: { taskIds: ['x'] } }],
    ] as const) {
      const { code, data } = errorOf(await wire.ask(method, params))
      expect([method, code, data]).toEqual([method, -32021, missing])
    }
  })

  it.each(['2024-11-05', '2025-03-26', '2025-06-18'] as const)(
    '%s: a wish for a task is ignored, and the tool that must be one is just a call',
    async revision => {
      const wire = await speak(withTasks(), revision)
      expect(resultOf(await wire.ask('tools/call', { name: 'long', task: {} }))['content']).toEqual([
        { type: 'text', text: 'done' },
      ])
      expect(errorOf(await wire.ask('tasks/get', { taskId: 'x' })).code).toBe(-32601)
    },
  )

  it('a server without such tools has no tasks on any wire', async () => {
    for (const revision of [...sessionRevisions, ...requestRevisions]) {
      const wire = await speak(make(), revision, { capabilities: extension })
      expect(errorOf(await wire.ask('tasks/get', { taskId: 'x' })).code).toBe(-32601)
    }
  })

  it('a task of one wire, or of another principal, is unknown elsewhere', async () => {
    const server = withTasks()
    const ada = await speak(server, '2025-11-25', { principal: 'ada' })
    const created = resultOf(await ada.ask('tools/call', { name: 'long', task: {} }))['task'] as Frame
    const eve = await speak(server, '2025-11-25', { principal: 'eve' })
    const adaNow = await speak(server, '2026-07-28', { principal: 'ada', capabilities: extension })
    for (const wire of [eve, adaNow])
      expect(errorOf(await wire.ask('tasks/get', { taskId: created['taskId'] })).code).toBe(-32602)
    expect(await ada.ask('tasks/get', { taskId: created['taskId'] })).toHaveProperty('result')
  })
})
