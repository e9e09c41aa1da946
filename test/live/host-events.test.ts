/** The host's part in pushed events, inference and model info (MCP Live 0.2 §9, §11, §12), judged by a raw server on every carrier. */
import { describe, expect, test } from 'vitest'
import type { InferenceRequest } from '../../src/features/live/inference/messages.ts'
import { host, mcpl, model, push } from './raw/host.ts'
import { carriers, type RawServer } from './raw/raw-server.ts'
import type { Frame } from './raw/script.ts'

const messages = [{ role: 'user', content: 'Summarize' }]
const done = { content: 'a b c', model: 'm-2', finishReason: 'max_tokens', usage: { inputTokens: 4, outputTokens: 3 } } as const

interface Chunk {
  readonly requestId: unknown
  readonly index: number
  readonly delta: string
  /** How many messages of the host came before it. */
  readonly at: number
}

/** The chunks of an inference as they came. */
function chunks({ script, carrier }: RawServer): Chunk[] {
  return script.heard.flatMap((frame, at) => {
    const params = frame['params'] as Frame
    if (carrier !== 'http 2026-07-28') {
      return frame['method'] === 'inference/chunk' ? [{ ...(params as unknown as Chunk), at }] : []
    }
    const parts = frame['method'] === 'live/answer' ? ((params['chunks'] ?? []) as Chunk[]) : []
    return parts.map(part => ({ ...part, requestId: params['deliveryId'], at }))
  })
}

