/** The host's part in opening a conversation (MCP Live 0.2 §3–§5), judged by a raw server on every carrier. */
import { describe, expect, test } from 'vitest'
import { connect } from '../../src/client/connect.ts'
import { attach, host, mcpl, over, push, serve, turn } from './raw/host.ts'
import { carriers, type RawServer } from './raw/raw-server.ts'
import type { Frame } from './raw/script.ts'

const dig = (value: unknown, ...path: readonly string[]): unknown =>
  path.reduce<unknown>((at, name) => (at as Frame | undefined)?.[name], value)

/** What the host declared: with the handshake, or with its first request. */
function declared({ script, carrier }: RawServer): unknown {
  const params = script.heard[0]?.['params']
  if (carrier !== 'http 2026-07-28') return dig(params, 'capabilities')
  return dig(params, '_meta', 'io.modelcontextprotocol/clientCapabilities')
}

/** Methods of MCP Live that the host has sent. */
function liveTraffic({ script }: RawServer): readonly unknown[] {
  const names = script.heard.map(frame => String(frame['method']))
  return names.filter(name => /^(context|state|featureSets|inference|scope|push|model|live|channels|mcpl)\//.test(name))
}

/** What a list has at one member of its entries. */
async function namesIn(list: AsyncIterable<object>, member: string): Promise<unknown[]> {
  const names: unknown[] = []
  for await (const entry of list) names.push((entry as Frame)[member])
  return names
}

const plainly = { tools: {}, resources: {}, prompts: {} }
const uncached = { ttlMs: 0, cacheScope: 'private' }
const plainAnswers = {
  'tools/list': () => ({ tools: [{ name: 'any', inputSchema: { type: 'object' } }], ...uncached }),
  'tools/call': () => ({ content: [{ type: 'text', text: 'done' }], state: { checkpoint: 'c' } }),
  'resources/list': () => ({ resources: [{ uri: 'x://a', name: 'a' }], ...uncached }),
  'resources/read': () => ({ contents: [{ uri: 'x://a', text: 'content' }], ...uncached }),
  'prompts/list': () => ({ prompts: [{ name: 'hello' }], ...uncached }),
  'prompts/get': () => ({ messages: [{ role: 'user', content: { type: 'text', text: 'Hello' } }] }),
}

describe.each(carriers)('%s', carrier => {
  test('L3.1-1: a host announces experimental.mcpl with version 0.2, and the revision is settled as without it', async () => {
    const { raw, client } = await host(carrier)
    expect(declared(raw)).toMatchObject({ experimental: { mcpl: { version: '0.2', pushEvents: true } } })
    expect(client.revision).toBe(carrier === 'http 2026-07-28' ? '2026-07-28' : '2025-11-25')
  })

  test.runIf(carrier !== 'http 2026-07-28').each(['2025-11-25', '2025-06-18', '2025-03-26'] as const)(
    'L3.1-1: a server that speaks %s and its host agree on it with MCP Live as without it',
    async protocolVersion => {
      const capabilities = { tools: {}, experimental: { mcpl } }
      const initialize = () => ({ protocolVersion, capabilities, serverInfo: { name: 'raw', version: '1' } })
      const options = { revisions: ['2025-11-25', '2025-06-18', '2025-03-26'] as const }
      const [raw, other] = [await serve(carrier, { answers: { initialize } }), await serve(carrier, { answers: { initialize } })]
      const { client } = await attach(raw, { connecting: options })
      const plain = await connect(other.target, { ...other.options, ...options })
      expect([client.revision, plain.revision]).toEqual([protocolVersion, protocolVersion])
      expect([client.live !== undefined, plain.live]).toEqual([true, undefined])
      const asked = [raw, other].map(({ script }) => dig(script.of('initialize')[0], 'params', 'protocolVersion'))
      expect(asked[0]).toBe(asked[1])
      await plain.close()
    },
  )

  test('L3.3-1: a server that announces none hears nothing of MCP Live, also not with a call', async () => {
    const raw = await serve(carrier, { capabilities: plainly, answers: plainAnswers })
    const { client } = await attach(raw)
    const outcome = await client.callTool('any', {}, { live: { state: { a: 1 }, scope: { label: '/tmp' } } })
    await client.callTool('any', {}, { live: { checkpoint: 'c-1' } })
    expect([client.live, client.toolSet('any'), outcome.text, outcome.live]).toEqual([undefined, undefined, 'done', undefined])
    for (const call of raw.script.of('tools/call')) {
      expect(Object.keys(call['params'] as Frame).sort()).toEqual(
        carrier === 'http 2026-07-28' ? ['_meta', 'arguments', 'name'] : ['arguments', 'name'],
      )
      expect(JSON.stringify(dig(call, 'params', '_meta', 'dev.vivarium/live'))).toBe(undefined)
    }
    expect(liveTraffic(raw)).toEqual([])
  })

  test('L3.3-1: tools, resources and prompts of a server that announces none work as usual', async () => {
    const raw = await serve(carrier, { capabilities: plainly, answers: plainAnswers })
    const { client } = await attach(raw)
    expect(await namesIn(client.tools(), 'name')).toEqual(['any'])
    expect(await namesIn(client.resources(), 'uri')).toEqual(['x://a'])
    expect(await client.readResource('x://a')).toMatchObject({ contents: [{ text: 'content' }] })
    expect(await namesIn(client.prompts(), 'name')).toEqual(['hello'])
    expect(await client.getPrompt('hello')).toMatchObject({ messages: [{ content: { text: 'Hello' } }] })
    expect((await client.callTool('any')).text).toBe('done')
    expect(liveTraffic(raw)).toEqual([])
  })

  test('L3.3-2: what a server sends that announced none is refused, and nobody acts on it', async () => {
    const raw = await serve(carrier, {})
    const acted: unknown[] = []
    const act = (answer: unknown) => async (asked: unknown) => {
      acted.push(asked)
      return answer as never
    }
    const handlers = {
      onInfer: act({}),
      onElevate: act({ approved: true }),
      onState: act(undefined),
      modelInfo: act({}) as never,
    }
    const { pushed, client } = await attach(raw, { handlers })
    if (carrier === 'http 2026-07-28') {
      // Here a server can say something by itself only to whoever listens.
      await client.tools().next()
      expect(raw.script.of('live/listen')).toEqual([])
    } else {
      const all = { ...push(), messages: [{ role: 'user', content: 'x' }], scope: { label: 'x' }, checkpoint: 'c', channels: [] }
      const methods = ['push/event', 'inference/request', 'model/info', 'scope/elevate', 'state/update', 'state/get']
      for (const method of [...methods, 'channels/register', 'channels/incoming'])
        expect([method, await raw.ask(method, all)]).toMatchObject([method, { error: { code: -32601 } }])
      raw.tell('push/event', push())
      raw.tell('featureSets/changed', { added: mcpl.featureSets })
      expect(await raw.ask('ping', {})).toMatchObject({ result: {} })
      expect(await raw.ask('push/event', push())).toMatchObject({ error: { code: -32601 } })
    }
    expect([pushed, acted, client.live, liveTraffic(raw)]).toEqual([[], [], undefined, []])
  })

  test('L4-1: each request of a server gets one response, under its id; a notification gets none', async () => {
    const { raw, client } = await host(carrier)
    const asked = [raw.begin('model/info', {}, 7), raw.begin('push/event', push()), raw.begin('scope/elevate', {})]
    raw.tell('featureSets/changed', { removed: ['lab.off'] })
    for (const id of asked) expect((await raw.answerTo(id))['id']).toBe(carrier === 'http 2026-07-28' ? String(id) : id)
    for await (const _ of client.tools());
    const answers =
      carrier === 'http 2026-07-28'
        ? raw.script.of('live/answer').map(({ params }) => dig(params, 'deliveryId'))
        : raw.script.heard.filter(frame => frame['method'] === undefined).map(({ id }) => id)
    expect(answers.map(String).sort()).toEqual(asked.map(String).sort())
  })

  test('L4.1-1: a host answers push/event, inference/request, model/info and scope/elevate, and hears featureSets/changed', async () => {
    const { raw, live } = await host(carrier)
    expect(await raw.ask('push/event', push())).toHaveProperty('result.accepted', true)
    const messages = [{ role: 'user', content: 'think' }]
    expect(await raw.ask('inference/request', { featureSet: 'lab.think', messages })).toHaveProperty('result.content', 'thought')
    expect(await raw.ask('model/info', {})).toHaveProperty('result.id', 'm-1')
    const elevate = { featureSet: 'lab.files', scope: { label: '/tmp' } }
    expect(await raw.ask('scope/elevate', elevate)).toHaveProperty('result.approved', true)
    raw.tell('featureSets/changed', { removed: ['lab.push'] })
    expect(await raw.ask('push/event', push())).toHaveProperty('error.code', -32003)
    expect([...live.featureSets.keys()]).not.toContain('lab.push')
  })

  test('L4.1-2: a host sends hooks and state/rollback as requests, and the selection before any of them', async () => {
    const { raw, live } = await host(carrier, {
      answers: {
        'context/beforeInference': () => ({ featureSet: 'lab.hooks', contextInjections: [] }),
        'context/afterInference': () => ({ featureSet: 'lab.hooks' }),
        'state/rollback': ({ checkpoint }) => ({ checkpoint, success: true }),
      },
    })
    const { signal } = new AbortController()
    await live.beforeInference(turn, { signal })
    await live.afterInference(over, { signal })
    await live.rollback('lab.notes', 'c-1')
    // A server of 0.2 is told in both ways.
    const policy = carrier === 'http 2026-07-28' ? ['live/listen'] : ['featureSets/update', 'featureSets/update']
    expect(liveTraffic(raw)).toEqual([...policy, 'context/beforeInference', 'context/afterInference', 'state/rollback'])
    for (const method of ['context/beforeInference', 'context/afterInference', 'state/rollback']) {
      expect(raw.script.of(method)[0]).toHaveProperty('id')
    }
  })

  test('L4.1-2: what a host tells without asking are notifications: pieces of an answer, and that an inference is over', async () => {
    const { raw, live } = await host(carrier, {
      mcpl: { ...mcpl, contextHooks: { beforeInference: true, afterInference: { blocking: false } } },
      handlers: {
        onInfer: async (_, { chunk }) => {
          chunk('thought')
          return { content: 'thought', model: 'm-1', finishReason: 'end_turn', usage: { inputTokens: 3, outputTokens: 1 } }
        },
      },
    })
    const messages = [{ role: 'user', content: 'think' }]
    await raw.ask('inference/request', { featureSet: 'lab.think', stream: true, messages }, 'q')
    await live.afterInference(over, { signal: new AbortController().signal })
    await raw.script.hears('context/afterInference')
    // Where a host can only ask, pieces go with its answers, and what is over is asked without a need for the answer (A17).
    const stateless = carrier === 'http 2026-07-28'
    const told = raw.script.of(stateless ? 'live/answer' : 'inference/chunk')
    expect(told.length).toBeGreaterThan(0)
    for (const frame of [...told, ...raw.script.of('context/afterInference')]) expect('id' in frame).toBe(stateless)
    if (stateless) expect(JSON.stringify(told)).toContain('"chunks":[')
  })

  test('L4.1-3: a method in the wrong direction is answered -32601, and ignored as a notification', async () => {
    const { raw } = await host(carrier)
    const theirs = [
      'context/beforeInference',
      'context/afterInference',
      'state/rollback',
      'featureSets/update',
      'inference/chunk',
    ]
    for (const method of [...theirs, 'no/such']) {
      expect([method, await raw.ask(method, over)]).toMatchObject([method, { error: { code: -32601 } }])
    }
    for (const method of theirs) raw.tell(method, over)
    raw.tell('inference/chunk', { requestId: 1, index: 0, delta: 'x' })
    raw.tell('featureSets/update', { enabled: [] })
    expect(await raw.ask('push/event', push())).toHaveProperty('result.accepted', true)
  })

  test('L5.1-2: only announced hooks are called, and what was not announced is refused', async () => {
    const { contextHooks, inferenceRequest, pushEvents, ...rest } = mcpl
    const { raw, live, pushed, inferred } = await host(carrier, { mcpl: rest })
    const { signal } = new AbortController()
    expect(live.hooks).toEqual({ before: false, after: false, lifecycle: false })
    expect(await live.beforeInference(turn, { signal })).toBe(undefined)
    expect(await live.afterInference(over, { signal })).toBe(undefined)
    expect(await raw.ask('push/event', push())).toMatchObject({ error: { code: -32601, data: { capability: 'pushEvents' } } })
    const thinking = await raw.ask('inference/request', { featureSet: 'lab.think', messages: [{ role: 'user', content: 'x' }] })
    expect(thinking).toMatchObject({ error: { code: -32601, data: { capability: 'inferenceRequest' } } })
    expect([pushed, inferred]).toEqual([[], []])
    expect(liveTraffic(raw).filter(name => String(name).startsWith('context/'))).toEqual([])
  })

  test('L5.1-2: of the two hooks that one is called which was announced', async () => {
    const { signal } = new AbortController()
    for (const [contextHooks, called] of [
      [{ beforeInference: true }, 'context/beforeInference'],
      [{ afterInference: { blocking: true } }, 'context/afterInference'],
    ] as const) {
      const answer = () => ({ featureSet: 'lab.hooks', contextInjections: [] })
      const answers = { 'context/beforeInference': answer, 'context/afterInference': answer }
      const { raw, live } = await host(carrier, { mcpl: { ...mcpl, contextHooks }, answers })
      await live.beforeInference(turn, { signal })
      await live.afterInference(over, { signal })
      expect(liveTraffic(raw).filter(name => String(name).startsWith('context/'))).toEqual([called])
    }
  })

  test('L5.2-1: the hello states version, enabled and disabled sets and scopes, as far as they are configured', async () => {
    const hello = { enabled: ['lab.*'], disabled: ['lab.off'], scopes: { 'lab.files': { whitelist: ['/tmp/**'] } } }
    const { raw } = await host(carrier, { handlers: { hello } })
    const { enabled, disabled, scopes } = hello
    expect(declared(raw)).toMatchObject({
      experimental: { mcpl: { version: '0.2', featureSets: { enabled, disabled }, scopes } },
    })
  })

  test('L6.4-1: what a server sends at once is answered when it knows the selection, and only then are its tools listed', async () => {
    const stateless = carrier === 'http 2026-07-28'
    const known = Promise.withResolvers<void>()
    const events: string[] = []
    const raw = await serve(carrier, {
      mcpl,
      answers: {
        'featureSets/update': async (_, { id }) => {
          await known.promise
          if (id !== undefined) events.push('selected')
          return { accepted: true }
        },
      },
    })
    const early = raw.script
      .hears(stateless ? 'live/listen' : 'notifications/initialized')
      .then(() => [raw.begin('push/event', push()), raw.begin('model/info', {})] as const)
    const onPush = async () => {
      events.push('heard')
      return { accepted: true } as const
    }
    const connecting = attach(raw, { handlers: { onPush } })
    const [pushing, asking] = await early
    // What needs no selection is answered meanwhile, so what came before it has been read.
    await raw.answerTo(asking)
    if (!stateless) expect(events).toEqual([])
    known.resolve()
    const { client } = await connecting
    expect(await raw.answerTo(pushing)).toHaveProperty('result.accepted', true)
    for await (const _ of client.tools());
    expect(events).toEqual(stateless ? ['heard'] : ['selected', 'heard'])
    const names = raw.script.heard.map(frame => frame['method'])
    const policy = names.indexOf(stateless ? 'live/listen' : 'featureSets/update')
    expect(policy).toBeGreaterThan(-1)
    expect(policy).toBeLessThan(names.indexOf('tools/list'))
  })
})
