/** What a host of 0.2 needs to live with servers of later dialects (T1 to T7), judged by raw servers. */
import { describe, expect, test } from 'vitest'
import type { StateReport } from '../../src/features/live/client-api.ts'
import { fakeClock } from '../../src/testing/clock.ts'
import { host, mcpl, over, push, turn } from './raw/host.ts'
import { carriers, sessionCarriers } from './raw/raw-server.ts'
import { type Frame, Refusal } from './raw/script.ts'

const { signal } = new AbortController()
/** A chat server of 0.5. */
const chat = {
  version: '0.5',
  pushEvents: true,
  contextHooks: { beforeInference: { observe: false, inject: { beforeUser: true, system: true } } },
  inferenceLifecycle: true,
  channels: { register: true, lifecycle: true, publish: true, incoming: true },
  featureSets: {
    'chat.rooms': {
      description: 'Rooms',
      uses: ['channels.incoming', 'channels.publish', 'pushEvents', 'contextHooks.beforeInference.inject.beforeUser'],
      tagOntology: { open: true },
    },
    'chat.watch': { description: 'Follows turns', uses: ['inferenceLifecycle'] },
  },
}
const message = (more: Frame = {}) => ({
  channelId: 'room:1',
  messageId: 'm-1',
  author: { id: 'u-1', name: 'Ann' },
  timestamp: '2026-03-05T10:30:00Z',
  content: [{ type: 'text', text: 'hi agent' }],
  ...more,
})

