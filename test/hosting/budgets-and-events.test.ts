/** Budgets and the inbox: what a server may spend bounds its events without losing one, and leaves the user's own turns alone. */
import { expect, onTestFinished, test } from 'vitest'
import { createHost, type HostOptions, type TurnPart } from '../../src/host/index.ts'
import { scripted } from '../../src/host/models/scripted.ts'
import { createServer, type Server } from '../../src/server/index.ts'
import { fakeClock } from '../../src/testing/clock.ts'
import { memoryPair } from '../../src/transports/memory.ts'

function ringing() {
  const server = createServer({ name: 'door', version: '1.0.0' })
  const bell = server.featureSet('door.bell', { description: 'Rings', uses: ['pushEvents'] })
  return { server, bell }
}

async function hosted(server: Server, options: HostOptions) {
  const target = () => {
    const [here, there] = memoryPair()
    server.acceptor.accept(there)
    return here
  }
  const host = await createHost({ servers: { door: { target, live: { enable: ['*'] } } }, ...options })
  onTestFinished(async () => {
    await host.close()
    await server.close()
  })
  await host.open()
  return host
}

const hourly = { name: 'hourly', counts: 'requests', most: 1, per: '1h' } as const

test('an event beyond a budget waits for the next window, is never given up, and says what it waits for', async () => {
  const { server, bell } = ringing()
  const clock = fakeClock(Date.parse('2026-01-10T10:00:00Z'))
  const model = scripted('Well.', { again: true })
  const told: string[] = []
  const host = await hosted(server, {
    clock,
    model,
    budgets: [hourly],
    onNote: ({ kind, outcome }) => told.push(`${kind} ${outcome}`),
  })
  const state = async (id: string) => (await host.inbox.get('door', id))?.state
  await (await bell.push({ eventId: 'one', content: 'First' })).answered
  await expect.poll(() => state('one')).toBe('done')
  expect(await (await bell.push({ eventId: 'two', content: 'Second' })).answered).toMatchObject({ accepted: true })
  await expect.poll(async () => (await host.inbox.get('door', 'two'))?.notBefore).toBe(Date.parse('2026-01-10T11:00:00Z'))
  expect(await host.inbox.get('door', 'two')).toMatchObject({
    state: 'waiting',
    attempts: [],
    preview: 'Second',
    why: { code: 'QUOTA_EXHAUSTED', rule: 'budgets.hourly', fix: expect.stringContaining('Raise the limit of budget hourly') },
  })
  // Longer than all attempts of a failing event together.
  await clock.advance(30 * 60_000)
  expect(await state('two')).toBe('waiting')
  expect(model.requests).toHaveLength(1)
  expect(told).toContain('inbox held')
  const { notes } = await host.explain('two')
  expect(notes.find(({ outcome }) => outcome === 'held')?.why?.rule).toBe('budgets.hourly')
  await clock.advance(30 * 60_000)
  await expect.poll(() => state('two')).toBe('done')
  expect(model.requests).toHaveLength(2)
})

test('an event whose prompt finds no room in what is left waits too, though the budget is not used up', async () => {
  const { server, bell } = ringing()
  const clock = fakeClock(Date.parse('2026-01-10T10:00:00Z'))
  const model = scripted('Well.', { again: true })
  const tokens = { name: 'tokens', counts: 'tokens', most: 22_000, per: '1h' } as const
  const conversationOf: HostOptions['conversationOf'] = (_, { eventId }) => eventId
  const host = await hosted(server, { clock, model, budgets: [tokens], limits: { answerTokens: 17_000 }, conversationOf })
  const record = async (id: string) => host.inbox.get('door', id)
  const long = 'word '.repeat(2_400)
  await (await bell.push({ eventId: 'one', content: long })).answered
  await expect.poll(async () => (await record('one'))?.state).toBe('done')
  await (await bell.push({ eventId: 'two', content: long })).answered
  await expect.poll(async () => (await record('two'))?.attempts.at(-1)?.outcome).toBe('held')
  expect(await record('two')).toMatchObject({ state: 'waiting', why: { rule: 'budgets.tokens' } })
  await clock.advance(3_600_000)
  await expect.poll(async () => (await record('two'))?.state).toBe('done')
})

test('an event that no window could ever pay for is refused with the reason, and those behind it go on', async () => {
  const { server, bell } = ringing()
  const model = scripted('Well.', { again: true })
  const tiny = { name: 'tiny', counts: 'tokens', most: 10, per: '1h' } as const
  const host = await hosted(server, { model, budgets: [tiny] })
  await (await bell.push({ eventId: 'one', content: 'First' })).answered
  await expect.poll(async () => (await host.inbox.get('door', 'one'))?.state).toBe('refused')
  expect(await host.inbox.get('door', 'one')).toMatchObject({ why: { code: 'BUDGET_EXCEEDED', rule: 'budgets.tiny' } })
  expect(await host.inbox.dead('door')).toEqual([])
  expect(model.requests).toEqual([])
})

test('budgets are about servers: the user is refused only by one that says so, and then the turn tells it as it ends', async () => {
  const { server, bell } = ringing()
  const model = scripted('Well.', { again: true })
  const host = await hosted(server, { model, budgets: [{ ...hourly, by: 'all' }] })
  await (await bell.push({ eventId: 'one', content: 'First' })).answered
  await expect.poll(async () => (await host.inbox.get('door', 'one'))?.state).toBe('done')
  for (const said of ['Hello', 'Again']) expect((await (await host.conversation('mine').send(said)).done).text).toBe('Well.')

  const strict = ringing()
  const bound = await hosted(strict.server, { model, budgets: [{ ...hourly, user: true }] })
  await (await bound.conversation('mine').send('Hello')).done
  const turn = await bound.conversation('mine').send('Again')
  const parts: TurnPart[] = []
  for await (const part of turn) parts.push(part)
  expect(parts.at(-1)).toMatchObject({ type: 'ended', status: 'failed', why: { rule: 'budgets.hourly' } })
  await expect(turn.done).rejects.toThrow('quota')
})
