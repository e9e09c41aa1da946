import { expect, onTestFinished, test, vi } from 'vitest'
import type { Why } from '../core/suggestion.ts'
import { createServer, type Server } from '../server/index.ts'
import { memoryStore } from '../stores/memory.ts'
import { fakeClock } from '../testing/clock.ts'
import { memoryPair } from '../transports/memory.ts'
import { createHost, type HostOptions } from './index.ts'
import { scripted } from './models/scripted.ts'

/** A server with a bell that can be rung, in memory. */
function doorServer() {
  const server = createServer({ name: 'door', version: '1.0.0' })
  const bell = server.featureSet('door.bell', { description: 'Reports who is at the door', uses: ['pushEvents'] })
  return { server, bell }
}

const inMemory = (server: Server) => () => {
  const [here, there] = memoryPair()
  server.acceptor.accept(there)
  return here
}

async function hosting(server: Server, enable: readonly string[] | undefined, options: HostOptions = {}) {
  const notices: Why[] = []
  const clock = fakeClock()
  const store = memoryStore()
  const host = await createHost({
    model: scripted('I will open.', { again: true }),
    servers: { door: { target: inMemory(server), live: enable === undefined ? {} : { enable } } },
    onTrouble: notice => notices.push(notice),
    clock,
    store,
    ...options,
  })
  onTestFinished(() => host.close())
  return { host, notices, clock, store }
}

const codes = (notices: readonly Why[]): readonly string[] => notices.map(({ code }) => code)

test('an event that comes before host.open() is kept, is reported after 5 s once, and becomes a turn with open()', async () => {
  const { server, bell } = doorServer()
  const { host, notices, clock } = await hosting(server, ['door.*'])
  const first = await bell.push({ content: 'Somebody rang' })
  await first.answered
  await bell.push({ content: 'Again' }).then(({ answered }) => answered)
  expect(notices).toEqual([])
  clock.advance(5_000)
  await expect.poll(() => codes(notices)).toEqual(['INBOX_NOT_OPEN'])
  expect(notices[0]?.message).toContain('nothing processes them: the program has not called host.open()')
  expect((await host.inbox.get('door', first.eventId))?.state).toBe('waiting')
  await host.open()
  await expect.poll(async () => (await host.inbox.get('door', first.eventId))?.state).toBe('done')
})

test('nothing is reported if the program, or another one on the store, opens its inbox in time', async () => {
  const { server, bell } = doorServer()
  const { host, notices, clock, store } = await hosting(server, ['door.*'])
  await bell.push({ content: 'Somebody rang' }).then(({ answered }) => answered)
  await host.open()
  clock.advance(5_000)
  const other = doorServer()
  const second = await hosting(other.server, ['door.*'], { clock, store })
  await other.bell.push({ content: 'Somebody rang' }).then(({ answered }) => answered)
  clock.advance(5_000)
  await expect.poll(async () => (await second.host.inbox.list({ server: 'door', state: 'done' })).length).toBe(2)
  expect([codes(notices), codes(second.notices)]).toEqual([[], []])
})

test('a name in live.enable that the server does not declare is reported with what it declares', async () => {
  const { notices } = await hosting(doorServer().server, ['door.bel', 'door.*'])
  expect(notices).toMatchObject([
    { code: 'SET_UNKNOWN', message: expect.stringContaining('contains "door.bel"'), fix: 'Did you mean door.bell?' },
  ])
  expect(notices[0]?.message).toContain('It declares door.bell')
})

test('a server whose feature sets are all left out is reported with what enables them, unless somebody is asked or has said no', async () => {
  const { notices } = await hosting(doorServer().server, undefined)
  expect(notices).toMatchObject([{ code: 'SET_NOT_ENABLED', fix: expect.stringContaining('enable: ["door.bell"]') }])
  const asked = await hosting(doorServer().server, undefined, { onApproval: () => false })
  const { server } = doorServer()
  const refused = await hosting(server, undefined, { servers: { door: { target: inMemory(server), live: { disable: ['*'] } } } })
  expect([asked.notices, refused.notices]).toEqual([[], []])
})

test('feature sets of a server that does not speak MCP Live are reported', async () => {
  const server = createServer({ name: 'door', version: '1.0.0' })
  server.tool('open', {}, () => 'open')
  const { notices } = await hosting(server, ['door.*'])
  expect(codes(notices)).toEqual(['LIVE_UNSUPPORTED'])
})

test('without onTrouble a notice is a line on standard error', async () => {
  const lines = vi.spyOn(console, 'error').mockImplementation(() => {})
  onTestFinished(() => lines.mockRestore())
  const { server } = doorServer()
  const target = inMemory(server)
  const host = await createHost({ model: scripted('Yes.'), servers: { door: { target } } })
  onTestFinished(() => host.close())
  expect(lines.mock.calls.flat().join('\n')).toMatch(/vivarium warn set-not-enabled .*No feature set of the server/)
})
