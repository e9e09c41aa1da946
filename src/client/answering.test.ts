import { describe, expect, it } from 'vitest'
import { type Frame, modernServer, type Script, sessionServer } from '../../test/client/scripted-server.ts'
import type { RevisionId } from '../revisions/index.ts'
import { fakeClock } from '../testing/clock.ts'
import type { ConnectOptions } from './api.ts'
import { connect } from './connect.ts'

async function open(options: ConnectOptions, version: RevisionId = '2025-11-25', script: Script = {}) {
  const server = sessionServer(script, {}, version)
  return { server, mcp: await connect(server.connection, { ...options, revisions: [version] }) }
}

const form = (more: Frame = {}): Frame => ({ message: 'Who?', requestedSchema: { type: 'object', properties: {}, ...more } })
const prompt: Frame = { messages: [{ role: 'user', content: { type: 'text', text: 'hi' } }], maxTokens: 10 }
const reply = { role: 'assistant' as const, content: { type: 'text' as const, text: 'ho' }, model: 'm' }

describe('what a client declares', () => {
  /** Always there: what the client itself knows to read or to send. */
  const extensions = {
    'dev.vivarium/problem': {},
    'dev.vivarium/idempotency': {},
    'dev.vivarium/transactions': {},
    'dev.vivarium/permissions': {},
    'dev.vivarium/state': {},
    'dev.vivarium/operational': {},
    'dev.vivarium/data-references': {},
  }
  /** Where requests declare for themselves, only those that need these do. */
  const opening = {
    ...extensions,
    'dev.vivarium/events': {},
    'dev.vivarium/manifest': {},
    'dev.vivarium/recommendations': {},
    'dev.vivarium/provenance': {},
    'dev.vivarium/media': {},
    'dev.vivarium/streaming': {},
  }
  const all: ConnectOptions = { onElicit: () => ({ action: 'cancel' }), onSample: () => reply, sampleTools: true, roots: [] }

  it.each<[RevisionId, Frame]>([
    ['2024-11-05', { sampling: {}, roots: { listChanged: true } }],
    ['2025-03-26', { sampling: {}, roots: { listChanged: true } }],
    ['2025-06-18', { elicitation: {}, sampling: {}, roots: { listChanged: true } }],
    [
      '2025-11-25',
      {
        elicitation: { form: {}, url: {} },
        sampling: { tools: {} },
        roots: { listChanged: true },
        tasks: { list: {}, cancel: {}, requests: { sampling: { createMessage: {} }, elicitation: { create: {} } } },
      },
    ],
  ])('at %s is what it can answer, in that wire’s words', async (version, expected) => {
    const { server, mcp } = await open(all, version)
    await using _ = mcp
    const declared = server.params('initialize')[0]?.['capabilities']
    const place = version === '2025-11-25' ? 'extensions' : 'experimental'
    expect(declared).toMatchObject({ ...expected, [place]: opening })
    expect(Object.keys(declared as Frame).sort()).toEqual([place, ...Object.keys(expected)].sort())
  })

  it('is nothing but its extensions when it can answer nothing', async () => {
    const { server, mcp } = await open({})
    await using _ = mcp
    expect(server.params('initialize')[0]?.['capabilities']).toEqual({ extensions: opening })
  })

  it('goes with each request on the stateless wire, with its extensions', async () => {
    const server = modernServer({ 'tools/list': () => ({ tools: [] }) })
    await using mcp = await connect(server.connection, {
      ...all,
      elicitUrl: false,
      extensions: { 'example.com/x': { on: true } },
    })
    for await (const __ of mcp.tools());
    const declared = server.heard.map(
      ({ params }) => ((params as Frame)['_meta'] as Frame)['io.modelcontextprotocol/clientCapabilities'],
    )
    expect(declared[1]).toEqual(declared[0])
    expect(declared[0]).toMatchObject({
      elicitation: { form: {} },
      sampling: { tools: {} },
      roots: {},
      extensions: { 'example.com/x': { on: true } },
    })
  })
})

