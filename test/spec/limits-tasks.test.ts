/** Tasks at work have limits like calls in flight, in both forms: per principal, else per session or connection, and in all (item 7). */
import { afterEach, describe, expect, it } from 'vitest'
import { createServer, type Server, type ServerOptions } from '../../src/server/index.ts'
import { httpPeer } from './http.ts'
import { errorOf, type Frame, resultOf, speak, type Wire } from './wire.ts'

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

interface Working {
  readonly server: Server
  /** Lets the first task end, as soon as it works. */
  readonly finish: () => Promise<void>
}

function make(limits: ServerOptions['limits']): Working {
  const server = createServer({ name: 'tasks', version: '1.0.0', limits: limits ?? {} })
  closers.push(() => server.close())
  let enter = (_end: () => void): void => {}
  const first = new Promise<() => void>(resolve => {
    enter = resolve
  })
  server.tool('work', { task: 'optional' }, () => new Promise<string>(resolve => enter(() => resolve('done'))))
  return { server, finish: async () => (await first)() }
}

const forms = {
  '2025-11-25': { capabilities: {}, params: { name: 'work', task: {} }, busy: -32000 },
  '2026-07-28': {
    capabilities: { extensions: { 'io.modelcontextprotocol/tasks': {} } },
    params: { name: 'work' },
    busy: -32603,
  },
} as const

const idOf = (frame: Frame): string => {
  const result = resultOf(frame)
  return String((result['task'] as Frame | undefined)?.['taskId'] ?? result['taskId'])
}

const statusOf = async (wire: Wire, taskId: string): Promise<unknown> =>
  resultOf(await wire.ask('tasks/get', { taskId }))['status']

describe.each(['2025-11-25', '2026-07-28'] as const)('tasks at %s', revision => {
  const { capabilities, params, busy } = forms[revision]
  const begin = (wire: Wire): Promise<Frame> => wire.ask('tools/call', params)

  it('beyond the limit of a connection are refused with the limit and the wait; another connection still begins one', async () => {
    const { server } = make({ runningTasksPerCaller: 2 })
    const [one, other] = [await speak(server, revision, { capabilities }), await speak(server, revision, { capabilities })]
    await begin(one)
    await begin(one)
    const { code, message, data } = errorOf(await begin(one))
    expect([code, message, data]).toEqual([
      busy,
      expect.stringMatching(/2 of your tasks.*\(runningTasksPerCaller\); retry in 1000 ms/),
      { retryAfterMs: 1000 },
    ])
    expect(idOf(await begin(other))).toMatch(/.{16}/)
  })

  it('are counted per principal, whatever connections it has', async () => {
    const { server } = make({ runningTasksPerCaller: 1 })
    const ada = { capabilities, principal: 'ada' }
    const [one, two] = [await speak(server, revision, ada), await speak(server, revision, ada)]
    const eve = await speak(server, revision, { capabilities, principal: 'eve' })
    await begin(one)
    expect(errorOf(await begin(two)).message).toContain('runningTasksPerCaller')
    expect(idOf(await begin(eve))).toMatch(/.{16}/)
  })

  it('have a limit in all', async () => {
    const { server } = make({ runningTasks: 1 })
    const [one, other] = [await speak(server, revision, { capabilities }), await speak(server, revision, { capabilities })]
    await begin(one)
    expect(errorOf(await begin(other)).message).toMatch(/1 tasks are running.*\(runningTasks\)/)
  })

  it('leave their place when they end and when they are cancelled, though what came of them is kept', async () => {
    const { server, finish } = make({ runningTasksPerCaller: 1 })
    const wire = await speak(server, revision, { capabilities })
    const first = idOf(await begin(wire))
    await finish()
    while ((await statusOf(wire, first)) === 'working') await wire.quiet()
    const second = idOf(await begin(wire))
    await wire.ask('tasks/cancel', { taskId: second })
    expect(idOf(await begin(wire))).toMatch(/.{16}/)
    expect([await statusOf(wire, first), await statusOf(wire, second)]).toEqual(['completed', 'cancelled'])
  })
})

it('over HTTP one too many is 503 and a time to wait', async () => {
  const { server } = make({ runningTasks: 1 })
  const { url } = await server.listen({ closeMs: 10 })
  const peer = await httpPeer(url, '2026-07-28', forms['2026-07-28'].capabilities)
  await peer.ask('tools/call', { name: 'work' })
  const refused = await peer.ask('tools/call', { name: 'work' })
  expect([refused.status, refused.headers['retry-after'], errorOf(refused.frame).code]).toEqual([503, '1', -32603])
})
