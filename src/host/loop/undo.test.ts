import { afterEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { createServer, type Server } from '../../server/index.ts'
import { memoryStore } from '../../stores/memory.ts'
import { scripted } from '../models/scripted.ts'
import { openWorld, type World, type WorldOptions } from './world.ts'

const worlds: World[] = []
afterEach(async () => {
  for (const world of worlds.splice(0)) await world.close()
})

async function world(options: WorldOptions): Promise<World> {
  const opened = await openWorld(options)
  worlds.push(opened)
  return opened
}

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
    await expect(turn.done).rejects.toThrow('It is being undone')
    expect(tickets.size).toBe(0)
  })

  test('a call that takes back what the policy forbids is not made', async () => {
    const { server, tickets } = shop()
    const why = { code: 'DENIED', rule: 'no-remove', message: 'No removing', fix: 'Allow remove' }
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
})
