import { afterEach, expect, test } from 'vitest'
import { sessionServer } from '../../test/client/session-server.ts'
import { afterTest, cleanUp } from '../../test/transports/http-test-server.ts'
import type { LiveConnection, LiveHandlers } from '../features/live/client-api.ts'
import { connect } from './connect.ts'

afterEach(cleanUp)

const mcpl = {
  version: '0.2',
  pushEvents: true,
  featureSets: { a: { description: 'A', uses: ['pushEvents', 'tools'], rollback: true } },
}
const handlers: LiveHandlers = {
  select: declared => ({ enabled: [...declared.keys()], disabled: [], canEnable: () => true }),
  onPush: async () => ({ accepted: true }),
  onInfer: async () => ({ content: '', model: '', finishReason: 'end_turn', usage: { inputTokens: 0, outputTokens: 0 } }),
  onElevate: async () => ({ approved: false, reason: 'no' }),
  modelInfo: () => ({ id: 'm', vendor: 'v', contextWindow: 1, capabilities: [] }),
}

test('a session that was lost is told the selection anew, before the call that found it lost is made again', async () => {
  const server = await sessionServer(
    { 'tools/call': () => ({ content: [] }), 'featureSets/update': () => ({ accepted: true }) },
    { tools: {}, experimental: { mcpl } },
  )
  const client = await connect(server.url, { live: handlers, revisions: ['2025-11-25'] })
  afterTest(() => client.close())
  await client.callTool('t', {})
  server.sessions.clear()
  const before = server.posted.length
  await client.callTool('t', {}, { live: { checkpoint: 'c' } })
  expect(server.posted.slice(before).map(({ method }) => method)).toEqual([
    'tools/call',
    'initialize',
    'notifications/initialized',
    'featureSets/update',
    'featureSets/update',
    'tools/call',
  ])
  expect(server.posted.at(-1)?.params).toMatchObject({ checkpoint: 'c' })
  expect(client.live?.featureSets.get('a')?.enabled).toBe(true)
})

test('opening can be given up while a server keeps silent on the selection', async () => {
  const asked = Promise.withResolvers<void>()
  const server = await sessionServer(
    {
      'featureSets/update': () => {
        asked.resolve()
        return new Promise(() => {})
      },
    },
    { tools: {}, experimental: { mcpl } },
  )
  const giving = new AbortController()
  const connecting = connect(server.url, { live: handlers, revisions: ['2025-11-25'], signal: giving.signal })
  await asked.promise
  giving.abort(new Error('enough'))
  await expect(connecting).rejects.toThrow('enough')
})

test('what a host does with a live server can be taken off it', async () => {
  const server = await sessionServer({ 'featureSets/update': () => ({ accepted: true }) }, { tools: {}, experimental: { mcpl } })
  const client = await connect(server.url, { live: handlers, revisions: ['2025-11-25'] })
  afterTest(() => client.close())
  const { signal } = new AbortController()
  const { publish, stream, typing, acknowledge, openChannel, closeChannel, ...rest } = client.live as LiveConnection
  const refused = { message: expect.stringContaining('has not announced the capability channels') }
  await expect(publish('c', [])).rejects.toMatchObject(refused)
  await expect(openChannel({})).rejects.toMatchObject(refused)
  await expect(closeChannel('c')).rejects.toMatchObject(refused)
  expect([stream('c', { inferenceId: 'i' }), typing('c'), await acknowledge('c', 'm')]).toEqual([undefined, false, undefined])
  const turn = { inferenceId: 'i', conversationId: 'c', turnIndex: 0, userMessage: null, model: handlers.modelInfo() }
  expect(await rest.beforeInference(turn as never, { signal })).toBeUndefined()
  expect(await rest.afterInference(turn as never, { signal })).toBeUndefined()
  rest.lifecycle({ ...turn, phase: 'started' } as never)
})
