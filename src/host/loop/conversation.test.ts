import { afterEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { openWorld, type World, type WorldOptions } from '../../../test/hosting/loop-world.ts'
import { Problem } from '../../core/problem.ts'
import { createServer, type Server } from '../../server/index.ts'
import { memoryStore } from '../../stores/memory.ts'
import { put } from '../../stores/store.ts'
import type { ModelRequest } from '../models/model.ts'
import { offline } from '../models/offline.ts'
import { scripted } from '../models/scripted.ts'
import type { TurnPart } from './turn.ts'

const worlds: World[] = []
afterEach(async () => {
  for (const world of worlds.splice(0)) await world.close()
})

async function world(options: WorldOptions): Promise<World> {
  const opened = await openWorld(options)
  worlds.push(opened)
  return opened
}

function calculator(): Server {
  const server = createServer({ name: 'calculator', version: '1.0.0', log: 'silent' })
  server.tool(
    'add',
    { input: z.object({ a: z.number(), b: z.number() }), annotations: { readOnlyHint: true } },
    ({ a, b }) => `${a + b}`,
  )
  server.tool('fail', {}, () => {
    throw new Error('no luck')
  })
  server.tool('long', { annotations: { readOnlyHint: true } }, () => 'abcdefghij'.repeat(5_000))
  return server
}

async function partsOf(turn: AsyncIterable<TurnPart>): Promise<readonly TurnPart[]> {
  const parts: TurnPart[] = []
  for await (const part of turn) parts.push(part)
  return parts
}

describe('a turn', () => {
  test('goes from what was said through tool calls to an answer', async () => {
    const model = scripted([{ calls: [{ name: 'add', arguments: { a: 1, b: 2 } }] }, 'It is 3.'])
    const { loop } = await world({ model, servers: { calc: calculator() } })
    const turn = await loop.conversation('c1').send('What is 1 + 2?')
    expect((await turn.done).text).toBe('It is 3.')
    expect(turn.calls).toMatchObject([{ server: 'calc', tool: 'add', outcome: { status: 'done', content: [{ text: '3' }] } }])
    expect(turn.cost).toMatchObject({ inferences: 2, units: 0 })
    expect(model.requests[1]?.messages.at(-1)).toEqual({
      role: 'tool',
      results: [
        {
          id: 'call_1_1',
          content: [{ type: 'text', text: '<tool-result server="calc" tool="add">\n3\n</tool-result>' }],
          isError: false,
        },
      ],
    })
  })

  test('shows its parts to every reader, also to one that comes late', async () => {
    const { loop } = await world({
      model: scripted([{ calls: [{ name: 'add', arguments: { a: 1, b: 2 } }] }, 'It is 3.']),
      servers: { calc: calculator() },
    })
    const turn = await loop.conversation('c1').send('What is 1 + 2?')
    const early = partsOf(turn)
    await turn.done
    const kinds = ['prompt', 'inference', 'inference', 'call', 'result', 'inference', 'text', 'inference', 'answer']
    expect((await early).map(({ type }) => type)).toEqual(kinds)
    expect((await partsOf(turn)).map(({ type }) => type)).toEqual(kinds)
  })

  test('tells the model of a tool that failed, and goes on', async () => {
    const model = scripted([{ calls: [{ name: 'fail' }, { name: 'nothing' }] }, 'It did not work.'])
    const { loop } = await world({ model, servers: { calc: calculator() } })
    const turn = await loop.conversation('c1').send('Try')
    await turn.done
    expect(turn.calls.map(({ outcome }) => outcome?.status)).toEqual(['failed', 'failed'])
    expect(turn.calls[1]?.outcome?.why).toMatchObject({ code: 'UNKNOWN_TOOL' })
  })

  test('remembers the turns before', async () => {
    const model = scripted(['Hello Ada.', 'You are Ada.'])
    const { loop } = await world({ model })
    const talk = loop.conversation('c1')
    await (await talk.send('I am Ada')).done
    await (await talk.send('Who am I?')).done
    expect(model.requests[1]?.messages).toEqual([
      { role: 'user', content: [{ type: 'text', text: 'I am Ada' }] },
      { role: 'assistant', content: [{ type: 'text', text: 'Hello Ada.' }] },
      { role: 'user', content: [{ type: 'text', text: 'Who am I?' }] },
    ])
  })

  test('runs alone: the next one begins when it has ended', async () => {
    const model = scripted(['One.', 'Two.', 'Three.'])
    const { loop } = await world({ model })
    const talk = loop.conversation('c1')
    const turns = await Promise.all(['a', 'b', 'c'].map(text => talk.send(text)))
    expect((await Promise.all(turns.map(turn => turn.done))).map(({ text }) => text)).toEqual(['One.', 'Two.', 'Three.'])
    expect(turns.map(({ seq }) => seq)).toEqual([0, 1, 2])
    expect(model.requests[2]?.messages).toHaveLength(5)
  })

  test('ends when its owner stops it, and says so', async () => {
    const slow = (request: ModelRequest) => (request.messages.length === 1 ? { text: 'Never', latencyMs: 60_000 } : 'Again.')
    const { loop } = await world({ model: scripted(slow) })
    const talk = loop.conversation('c1')
    const turn = await talk.send('Go')
    turn.cancel('enough')
    await expect(turn.done).rejects.toThrow('enough')
    expect(turn.status).toBe('cancelled')
    expect((await (await talk.send('Once more')).done).text).toBe('Again.')
  })

  test('ends when the signal of its sender aborts', async () => {
    const { loop } = await world({ model: scripted([{ text: 'Never', latencyMs: 60_000 }]) })
    const stop = new AbortController()
    const turn = await loop.conversation('c1').send('Go', { signal: stop.signal })
    stop.abort()
    await expect(turn.done).rejects.toThrow()
    expect(turn.status).toBe('cancelled')
  })

  test.each([
    ['steps', { steps: 3 }, 'The turn has used 3 model responses (the limit)'],
    ['turnTokens', { turnTokens: 10 }, 'The turn has used 10 tokens (the limit)'],
    ['toolCalls', { toolCalls: 2 }, 'The turn has used 2 tool calls (the limit)'],
  ])('is bounded in %s', async (_, limits, message) => {
    const model = scripted({ calls: [{ name: 'add', arguments: { a: 1, b: 1 } }] })
    const { loop } = await world({ model, servers: { calc: calculator() }, limits })
    const turn = await loop.conversation('c1').send('Go on for ever')
    await expect(turn.done).rejects.toThrow(message)
    expect(turn.why).toMatchObject({ code: 'TURN_TOO_LONG' })
  })

  test('tries a model again that failed before it said anything', async () => {
    let failures = 2
    const model = scripted(() =>
      failures-- > 0 ? { error: new Problem('SERVER_UNAVAILABLE', 'busy', { retryAfter: 1 }) } : 'There.',
    )
    const { loop } = await world({ model })
    expect((await (await loop.conversation('c1').send('Hi')).done).text).toBe('There.')
  })

  test('does not say twice what was seen already', async () => {
    const model = scripted(() => ({ text: 'Half', error: new Problem('SERVER_UNAVAILABLE', 'gone', { retryAfter: 1 }) }))
    const { loop } = await world({ model })
    await expect((await loop.conversation('c1').send('Hi')).done).rejects.toThrow('gone')
    expect(model.requests).toHaveLength(1)
  })
})

test('a tool that the policy refuses is not called, and the model hears why', async () => {
  const denied = { code: 'DENIED', rule: 'no-add', message: 'Adding is not allowed', fix: 'Allow add' }
  const { loop, notes } = await world({
    model: scripted([{ calls: [{ name: 'add', arguments: { a: 1, b: 2 } }] }, 'I may not.']),
    servers: { calc: calculator() },
    policy: {
      decide: async ({ kind }) => (kind === 'tool' ? { do: 'deny', why: denied } : { do: 'allow', rule: 'x' }),
      approve: async () => ({ yes: false }),
    },
  })
  const turn = await loop.conversation('c1').send('Add')
  await turn.done
  expect(turn.calls[0]?.outcome).toMatchObject({ status: 'refused', why: denied })
  expect(notes.find(({ kind }) => kind === 'tool')).toMatchObject({ server: 'calc', outcome: 'refused', why: denied })
})

test('a result that is too long becomes a reference that the model reads in pieces', async () => {
  const model = scripted([
    { calls: [{ name: 'long' }] },
    request => {
      const [, id = ''] = /read_result \{"id":"([^"]+)"/.exec(JSON.stringify(request.messages.at(-1)).replaceAll('\\', '')) ?? []
      return { calls: [{ name: 'read_result', arguments: { id, offset: 49_990, length: 100 } }] }
    },
    'Read.',
  ])
  const { loop } = await world({ model, servers: { calc: calculator() }, limits: { resultLength: 1_000 } })
  const turn = await loop.conversation('c1').send('Read it')
  await turn.done
  expect(turn.calls[0]?.outcome?.reference).toBeDefined()
  expect(JSON.stringify(turn.calls[0]?.outcome?.content).length).toBeLessThan(1_300)
  expect(turn.calls[1]?.outcome?.content).toMatchObject([{ text: 'abcdefghij' }, { text: '[the end]', own: true }])
})

