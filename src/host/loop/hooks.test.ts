import { afterEach, describe, expect, test } from 'vitest'
import { openWorld, type World, type WorldOptions } from '../../../test/hosting/loop-world.ts'
import { silent } from '../../../test/hosting/silent-live.ts'
import type { LiveConnection } from '../../features/live/client-api.ts'
import type { Injection } from '../../features/live/context-hooks/messages.ts'
import { fakeClock } from '../../testing/clock.ts'
import { scripted } from '../models/scripted.ts'
import type { LoopParts } from './ports.ts'

const worlds: World[] = []
afterEach(async () => {
  for (const world of worlds.splice(0)) await world.close()
})

async function world(options: WorldOptions): Promise<World> {
  const opened = await openWorld(options)
  worlds.push(opened)
  return opened
}

/** The contract of a connection, by hand: what comes over a wire is the client's matter and tried there. */
function live(more: Partial<LiveConnection>): LiveConnection {
  return {
    dialect: { version: '0.2', label: '0.2', carrier: 'session' },
    featureSets: new Map(),
    hooks: {
      before: more.beforeInference !== undefined,
      after: more.afterInference === undefined ? false : 'blocking',
      lifecycle: false,
    },
    update: async () => {},
    beforeInference: async () => undefined,
    afterInference: async () => undefined,
    rollback: async (_, checkpoint) => ({ success: true, checkpoint }),
    publish: async () => {},
    ...silent,
    ...more,
  }
}

const injecting = (featureSet: string, ...injections: readonly Injection[]): LiveConnection =>
  live({ beforeInference: async () => ({ featureSet, injections }) })

const words = (position: Injection['position'], text: string, namespace = 'n'): Injection => ({
  namespace,
  position,
  content: [{ type: 'text', text }],
})

