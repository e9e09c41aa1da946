/** Where MCP Live 0.2 leaves something open, what this host does about it (rulings A1 to A21), judged by raw servers. */
import { describe, expect, test } from 'vitest'
import { connect } from '../../src/client/connect.ts'
import type { LiveBlock } from '../../src/features/live/client-api.ts'
import { fakeClock } from '../../src/testing/clock.ts'
import { attach, host, mcpl, over, push, serve, turn } from './raw/host.ts'
import { carriers, rawServer, sessionCarriers } from './raw/raw-server.ts'
import { type Frame, Refusal, silence } from './raw/script.ts'

const { signal } = new AbortController()
const unknownMethod = () => {
  throw new Refusal(-32601, 'Method not found: featureSets/update')
}
const all = Object.keys(mcpl.featureSets)

/** The same server, as one of a later version. */
const later = { ...mcpl, version: '0.4' }

describe.each(sessionCarriers)('%s', carrier => {
  test('A1: what a server announces is read inside its capabilities, then beside them', async () => {
    const beside = { experimental: { mcpl } }
    const raw = await serve(carrier, { beside })
    const { client } = await attach(raw)
    expect(client.live?.featureSets.size).toBe(all.length)
    const inside = { ...mcpl, featureSets: { only: { description: 'Inside', uses: [] } } }
    const both = await attach(await serve(carrier, { mcpl: inside, beside }))
    expect([...(both.client.live?.featureSets.keys() ?? [])]).toEqual(['only'])
  })

  test('A1: mcpl: true is a live server that declares nothing', async () => {
    const { live, raw } = await host(carrier, { mcpl: true })
    expect([live.featureSets.size, live.dialect.label]).toEqual([0, '0.2'])
    expect(raw.script.of('featureSets/update')).toHaveLength(2)
  })

  test('A2: the selection goes out as a request with effectiveCapabilities, and a receipt ends the exchange', async () => {
    const { raw } = await host(carrier, { mcpl: later })
    const [update] = raw.script.of('featureSets/update')
    expect(update).toHaveProperty('id')
    expect(update?.['params']).toEqual({
      effectiveCapabilities: [
        'tools',
        'pushEvents',
        'contextHooks.beforeInference',
        'contextHooks.beforeInference.observe',
        'contextHooks.beforeInference.inject.system',
        'contextHooks.beforeInference.inject.beforeUser',
        'contextHooks.beforeInference.inject.afterUser',
        'contextHooks.afterInference',
        'inferenceRequest',
        'inferenceRequest.streaming',
        'modelInfo',
      ],
      enabled: all.filter(name => name !== 'lab.off'),
      disabled: ['lab.off'],
      scopes: {},
    })
    expect(raw.script.of('featureSets/update')).toHaveLength(1)
  })

  test('A2: a server of 0.2 is told by the notification at once, and by the request right after it', async () => {
    const { raw, live } = await host(carrier)
    await live.update()
    const updates = raw.script.of('featureSets/update')
    expect(updates.map(frame => 'id' in frame)).toEqual([false, true, false, true])
    const { effectiveCapabilities, ...lists } = (updates[1]?.['params'] ?? {}) as Frame
    expect([updates[0]?.['params'], effectiveCapabilities]).toEqual([lists, expect.any(Array)])
  })

  test('A2: one that never answers the request costs two seconds once, before its first push is answered', async () => {
    const clock = fakeClock()
    const raw = await serve(carrier, { mcpl, answers: { 'featureSets/update': () => silence } })
    const connecting = attach(raw, { connecting: { clock } })
    await raw.script.hears('featureSets/update', 2)
    const pushing = raw.begin('push/event', push())
    clock.advance(1_999)
    expect(await raw.ask('model/info', {})).toHaveProperty('result.id', 'm-1')
    expect(raw.script.heard.filter(({ id, method }) => id === pushing && method === undefined)).toEqual([])
    clock.advance(1)
    const { client } = await connecting
    expect(await raw.answerTo(pushing)).toHaveProperty('result.accepted', true)
    await client.live?.update()
    await raw.script.hears('featureSets/update', 3)
    expect(raw.script.of('featureSets/update').map(frame => 'id' in frame)).toEqual([false, true, false])
  })

  test('A2: -32601 brings the notification, now and for later updates', async () => {
    const { raw, live } = await host(carrier, { mcpl: later, answers: { 'featureSets/update': unknownMethod } })
    await live.update()
    await raw.script.hears('featureSets/update', 3)
    const updates = raw.script.of('featureSets/update')
    expect(updates.map(frame => 'id' in frame)).toEqual([true, false, false])
    const { effectiveCapabilities: _, ...lists } = (updates[0]?.['params'] ?? {}) as Frame
    expect(updates[1]?.['params']).toEqual(lists)
  })

  test('A2: any other refusal of the request does so, too', async () => {
    const { raw } = await host(carrier, {
      mcpl: later,
      answers: {
        'featureSets/update': (_, { id }) => {
          if (id !== undefined) throw new Refusal(-32602, 'malformed')
        },
      },
    })
    await raw.script.hears('featureSets/update', 2)
    expect(raw.script.of('featureSets/update').map(frame => 'id' in frame)).toEqual([true, false])
  })

  test('A2: 15 s of silence do so, too; data waits meanwhile, control is answered at once', async () => {
    const clock = fakeClock()
    const raw = await serve(carrier, { mcpl: { ...later, channels: true }, answers: { 'featureSets/update': () => silence } })
    const connecting = attach(raw, { connecting: { clock } })
    await raw.script.hears('featureSets/update')
    const pushing = raw.begin('push/event', push())
    const thinking = raw.begin('inference/request', { featureSet: 'lab.think', messages: [{ role: 'user', content: 'x' }] })
    expect(await raw.ask('model/info', {})).toHaveProperty('result.id', 'm-1')
    expect(await raw.ask('channels/register', { channels: [{ id: 'c' }] })).toMatchObject({
      result: { results: [{ id: 'c', accepted: true }] },
    })
    expect(raw.script.heard.filter(({ id }) => id === pushing || id === thinking)).toEqual([])
    clock.advance(14_999)
    expect(await raw.ask('model/info', {})).toHaveProperty('result.id', 'm-1')
    expect(raw.script.of('featureSets/update')).toHaveLength(1)
    clock.advance(1)
    const { client } = await connecting
    expect(client.live?.featureSets.get('lab.push')?.enabled).toBe(true)
    await raw.script.hears('featureSets/update', 2)
    expect(raw.script.of('featureSets/update').map(frame => 'id' in frame)).toEqual([true, false])
    expect(await raw.answerTo(pushing)).toHaveProperty('result.accepted', true)
    expect(await raw.answerTo(thinking)).toHaveProperty('result.content', 'thought')
  })

  test('A2: a server that reads nothing before its channels are registered gets both answers', async () => {
    const registered = Promise.withResolvers<void>()
    const raw = await serve(carrier, {
      mcpl: { ...mcpl, channels: true, featureSets: { chat: { description: 'Chat', uses: ['channels.publish'] } } },
      answers: {
        'featureSets/update': async () => {
          await registered.promise
          return { accepted: true }
        },
      },
    })
    const connecting = attach(raw)
    await raw.script.hears('featureSets/update')
    await raw.ask('channels/register', { channels: [{ id: 'editor:chat' }] })
    registered.resolve()
    const { client } = await connecting
    expect([...(client.live?.channels.keys() ?? [])]).toEqual(['editor:chat'])
  })

  test('A2: a server that does not accept goes on without MCP Live, or has the connection closed', async () => {
    const refusing = { accepted: false, fallback: 'mcp-only', reason: 'all or nothing' }
    const raw = await serve(carrier, { mcpl, answers: { 'featureSets/update': () => refusing } })
    const { client, diagnosed } = await attach(raw)
    expect(client.live).toBe(undefined)
    expect(diagnosed.map(({ code }) => code)).toEqual(['SELECTION_REFUSED'])
    expect(await raw.ask('push/event', push())).toHaveProperty('error.code', -32601)
    for await (const _ of client.tools());
    const closing = await serve(carrier, {
      mcpl,
      answers: { 'featureSets/update': () => ({ ...refusing, fallback: 'close' }) },
    })
    await expect(attach(closing)).rejects.toThrow('asks to close the connection')
  })

  test('A2: what a receipt says will not work is passed on', async () => {
    const unavailableFeatures = [{ featureSet: 'lab.push', missingCapabilities: ['pushEvents'], effect: 'disabled' }]
    const { diagnosed } = await host(carrier, {
      answers: { 'featureSets/update': () => ({ accepted: true, mode: 'degraded', unavailableFeatures }) },
    })
    expect(diagnosed).toMatchObject([{ code: 'SET_UNAVAILABLE', message: expect.stringContaining('"lab.push"') }])
  })

  test('A2: what a set misses is told by whose it would be to give it, and nothing is told that nobody said', async () => {
    const unavailableFeatures = ['pushEvents', 'sensors', undefined].map(path => {
      return { featureSet: 'lab.push', missingCapabilities: [path].flat().filter(Boolean), effect: 'disabled' }
    })
    const { diagnosed } = await host(carrier, {
      answers: { 'featureSets/update': () => ({ accepted: true, unavailableFeatures }) },
    })
    const said = 'The server reports that its feature set "lab.push" will not work'
    expect(diagnosed.map(({ message }) => message)).toEqual([
      `${said}: this host does not grant "pushEvents"`,
      `${said}: the server itself does not announce "sensors"`,
      `${said}, but not which capability is missing`,
    ])
  })

  test('A8: ids count per direction: what the server asks under numbers of ours is answered for itself', async () => {
    const raw = await serve(carrier, { mcpl, answers: { 'tools/call': () => silence } })
    const { client } = await attach(raw)
    const calling = client.callTool('slow', {})
    const call = await raw.script.hears('tools/call')
    expect(await raw.ask('model/info', {}, call['id'] as number)).toMatchObject({ result: { id: 'm-1' } })
    const settled = await Promise.race([calling.then(() => 'settled'), Promise.resolve('open')])
    expect(settled).toBe('open')
    calling.catch(() => {})
  })

  test('A20: a push without an id is taken, and that is said', async () => {
    const { raw, pushed, diagnosed } = await host(carrier)
    raw.tell('push/event', push())
    raw.tell('push/event', push({ featureSet: 'lab.off' }))
    await raw.ask('model/info', {})
    expect(diagnosed.map(({ code }) => code)).toEqual(['PUSH_WITHOUT_ID', 'PUSH_WITHOUT_ID'])
    expect(pushed).toHaveLength(1)
  })

  test('A20: a host without MCP Live answers a push with -32601', async () => {
    const raw = await serve(carrier)
    const client = await connect(raw.target, raw.options)
    expect(await raw.ask('push/event', push())).toHaveProperty('error.code', -32601)
    expect(client.live).toBe(undefined)
    expect(raw.script.heard[0]?.['params']).not.toHaveProperty('capabilities.experimental.mcpl')
    await client.close()
  })

  test('A20: while one handler waits, everything else is read and answered; unknown requests are -32601', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    const { raw } = await host(carrier, {
      handlers: {
        onElevate: async () => {
          await promise
          return { approved: true }
        },
      },
    })
    const elevating = raw.begin('scope/elevate', { featureSet: 'lab.files', scope: { label: 'x' } })
    expect(await raw.ask('push/event', push())).toHaveProperty('result.accepted', true)
    expect(await raw.ask('branches/list', {})).toHaveProperty('error.code', -32601)
    resolve()
    expect(await raw.answerTo(elevating)).toHaveProperty('result.approved', true)
  })
})