describe('after a restart', () => {
  test('a conversation is there again, with its turns and what they did', async () => {
    const store = memoryStore()
    const first = await world({
      store,
      model: scripted([{ calls: [{ name: 'add', arguments: { a: 1, b: 2 } }] }, 'It is 3.']),
      servers: { calc: calculator() },
    })
    await (await first.loop.conversation('c1').send('1 + 2?')).done
    const model = scripted(['It was 3.'])
    const second = await world({ store, model })
    const [turn] = await second.loop.conversation('c1').turns()
    expect(turn).toMatchObject({ status: 'done', text: '1 + 2?', seq: 0 })
    expect(turn?.calls).toMatchObject([{ tool: 'add', outcome: { status: 'done' } }])
    await (await second.loop.conversation('c1').send('What was it?')).done
    expect(model.requests[0]?.messages).toHaveLength(5)
    expect(await second.loop.conversations()).toMatchObject([{ id: 'c1', turns: 2 }])
  })

  test('a turn that was cut off is marked, and goes on where it stopped', async () => {
    const store = memoryStore()
    const asked = Promise.withResolvers<void>()
    const slow = scripted([
      { calls: [{ name: 'add', arguments: { a: 1, b: 2 } }] },
      () => {
        asked.resolve()
        return { text: 'late', latencyMs: 60_000 }
      },
    ])
    const first = await openWorld({ store, model: slow, servers: { calc: calculator() } })
    const turn = await first.loop.conversation('c1').send('1 + 2?')
    await asked.promise
    await first.close()
    await expect(turn.done).rejects.toThrow('The host is closing')
    const model = scripted(['It is 3.'])
    const second = await world({ store, model, servers: { calc: calculator() } })
    const talk = second.loop.conversation('c1')
    expect((await talk.turns())[0]?.status).toBe('interrupted')
    const resumed = await talk.resume()
    expect((await resumed?.done)?.text).toBe('It is 3.')
    expect(resumed?.calls).toHaveLength(1)
    expect(model.requests[0]?.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool'])
  })

  test('of two hosts on one conversation the one that is behind writes nothing', async () => {
    const store = memoryStore()
    const [one, two] = [await world({ store, model: scripted('a') }), await world({ store, model: scripted('b') })]
    await two.loop.conversation('c1').turns()
    await (await one.loop.conversation('c1').send('x')).done
    await expect(two.loop.conversation('c1').send('y')).rejects.toMatchObject({ code: 'CONVERSATION_CONFLICT' })
    expect((await (await two.loop.conversation('c1').send('y')).done).text).toBe('b')
    expect(await two.loop.conversation('c1').turns()).toHaveLength(2)
  })
})

describe('an event', () => {
  const event = {
    featureSet: 'alerts',
    eventId: 'e1',
    timestamp: '2026-01-01T00:00:00Z',
    content: [{ type: 'text' as const, text: 'Fire' }],
  }
  const never = new AbortController().signal

  test('becomes a turn that is written together with what marks it done', async () => {
    const { loop, store } = await world({ model: offline() })
    const turn = await loop
      .conversation('events')
      .deliver({ server: 'house', event, inferenceId: 'inf_1', done: [put('done/e1', 'yes')] }, never)
    expect(await turn.done).toMatchObject({ text: 'house says: Fire' })
    expect(turn).toMatchObject({ text: null, inferenceId: 'inf_1', from: { kind: 'event', server: 'house', eventId: 'e1' } })
    expect((await store.get('done/e1'))?.value).toBe('yes')
  })

  test('that is delivered again after its turn was written makes no second turn', async () => {
    const { loop, store } = await world({ model: offline() })
    const talk = loop.conversation('events')
    await talk.deliver({ server: 'house', event, inferenceId: 'inf_1', done: [] }, never)
    await talk.deliver({ server: 'house', event, inferenceId: 'inf_1', done: [put('done/e1', 'yes')] }, never)
    expect(await talk.turns()).toHaveLength(1)
    expect((await store.get('done/e1'))?.value).toBe('yes')
  })

  test('whose turn failed is tried again as the same turn', async () => {
    let failing = true
    const model = scripted(() => (failing ? { error: new Error('no model') } : 'Seen.'))
    const { loop } = await world({ model })
    const talk = loop.conversation('events')
    const pushed = { server: 'house', event, inferenceId: 'inf_1', done: [] }
    await expect(talk.deliver(pushed, never)).rejects.toThrow()
    expect((await talk.turns())[0]?.status).toBe('interrupted')
    failing = false
    expect(await (await talk.deliver(pushed, never)).done).toMatchObject({ text: 'Seen.' })
    expect(await talk.turns()).toHaveLength(1)
  })
})