describe.each(carriers)('%s', carrier => {
  test('L9.2-1: an event without eventId, timestamp or content, or with one that is none, is -32602', async () => {
    const { raw, pushed } = await host(carrier)
    const wrong = [
      { eventId: undefined },
      { timestamp: undefined },
      { timestamp: 'yesterday' },
      { payload: undefined },
      { payload: {} },
      { payload: { content: 7 } },
      { payload: { content: [{ text: 'no type' }] } },
      { origin: 'somewhere' },
    ]
    for (const one of wrong) expect(await raw.ask('push/event', push(one))).toHaveProperty('error.code', -32602)
    expect(pushed).toEqual([])
    const origin = { any: ['shape', { at: 'all' }] }
    expect(await raw.ask('push/event', push({ origin }))).toHaveProperty('result.accepted', true)
    expect(pushed).toMatchObject([{ featureSet: 'lab.push', eventId: 'e-1', timestamp: '2026-01-23T10:30:00Z', origin }])
  })

  test('L9.3-1: inferenceId comes with an inference, a reason with a refusal', async () => {
    const answers = [
      { accepted: true as const, inferenceId: 'inf-9' },
      { accepted: true as const },
      { accepted: false as const, reason: 'rate', retryAfterMs: 500 },
    ]
    const { raw } = await host(carrier, { handlers: { onPush: async () => answers.shift() ?? { accepted: true } } })
    expect((await raw.ask('push/event', push()))['result']).toEqual({ accepted: true, inferenceId: 'inf-9' })
    expect((await raw.ask('push/event', push()))['result']).toEqual({ accepted: true })
    expect((await raw.ask('push/event', push()))['result']).toEqual({ accepted: false, reason: 'rate', retryAfterMs: 500 })
  })

  test('L9.3-2: only events of enabled sets come to the policy', async () => {
    const asked: string[] = []
    const { raw } = await host(carrier, {
      handlers: {
        onPush: async ({ featureSet }) => {
          asked.push(featureSet)
          return { accepted: false, reason: 'quiet hours' }
        },
      },
    })
    expect(await raw.ask('push/event', push({ featureSet: 'lab.off' }))).toHaveProperty('error.code', -32001)
    expect(await raw.ask('push/event', push({ featureSet: 'nobody' }))).toHaveProperty('error.code', -32003)
    expect(await raw.ask('push/event', push())).toHaveProperty('result.reason', 'quiet hours')
    expect(asked).toEqual(['lab.push'])
  })

  test('L11.2-1, L9.2-1: no messages, messages of unknown roles and events without a name are refused', async () => {
    const { raw, inferred, pushed } = await host(carrier)
    for (const wrong of [[], [{ role: 'tool', content: 'x' }], [{ role: '', content: 'x' }]])
      expect(await raw.ask('inference/request', { featureSet: 'lab.think', messages: wrong })).toHaveProperty(
        'error.code',
        -32602,
      )
    expect(await raw.ask('push/event', push({ eventId: '' }))).toHaveProperty('error.code', -32602)
    expect([inferred, pushed]).toEqual([[], []])
  })

  test('L11.2-1: featureSet and messages are required, the rest has its defaults', async () => {
    const { raw, inferred } = await host(carrier)
    expect(await raw.ask('inference/request', { featureSet: 'lab.think' })).toHaveProperty('error.code', -32602)
    expect(await raw.ask('inference/request', { messages })).toHaveProperty('error.code', -32602)
    expect(await raw.ask('inference/request', { featureSet: 'lab.think', messages: [{ role: 'user' }] })).toHaveProperty(
      'error.code',
      -32602,
    )
    await raw.ask('inference/request', { featureSet: 'lab.think', messages })
    const preferences = { maxTokens: 500, temperature: 0.7 }
    await raw.ask('inference/request', {
      featureSet: 'lab.think',
      conversationId: 'c-1',
      stream: true,
      messages: [{ role: 'system', content: [{ type: 'text', text: 'Be brief' }] }],
      preferences,
    })
    const text = (words: string) => [{ type: 'text', text: words }]
    const expected: InferenceRequest[] = [
      {
        featureSet: 'lab.think',
        stream: false,
        messages: [{ role: 'user', content: text('Summarize') as never }],
        preferences: {},
      },
      {
        featureSet: 'lab.think',
        conversationId: 'c-1',
        stream: true,
        messages: [{ role: 'system', content: text('Be brief') as never }],
        preferences,
      },
    ]
    expect(inferred).toEqual(expected)
  })

  test('L11.3-1: the result names what ran, why it stopped and what it cost', async () => {
    const { raw } = await host(carrier, { handlers: { onInfer: async () => done } })
    expect((await raw.ask('inference/request', { featureSet: 'lab.think', messages }))['result']).toEqual(done)
  })

  test('L11.4-1: chunks carry the id of their request with its type, count from 0 without gaps, and precede the response', async () => {
    const { raw } = await host(carrier, {
      handlers: {
        onInfer: async (_, { chunk }) => {
          for (const delta of ['a ', 'b ', 'c']) {
            chunk(delta)
            await new Promise(resolve => setImmediate(resolve))
          }
          return done
        },
      },
    })
    for (const id of [31, '31', 'thirty-two']) {
      if (carrier === 'http 2026-07-28' && id === 31) continue
      const before = raw.script.heard.length
      const answer = await raw.ask('inference/request', { featureSet: 'lab.think', stream: true, messages }, id)
      expect(answer['result']).toEqual(done)
      const parts = chunks(raw).filter(({ at }) => at >= before)
      expect(parts.map(({ requestId }) => requestId)).toEqual(parts.map(() => id))
      expect(parts.map(({ index }) => index)).toEqual(parts.map((_, at) => at))
      expect(parts.map(({ delta }) => delta).join('')).toBe('a b c')
      expect(Math.max(...parts.map(({ at }) => at))).toBeLessThan(raw.script.heard.length - 1)
    }
  })

  test('L11.4-1: parts that a slow server has yet to take hold the response back', async () => {
    const taken = Promise.withResolvers<void>()
    const method = carrier === 'http 2026-07-28' ? 'live/answer' : 'inference/chunk'
    const { raw } = await host(carrier, {
      handlers: {
        onInfer: async (_, { chunk }) => {
          for (const delta of ['a ', 'b ', 'c']) chunk(delta)
          return done
        },
      },
    })
    raw.script.on(method, async params => {
      if (params['result'] === undefined) await taken.promise
      return { known: true }
    })
    const id = raw.begin('inference/request', { featureSet: 'lab.think', stream: true, messages })
    await raw.script.hears(method)
    if (carrier.startsWith('http')) expect(chunks(raw).map(({ delta }) => delta)).toEqual(['a '])
    taken.resolve()
    expect((await raw.answerTo(id))['result']).toEqual(done)
    // What waits while one is under way goes with the next.
    expect(chunks(raw).map(({ index, delta }) => [index, delta])).toEqual([
      [0, 'a '],
      [1, 'b c'],
    ])
  })

  test('L11.4-1: a piece that is given after the result follows no response', async () => {
    let late: ((delta: string) => void) | undefined
    const { raw } = await host(carrier, {
      handlers: {
        onInfer: async (_, { chunk }) => {
          chunk('a b c')
          late = chunk
          return done
        },
      },
    })
    await raw.ask('inference/request', { featureSet: 'lab.think', stream: true, messages })
    late?.('d')
    await raw.ask('inference/request', { featureSet: 'lab.think', messages })
    expect(chunks(raw).map(({ delta }) => delta)).toEqual(['a b c'])
  })

  test('L11.4-2: without stream there is no chunk', async () => {
    const { raw } = await host(carrier, {
      handlers: {
        onInfer: async (_, { chunk }) => {
          chunk('a b c')
          return done
        },
      },
    })
    await raw.ask('inference/request', { featureSet: 'lab.think', messages })
    await raw.ask('inference/request', { featureSet: 'lab.think', stream: false, messages })
    expect(chunks(raw)).toEqual([])
  })

  test('L12-1: model/info is always answered, also when nothing is enabled', async () => {
    const { raw } = await host(carrier, {
      handlers: { select: () => ({ enabled: [], disabled: [], canEnable: () => false }) },
    })
    expect((await raw.ask('model/info', {}))['result']).toEqual(model)
    const { modelInfo: _, ...unannounced } = mcpl
    const other = await host(carrier, { mcpl: unannounced })
    expect((await other.raw.ask('model/info', {}))['result']).toEqual(model)
  })

  test('a server that cancels its inference stops it, and gets no answer', async () => {
    const stopped = Promise.withResolvers<unknown>()
    const { raw } = await host(carrier, {
      handlers: {
        onInfer: (_, { signal }) =>
          new Promise((_, reject) => {
            signal.addEventListener('abort', () => {
              stopped.resolve(signal.reason)
              reject(signal.reason)
            })
          }),
      },
    })
    const id = raw.begin('inference/request', { featureSet: 'lab.think', messages })
    const requestId = carrier === 'http 2026-07-28' ? String(id) : id
    raw.tell('notifications/cancelled', { requestId, reason: 'no longer needed' })
    expect(await stopped.promise).toMatchObject({ name: 'AbortError' })
    expect(await raw.ask('model/info', {})).toHaveProperty('result.id')
    const answered = raw.script.heard.filter(
      frame => frame['id'] === id || (frame['params'] as Frame | undefined)?.['deliveryId'] === requestId,
    )
    expect(answered.filter(frame => frame['method'] === undefined || frame['method'] === 'live/answer')).toEqual([])
  })
})