describe('a question of the server', () => {
  it('goes to its handler, and its answer back', async () => {
    const { server, mcp } = await open({
      onElicit: ({ message }) => ({ action: 'accept', content: { message } }),
      onSample: () => reply,
      roots: () => [{ uri: 'file:///r' }],
    })
    await using _ = mcp
    expect((await server.ask('elicitation/create', form()))['result']).toEqual({ action: 'accept', content: { message: 'Who?' } })
    expect((await server.ask('sampling/createMessage', prompt))['result']).toEqual(reply)
    expect((await server.ask('roots/list'))['result']).toEqual({ roots: [{ uri: 'file:///r' }] })
    expect((await server.ask('ping'))['result']).toEqual({})
  })

  it.each(['elicitation/create', 'sampling/createMessage', 'roots/list', 'tools/list'])(
    '%s that nobody answers here is refused: method not found',
    async method => {
      const { server, mcp } = await open({})
      await using _ = mcp
      expect(await server.ask(method, form())).toMatchObject({ error: { code: -32601 } })
    },
  )

  it('is refused with what is wrong about it', async () => {
    const { server, mcp } = await open({ onElicit: () => ({ action: 'cancel' }), onSample: () => reply })
    await using _ = mcp
    expect(await server.ask('elicitation/create', { message: 7 })).toMatchObject({
      error: { code: -32602, message: expect.stringContaining('params.message') },
    })
    expect(await server.ask('elicitation/create', { message: 'm' })).toMatchObject({ error: { code: -32602 } })
    expect(await server.ask('sampling/createMessage', { ...prompt, tools: [] })).toMatchObject({
      error: { code: -32602, message: expect.stringContaining('sampling.tools') },
    })
  })

  it.each<[string, readonly Frame[]]>([
    [
      'a tool use is not answered by the next message',
      [
        { role: 'assistant', content: { type: 'tool_use', id: '1', name: 't', input: {} } },
        { role: 'user', content: { type: 'text', text: 'x' } },
      ],
    ],
    [
      'a result stands among other things',
      [
        { role: 'assistant', content: { type: 'tool_use', id: '1', name: 't', input: {} } },
        {
          role: 'user',
          content: [
            { type: 'tool_result', toolUseId: '1', content: [] },
            { type: 'text', text: 'x' },
          ],
        },
      ],
    ],
    ['a result answers nothing', [{ role: 'user', content: { type: 'tool_result', toolUseId: '1', content: [] } }]],
  ])('to the model is refused when %s', async (_, messages) => {
    const { server, mcp } = await open({ onSample: () => reply, sampleTools: true })
    await using __ = mcp
    expect(await server.ask('sampling/createMessage', { messages, maxTokens: 1 })).toMatchObject({ error: { code: -32602 } })
  })

  it('whose handler fails is answered with an error, and the client lives on', async () => {
    const fail = (): never => {
      throw new Error('secret path /home/me')
    }
    const { server, mcp } = await open({ onElicit: fail })
    await using _ = mcp
    const answer = await server.ask('elicitation/create', form())
    expect(answer).toMatchObject({ error: { code: -32603 } })
    expect(JSON.stringify(answer)).not.toContain('secret')
    expect((await server.ask('ping'))['result']).toEqual({})
  })

  it('that the server takes back is taken back from its handler', async () => {
    const seen = Promise.withResolvers<AbortSignal>()
    const { server, mcp } = await open({
      onElicit: (_, { signal }) => {
        seen.resolve(signal)
        return new Promise(() => {})
      },
    })
    await using _ = mcp
    server.send({ id: 'q1', method: 'elicitation/create', params: form() })
    const signal = await seen.promise
    await server.tell('notifications/cancelled', { requestId: 'q1' })
    expect(signal.aborted).toBe(true)
  })

  it('leaves the defaults of a form where nothing was filled in, and nothing of it with a refusal', async () => {
    const properties = JSON.parse(
      '{"a":{"type":"string","default":"x"},"b":{"type":"integer","default":2},"c":{"type":"string"},"__proto__":{"type":"string","default":"p"}}',
    )
    const answers = [
      { action: 'accept' as const, content: { a: 'mine' } },
      { action: 'decline' as const, content: { a: 'y' } },
    ]
    const { server, mcp } = await open({ onElicit: () => answers.shift() ?? { action: 'cancel' } })
    await using _ = mcp
    const { content } = (await server.ask('elicitation/create', form({ properties })))['result'] as { content: Frame }
    expect(Object.entries(content)).toEqual([
      ['a', 'mine'],
      ['b', 2],
      ['__proto__', 'p'],
    ])
    expect((await server.ask('elicitation/create', form({ properties })))['result']).toEqual({ action: 'decline' })
  })

  it('to visit a page is one of another mode, whose work the server may announce as done', async () => {
    const done: string[] = []
    const { server, mcp } = await open({
      onElicit: question => ({ action: question.mode === 'url' ? 'accept' : 'cancel' }),
      onElicitationComplete: id => done.push(id),
    })
    await using _ = mcp
    const page = { mode: 'url', message: 'sign in', url: 'https://example.com/x', elicitationId: 'e1' }
    expect((await server.ask('elicitation/create', page))['result']).toEqual({ action: 'accept' })
    await server.tell('notifications/elicitation/complete', { elicitationId: 'e1' })
    expect(done).toEqual(['e1'])
  })

  it('is never answered on the stateless wire, where servers do not ask (trap 9)', async () => {
    const events: string[] = []
    const server = modernServer({ 'tools/list': () => ({ tools: [] }) })
    await using mcp = await connect(server.connection, {
      onElicit: () => ({ action: 'accept' }),
      onTrace: event => events.push(event),
    })
    server.send({ id: 1, method: 'elicitation/create', params: form() })
    server.send({ id: 2, method: 'ping', params: {} })
    for await (const __ of mcp.tools());
    expect(server.heard.filter(({ method }) => method === undefined)).toEqual([])
    expect(events).toContain('message-refused')
  })
})

