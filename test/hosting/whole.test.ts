import { expect, onTestFinished, test } from 'vitest'
import { createHost, type HostOptions } from '../../src/host/index.ts'
import { scripted } from '../../src/host/models/scripted.ts'
import { createServer, type Server } from '../../src/server/index.ts'
import { memoryPair } from '../../src/transports/memory.ts'

function inMemory(server: Server) {
  onTestFinished(() => server.close())
  return () => {
    const [here, there] = memoryPair()
    server.acceptor.accept(there)
    return here
  }
}

async function opened(options: HostOptions) {
  const host = await createHost(options)
  onTestFinished(() => host.close())
  return host
}

/** A list of notes whose state the host keeps. */
function notes(): Server {
  const server = createServer({ name: 'notes', version: '1.0.0' })
  const edit = server.featureSet('notes.edit', { description: 'Notes', rollback: true, hostState: true })
  const input = { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] } as const
  edit.tool('add_note', { input }, async ({ text }, ctx) => {
    const all = ((await ctx.state.get()) as { notes?: string[] } | undefined)?.notes ?? []
    await ctx.state.set({ notes: [...all, String(text)] })
    return `There are ${all.length + 1}`
  })
  return server
}

const enable = (server: Server, ...sets: string[]) => ({ target: inMemory(server), live: { enable: sets } })

test('an event that a server pushes becomes a turn, once, and is explained from its arrival to the answer', async () => {
  const server = createServer({ name: 'clock', version: '1.0.0' })
  const reminders = server.featureSet('reminders', { description: 'Reminds', uses: ['pushEvents'] })
  const model = scripted('Thank you for the reminder')
  const host = await opened({ model, servers: { clock: enable(server, 'reminders') } })
  await host.open()
  const { eventId, answered } = await reminders.push({ content: 'The meeting begins' })
  expect(await answered).toMatchObject({ accepted: true })
  await expect
    .poll(async () => (await host.conversation('inbox/clock').turns()).map(({ status }) => status), { timeout: 20_000 })
    .toEqual(['done'])
  const { notes: told } = await host.explain(eventId)
  expect(told.map(({ kind, outcome }) => `${kind} ${outcome}`)).toEqual(expect.arrayContaining(['push success', 'turn success']))
  expect(JSON.stringify(model.requests[0])).toContain('The meeting begins')
})

test('a feature set that nobody enabled stays off, and the audit says why nothing came of it', async () => {
  const server = createServer({ name: 'clock', version: '1.0.0' })
  server.featureSet('reminders', { description: 'Reminds', uses: ['pushEvents'] })
  const asked: string[] = []
  const host = await opened({
    model: scripted('x'),
    servers: { clock: inMemory(server) },
    onApproval: ({ text }) => {
      asked.push(text)
      return false
    },
  })
  await expect.poll(() => asked).toHaveLength(1)
  expect(asked[0]).toContain('reminders')
  expect(host.server('clock')?.live?.featureSets.get('reminders')?.enabled).toBe(false)
})

test('a feature set that the user enables when asked is on from then on', async () => {
  const server = createServer({ name: 'clock', version: '1.0.0' })
  server.featureSet('reminders', { description: 'Reminds', uses: ['pushEvents'] })
  const host = await opened({ model: scripted('x'), servers: { clock: inMemory(server) }, onApproval: () => true })
  await expect.poll(() => host.server('clock')?.live?.featureSets.get('reminders')?.enabled).toBe(true)
})

test('state travels with the calls of a turn, can be gone back in, and goes back with an undone turn', async () => {
  const add = (text: string) => ({ calls: [{ name: 'add_note', arguments: { text } }] })
  const model = scripted([add('milk'), 'Noted', add('bread'), 'Noted too', add('tea'), 'And that'])
  const host = await opened({ model, servers: { notes: enable(notes(), 'notes.edit') } })
  const at = ['notes', 'notes.edit'] as const
  const state = async () => (await host.state.before(...at)).state
  const talk = host.conversation('c1')
  await (await talk.send('milk')).done
  const [first] = await host.state.tree(...at)
  await (await talk.send('bread')).done
  expect(await state()).toEqual({ notes: ['milk', 'bread'] })
  expect(await host.state.rollback(...at, first?.checkpoint ?? '')).toMatchObject({ success: true })
  const turn = await talk.send('tea')
  await turn.done
  expect(await state()).toEqual({ notes: ['milk', 'tea'] })
  expect(turn.calls).toHaveLength(1)
  await turn.undo()
  expect(await state()).toEqual({ notes: ['milk'] })
  expect(await host.state.tree(...at)).toHaveLength(3)
})

test('a tool of which the user refuses the new definition is not offered', async () => {
  const server = createServer({ name: 'here', version: '1.0.0' })
  const greet = server.tool('greet', { description: 'Greets' }, () => 'Hello')
  const asked: string[] = []
  const answers = [false, true]
  const host = await opened({
    model: scripted('x'),
    servers: { here: inMemory(server) },
    onApproval: ({ text }) => {
      asked.push(text)
      return answers.shift() ?? false
    },
  })
  const offered = async () => (await host.server('here')?.tools())?.map(({ tool }) => tool.description)
  expect(await offered()).toEqual(['Greets'])
  greet.update({ description: 'Greets badly' })
  await expect.poll(offered).toEqual([])
  await expect.poll(() => asked).toHaveLength(1)
  greet.update({ description: 'Greets well' })
  await expect.poll(offered).toEqual(['Greets well'])
})
