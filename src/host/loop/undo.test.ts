import { afterEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { openWorld, stateless, type World, type WorldOptions } from '../../../test/hosting/loop-world.ts'
import { problem } from '../../core/problem.ts'
import { createServer, type Server } from '../../server/index.ts'
import { memoryStore } from '../../stores/memory.ts'
import type { Store } from '../../stores/store.ts'
import { scripted } from '../models/scripted.ts'
import type { HostConversation } from './conversation.ts'
import { ConversationLog } from './conversation-log.ts'
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

async function openWorldAgain(store: Store, state: LoopParts['state'], server: Server): Promise<HostConversation> {
  const { loop } = await world({ store, state, model: scripted('Yes.'), servers: { notes: server } })
  return loop.conversation('c')
}

const why = { code: 'DENIED', rule: 'no-remove', message: 'No removing', fix: 'Allow remove' }

interface Shop {
  readonly server: Server
  readonly tickets: Map<string, string>
  readonly log: string[]
}

function shop(log: string[] = []): Shop {
  const tickets = new Map<string, string>()
  const server = createServer({ name: 'shop', version: '1.0.0', store: 'memory:', log: 'silent' })
  let count = 0
  server.tool(
    'create',
    {
      input: z.object({ title: z.string() }),
      output: z.object({ id: z.string() }),
      undo: { tool: 'remove', arguments: ({ result }) => result && { id: result.id } },
    },
    ({ title }) => {
      const id = `T-${++count}`
      tickets.set(id, title)
      log.push(`create ${title}`)
      return { id }
    },
  )
  server.tool('remove', { input: z.object({ id: z.string() }), idempotent: true }, ({ id }) => {
    log.push(`remove ${tickets.get(id)}`)
    tickets.delete(id)
    return 'Gone'
  })
  server.tool('mail', { input: z.object({ to: z.string() }) }, ({ to }) => {
    log.push(`mail ${to}`)
    return 'Sent'
  })
  server.tool('look', { annotations: { readOnlyHint: true } }, () => [...tickets.values()].join())
  return { server, tickets, log }
}

const create = (...titles: readonly string[]) => ({ calls: titles.map(title => ({ name: 'create', arguments: { title } })) })

describe('undoing a turn', () => {
  test('takes back its calls, the last one first, and the turn itself', async () => {
    const { server, tickets, log } = shop()
    const model = scripted([create('a'), create('b'), 'Two tickets.', 'What tickets?'])
    const { loop } = await world({ model, servers: { shop: server } })
    const talk = loop.conversation('c')
    const turn = await talk.send('Make two')
    await turn.done
    expect(tickets.size).toBe(2)
    const report = await turn.undo()
    expect(report).toMatchObject({ complete: true, turns: [0] })
    expect(report.steps).toMatchObject([
      { call: 1, outcome: 'undone', by: 'compensation' },
      { call: 0, outcome: 'undone', by: 'compensation' },
    ])
    expect(log).toEqual(['create a', 'create b', 'remove b', 'remove a'])
    expect(turn.status).toBe('undone')
    await (await talk.send('And now?')).done
    expect(model.requests.at(-1)?.messages).toEqual([{ role: 'user', content: [{ type: 'text', text: 'And now?' }] }])
  })

  test('says what stays, and why, and undoes the rest', async () => {
    const { server, tickets } = shop()
    const model = scripted([
      { calls: [{ name: 'create', arguments: { title: 'a' } }, { name: 'mail', arguments: { to: 'kim' } }, { name: 'look' }] },
      'Done.',
    ])
    const { loop, notes } = await world({ model, servers: { shop: server } })
    const turn = await loop.conversation('c').send('Go')
    await turn.done
    const { complete, steps } = await turn.undo()
    expect(complete).toBe(false)
    expect(steps.map(({ tool, outcome, why }) => [tool, outcome, why?.code])).toEqual([
      ['look', 'nothing', undefined],
      ['mail', 'stays', 'NO_WAY_BACK'],
      ['create', 'undone', undefined],
    ])
    expect(tickets.size).toBe(0)
    expect(notes.filter(({ kind }) => kind === 'undo').map(({ outcome }) => outcome)).toEqual(['failure', 'success'])
  })

  test('takes the turns after it back first', async () => {
    const { server, tickets, log } = shop()
    const { loop } = await world({ model: scripted([create('a'), 'One.', create('b'), 'Two.']), servers: { shop: server } })
    const talk = loop.conversation('c')
    const first = await talk.send('One')
    await first.done
    await (await talk.send('Two')).done
    expect(await first.undo()).toMatchObject({ complete: true, turns: [1, 0] })
    expect(log.slice(2)).toEqual(['remove b', 'remove a'])
    expect(tickets.size).toBe(0)
    expect(await talk.turns()).toEqual([])
  })

  test('goes over all servers in one order, the last effect first', async () => {
    const log: string[] = []
    const [one, two] = [shop(log), shop(log)]
    const script = [
      { calls: [{ name: 'one_create', arguments: { title: 'a' } }] },
      { calls: [{ name: 'two_create', arguments: { title: 'b' } }] },
      { calls: [{ name: 'one_create', arguments: { title: 'c' } }] },
      'Done.',
    ]
    const { loop } = await world({ model: scripted(script), servers: { one: one.server, two: two.server } })
    const turn = await loop.conversation('c').send('Go')
    await turn.done
    expect(await turn.undo()).toMatchObject({ complete: true })
    expect(log).toEqual(['create a', 'create b', 'create c', 'remove c', 'remove b', 'remove a'])
  })

  test('works after a restart of the host', async () => {
    const { server, tickets } = shop()
    const store = memoryStore()
    const first = await openWorld({ store, model: scripted([create('a'), 'One.']), servers: { shop: server } })
    await (await first.loop.conversation('c').send('One')).done
    await first.close()
    const second = await world({ store, model: scripted('x'), servers: { shop: server } })
    const [turn] = await second.loop.conversation('c').turns()
    expect(await turn?.undo()).toMatchObject({ complete: true })
    expect(tickets.size).toBe(0)
  })

  test('stops a turn that still runs', async () => {
    const { server, tickets } = shop()
    const asked = Promise.withResolvers<void>()
    const slow = () => {
      asked.resolve()
      return { text: 'late', latencyMs: 60_000 }
    }
    const { loop } = await world({ model: scripted([create('a'), slow]), servers: { shop: server } })
    const turn = await loop.conversation('c').send('Go')
    await asked.promise
    expect(await turn.undo()).toMatchObject({ complete: true })
    await expect(turn.done).rejects.toThrow('The turn is being undone')
    expect(tickets.size).toBe(0)
  })

  test('a call that takes back what the policy forbids is not made', async () => {
    const { server, tickets } = shop()
    const { loop } = await world({
      model: scripted([create('a'), 'One.']),
      servers: { shop: server },
      policy: {
        decide: async ({ tool }) => (tool === 'remove' ? { do: 'deny', why } : { do: 'allow', rule: '' }),
        approve: async () => ({ yes: true }),
      },
    })
    const turn = await loop.conversation('c').send('Go')
    await turn.done
    expect((await turn.undo()).steps).toMatchObject([{ outcome: 'stays', why }])
    expect(tickets.size).toBe(1)
  })

  test.each(['2025-06-18', '2026-07-28'] as const)('what the user said no to was not done (%s)', async revision => {
    const server = createServer({ name: 'shop', version: '1.0.0', secret: 'a-secret-of-thirty-two-characters!', log: 'silent' })
    const done: string[] = []
    server.tool('wipe', {}, async (_, ctx) => ((await ctx.confirm('Wipe all?')) ? `${done.push('wipe')}` : 'It stays'))
    server.tool('book', {}, async (_, ctx) => {
      await ctx.confirm('Shall I book it?', { key: 'book' })
      await ctx.confirm('And tell others?', { key: 'tell' })
      return `${done.push('book')}`
    })
    const answers = [false, true, false]
    const { loop } = await world({
      model: scripted([{ calls: [{ name: 'wipe' }] }, 'No.', { calls: [{ name: 'book' }] }, 'Booked.']),
      servers: { shop: server },
      revision,
      onElicit: () => (answers.shift() === true ? { action: 'accept', content: { confirm: true } } : { action: 'decline' }),
    })
    const talk = loop.conversation('c')
    const wiped = await talk.send('Wipe')
    await wiped.done
    expect(await wiped.undo()).toMatchObject({
      complete: true,
      steps: [{ tool: 'wipe', outcome: 'nothing', declined: 'The question "Wipe all?" was answered with no' }],
    })
    const booked = await talk.send('Book')
    await booked.done
    expect(await booked.undo()).toMatchObject({ complete: false, steps: [{ tool: 'book', outcome: 'stays' }] })
    expect(done).toEqual(['book'])
  })

  test('what a rule refused was not done, and says so', async () => {
    const { server } = shop()
    const why = { code: 'DENIED', rule: 'no-mail', message: 'No mails', fix: 'Allow them' }
    const { loop } = await world({
      model: scripted([{ calls: [{ name: 'mail', arguments: { to: 'kim' } }] }, 'No.']),
      servers: { shop: server },
      policy: { decide: async () => ({ do: 'deny', why }), approve: async () => ({ yes: true }) },
    })
    const turn = await loop.conversation('c').send('Go')
    await turn.done
    expect(await turn.undo()).toMatchObject({ complete: true, steps: [{ outcome: 'nothing', declined: 'No mails' }] })
  })

  test('done again it tries what stayed, and says that it is complete when nothing stays any more', async () => {
    const { server, tickets, log } = shop()
    let yes = false
    const store = memoryStore()
    const policy: LoopParts['policy'] = {
      decide: async ({ tool }) =>
        tool === 'remove' ? { do: 'ask', question: 'May it?', digest: 'd', rule: 'ask' } : { do: 'allow', rule: '' },
      approve: async () => (yes ? { yes } : { yes, why }),
    }
    const first = await openWorld({
      store,
      policy,
      model: scripted([create('a', 'b'), 'Two.', 'Next.']),
      servers: { shop: server },
    })
    const talk = first.loop.conversation('c')
    const turn = await talk.send('Go')
    await turn.done
    await (await talk.send('More')).done
    for (const turns of [[1, 0], []]) {
      const report = await turn.undo()
      expect(report).toMatchObject({ complete: false, turns, steps: [{ outcome: 'stays' }, { outcome: 'stays' }] })
    }
    expect(await talk.turns()).toEqual([])
    await first.close()

    yes = true
    const { loop } = await world({ store, policy, model: scripted('x'), servers: { shop: server } })
    const [found] = await loop.conversation('c').turns({ undone: true })
    expect(await found?.undo()).toMatchObject({ complete: true, steps: [{ outcome: 'undone' }, { outcome: 'undone' }] })
    expect(tickets.size).toBe(0)
    expect(await found?.undo()).toEqual({ complete: true, turns: [], steps: [] })
    expect(log.slice(2)).toEqual(['remove b', 'remove a'])
  })

  test('a call that failed to take something back is made anew the next time', async () => {
    const server = createServer({ name: 'shop', version: '1.0.0', store: 'memory:', log: 'silent' })
    let tries = 0
    server.tool('create', { undo: { tool: 'remove', arguments: () => ({}) } }, () => 'Made')
    server.tool('remove', {}, () => {
      if (++tries === 1) throw problem('LOCKED', 'It is locked')
      return 'Gone'
    })
    const { loop } = await world({ model: scripted([{ calls: [{ name: 'create' }] }, 'One.']), servers: { shop: server } })
    const turn = await loop.conversation('c').send('Go')
    await turn.done
    expect(await turn.undo()).toMatchObject({ complete: false, steps: [{ why: { code: 'UNDO_FAILED' } }] })
    expect(await turn.undo()).toMatchObject({ complete: true, steps: [{ outcome: 'undone' }] })
    expect(tries).toBe(2)
  })

  test('a state that a later turn changed is not set back by undoing an earlier one again', async () => {
    const server = createServer({ name: 'notes', version: '1.0.0', log: 'silent' })
    server.tool('write', {}, () => 'Written')
    const back: (string | null)[] = []
    let works = false
    const state: LoopParts['state'] = {
      ...stateless,
      rollback: async (_server, _set, checkpoint) => {
        back.push(checkpoint)
        return { success: works }
      },
    }
    const { loop, store } = await world({ state, model: scripted(['One.', 'Two.']), servers: { notes: server } })
    const talk = loop.conversation('c')
    const wrote = async (seq: number): Promise<void> => {
      const call = {
        id: 'x',
        n: 0,
        name: 'write',
        server: 'notes',
        tool: 'write',
        featureSet: 'pad',
        arguments: {},
        key: `k${seq}`,
        readOnly: false,
      }
      const outcome = { n: 0, status: 'done', content: [], ms: 0, state: { before: `v${seq}`, after: `v${seq + 1}` } } as const
      await (await ConversationLog.open(store, 'c')).append(() => [
        { type: 'step', seq, content: [], calls: [call], usage: { inputTokens: 0, outputTokens: 0 } },
        { type: 'result', seq, outcome },
      ])
    }
    await (await talk.send('One')).done
    await wrote(0)
    const second = await openWorldAgain(store, state, server)
    const [first] = await second.turns()
    expect(await first?.undo()).toMatchObject({ complete: false })
    works = true
    await (await second.send('Two')).done
    await wrote(1)
    const third = await openWorldAgain(store, state, server)
    const [undone, later] = await third.turns({ undone: true })
    expect((await undone?.undo())?.steps).toMatchObject([{ outcome: 'stays', why: { code: 'STATE_IN_USE' } }])
    expect(await later?.undo()).toMatchObject({ complete: true })
    expect(await undone?.undo()).toMatchObject({ complete: true })
    expect(back).toEqual(['v0', 'v1', 'v0'])
  })

  test('sets two states back whose server and feature set read alike when they are put together', async () => {
    const server = createServer({ name: 'notes', version: '1.0.0', log: 'silent' })
    server.tool('write', {}, () => 'Written')
    const back: string[] = []
    const state: LoopParts['state'] = {
      ...stateless,
      rollback: async (name, featureSet) => {
        back.push(`${name}/${featureSet}`)
        return { success: true }
      },
    }
    const { loop, store } = await world({ state, model: scripted(['One.']), servers: { notes: server } })
    await (await loop.conversation('c').send('One')).done
    const places = [
      { server: 'team', featureSet: 'notes shared' },
      { server: 'team notes', featureSet: 'shared' },
    ]
    const calls = places.map((place, n) => {
      return { id: `x${n}`, n, name: 'write', tool: 'write', arguments: {}, key: `k${n}`, readOnly: false, ...place }
    })
    await (await ConversationLog.open(store, 'c')).append(() => [
      { type: 'step', seq: 0, content: [], calls, usage: { inputTokens: 0, outputTokens: 0 } },
      ...places.map(({ featureSet }, n) => {
        const updates = [{ featureSet, before: 'v0', after: 'v1' }]
        return { type: 'result', seq: 0, outcome: { n, status: 'failed', content: [], ms: 0, updates } } as const
      }),
    ])
    const [turn] = await (await openWorldAgain(store, state, server)).turns()
    expect(await turn?.undo()).toMatchObject({ complete: true })
    expect(back).toEqual(['team notes/shared', 'team/notes shared'])
  })
})