describe.each(sessionCarriers)('%s', carrier => {
  test('T1: effectiveCapabilities are the announced leaves that are granted, tools among them, without patterns', async () => {
    const capabilities = { tools: { listChanged: false }, experimental: { mcpl: chat } }
    const { raw } = await host(carrier, { mcpl: chat, capabilities })
    expect(raw.script.of('featureSets/update')[0]?.['params']).toMatchObject({
      effectiveCapabilities: [
        'tools',
        'pushEvents',
        'contextHooks.beforeInference',
        'contextHooks.beforeInference.inject.beforeUser',
        'inferenceLifecycle',
        'channels.register',
        'channels.lifecycle',
        'channels.publish',
        'channels.incoming',
      ],
    })
    const none = await host(carrier, {
      mcpl: chat,
      handlers: { select: () => ({ enabled: [], disabled: [], canEnable: () => true }) },
    })
    expect(none.raw.script.of('featureSets/update')[0]?.['params']).toMatchObject({
      effectiveCapabilities: ['tools'],
      enabled: [],
      disabled: ['chat.rooms', 'chat.watch'],
    })
  })

  test('T1: a manifest that changed is read anew, not more often than once a second, and selected among', async () => {
    const clock = fakeClock()
    const more = { ...chat.featureSets, 'chat.more': { description: 'More', uses: ['pushEvents'] } }
    const { raw, live } = await host(carrier, {
      mcpl: chat,
      connecting: { clock },
      answers: { 'mcpl/manifest': () => ({ ...chat, featureSets: more }) },
    })
    for (let times = 0; times < 5; times++) raw.tell('mcpl/manifestChanged', { revision: `r${times}` })
    await raw.script.hears('featureSets/update', 2)
    expect(await raw.ask('push/event', push({ featureSet: 'chat.more' }))).toHaveProperty('result.accepted', true)
    expect(raw.script.of('mcpl/manifest')).toHaveLength(1)
    clock.advance(1_000)
    await raw.script.hears('mcpl/manifest', 2)
    expect([...live.featureSets.keys()]).toContain('chat.more')
  })

  test('T3: registrations and changes of channels are answered before anything else, in both kinds', async () => {
    const { raw, live } = await host(carrier, { mcpl: chat })
    const registered = await raw.ask('channels/register', { channels: [{ id: 'room:1', label: 'One' }, { id: 'room:2' }] })
    expect(registered['result']).toEqual({
      results: [
        { id: 'room:1', accepted: true },
        { id: 'room:2', accepted: true },
      ],
    })
    const changed = await raw.ask('channels/changed', { added: [{ id: 'room:3' }], removed: ['room:2'] })
    expect(changed['result']).toEqual({ results: [{ id: 'room:3', accepted: true }] })
    raw.tell('channels/register', { channels: [{ id: 'room:4' }] })
    raw.tell('channels/changed', { removed: [{ id: 'room:3' }] })
    const listed = await raw.ask('channels/list', {})
    expect(listed['result']).toEqual({ channels: [{ id: 'room:1', label: 'One' }, { id: 'room:4' }] })
    expect([...live.channels.keys()]).toEqual(['room:1', 'room:4'])
  })

  test('T3: messages of channels are events, each with a result of its own', async () => {
    const { raw, pushed } = await host(carrier, { mcpl: chat })
    const answer = await raw.ask('channels/incoming', {
      messages: [message({ threadId: 't', tags: ['chat:dm'], metadata: { edited: false } }), { messageId: 'm-2' }],
    })
    expect(answer['result']).toEqual({
      results: [
        { messageId: 'm-1', accepted: true },
        { messageId: 'm-2', accepted: false, reason: expect.any(String) },
      ],
    })
    raw.tell('channels/incoming', { messages: [message({ messageId: 'm-3', content: 'plain' })] })
    await raw.ask('model/info', {})
    expect(pushed).toMatchObject([
      {
        featureSet: 'chat.rooms',
        eventId: 'channels/incoming ["room:1","m-1"]',
        timestamp: '2026-03-05T10:30:00Z',
        origin: { channelId: 'room:1', messageId: 'm-1', threadId: 't', author: { id: 'u-1', name: 'Ann' } },
        content: [{ type: 'text', text: 'hi agent' }],
        tags: ['chat:dm', 'chat:addressed', 'chat:private'],
        extra: { metadata: { edited: false } },
      },
      { eventId: 'channels/incoming ["room:1","m-3"]', content: [{ type: 'text', text: 'plain' }] },
    ])
  })

  test('T3: messages of channels go to nobody where no enabled set takes them', async () => {
    const { raw, pushed } = await host(carrier, {
      mcpl: chat,
      handlers: { select: () => ({ enabled: ['chat.watch'], disabled: [], canEnable: () => true }) },
    })
    const answer = await raw.ask('channels/incoming', { messages: [message()] })
    expect(answer['result']).toMatchObject({ results: [{ messageId: 'm-1', accepted: false }] })
    expect(pushed).toEqual([])
    const silent = await host(carrier, { mcpl: { ...chat, channels: false } })
    expect(await silent.raw.ask('channels/incoming', { messages: [message()] })).toHaveProperty('error.code', -32601)
  })

  test('T3: what is published goes out as a request, and as a notification to those who know only that', async () => {
    const { raw, live } = await host(carrier, {
      mcpl: chat,
      answers: {
        'channels/publish': (_, { id }) => {
          if (id !== undefined) throw new Refusal(-32601, 'Method not found: channels/publish')
        },
        'channels/open': () => ({ channel: { id: 'room:9' } }),
        'channels/close': () => ({ closed: true }),
      },
    })
    const hello = [{ type: 'text', text: 'hello Ann' }] as const
    await live.publish('room:1', hello, { conversationId: 'c-1' })
    await live.publish('room:1', hello)
    await raw.script.hears('channels/publish', 3)
    const published = raw.script.of('channels/publish')
    expect(published.map(frame => 'id' in frame)).toEqual([true, false, false])
    expect(published[1]?.['params']).toEqual({ conversationId: 'c-1', channelId: 'room:1', content: hello })
    expect(await live.openChannel({ type: 'room', address: { n: 9 } })).toMatchObject({ channel: { id: 'room:9' } })
    await live.closeChannel('room:9')
    expect(raw.script.of('channels/close')[0]?.['params']).toEqual({ channelId: 'room:9' })
  })

  test('T4: state is reported for sets that declare to keep it, with calls or outside of them, and asked for', async () => {
    const reports: StateReport[] = []
    const observing = { 'lab.observe': { description: 'Observes', uses: ['pushEvents', 'stateUpdate'] } }
    const { raw } = await host(carrier, {
      mcpl: { ...mcpl, stateUpdate: true, featureSets: { ...mcpl.featureSets, ...observing } },
      handlers: {
        onState: async report => {
          reports.push(report)
        },
      },
    })
    const report = { featureSet: 'lab.observe', checkpoint: 'seq_3', parent: 'seq_2' }
    expect(await raw.ask('state/update', report)).toMatchObject({ result: { accepted: true } })
    expect(reports).toEqual([report])
    expect((await raw.ask('state/get', { featureSet: 'lab.observe' }))['result']).toEqual(report)
    expect(await raw.ask('state/get', { featureSet: 'lab.observe', checkpoint: 'seq_1' })).toMatchObject({
      error: { code: -32005, data: { checkpoint: 'seq_1' } },
    })
    expect(await raw.ask('state/update', { ...report, featureSet: 'lab.off' })).toHaveProperty('error.code', -32001)
    expect(await raw.ask('state/update', { ...report, featureSet: 'lab.push' })).toMatchObject({
      error: { code: -32001, data: { featureSet: 'lab.push', use: 'state' } },
    })
    expect(await raw.ask('state/update', { featureSet: 'lab.observe' })).toHaveProperty('error.code', -32602)
  })
})