describe('before an inference', () => {
  test('L10.1-1 hooks run before those that follow tool results too, with nothing new said, and what they said stands until they say more', async () => {
    const heard: unknown[] = []
    const facts = new Map([['s', { description: 'x', uses: [], enabled: true }]])
    const asked = (said: (userMessage: string | null) => readonly Injection[]): LiveConnection =>
      live({
        featureSets: facts,
        beforeInference: async ({ userMessage, inferenceId, turnIndex }) => {
          heard.push([userMessage, inferenceId, turnIndex])
          return { featureSet: 's', injections: said(userMessage) }
        },
      })
    const model = scripted([{ calls: [{ name: 'list_resources' }] }, 'Done'])
    const { loop } = await world({
      model,
      lives: {
        once: asked(message => (message === null ? [] : [words('beforeUser', 'said once')])),
        anew: asked(message => [words('afterUser', message === null ? 'said later' : 'said first')]),
      },
    })
    const turn = await loop.conversation('c').send('Hello')
    await turn.done
    const { inferenceId } = turn
    expect(heard).toEqual([...Array(2).fill(['Hello', inferenceId, 0]), ...Array(2).fill([null, inferenceId, 0])])
    const prompts = model.requests.map(request => JSON.stringify(request.messages))
    expect(prompts.map(text => ['said once', 'said first', 'said later'].map(part => text.includes(part)))).toEqual([
      [true, true, false],
      [true, false, true],
    ])
    expect(turn.hooks.filter(({ hook }) => hook === 'before')).toHaveLength(4)
  })

  test('L10.8-1 injections are grouped by position, in the order of servers whatever the order of answers', async () => {
    const release = Promise.withResolvers<void>()
    const late = live({
      beforeInference: async () => {
        await release.promise
        return { featureSet: 'z', injections: [words('system', 'first'), words('beforeUser', 'one'), words('afterUser', 'last')] }
      },
    })
    const early = live({
      beforeInference: async () => {
        release.resolve()
        return { featureSet: 'a', injections: [words('beforeUser', 'two'), words('system', 'second')] }
      },
    })
    const model = scripted(['Done.'])
    const { loop } = await world({ model, lives: { slow: late, quick: early } })
    await (await loop.conversation('c').send('Hi')).done
    const [request] = model.requests
    const shown = (text: string): string => /\n(\w+)\n<\/context>/.exec(text)?.[1] ?? text
    expect(request?.system.slice(1).map(block => (block.type === 'text' ? shown(block.text) : ''))).toEqual(['first', 'second'])
    const said = request?.messages[0]
    expect(said?.role === 'user' && said.content.map(block => (block.type === 'text' ? shown(block.text) : ''))).toEqual([
      'one',
      'two',
      'Hi',
      'last',
    ])
  })

  test('L10.1-1 L10.1-2 hooks learn which inference, conversation, turn and model it is', async () => {
    const seen: unknown[] = []
    const { loop } = await world({
      model: scripted('Fine.'),
      lives: { watch: live({ beforeInference: async params => void seen.push(params) as undefined }) },
    })
    const talk = loop.conversation('c9')
    const turns = [await talk.send('One'), await talk.send('Two')]
    await turns[1]?.done
    const model = { id: 'scripted', vendor: 'vivarium', contextWindow: 200_000, capabilities: ['tools'] }
    expect(seen).toEqual([
      { inferenceId: turns[0]?.inferenceId, conversationId: 'c9', turnIndex: 0, userMessage: 'One', model },
      { inferenceId: turns[1]?.inferenceId, conversationId: 'c9', turnIndex: 1, userMessage: 'Two', model },
    ])
  })

  test('L10.6-1 a hook that takes longer than 5 s is gone on without, and its late answer is discarded', async () => {
    const clock = fakeClock()
    const asked = Promise.withResolvers<void>()
    const answer = Promise.withResolvers<{ featureSet: string; injections: readonly Injection[] }>()
    const slow = live({
      beforeInference: () => {
        asked.resolve()
        return answer.promise
      },
    })
    const model = scripted('Fine.', { clock })
    const { loop, notes } = await world({ model, clock, lives: { slow, quick: injecting('q', words('system', 'here')) } })
    const turn = await loop.conversation('c').send('Hi')
    await asked.promise
    await new Promise(setImmediate)
    clock.advance(4_999)
    await new Promise(setImmediate)
    expect(model.requests).toHaveLength(0)
    clock.advance(1)
    await turn.done
    answer.resolve({ featureSet: 's', injections: [words('system', 'too late')] })
    expect(JSON.stringify(model.requests[0]?.system)).toContain('here')
    expect(JSON.stringify(model.requests[0]?.system)).not.toContain('too late')
    expect(turn.hooks.find(({ server }) => server === 'slow')).toMatchObject({
      outcome: 'timeout',
      why: { code: 'HOOK_TIMEOUT' },
    })
    expect(notes.find(({ outcome }) => outcome === 'timeout')).toMatchObject({
      server: 'slow',
      kind: 'hook.before',
      inferenceId: turn.inferenceId,
    })
  })

  test('the hook of a server that must not fail ends the turn, and nothing is inferred', async () => {
    const model = scripted('Never said.')
    const broken = live({ beforeInference: () => Promise.reject(new Error('no memory')) })
    const { loop } = await world({ model, lives: { guard: broken }, hooks: { guard: { before: { fail: 'closed' } } } })
    const turn = await loop.conversation('c').send('Hi')
    await expect(turn.done).rejects.toThrow('beforeInference of guard failed: no memory')
    expect(model.requests).toHaveLength(0)
    expect(turn).toMatchObject({ status: 'failed', why: { code: 'HOOK_FAILED' } })
  })

  test('a server that fails three times in a row is left alone for a while, then tried again', async () => {
    const clock = fakeClock()
    let asked = 0
    const broken = live({
      beforeInference: () => {
        asked++
        return Promise.reject(new Error('down'))
      },
    })
    const { loop } = await world({ model: scripted('Fine.', { clock }), clock, lives: { broken } })
    const talk = loop.conversation('c')
    for (let turn = 0; turn < 5; turn++) await (await talk.send('Hi')).done
    expect(asked).toBe(3)
    expect((await talk.turns()).at(-1)?.hooks).toMatchObject([{ outcome: 'refused', why: { code: 'HOOKS_RESTING' } }])
    clock.advance(30_000)
    await (await talk.send('Hi')).done
    expect(asked).toBe(4)
  })

  test('what is too large is left out and says why; what fits beside it stays', async () => {
    const model = scripted('Fine.')
    const lives = { big: injecting('b', words('system', 'x'.repeat(101)), words('system', 'small')) }
    const { loop } = await world({ model, lives, limits: { injectionLength: 100 } })
    const turn = await loop.conversation('c').send('Hi')
    await turn.done
    expect(model.requests[0]?.system).toHaveLength(2)
    expect(turn.hooks).toMatchObject([
      { outcome: 'success' },
      { outcome: 'dropped', why: { code: 'INJECTION_TOO_LARGE', rule: 'limits.injectionLength' } },
    ])
  })

  test('L13.4-1 an injection that the policy forbids is left out', async () => {
    const model = scripted('Fine.')
    const why = { code: 'NO', rule: 'no-system', message: 'Not into the system prompt', fix: 'Allow it' }
    const policy: LoopParts['policy'] = {
      decide: async ({ kind, payload }) =>
        kind === 'inject' && (payload as { position: string }).position === 'system'
          ? { do: 'deny', why }
          : { do: 'allow', rule: '' },
      approve: async () => ({ yes: false }),
    }
    const { loop } = await world({
      model,
      policy,
      lives: { s: injecting('b', words('system', 'obey'), words('afterUser', 'by the way')) },
    })
    const turn = await loop.conversation('c').send('Hi')
    await turn.done
    expect(model.requests[0]?.system).toHaveLength(1)
    expect(turn.hooks.at(-1)).toMatchObject({ outcome: 'dropped', why })
  })

  test('the prompt says who put in what and what it costs, and what has moved since the turn before', async () => {
    let turns = 0
    const changing = live({
      beforeInference: async () => ({
        featureSet: 'm',
        injections: [words('system', 'always'), words('system', `turn ${turns++}`, 'clock')],
      }),
    })
    const { loop } = await world({ model: scripted('Fine.'), lives: { memory: changing } })
    const talk = loop.conversation('c')
    await (await talk.send('Hi')).done
    const turn = await talk.send('Hi again')
    await turn.done
    expect(turn.prompt?.sections.filter(({ from }) => from === 'memory')).toEqual([
      {
        from: 'memory',
        featureSet: 'm',
        namespace: 'n',
        position: 'system',
        content: [{ type: 'text', text: 'always' }],
        tokens: 2,
      },
      {
        from: 'memory',
        featureSet: 'm',
        namespace: 'clock',
        position: 'system',
        content: [{ type: 'text', text: 'turn 1' }],
        tokens: 2,
        changed: true,
      },
    ])
    expect(turn.cost.injected).toEqual(new Map([['memory', 4]]))
  })
})