describe.each(carriers)('%s', carrier => {
  test('A3: sets are read as an object, as an array, and in added as both', async () => {
    const arrayed = Object.entries(mcpl.featureSets).map(([name, set]) => ({ name, ...set }))
    const { raw, live } = await host(carrier, { mcpl: { ...mcpl, version: '0.4', featureSets: arrayed } })
    expect([...live.featureSets.keys()]).toEqual(all)
    raw.tell('featureSets/changed', { added: [{ name: 'lab.more', description: 'More', uses: ['pushEvents'] }] })
    expect(await raw.ask('push/event', push({ featureSet: 'lab.more' }))).toHaveProperty('result.accepted', true)
    const bare = await host(carrier, { mcpl: { ...mcpl, featureSets: true } })
    expect(bare.live.featureSets.size).toBe(0)
  })

  test('A4: a set that pushes without saying so is refused, and heard where somebody allows it more than it declares', async () => {
    const featureSets = { heartbeat: { description: 'Wakes', uses: ['tools'] } }
    const wakes = { featureSet: 'heartbeat' }
    const { raw, pushed, diagnosed } = await host(carrier, { mcpl: { ...mcpl, contextHooks: false, featureSets } })
    for (const eventId of ['a', 'b']) {
      expect(await raw.ask('push/event', push({ ...wakes, eventId }))).toMatchObject({
        error: { code: -32001, message: 'Feature set not enabled', data: { ...wakes, canEnable: false, use: 'pushEvents' } },
      })
    }
    expect([pushed.length, diagnosed.map(({ code }) => code)]).toEqual([0, ['USE_UNDECLARED']])
    const allowed = await host(carrier, {
      mcpl: { ...mcpl, contextHooks: false, featureSets },
      handlers: {
        select: () => ({ enabled: ['*'], disabled: [], canEnable: () => true, uses: { heartbeat: ['pushEvents'] } }),
      },
    })
    expect(await allowed.raw.ask('push/event', push(wakes))).toHaveProperty('result.accepted', true)
    expect([allowed.pushed.length, allowed.diagnosed]).toEqual([1, []])
  })

  test('A5: the version of a peer is a hint: whatever it says, it is heard', async () => {
    for (const [version, label] of [
      ['0.2', '0.2'],
      ['0.3.1', '0.3'],
      ['0.4', '0.4'],
      ['0.5', '0.5'],
      ['1.7', '0.5'],
      [7, '0.2'],
    ] as const) {
      const { raw, live } = await host(carrier, { mcpl: { ...mcpl, version } })
      expect(live.dialect).toMatchObject({ label, carrier: carrier === 'http 2026-07-28' ? 'listen' : 'session' })
      expect(await raw.ask('push/event', push())).toHaveProperty('result.accepted', true)
    }
  })

  test('A6: sets that are disabled or unknown are refused by an error, never by accepted: false', async () => {
    const { raw } = await host(carrier)
    for (const featureSet of ['lab.off', 'nobody']) {
      const answer = await raw.ask('push/event', push({ featureSet }))
      expect([answer['result'], answer['error'] !== undefined]).toEqual([undefined, true])
    }
  })

  test('A9: content of messages is text or blocks; a reason that the protocol lacks is end_turn, and stands aside', async () => {
    const { raw, inferred } = await host(carrier, {
      handlers: {
        onInfer: async request => {
          inferred.push(request)
          return { content: 'x', model: 'm', finishReason: 'refusal' as never, usage: { inputTokens: 1, outputTokens: 1 } }
        },
      },
    })
    const messages = [
      { role: 'user', content: 'text' },
      { role: 'assistant', content: [{ type: 'text' }, { type: 'image', data: 'aGk=', mimeType: 'image/png' }] },
    ]
    const answer = await raw.ask('inference/request', { featureSet: 'lab.think', messages })
    expect(answer['result']).toMatchObject({ content: 'x', finishReason: 'end_turn', _meta: { finishReason: 'refusal' } })
    expect(inferred[0]?.messages.map(({ content }) => content)).toEqual([
      [{ type: 'text', text: 'text' }],
      [
        { type: 'text', text: '' },
        { type: 'image', data: 'aGk=', mimeType: 'image/png' },
      ],
    ])
  })

  test('A10: blocks go to a peer of 0.2 in its form, to all others in that of MCP', async () => {
    const image: LiveBlock = { type: 'image', data: 'aGk=', mimeType: 'image/png' }
    const source = { type: 'base64', media_type: 'image/png', data: 'aGk=' }
    for (const [version, block] of [
      ['0.2', { type: 'image', source }],
      ['0.4', image],
    ] as const) {
      const { raw, live } = await host(carrier, {
        mcpl: { ...mcpl, version, channels: true, featureSets: { chat: { description: 'Chat', uses: ['channels.publish'] } } },
        answers: { 'channels/publish': () => ({ delivered: true }) },
      })
      await live.publish('chat', [image])
      expect(raw.script.of('channels/publish')[0]?.['params']).toMatchObject({ channelId: 'chat', content: [block] })
    }
  })

  test('A14: every form of a rollback’s answer is understood', async () => {
    const { raw, live } = await host(carrier)
    const roll = () => live.rollback('lab.notes', 'seq_2')
    raw.script.on('state/rollback', () => ({ checkpoint: 'seq_5', success: true }))
    expect(await roll()).toEqual({ success: true, checkpoint: 'seq_5' })
    raw.script.on('state/rollback', ({ checkpoint }) => ({ checkpoint, success: false, reason: 'Checkpoint not found' }))
    expect(await roll()).toMatchObject({ success: false, missing: true })
    raw.script.on('state/rollback', unknownMethod)
    expect(await roll()).toMatchObject({ success: false, checkpoint: 'seq_2', unsupported: true })
    raw.script.on('state/rollback', () => {
      throw new Refusal(-32603, 'the disk is full')
    })
    await expect(roll()).rejects.toThrow('the disk is full')
  })

  test('A7: a number alone decides nothing: -32005 that names no checkpoint is a failure like others', async () => {
    const { live } = await host(carrier, {
      answers: {
        'state/rollback': () => {
          throw new Refusal(-32005, 'Too many requests')
        },
      },
    })
    await expect(live.rollback('lab.notes', 'c')).rejects.toThrow('Too many requests')
  })

  test('A16: old cores are told an empty text where a turn without words is over', async () => {
    const arrayed = Object.entries(mcpl.featureSets).map(([name, set]) => ({ name, ...set }))
    const answers = {
      'context/beforeInference': () => ({ featureSet: 'lab.hooks', contextInjections: [] }),
      'context/afterInference': () => ({ featureSet: 'lab.hooks' }),
    }
    const old = await host(carrier, { answers, mcpl: { ...mcpl, version: '0.4', featureSets: arrayed } })
    const young = await host(carrier, { answers })
    for (const { live } of [old, young]) {
      await live.beforeInference({ ...turn, userMessage: null }, { signal })
      await live.afterInference({ ...over, userMessage: null }, { signal })
    }
    const told = ({ raw }: typeof old, hook: string) =>
      ((raw.script.of(`context/${hook}`)[0]?.['params'] ?? {}) as Frame)['userMessage']
    expect([told(old, 'beforeInference'), told(old, 'afterInference')]).toEqual([null, ''])
    expect([told(young, 'beforeInference'), told(young, 'afterInference')]).toEqual([null, null])
  })

  test('A19: a hook in flight at one server keeps no other from thinking', async () => {
    const answers = { 'context/beforeInference': () => silence }
    const [busy, free] = [await host(carrier, { answers }), await host(carrier, { answers })]
    const patience = new AbortController()
    const hooking = busy.live.beforeInference(turn, { signal: patience.signal }).catch(() => {})
    await busy.raw.script.hears('context/beforeInference')
    const request = { featureSet: 'lab.think', messages: [{ role: 'user', content: 'x' }] }
    expect(await free.raw.ask('inference/request', request)).toHaveProperty('result.content', 'thought')
    expect(await busy.raw.ask('inference/request', request)).toHaveProperty('error.data.reason', 'hook_in_progress')
    patience.abort()
    await hooking
  })

  test('A21: patterns of the policy are expanded here: no star ever goes out, and each set is in one list', async () => {
    const featureSets = { ...mcpl.featureSets, 'lab.*': { description: 'A trap', uses: ['pushEvents'] } }
    const raw = await serve(carrier, { mcpl: { ...mcpl, featureSets } })
    await attach(raw, {
      handlers: { select: () => ({ enabled: ['lab.*'], disabled: ['lab.f*', 'lab.off'], canEnable: () => true }) },
    })
    const [listen] = raw.script.of(carrier === 'http 2026-07-28' ? 'live/listen' : 'featureSets/update')
    const params = listen?.['params'] as Frame
    const told = (carrier === 'http 2026-07-28' ? params['policy'] : params) as { enabled: string[]; disabled: string[] }
    expect(told.enabled).toEqual(all.filter(name => name !== 'lab.off'))
    expect(told.disabled).toEqual(['lab.off'])
  })
})