describe('how often a server may ask', () => {
  it.each<[string, ConnectOptions, string, Frame, number, number]>([
    ['elicitations', { onElicit: () => ({ action: 'cancel' }) }, 'elicitation/create', form(), 10, 2_000],
    ['sampling requests', { onSample: () => reply }, 'sampling/createMessage', prompt, 20, 1_000],
  ])('is bounded for %s; a refusal names limit and wait', async (what, options, method, params, burst, waitMs) => {
    const clock = fakeClock()
    const { server, mcp } = await open({ ...options, clock })
    await using _ = mcp
    for (let n = 0; n < burst; n++) expect(await server.ask(method, params)).toHaveProperty('result')
    const refused = await server.ask(method, params)
    expect(refused).toMatchObject({
      error: { message: `Too many ${what}. Retry in ${waitMs} ms`, data: { limit: what, retryAfterMs: waitMs } },
    })
    clock.advance(waitMs)
    expect(await server.ask(method, params)).toHaveProperty('result')
  })

  it('can be set, or left open', async () => {
    const limits = { rates: { elicit: { perSecond: 1, burst: 1 }, sample: false as const } }
    const { server, mcp } = await open({
      onElicit: () => ({ action: 'cancel' }),
      onSample: () => reply,
      limits,
      clock: fakeClock(),
    })
    await using _ = mcp
    expect(await server.ask('elicitation/create', form())).toHaveProperty('result')
    expect(await server.ask('elicitation/create', form())).toHaveProperty('error')
    for (let n = 0; n < 50; n++) expect(await server.ask('sampling/createMessage', prompt)).toHaveProperty('result')
  })

  it('holds for questions inside results too', async () => {
    const server = modernServer({
      'tools/call': () => ({
        resultType: 'input_required',
        inputRequests: { q: { method: 'elicitation/create', params: form() } },
      }),
    })
    await using mcp = await connect(server.connection, {
      onElicit: () => ({ action: 'accept' }),
      limits: { rates: { elicit: { perSecond: 1, burst: 3 } } },
      clock: fakeClock(),
    })
    await expect(mcp.callTool('t')).rejects.toMatchObject({ kind: 'rate-limited' })
    expect(server.of('tools/call')).toHaveLength(4)
  })
})

describe('roots', () => {
  it('that are others now are announced where the wire has that', async () => {
    const { server, mcp } = await open({ roots: [] })
    await using _ = mcp
    mcp.rootsChanged()
    await server.saw('notifications/roots/list_changed')
    const modern = modernServer({ 'tools/list': () => ({ tools: [] }) })
    await using other = await connect(modern.connection, { roots: [] })
    other.rootsChanged()
    for await (const __ of other.tools());
    expect(modern.of('notifications/roots/list_changed')).toEqual([])
  })
})
