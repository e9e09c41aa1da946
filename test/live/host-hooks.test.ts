/** The host's part in hooks (MCP Live 0.2 §10), judged by a raw server on every carrier. */
import { describe, expect, test } from 'vitest'
import { host, mcpl, model, over, turn } from './raw/host.ts'
import { carriers } from './raw/raw-server.ts'
import { type Frame, silence } from './raw/script.ts'

const { signal } = new AbortController()
const injection = { namespace: 'memory', position: 'system', content: [{ type: 'text', text: 'The user likes tea' }] }
const before = (contextInjections: unknown) => ({
  'context/beforeInference': () => ({ featureSet: 'lab.hooks', contextInjections }),
})
const plainParams = (frame: Frame | undefined) => {
  const { _meta, ...rest } = (frame?.['params'] ?? {}) as Frame
  return rest
}

describe.each(carriers)('%s', carrier => {
  test('L10.1-1: a hook is told inference, conversation, turn and what the user said, or null', async () => {
    const { raw, live } = await host(carrier, { answers: before([]) })
    await live.beforeInference(turn, { signal })
    await live.beforeInference({ ...turn, turnIndex: 1, userMessage: null }, { signal })
    const [first, second] = raw.script.of('context/beforeInference').map(plainParams)
    expect(first).toEqual(turn)
    expect(second).toEqual({ ...turn, turnIndex: 1, userMessage: null })
  })

  test('L10.1-2: a hook is told the model that runs', async () => {
    const { raw, live } = await host(carrier, { answers: before([]) })
    await live.beforeInference(turn, { signal })
    expect(raw.script.of('context/beforeInference')[0]?.['params']).toHaveProperty('model', model)
  })

  test('L10.2-1: the answer is a set with injections', async () => {
    const { raw, live } = await host(carrier, { answers: before([injection]) })
    expect(await live.beforeInference(turn, { signal })).toEqual({ featureSet: 'lab.hooks', injections: [injection] })
    raw.script.on('context/beforeInference', () => ({ contextInjections: [injection] }))
    await expect(live.beforeInference(turn, { signal })).rejects.toThrow('has no featureSet')
  })

  test('L10.3-1: text, media under source, links and plain strings are read as blocks', async () => {
    const source = { type: 'base64', media_type: 'image/png', data: 'aGk=' }
    const { live } = await host(carrier, {
      answers: before([
        { ...injection, content: 'Simple' },
        {
          ...injection,
          content: [
            { type: 'image', source },
            { type: 'audio', source: { ...source, media_type: 'audio/wav' } },
          ],
        },
        { ...injection, content: [{ type: 'resource_link', uri: 'memory://facts/1' }] },
      ]),
    })
    const answer = await live.beforeInference(turn, { signal })
    expect(answer?.injections.map(({ content }) => content)).toEqual([
      [{ type: 'text', text: 'Simple' }],
      [
        { type: 'image', data: 'aGk=', mimeType: 'image/png' },
        { type: 'audio', data: 'aGk=', mimeType: 'audio/wav' },
      ],
      [{ type: 'resource_link', uri: 'memory://facts/1' }],
    ])
  })

  test('L10.4-1: a wrong injection is dropped with a diagnostic, its siblings are kept', async () => {
    const { live, diagnosed } = await host(carrier, {
      answers: before([
        { ...injection, position: 'afterAssistant' },
        { position: 'system', content: 'no namespace' },
        { namespace: 'n', position: 'system' },
        'nothing',
        { ...injection, position: 'beforeUser', metadata: { memoryIds: ['m1'] } },
        { ...injection, position: 'afterUser' },
      ]),
    })
    const answer = await live.beforeInference(turn, { signal })
    expect(answer?.injections.map(({ position, metadata }) => [position, metadata])).toEqual([
      ['beforeUser', { memoryIds: ['m1'] }],
      ['afterUser', undefined],
    ])
    expect(diagnosed.map(({ code }) => code)).toEqual(Array(4).fill('INJECTION_DROPPED'))
  })

  test('L10.5-1: after an inference a blocking hook is asked, another one told, with the id of the inference', async () => {
    const answers = { 'context/afterInference': () => ({ featureSet: 'lab.hooks' }) }
    const blocking = await host(carrier, { answers })
    expect(blocking.live.hooks.after).toBe('blocking')
    await blocking.live.afterInference(over, { signal })
    const asked = blocking.raw.script.of('context/afterInference')[0]
    expect(asked).toHaveProperty('id')
    expect(plainParams(asked)).toEqual(over)
    for (const afterInference of [{ blocking: false }, {}, true]) {
      const contextHooks = { afterInference }
      const telling = await host(carrier, { answers, mcpl: { ...mcpl, contextHooks } })
      expect(telling.live.hooks.after).toBe('told')
      expect(await telling.live.afterInference(over, { signal })).toBe(undefined)
      const told = await telling.raw.script.hears('context/afterInference')
      // A stateless server knows whom a message comes from only by requests.
      expect('id' in told).toBe(carrier === 'http 2026-07-28')
      expect(plainParams(told)).toEqual(over)
    }
  })

  test('L10.5-2: modifiedResponse and metadata are given; without them nothing is changed', async () => {
    const { raw, live } = await host(carrier, {
      answers: { 'context/afterInference': () => ({ featureSet: 'lab.hooks', modifiedResponse: '', metadata: { n: 1 } }) },
    })
    expect(await live.afterInference(over, { signal })).toEqual({
      featureSet: 'lab.hooks',
      modifiedResponse: '',
      metadata: { n: 1 },
    })
    raw.script.on('context/afterInference', () => ({ featureSet: 'lab.hooks', modifiedResponse: null }))
    expect(await live.afterInference(over, { signal })).toEqual({ featureSet: 'lab.hooks' })
  })

  test('L10.6-1: a hook that is given up is over at once, and its late answer is discarded', async () => {
    const late = Promise.withResolvers<unknown>()
    const { raw, live, diagnosed } = await host(carrier, { answers: { 'context/beforeInference': () => late.promise } })
    const patience = new AbortController()
    const asked = live.beforeInference(turn, { signal: patience.signal })
    await raw.script.hears('context/beforeInference')
    patience.abort(new Error('5 s are over'))
    await expect(asked).rejects.toThrow('5 s are over')
    late.resolve({ featureSet: 'lab.off', contextInjections: [injection] })
    raw.script.on('context/beforeInference', () => ({ featureSet: 'lab.hooks', contextInjections: [] }))
    expect(await live.beforeInference(turn, { signal })).toEqual({ featureSet: 'lab.hooks', injections: [] })
    expect(diagnosed).toEqual([])
  })

  test.each(['before', 'after'] as const)(
    'L10.7-1: a server with a hook %s in flight gets no inference, and is told to come again',
    async when => {
      const method = `context/${when}Inference`
      const { raw, live, inferred } = await host(carrier, { answers: { [method]: () => silence } })
      const patience = new AbortController()
      const { signal: own } = patience
      const hooking = when === 'before' ? live.beforeInference(turn, { signal: own }) : live.afterInference(over, { signal: own })
      const asked = hooking.catch(() => 'given up')
      await raw.script.hears(method)
      const request = { featureSet: 'lab.think', messages: [{ role: 'user', content: 'x' }] }
      expect(await raw.ask('inference/request', request)).toMatchObject({
        error: { code: -32600, data: { reason: 'hook_in_progress', retryable: true } },
      })
      patience.abort()
      expect(await asked).toBe('given up')
      expect(inferred).toEqual([])
      expect(await raw.ask('inference/request', request)).toHaveProperty('result.content', 'thought')
    },
  )
})