describe.each(carriers)('%s', carrier => {
  test('T2: true and false stand for whole branches, at any level', async () => {
    const whole = await host(carrier, { mcpl: { ...mcpl, contextHooks: true, inferenceRequest: true, channels: true } })
    expect(whole.live.hooks).toEqual({ before: true, after: 'told', lifecycle: false })
    expect(
      await whole.raw.ask('inference/request', { featureSet: 'lab.think', messages: [{ role: 'user', content: 'x' }] }),
    ).toHaveProperty('result')
    const parts = await host(carrier, {
      mcpl: { ...mcpl, inferenceRequest: {}, contextHooks: { beforeInference: { observe: true } } },
    })
    expect(parts.live.hooks).toEqual({ before: true, after: false, lifecycle: false })
    const none = await host(carrier, {
      mcpl: { ...mcpl, pushEvents: false, inferenceRequest: false, contextHooks: { beforeInference: { observe: false } } },
    })
    expect(none.live.hooks).toEqual({ before: false, after: false, lifecycle: false })
    expect(await none.raw.ask('push/event', push())).toHaveProperty('error.code', -32601)
    expect(
      await none.raw.ask('inference/request', { featureSet: 'lab.think', messages: [{ role: 'user', content: 'x' }] }),
    ).toHaveProperty('error')
  })

  test('T2: who may only add something is not told what was said, and adds it only where that is declared and granted', async () => {
    const contextInjections = ['system', 'beforeUser'].map(position => ({ namespace: 'n', position, content: position }))
    const { raw, live, diagnosed } = await host(carrier, {
      mcpl: chat,
      answers: { 'context/beforeInference': () => ({ featureSet: 'chat.rooms', contextInjections }) },
    })
    const answer = await live.beforeInference(turn, { signal })
    expect(answer?.injections.map(({ position }) => position)).toEqual(['beforeUser'])
    expect(diagnosed.map(({ code }) => code)).toEqual(['USE_UNDECLARED'])
    expect(raw.script.of('context/beforeInference')[0]?.['params']).toHaveProperty('userMessage', null)
    const [rooms, uses] = [chat.featureSets['chat.rooms'], ['contextHooks.beforeInference']]
    const declaring = await host(carrier, {
      mcpl: { ...chat, featureSets: { 'chat.rooms': { ...rooms, uses } } },
      answers: { 'context/beforeInference': () => ({ featureSet: 'chat.rooms', contextInjections }) },
    })
    expect((await declaring.live.beforeInference(turn, { signal }))?.injections).toHaveLength(1)
    expect(declaring.diagnosed.map(({ code }) => code)).toEqual(['INJECTION_NOT_GRANTED'])
    expect(declaring.raw.script.of('context/beforeInference')[0]?.['params']).toHaveProperty('userMessage', 'hi')
    const observe = { observe: true, inject: { beforeUser: true } }
    const hidden = {
      ...chat,
      contextHooks: { beforeInference: observe },
      featureSets: { 'chat.rooms': { ...rooms, uses } },
    }
    const blind = await host(carrier, {
      mcpl: hidden,
      answers: { 'context/beforeInference': () => ({ featureSet: 'chat.rooms', contextInjections: [] }) },
      handlers: {
        select: () => ({ enabled: ['*'], disabled: [], canEnable: () => true, grants: path => !path.endsWith('observe') }),
      },
    })
    await blind.live.beforeInference(turn, { signal })
    expect(blind.raw.script.of('context/beforeInference')[0]?.['params']).toHaveProperty('userMessage', null)
  })

  test('T5: members that nobody knows are passed on, and what tags imply is added to them', async () => {
    const { raw, pushed } = await host(carrier)
    await raw.ask(
      'push/event',
      push({
        tags: ['chat:mention', 'chat:ambient', 'x:y'],
        coalesce: { key: 'k' },
        epoch: 7,
        payload: { content: 'text', metadata: { a: 1 } },
      }),
    )
    expect(pushed[0]).toEqual({
      featureSet: 'lab.push',
      eventId: 'e-1',
      timestamp: '2026-01-23T10:30:00Z',
      content: [{ type: 'text', text: 'text' }],
      tags: ['chat:mention', 'chat:addressed', 'x:y'],
      extra: { coalesce: { key: 'k' }, epoch: 7, payload: { metadata: { a: 1 } } },
    })
  })

  test('T5: tags open nothing: a set that is off, unknown or may not push stays so, whatever they say', async () => {
    const { raw, pushed } = await host(carrier)
    const tags = ['chat:mention', 'chat:dm', 'chat:addressed', 'admin', '*']
    for (const [featureSet, code] of [
      ['lab.off', -32001],
      ['lab.think', -32001],
      ['nobody', -32003],
    ] as const)
      expect(await raw.ask('push/event', push({ featureSet, tags }))).toHaveProperty('error.code', code)
    expect(pushed).toEqual([])
  })

  test('T6: an event about nothing is refused, unless it says that it is silent', async () => {
    const { raw, pushed } = await host(carrier)
    expect(await raw.ask('push/event', push({ payload: { content: [] } }))).toHaveProperty('error.code', -32602)
    const silent = push({ payload: { content: [] }, origin: { silent: true } })
    expect(await raw.ask('push/event', silent)).toHaveProperty('result.accepted', true)
    expect(pushed).toMatchObject([{ content: [], origin: { silent: true } }])
  })

  test('T7: sets that follow turns are told their beginning and end, and nothing of what was said', async () => {
    const { raw, live } = await host(carrier, { mcpl: chat })
    expect(live.hooks.lifecycle).toBe(true)
    const { inferenceId, conversationId, turnIndex, model } = turn
    live.lifecycle({ inferenceId, conversationId, turnIndex, phase: 'started', model })
    live.lifecycle({ inferenceId, conversationId, turnIndex, phase: 'completed', usage: over.usage })
    const told = [await raw.script.hears('inference/lifecycle'), await raw.script.hears('inference/lifecycle', 2)]
    const phases = told.map(({ params }) => params as Frame).sort((a, b) => String(b['phase']).localeCompare(String(a['phase'])))
    expect(phases).toEqual([
      { inferenceId, conversationId, turnIndex, phase: 'started' },
      { inferenceId, conversationId, turnIndex, phase: 'completed', usage: over.usage },
    ])
    const other = await host(carrier)
    expect(other.live.hooks.lifecycle).toBe(false)
    other.live.lifecycle({ inferenceId, conversationId, turnIndex, phase: 'started' })
    await other.raw.ask('model/info', {})
    expect(other.raw.script.of('inference/lifecycle')).toEqual([])
  })
})
