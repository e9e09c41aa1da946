/** What a live server does by itself: pushes, hooks, inference (MCP Live 0.2 §9–§12), judged by its frames alone. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import type { Frame } from '../spec/wire.ts'
import type { Carrier } from './pipes.ts'
import { given, places, type RawHost, type RawHostOptions, rawHost, turn } from './raw-host.ts'

const ends: (() => unknown)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

async function hosted(carrier: Carrier, options?: RawHostOptions): Promise<RawHost> {
  const host = await rawHost(carrier, options)
  ends.push(() => host.close())
  return host
}

const result = async (frame: Promise<Frame>): Promise<Frame> => (await frame)['result'] as Frame

describe.each(places)('a live server on %s', place => {
  const stateless = place === 'stateless'

  it('L9.2-1: a push has its set, an id, a time in ISO 8601 and content; origin and tags if they were given', async () => {
    const host = await hosted(place)
    host.begin('tools/call', { name: 'push', arguments: { content: 'bare' } })
    const bare = await host.next('push/event')
    expect(Object.keys(bare.params).toSorted()).toEqual(['eventId', 'featureSet', 'payload', 'timestamp'])
    expect(bare.params['eventId']).toMatch(/^.{16,}$/)
    expect(new Date(String(bare.params['timestamp'])).toISOString()).toBe(bare.params['timestamp'])
    await bare.answer({ accepted: true })
    const event = {
      content: [{ type: 'text', text: 'x' }],
      origin: { a: { b: 1 } },
      tags: ['t'],
      eventId: 'e',
      timestamp: '2026-01-23T10:30:00Z',
    }
    host.begin('tools/call', { name: 'push', arguments: event })
    const { content, ...rest } = event
    expect((await host.next('push/event')).params).toEqual({ featureSet: 'memory.proactive', ...rest, payload: { content } })
  })

  it('LB-1: declarations, blocks and positions have the forms of the schemas', async () => {
    const host = await hosted(place)
    const content = [
      { type: 'text', text: 'x' },
      { type: 'image', data: 'aGk=', mimeType: 'image/png' },
      { type: 'audio', data: 'aGk=', mimeType: 'audio/wav' },
      { type: 'resource_link', uri: 'memory://facts/1' },
    ]
    host.begin('tools/call', { name: 'push', arguments: { content } })
    const source = (media_type: string) => ({ source: { type: 'base64', media_type, data: 'aGk=' } })
    expect((await host.next('push/event')).params['payload']).toEqual({
      content: [
        { type: 'text', text: 'x' },
        { type: 'image', ...source('image/png') },
        { type: 'audio', ...source('audio/wav') },
        { type: 'resource_link', uri: 'memory://facts/1' },
      ],
    })
    const uses = ['pushEvents', 'contextHooks.beforeInference', 'contextHooks.afterInference', 'inferenceRequest', 'tools']
    for (const set of Object.values(host.declared['featureSets'] as Record<string, Frame>)) {
      expect(set).toMatchObject({ description: expect.any(String), uses: expect.any(Array) })
      for (const use of set['uses'] as string[]) expect(uses).toContain(use)
    }
    const injected = await result(host.ask('context/beforeInference', turn('How?')))
    for (const { position } of injected['contextInjections'] as { position: string }[])
      expect(['system', 'beforeUser', 'afterUser']).toContain(position)
  })

  it('L9.4-2: a push that was not answered is sent again as it was', async () => {
    const host = await hosted(place)
    const pushing = host.call('push', { content: 'again', wait: true })
    const first = await host.next('push/event')
    await first.refuse(-32603, 'Could not be written')
    const second = await host.next('push/event')
    expect(second.params).toEqual(first.params)
    expect(second.id).not.toBe(first.id)
    await second.answer({ accepted: true, inferenceId: 'i' })
    expect(given(await pushing)['answer']).toEqual({ accepted: true, inferenceId: 'i' })
    const other = await result(host.call('push', { content: 'again' }))
    expect((other['structuredContent'] as Frame)['eventId']).not.toBe(first.params['eventId'])
  })

  it('A15: a duplicate has arrived, a hint to come later is followed, and any other refusal is the answer', async () => {
    const host = await hosted(place)
    const push = (args: Frame): Promise<Frame> => host.call('push', { ...args, wait: true })
    const duplicate = push({ content: 'a' })
    await (await host.next('push/event')).answer({ accepted: false, reason: 'duplicate' })
    expect(given(await duplicate)['answer']).toEqual({ accepted: true })
    const limited = push({ content: 'b' })
    await (await host.next('push/event')).answer({ accepted: false, reason: 'rate', retryAfterMs: 20 })
    await (await host.next('push/event')).answer({ accepted: true })
    expect(given(await limited)['answer']).toEqual({ accepted: true })
    const refused = push({ content: 'c' })
    await (await host.next('push/event')).answer({ accepted: false, reason: 'quiet hours' })
    expect(given(await refused)['answer']).toEqual({ accepted: false, reason: 'quiet hours' })
    const wrong = push({ content: 'd' })
    await (await host.next('push/event')).refuse(-32602, 'No such content')
    expect(given(await wrong)['answer']).toEqual({ accepted: false, reason: 'No such content' })
  })

  it('A6: a refusal because of the set keeps the event until the selection has changed', async () => {
    const host = await hosted(place)
    const pushing = host.call('push', { content: 'a', wait: true })
    const refused = await host.next('push/event')
    await refused.refuse(-32001, 'Feature set not enabled', { featureSet: 'memory.proactive', canEnable: true })
    await host.quiet()
    await host.select({ enabled: ['memory.proactive'], disabled: [] })
    const again = await host.next('push/event')
    expect(again.params).toEqual(refused.params)
    await again.answer({ accepted: true })
    expect(given(await pushing)['answer']).toEqual({ accepted: true })
  })

  it('keeps what comes from one origin in order, while others pass', async () => {
    const host = await hosted(place)
    for (const [eventId, origin] of [
      ['1', 'a'],
      ['2', 'a'],
      ['3', 'b'],
    ] as const)
      await host.call('push', { content: eventId, eventId, origin: { origin } })
    const first = [await host.next('push/event'), await host.next('push/event')]
    expect(first.map(({ params }) => params['eventId']).toSorted()).toEqual(['1', '3'])
    await host.quiet()
    expect(host.said).toHaveLength(2)
    await first.find(({ params }) => params['eventId'] === '1')?.answer({ accepted: true })
    expect((await host.next('push/event')).params['eventId']).toBe('2')
  })

  it('L10.2-1, L10.4-1: a hook before inference answers with injections that have a namespace, a position and content', async () => {
    const host = await hosted(place)
    expect(await result(host.ask('context/beforeInference', turn('How?')))).toMatchObject({
      featureSet: 'memory.retrieval',
      contextInjections: [
        {
          namespace: 'memory',
          position: 'system',
          content: [{ type: 'text', text: 'Known: nothing yet' }],
          metadata: { memoryIds: ['m1'] },
        },
        { namespace: 'memory.retrieval', position: 'beforeUser' },
      ],
    })
    expect(await result(host.ask('context/beforeInference', turn('nothing')))).toMatchObject({
      featureSet: 'memory.retrieval',
      contextInjections: [],
    })
    expect(await result(host.ask('context/beforeInference', turn(null)))).toHaveProperty('contextInjections')
    // What its author got wrong does not go out.
    for (const wrong of ['nowhere', 'empty'])
      expect(await host.ask('context/beforeInference', turn(wrong))).toHaveProperty('error')
    const { turnIndex, ...broken } = turn('x')
    expect(await host.ask('context/beforeInference', broken)).toMatchObject({ error: { code: -32602 } })
  })

  it('L10.3-1, A10: blocks have the source form for hosts that say 0.2, and the form of MCP for others', async () => {
    const uri = 'memory://facts/1'
    const source = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'aGk=' } }
    const flat = { type: 'image', data: 'aGk=', mimeType: 'image/png' }
    for (const [version, image] of [
      ['0.2', source],
      ['0.2.0-draft', source],
      ['0.3', flat],
      ['0.4', flat],
    ] as const) {
      const host = await hosted(place, { mcpl: { version } })
      const said = await result(host.ask('context/beforeInference', turn('x')))
      expect([version, (said['contextInjections'] as Frame[])[1]?.['content']]).toEqual([
        version,
        [image, { type: image === source ? 'resource_link' : 'resource', uri }],
      ])
      host.begin('tools/call', { name: 'push', arguments: { content: [flat] } })
      expect((await host.next('push/event')).params['payload']).toEqual({ content: [image] })
      host.begin('tools/call', { name: 'infer', arguments: { messages: [{ role: 'user', content: [flat] }] } })
      expect((await host.next('inference/request')).params['messages']).toEqual([{ role: 'user', content: [image] }])
    }
  })

  it('L10.5-1: what followed an inference is heard, as a notification or as a request', async () => {
    const host = await hosted(place)
    const usage = { inputTokens: 3, outputTokens: 4 }
    host.tell('context/afterInference', turn('x', { assistantMessage: 'told', usage }))
    expect(await host.ask('context/afterInference', turn('x', { assistantMessage: 'asked', usage }))).toHaveProperty('result')
    await expect
      .poll(async () => given(await host.call('heard'))['heard'])
      .toEqual(
        expect.arrayContaining([
          { after: 'told', usage },
          { after: 'asked', usage },
        ]),
      )
  })

  it('L10.5-2: a blocking hook gives the reply that replaces the model’s; without one it is unchanged', async () => {
    const host = await hosted(place, { variant: 'blocking' })
    expect(await result(host.ask('context/afterInference', turn('x', { assistantMessage: 'The key is sk-123!' })))).toMatchObject(
      {
        featureSet: 'memory.extraction',
        modifiedResponse: 'The key is [REDACTED]!',
        metadata: { redactions: 1 },
      },
    )
    const plain = await result(host.ask('context/afterInference', turn('x', { assistantMessage: 'Nothing' })))
    expect(plain).not.toHaveProperty('modifiedResponse')
    const told = await hosted(place)
    const ignored = await result(told.ask('context/afterInference', turn('x', { assistantMessage: 'sk-1' })))
    expect(ignored).not.toHaveProperty('modifiedResponse')
  })

  it.each(['before', 'after'] as const)(
    'L10.7-1: nothing is inferred on the way of a hook %s: what one starts waits for its answer, what one awaits fails',
    async when => {
      const host = await hosted(place, { variant: 'blocking' })
      const hook = (word: string) =>
        host.begin(`context/${when}Inference`, when === 'before' ? turn(word) : turn('x', { assistantMessage: word }))
      const { id, answer } = hook('later')
      await answer
      const asked = await host.next('inference/request')
      const order = host.frames.findIndex(frame => frame['id'] === id && frame['method'] === undefined)
      const inferred = host.frames.findIndex(frame => JSON.stringify(frame).includes('"inference/request"'))
      expect(order).toBeLessThan(inferred)
      await asked.answer({ content: 'x', model: 'm', finishReason: 'end_turn', usage: { inputTokens: 1, outputTokens: 1 } })
      expect(await hook('think').answer).toHaveProperty('error')
      await host.quiet()
      expect(host.said.filter(({ method }) => method === 'inference/request')).toHaveLength(1)
    },
  )

  it('L11.2-1: an inference has its set and messages, says whether it streams, and what it prefers', async () => {
    const host = await hosted(place)
    host.begin('tools/call', { name: 'infer', arguments: { messages: 'Sum up' } })
    expect((await host.next('inference/request')).params).toEqual({
      featureSet: 'memory.consolidation',
      stream: false,
      messages: [{ role: 'user', content: 'Sum up' }],
      preferences: {},
    })
    const more = { messages: [{ role: 'user', content: 'x' }], maxTokens: 5, temperature: 0.5, conversationId: 'c', stream: true }
    host.begin('tools/call', { name: 'infer', arguments: more })
    expect((await host.next('inference/request')).params).toMatchObject({
      conversationId: 'c',
      stream: true,
      preferences: { maxTokens: 5, temperature: 0.5 },
    })
  })

  it('L11.3-1, A9: what the host answers is what the author gets; other reasons and blocks are read', async () => {
    const host = await hosted(place)
    const usage = { inputTokens: 4, outputTokens: 2 }
    const infer = async (answer: Frame): Promise<unknown> => {
      const inferring = host.call('infer', { messages: 'x' })
      await (await host.next('inference/request')).answer(answer)
      return given(await inferring)['result']
    }
    const whole = { content: 'Yes', model: 'm-1', finishReason: 'max_tokens', usage }
    expect(await infer(whole)).toEqual(whole)
    expect(
      await infer({
        content: [
          { type: 'text', text: 'Y' },
          { type: 'text', text: 'es' },
        ],
        model: 'm',
        finishReason: 'stop',
      }),
    ).toEqual({
      content: 'Yes',
      model: 'm',
      finishReason: 'end_turn',
      usage: { inputTokens: 0, outputTokens: 0 },
    })
  })

  it('L11.4-1, A8: chunks under the id of the request are the parts of its answer; late ones are nobody’s', async () => {
    const host = await hosted(place)
    const inferring = host.call('infer', { messages: 'x', iterate: true })
    const asked = await host.next('inference/request')
    expect(asked.params['stream']).toBe(true)
    if (!stateless) expect(Number.isSafeInteger(asked.id)).toBe(true)
    for (const [index, delta] of ['Con', 'soli', 'dated'].entries()) await asked.chunk(index, delta)
    await asked.answer({
      content: 'Consolidated',
      model: 'm',
      finishReason: 'end_turn',
      usage: { inputTokens: 1, outputTokens: 1 },
    })
    await asked.chunk(3, '!')
    expect(given(await inferring)).toMatchObject({ deltas: ['Con', 'soli', 'dated'], result: { content: 'Consolidated' } })
  })

  it('L11.4-2: a host that sends no chunks gives its answer as one part', async () => {
    const host = await hosted(place)
    const inferring = host.call('infer', { messages: 'x', iterate: true })
    const answer = { content: 'All', model: 'm', finishReason: 'end_turn', usage: { inputTokens: 1, outputTokens: 1 } }
    await (await host.next('inference/request')).answer(answer)
    expect(given(await inferring)).toMatchObject({ deltas: ['All'] })
  })

  it('A7, A19: refusals of an inference are told by what they say, and those that pass are waited out', async () => {
    const host = await hosted(place)
    const off = host.call('infer', { messages: 'x' })
    await (await host.next('inference/request')).refuse(-32001, 'Feature set not enabled', {
      featureSet: 'memory.consolidation',
      canEnable: false,
    })
    expect(given(await off)['text']).toMatch(/not enabled.*The policy of the host does not allow/)
    const other = host.call('infer', { messages: 'x' })
    await (await host.next('inference/request')).refuse(-32001, 'Request timed out')
    expect(given(await other)['text']).not.toMatch(/not enabled/)
    const busy = host.call('infer', { messages: 'x' })
    await (await host.next('inference/request')).refuse(-32600, 'Busy', { reason: 'hook_in_progress' })
    await (await host.next('inference/request')).answer({ content: 'x', model: 'm', finishReason: 'end_turn', usage: {} })
    expect(given(await busy)).toMatchObject({ result: { content: 'x' } })
  })

  it('L12-1: the model is asked for with empty params, and what the host says is what the author gets', async () => {
    const host = await hosted(place)
    const model = { id: 'm', vendor: 'v', contextWindow: 1000, capabilities: ['vision'] }
    const asking = host.call('model')
    const asked = await host.next('model/info')
    expect(asked.params).toEqual({})
    await asked.answer(model)
    expect(given(await asking)).toEqual(model)
  })

  it('L13.4-1: what it injects is its own, under the namespace of its set, and says nothing of other speakers', async () => {
    const host = await hosted(place)
    const { contextInjections } = (await result(host.ask('context/beforeInference', turn('x')))) as { contextInjections: Frame[] }
    for (const injection of contextInjections) {
      expect(injection['namespace']).toMatch(/^memory/)
      expect(Object.keys(injection).filter(key => !['namespace', 'position', 'content', 'metadata'].includes(key))).toEqual([])
    }
  })
})

it('L9.4-2: events survive the crash of the process that pushed them, with their ids and times', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'live-'))
  ends.push(() => rmSync(directory, { recursive: true, force: true }))
  const server = { store: `sqlite:${join(directory, 'outbox.db')}` }
  const first = await rawHost('stdio', { server })
  await first.call('push', { content: 'kept', eventId: 'k', origin: { n: 1 } })
  const sent = await first.next('push/event')
  await first.kill()
  const second = await hosted('stdio', { server })
  const again = await second.next('push/event')
  expect(again.params).toEqual(sent.params)
  await again.answer({ accepted: true })
  await expect
    .poll(async () => {
      const read = (await second.ask('resources/read', { uri: 'live://events/pending' }))['result'] as {
        contents: { text: string }[]
      }
      return JSON.parse(read.contents[0]?.text ?? '')
    })
    .toEqual({ events: [], more: 0 })
})