test('A20: lines that are no JSON are passed over', async () => {
  const { raw } = await host('stdio')
  raw.write('[chatty] Client initialized (MCPL mode)\n\n{"half": \n')
  expect(await raw.ask('push/event', push())).toHaveProperty('result.accepted', true)
})

describe('A18', () => {
  test.each(['stdio', 'websocket'] as const)('A18: on %s a live host makes the handshake first', async carrier => {
    const raw = await rawServer(carrier, { mcpl })
    const { client } = await attach(raw, { connecting: { revisions: ['2026-07-28', '2025-11-25'] } })
    expect(raw.script.heard[0]?.['method']).toBe('initialize')
    expect([client.revision, raw.script.of('server/discover')]).toEqual(['2025-11-25', []])
    await client.close()
    await raw.close()
  })

  test('A18: a server that refuses the handshake for its age is asked in its own words, the next time at once', async () => {
    const raw = await rawServer('stdio', {
      mcpl,
      answers: {
        initialize: () => {
          throw new Refusal(-32022, 'stateless only', { supported: ['2026-07-28'] })
        },
      },
    })
    const options = { ...raw.options, revisions: ['2026-07-28', '2025-11-25'] as const }
    for (const first of ['initialize', 'server/discover']) {
      const before = raw.script.heard.length
      const { client } = await attach(raw, { connecting: options })
      expect([raw.script.heard[before]?.['method'], client.revision]).toEqual([first, '2026-07-28'])
      await client.close()
    }
    await raw.close()
  })
})
