/** Our live server and our host of one connection, together, on every carrier. */
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, test } from 'vitest'
import type { Client } from '../../src/client/client.ts'
import { connect } from '../../src/client/connect.ts'
import type { LiveHandlers } from '../../src/features/live/client-api.ts'
import type { PushEvent } from '../../src/features/live/push-events/messages.ts'
import { liveFixture } from './fixture.ts'
import { model, over, turn } from './raw/host.ts'

const carriers = ['stdio', 'websocket', '2025-11-25', '2026-07-28'] as const
const { signal } = new AbortController()
const cleanups: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

async function together(carrier: (typeof carriers)[number], handlers: Partial<LiveHandlers> = {}) {
  const pushed: PushEvent[] = []
  const live: LiveHandlers = {
    select: declared => ({ enabled: [...declared.keys()], disabled: [], canEnable: () => true }),
    onPush: async event => {
      pushed.push(event)
      return { accepted: true, inferenceId: `inf-${pushed.length}` }
    },
    onInfer: async ({ messages }, { chunk }) => {
      chunk('so ')
      await new Promise(resolve => setImmediate(resolve))
      chunk('be it')
      const content = `so be it: ${messages.length}`
      return { content, model: 'm-1', finishReason: 'end_turn', usage: { inputTokens: 1, outputTokens: 3 } }
    },
    onElevate: async ({ scope }) =>
      scope.label === '/etc' ? { approved: false, reason: 'never' } : { approved: true, payload: scope.payload ?? {} },
    modelInfo: () => model,
    ...handlers,
  }
  const client = await connectTo(carrier, live)
  cleanups.push(() => client.close())
  if (client.live === undefined) throw new Error('The server was not found to be live')
  return { client, live: client.live, pushed }
}

async function connectTo(carrier: (typeof carriers)[number], live: LiveHandlers): Promise<Client> {
  if (carrier === 'stdio') {
    const program = fileURLToPath(new URL('fixture-stdio.ts', import.meta.url))
    return connect({ command: process.execPath, args: [program, 'blocking'] }, { live })
  }
  const server = liveFixture('blocking')
  const { url } = await server.listen({ wsPath: '/ws' })
  cleanups.push(() => server.close())
  if (carrier === 'websocket') return connect(url.replace('http', 'ws').replace(/\/mcp$/, '/ws'), { live })
  return connect(url, { live, revisions: [carrier] })
}

describe.each(carriers)('%s', carrier => {
  test('an event of the server comes to the host, and the answer back to the server', async () => {
    const { client, pushed, live } = await together(carrier)
    expect(live.dialect).toMatchObject({ label: '0.2', carrier: carrier === '2026-07-28' ? 'listen' : 'session' })
    const outcome = await client.callTool('push', { content: 'Call Alice', eventId: 'e-1', wait: true })
    expect(outcome.structured).toMatchObject({ answer: { accepted: true, inferenceId: 'inf-1' } })
    expect(pushed).toMatchObject([
      { featureSet: 'memory.proactive', eventId: 'e-1', content: [{ type: 'text', text: 'Call Alice' }] },
    ])
  })

  test('the server thinks through the host, and hears the thought form', async () => {
    const { client } = await together(carrier)
    const outcome = await client.callTool('infer', { messages: 'Sum up', stream: true, iterate: true })
    const { deltas, result } = outcome.structured as { deltas: string[]; result: { content: string } }
    expect([deltas.join(''), result.content]).toEqual(['so be it', 'so be it: 1'])
    expect((await client.callTool('model')).structured).toEqual(model)
  })

  test('hooks add to a turn and change its end', async () => {
    const { live } = await together(carrier)
    expect(live.hooks).toMatchObject({ before: true, after: 'blocking' })
    const before = await live.beforeInference(turn, { signal })
    expect(before?.featureSet).toBe('memory.retrieval')
    expect(before?.injections.map(({ position, content }) => [position, content[0]])).toEqual([
      ['system', { type: 'text', text: 'Known: nothing yet' }],
      ['beforeUser', { type: 'image', data: 'aGk=', mimeType: 'image/png' }],
    ])
    const after = await live.afterInference({ ...over, assistantMessage: 'It is sk-123' }, { signal })
    expect(after).toMatchObject({ featureSet: 'memory.extraction', modifiedResponse: 'It is [REDACTED]' })
  })

  test('scopes are asked for, state goes with calls, and is rolled back', async () => {
    const { client, live } = await together(carrier)
    expect((await client.callTool('edit', { path: '/etc' })).isError).toBe(true)
    expect((await client.callTool('edit', { path: '/tmp/a' })).structured).toMatchObject({ payload: { path: '/tmp/a' } })
    for await (const _ of client.tools());
    expect([client.toolSet('add_note'), client.toolSet('edit')]).toEqual(['notes.edit', 'files.edit'])
    const first = await client.callTool('add_note', { text: 'a' }, { live: {} })
    const state = first.live?.data
    expect([state, first.live?.parent]).toEqual([{ notes: ['a'] }, null])
    const parent = first.live?.checkpoint as string
    const second = await client.callTool('add_note', { text: 'b' }, { live: { state, parent } })
    expect(second.live).toMatchObject({ parent, patch: [{ op: 'add', path: '/notes/-', value: 'b' }] })
    const commit = await client.callTool('commit', { message: 'one' }, { live: {} })
    const at = commit.live?.checkpoint as string
    expect(await live.rollback('git.commit', at)).toEqual({ success: true, checkpoint: at })
    expect(await live.rollback('git.commit', 'lost')).toMatchObject({ success: false, missing: true })
  })

  test('sets come and go while the connection lasts', async () => {
    const { client, live } = await together(carrier)
    await client.callTool('sets', { add: 'memory.new', remove: 'memory.proactive' })
    while (!live.featureSets.get('memory.new')?.enabled) await client.callTool('heard')
    expect(live.featureSets.has('memory.proactive')).toBe(false)
  })

  test('a set that is disabled says nothing any more', async () => {
    let on = true
    const { client, live, pushed } = await together(carrier, {
      select: declared => ({
        enabled: [...declared.keys()],
        disabled: on ? [] : ['memory.proactive', 'memory.retrieval'],
        canEnable: () => true,
      }),
    })
    on = false
    await live.update()
    expect(live.hooks.before).toBe(false)
    await client.callTool('push', { content: 'unheard' })
    await client.callTool('heard')
    expect(pushed).toEqual([])
  })
})