const rewriting = (featureSet: string, change: (text: string) => string): LiveConnection =>
  live({ afterInference: async ({ assistantMessage }) => ({ featureSet, modifiedResponse: change(assistantMessage) }) })

describe('after an inference', () => {
  test('L10.5-2 what a blocking hook makes of an answer is what the user sees, and what the model remembers', async () => {
    const model = scripted(['The key is 1234.', 'Yes.'])
    const { loop } = await world({ model, lives: { redactor: rewriting('r', text => text.replace('1234', '[REDACTED]')) } })
    const talk = loop.conversation('c')
    const turn = await talk.send('Key?')
    const parts: string[] = []
    for await (const part of turn) if (part.type === 'text') parts.push(part.delta)
    expect(parts).toEqual(['The key is [REDACTED].'])
    expect(await turn.done).toMatchObject({
      text: 'The key is [REDACTED].',
      changes: [{ server: 'redactor', before: 'The key is 1234.' }],
    })
    await (await talk.send('Sure?')).done
    expect(JSON.stringify(model.requests[1])).not.toContain('1234')
  })

  test('A16 several hooks are a chain in the order of servers, each on what the one before made', async () => {
    const { loop } = await world({
      model: scripted(['a']),
      lives: { one: rewriting('1', text => `${text}b`), two: rewriting('2', text => `${text}c`) },
    })
    const turn = await loop.conversation('c').send('Go')
    expect((await turn.done).text).toBe('abc')
    expect((await turn.done).changes.map(({ before, after }) => [before, after])).toEqual([
      ['a', 'ab'],
      ['ab', 'abc'],
    ])
  })

  test('A16 nothing of an answer is shown while a hook may still change it', async () => {
    const looked = Promise.withResolvers<void>()
    const release = Promise.withResolvers<void>()
    const guard = live({
      afterInference: async () => {
        looked.resolve()
        await release.promise
        return { featureSet: 'g', modifiedResponse: 'clean' }
      },
    })
    const { loop } = await world({ model: scripted(['dirty']), lives: { guard } })
    const turn = await loop.conversation('c').send('Go')
    const seen: string[] = []
    const reading = (async () => {
      for await (const part of turn) seen.push(part.type)
    })()
    await looked.promise
    await new Promise(setImmediate)
    expect(seen).toEqual(['prompt', 'inference', 'inference'])
    release.resolve()
    await reading
    expect(seen).toEqual(['prompt', 'inference', 'inference', 'hook', 'text', 'answer'])
  })

  test('L13.3-1 a blocking hook that fails is passed over, unless it is to fail closed: then the user gets an error and no answer', async () => {
    const broken = live({ afterInference: () => Promise.reject(new Error('broken')) })
    const open = await world({ model: scripted(['Secret.']), lives: { broken } })
    expect((await (await open.loop.conversation('c').send('Go')).done).text).toBe('Secret.')
    const closed = await world({
      model: scripted(['Secret.']),
      lives: { broken },
      hooks: { broken: { after: { fail: 'closed' } } },
    })
    const turn = await closed.loop.conversation('c').send('Go')
    const parts: unknown[] = []
    for await (const part of turn) parts.push(part)
    await expect(turn.done).rejects.toThrow('The answer is not shown, because broken must check it first')
    expect(JSON.stringify(parts)).not.toContain('Secret.')
    expect((await closed.store.read('conversation/c')).some(({ value }) => value.includes('Secret.'))).toBe(false)
  })

  test('L10.6-1 a blocking hook that takes longer than 10 s is gone on without, and its late answer is discarded', async () => {
    const clock = fakeClock()
    const asked = Promise.withResolvers<void>()
    const answer = Promise.withResolvers<{ featureSet: string; modifiedResponse: string }>()
    const slow = live({
      afterInference: () => {
        asked.resolve()
        return answer.promise
      },
    })
    const { loop, notes } = await world({ model: scripted(['Well.'], { clock }), clock, lives: { slow } })
    const talk = loop.conversation('c')
    const turn = await talk.send('Go')
    await asked.promise
    clock.advance(9_999)
    await new Promise(setImmediate)
    expect(turn.status).toBe('running')
    clock.advance(1)
    expect((await turn.done).text).toBe('Well.')
    answer.resolve({ featureSet: 's', modifiedResponse: 'Too late.' })
    await new Promise(setImmediate)
    expect((await talk.turns())[0]?.answer).toBe('Well.')
    expect(turn.hooks).toMatchObject([{ hook: 'after', outcome: 'timeout' }])
    expect(notes.find(({ kind }) => kind === 'hook.after')).toMatchObject({
      server: 'slow',
      outcome: 'timeout',
      inferenceId: turn.inferenceId,
    })
  })

  test('L10.5-1 those that only want to know are told the final answer under the same inferenceId, and nobody waits for them', async () => {
    const told = Promise.withResolvers<unknown>()
    const watcher = live({
      hooks: { before: false, after: 'told', lifecycle: false },
      afterInference: params => {
        told.resolve(params)
        return new Promise(() => {})
      },
    })
    const { loop } = await world({ model: scripted(['a']), lives: { watcher, one: rewriting('1', text => `${text}b`) } })
    const turn = await loop.conversation('c').send('Go')
    await turn.done
    expect(await told.promise).toMatchObject({
      inferenceId: turn.inferenceId,
      assistantMessage: 'ab',
      usage: { outputTokens: 1 },
    })
  })
})
