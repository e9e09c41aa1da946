/** The loop with real live servers on both kinds of wire: hooks, inference, state and what undoing makes of it. */
import { afterEach, describe, expect, test } from 'vitest'
import { openWorld, type World, type WorldOptions } from '../../../test/hosting/loop-world.ts'
import { realClock } from '../../core/clock.ts'
import type { LiveConnection } from '../../features/live/client-api.ts'
import { createServer, jsonSchema, type Server } from '../../server/index.ts'
import { memoryStore } from '../../stores/memory.ts'
import { scripted } from '../models/scripted.ts'
import { StateBook, stateBookPort } from '../state/book.ts'

const worlds: World[] = []
afterEach(async () => {
  for (const world of worlds.splice(0)) await world.close()
})

const noteSchema = jsonSchema<{ readonly text: string }>({
  type: 'object',
  properties: { text: { type: 'string' } },
  required: ['text'],
})

interface Memory {
  readonly server: Server
  readonly seen: { hook: string; params: Record<string, unknown> }[]
}

function memory(): Memory {
  const server = createServer({ name: 'memory', version: '1.0.0', secret: 'a-secret-of-thirty-two-characters!', log: 'silent' })
  const seen: Memory['seen'] = []
  const retrieval = server.featureSet('memory.retrieval', { description: 'Finds memories' })
  retrieval.beforeInference(
    turn => {
      seen.push({ hook: 'before', params: { ...turn } })
      return [
        { namespace: 'memory', position: 'system', content: 'Ada likes tea.' },
        { namespace: 'memory', position: 'afterUser', content: [{ type: 'image', data: 'aGk=', mimeType: 'image/png' }] },
      ]
    },
    { positions: ['system', 'afterUser'] },
  )
  const redaction = server.featureSet('memory.redaction', { description: 'Hides keys' })
  redaction.afterInference(
    turn => {
      seen.push({ hook: 'after', params: { ...turn } })
      return turn.assistantMessage.includes('sk-')
        ? { modifiedResponse: turn.assistantMessage.replace(/sk-\w+/, '[REDACTED]') }
        : undefined
    },
    { blocking: true },
  )
  const thinking = server.featureSet('memory.thinking', { description: 'Thinks', uses: ['inferenceRequest'] })
  server.tool('think', { annotations: { readOnlyHint: true } }, async () => {
    const inference = thinking.infer({ messages: 'Sum up', stream: true, maxTokens: 9 } as never)
    const deltas: string[] = []
    for await (const delta of inference) deltas.push(delta)
    return JSON.stringify({ deltas, result: await inference })
  })
  server.tool('model', { annotations: { readOnlyHint: true } }, async () => JSON.stringify(await thinking.modelInfo()))
  return { server, seen }
}

function notebook(): Server {
  const server = createServer({ name: 'notebook', version: '1.0.0', secret: 'a-secret-of-thirty-two-characters!', log: 'silent' })
  const notes = server.featureSet('notes.edit', { description: 'Notes', rollback: true, hostState: true })
  notes.tool('add_note', { input: noteSchema }, async ({ text }, ctx) => {
    const before = await ctx.state.get<{ readonly notes: readonly string[] }>()
    if (before === undefined) await ctx.state.set({ notes: [text] })
    else await ctx.state.patch([{ op: 'add', path: '/notes/-', value: text }])
    return `${(before?.notes.length ?? 0) + 1} notes`
  })
  return server
}

async function open(options: WorldOptions): Promise<World> {
  const store = memoryStore()
  const servers: { list: World['servers'] } = { list: [] }
  const hosted = (name: string) => {
    const found = servers.list.find(one => one.name === name)
    const none = { status: 'up' as const, held: () => [] }
    return found && { ...none, name, client: found.client, live: found.live, tools: async () => [] }
  }
  const state = new StateBook({ store, clock: realClock, port: stateBookPort(hosted) })
  const world = await openWorld({ store, state, ...options })
  servers.list = world.servers
  worlds.push(world)
  return world
}

describe.each(['2025-11-25', '2026-07-28'] as const)('with a live server on %s', revision => {
  test('L10.1-1 L10.2-1 L10.4-1 what a hook injects stands in the prompt at its position, marked as its server’s', async () => {
    const { server, seen } = memory()
    const model = scripted(['Hello.'])
    const { loop } = await open({ model, revision, servers: { memory: server } })
    const turn = await loop.conversation('c1').send('What do I like?')
    await turn.done
    expect(model.requests[0]?.system[1]).toEqual({
      type: 'text',
      text: '<context server="memory" set="memory.retrieval" namespace="memory">\nAda likes tea.\n</context>',
    })
    expect(model.requests[0]?.messages).toEqual([
      {
        role: 'user',
        content: [
          { type: 'text', text: 'What do I like?' },
          {
            type: 'text',
            text: '<context server="memory" set="memory.retrieval" namespace="memory">\n[image 1: image/png, shown after this]\n</context>',
          },
          { type: 'image', data: 'aGk=', mimeType: 'image/png' },
        ],
      },
    ])
    expect(seen[0]?.params).toMatchObject({
      inferenceId: turn.inferenceId,
      conversationId: 'c1',
      turnIndex: 0,
      userMessage: 'What do I like?',
      model: { id: 'scripted', vendor: 'vivarium', contextWindow: 200_000, capabilities: ['tools'] },
    })
    expect(turn.prompt?.sections.find(({ from }) => from === 'memory')).toMatchObject({
      featureSet: 'memory.retrieval',
      tokens: 4,
    })
  })

  test('L10.5-1 L10.5-2 a blocking hook gets the answer with its usage, and its change is what is shown', async () => {
    const { server, seen } = memory()
    const { loop } = await open({ model: scripted(['The key is sk-abc.']), revision, servers: { memory: server } })
    const turn = await loop.conversation('c1').send('Key?')
    const shown: string[] = []
    for await (const part of turn) if (part.type === 'text') shown.push(part.delta)
    expect(shown).toEqual(['The key is [REDACTED].'])
    const after = seen.find(({ hook }) => hook === 'after')?.params
    expect(after).toMatchObject({
      inferenceId: turn.inferenceId,
      assistantMessage: 'The key is sk-abc.',
      usage: { outputTokens: 5 },
    })
    expect(after).toMatchObject({ usage: { inputTokens: expect.toSatisfy((count: number) => count > 0) } })
  })

  test('L11.3-1 L11.4-1 L12-1 a server that asks is answered by the host’s model, in chunks that make up the whole', async () => {
    const { server } = memory()
    const answers = scripted(request =>
      request.tools.length === 0 ? 'All of it, in a few words.' : { calls: [{ name: 'think' }, { name: 'model' }] },
    )
    let asked = 0
    const model = {
      ...answers,
      generate: (...args: Parameters<typeof answers.generate>) =>
        (args[0].tools.length > 0 && asked++ > 0 ? scripted('Done.') : answers).generate(...args),
    }
    const { loop, notes } = await open({ model, revision, servers: { memory: server } })
    const turn = await loop.conversation('c1').send('Think')
    await turn.done
    const [thought, info] = turn.calls.map(({ outcome }) =>
      JSON.parse(outcome?.content[0]?.type === 'text' ? outcome.content[0].text : 'null'),
    )
    expect(thought.result).toMatchObject({
      content: 'All of it, in a few words.',
      model: 'scripted',
      finishReason: 'end_turn',
      usage: { outputTokens: 7 },
    })
    expect(thought.deltas.join('')).toBe(thought.result.content)
    expect(info).toEqual(model.info)
    expect(notes.find(({ kind }) => kind === 'infer')).toMatchObject({
      server: 'memory',
      featureSet: 'memory.thinking',
      outcome: 'success',
    })
  })

  test('undoing a turn sets the state of its servers back to where it was before', async () => {
    const model = scripted([
      { calls: [{ name: 'add_note', arguments: { text: 'one' } }] },
      'One.',
      {
        calls: [
          { name: 'add_note', arguments: { text: 'two' } },
          { name: 'add_note', arguments: { text: 'three' } },
        ],
      },
      'Three.',
      { calls: [{ name: 'add_note', arguments: { text: 'another' } }] },
      'Two.',
      { calls: [{ name: 'add_note', arguments: { text: 'first again' } }] },
      'One again.',
    ])
    const { loop } = await open({ model, revision, servers: { notebook: notebook() } })
    const talk = loop.conversation('c1')
    const first = await talk.send('One')
    await first.done
    const second = await talk.send('Two more')
    await second.done
    expect(texts(second)).toEqual(['2 notes', '3 notes'])
    expect(await second.undo()).toMatchObject({
      complete: true,
      steps: [
        { outcome: 'undone', by: 'rollback' },
        { outcome: 'undone', by: 'rollback' },
      ],
    })
    const third = await talk.send('Again')
    await third.done
    expect(texts(third)).toEqual(['2 notes'])
    expect(await first.undo()).toMatchObject({ complete: true, steps: [{ by: 'rollback' }, { by: 'rollback' }] })
    const fourth = await talk.send('From the beginning')
    await fourth.done
    expect(texts(fourth)).toEqual(['1 notes'])
  })
})

function texts({
  calls,
}: {
  readonly calls: readonly { readonly outcome: { readonly content: readonly { readonly type: string }[] } | undefined }[]
}) {
  return calls.map(({ outcome }) => (outcome?.content[0] as { text?: string } | undefined)?.text)
}

test('T7 servers that follow turns hear that one began and how it ended, and nothing of what was said', async () => {
  const phases: unknown[] = []
  const live = {
    dialect: { version: '0.5', label: '0.5', carrier: 'session' },
    featureSets: new Map(),
    channels: new Map(),
    hooks: { before: false, after: false, lifecycle: true },
    update: async () => {},
    beforeInference: async () => undefined,
    afterInference: async () => undefined,
    lifecycle: params => void phases.push([params.phase, params.inferenceId, Object.keys(params).includes('assistantMessage')]),
    rollback: async (_, checkpoint) => ({ success: true, checkpoint }),
    publish: async () => {},
    stream: () => undefined,
    typing: () => false,
    acknowledge: async () => undefined,
    openChannel: async () => ({}),
    closeChannel: async () => {},
  } satisfies LiveConnection
  const { loop } = await open({ model: scripted(['Fine.', { error: new Error('no') }]), lives: { follower: live } })
  const talk = loop.conversation('c')
  const [one, two] = [await talk.send('a'), await talk.send('b')]
  await two.done.catch(() => undefined)
  expect(phases).toEqual([
    ['started', one.inferenceId, false],
    ['completed', one.inferenceId, false],
    ['started', two.inferenceId, false],
    ['failed', two.inferenceId, false],
  ])
})
