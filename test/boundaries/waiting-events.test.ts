/**
 * An event waits for its turn, perhaps over restarts. When it is run it is admitted anew: by the program that sent it, which may no
 * longer be the one with that name, and by what the user agrees to then, whether its server is connected or not.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { LiveSection } from '../../src/host/config/entry.ts'
import { type Host, type HostOptions, type ScriptedModel, scripted } from '../../src/host/index.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { fakeClock } from '../../src/testing/clock.ts'
import { opened, pushOf, thinking } from '../hosting/hostile.ts'
import { type RawServer, rawServer } from '../live/raw/raw-server.ts'
import { Refusal } from '../live/raw/script.ts'

const hour = 3_600_000
const later = [{ name: 'later', do: 'hold', for: '1h', when: { kind: 'push' } }] as const
const bell = { description: 'Rings', uses: ['pushEvents'] }
const asIf = { featureSet: 'bell' }

/** A live server at an address of its own. */
async function server(set: object = bell): Promise<RawServer> {
  const raw = await rawServer('http 2025-11-25', { mcpl: { version: '0.2', pushEvents: true, featureSets: { bell: set } } })
  raw.script.on('server/discover', () => {
    throw new Refusal(-32601)
  })
  onTestFinished(() => raw.close())
  return raw
}

/** A host that can be closed and opened again on the same store, and a user who says yes to everything. */
function world(more: Partial<HostOptions> = {}) {
  const clock = fakeClock()
  const store = memoryStore({ now: clock.now })
  const model: ScriptedModel = scripted('The answer', { again: true })
  const named = (raw: RawServer, live?: LiveSection) => ({
    raw: { target: raw.target, connect: raw.options, ...(live && { live }) },
  })
  const start = (servers: HostOptions['servers'], options: Partial<HostOptions> = {}): Promise<Host> =>
    opened({ model, store, clock, policy: { rules: later }, onApproval: () => true, servers: servers ?? {}, ...more, ...options })
  return { clock, store, model, named, start }
}

const enabled = (host: Host) => expect.poll(() => host.server('raw')?.live?.featureSets.get('bell')?.enabled).toBe(true)
const states = async (host: Host) => (await host.inbox.list({ server: 'raw' })).map(({ eventId, state }) => `${eventId} ${state}`)
const push = (raw: RawServer, id: string) => raw.ask('push/event', pushOf(id, asIf))
const noted = async (host: Host) => (await host.audit({ server: 'raw', kind: 'inbox' })).notes
/** The rule made it wait when it came. */
const waited = { outcome: 'held', eventId: 'e1', why: { code: 'POLICY_HELD' } }

/** An event of a server waits, and the host is closed. */
async function left(given: ReturnType<typeof world>, raw: RawServer, live?: LiveSection): Promise<void> {
  const host = await given.start(given.named(raw, live))
  await enabled(host)
  await host.open()
  await expect.poll(() => push(raw, 'e1')).toHaveProperty('result.accepted', true)
  await host.close()
}

describe('an event whose server is now another program', () => {
  test('does not run: it is refused, and the audit log says which and why', async () => {
    const given = world()
    await left(given, await server())
    const host = await given.start(given.named(await server()))
    await enabled(host)
    await host.open()
    given.clock.advance(hour)
    await expect.poll(() => states(host)).toEqual(['e1 refused'])
    expect(given.model.requests).toEqual([])
    const why = { code: 'SERVER_CHANGED' }
    expect(await noted(host)).toMatchObject([waited, { outcome: 'refused', featureSet: 'bell', eventId: 'e1', why }])
    expect(await host.inbox.get('raw', 'e1')).toMatchObject({ state: 'refused', why })
  })

  test('does not run where the other one is down, or one that the program opens itself', async () => {
    for (const next of ['down', 'opened by the program'] as const) {
      const given = world({ policy: { rules: later, servers: { raw: { enable: ['*'] } } } })
      await left(given, await server())
      const other = await server()
      const { target, options } = other
      if (next === 'down') await other.close()
      const host = await given.start({ raw: { target: next === 'down' ? target : () => target, connect: options } })
      await host.open()
      given.clock.advance(hour)
      await expect.poll(() => states(host)).toEqual(['e1 refused'])
      expect(given.model.requests).toEqual([])
    }
  })

  test('does not run where the config names the other one while the host runs', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'waiting-'))
    onTestFinished(() => rm(folder, { recursive: true }))
    const config = join(folder, 'mcp.json')
    const [one, two] = [await server(), await server()]
    const text = (raw: RawServer) =>
      JSON.stringify({ mcpServers: { raw: { url: String(raw.target), live: { enable: ['bell'] } } } })
    await writeFile(config, text(one))
    const given = world()
    const told = Promise.withResolvers<void>()
    const onServer: HostOptions['onServer'] = ({ name, status }) => {
      if (name === 'raw' && status === 'up' && two.script.heard.length > 0) told.resolve()
    }
    const host = await given.start({}, { config, onServer })
    await enabled(host)
    await host.open()
    await expect.poll(() => push(one, 'e1')).toHaveProperty('result.accepted', true)
    await writeFile(config, text(two))
    const comeTo = (): number => {
      given.clock.advance(1_000)
      return two.script.heard.length
    }
    await expect.poll(comeTo).toBeGreaterThan(0)
    await told.promise
    given.clock.advance(hour)
    await expect.poll(() => states(host)).toEqual(['e1 refused'])
    expect(given.model.requests).toEqual([])
  })

  test('does not run when it is replayed after it was given up', async () => {
    const given = world()
    const raw = await server()
    const broken = thinking('', () => Promise.reject(new Error('No model')))
    const first = await given.start(given.named(raw), { model: broken, policy: {}, inbox: { attempts: 1 } })
    await enabled(first)
    await first.open()
    await expect.poll(() => push(raw, 'e1')).toHaveProperty('result.accepted', true)
    const anHourLater = (): Promise<readonly string[]> => {
      given.clock.advance(hour)
      return states(first)
    }
    await expect.poll(anHourLater).toEqual(['e1 dead'])
    await first.close()
    const host = await given.start(given.named(await server()))
    await host.open()
    expect(await host.inbox.replay('raw', 'e1')).toBe(true)
    await expect.poll(() => states(host)).toEqual(['e1 refused'])
    expect(given.model.requests).toEqual([])
  })

  test('does not run as a turn that a stop of the host has cut off', async () => {
    const given = world()
    const raw = await server()
    const [begun, cut] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const silent = thinking('', () => {
      begun.resolve()
      return cut.promise
    })
    const conversationOf = () => 'main'
    const first = await given.start(given.named(raw), { model: silent, policy: {}, conversationOf })
    await enabled(first)
    await first.open()
    await expect.poll(() => push(raw, 'e1')).toHaveProperty('result.accepted', true)
    await begun.promise
    const closing = first.close()
    cut.reject(new Error('The process ends'))
    await closing
    const host = await given.start(given.named(await server()), { conversationOf })
    expect(await host.conversation('main').resume()).toBe(undefined)
    await host.open()
    await expect.poll(() => states(host)).toEqual(['e1 refused'])
    expect(given.model.requests).toEqual([])
  })

  test('does not stand in the way of one with the same id and body that the new program sends', async () => {
    const given = world({ policy: {} })
    await left(given, await server())
    const next = await server()
    const host = await given.start(given.named(next))
    await enabled(host)
    await host.open()
    await expect.poll(() => states(host)).not.toContain('e1 waiting')
    const before = given.model.requests.length
    await expect.poll(() => push(next, 'e1')).toHaveProperty('result.accepted', true)
    await expect.poll(() => states(host)).toEqual(['e1 done'])
    expect(given.model.requests).toHaveLength(before + 1)
  })

  test('is not answered for: who sends its id while it waits is told that it is taken', async () => {
    const given = world()
    await left(given, await server())
    const next = await server()
    const host = await given.start(given.named(next))
    await enabled(host)
    expect(await push(next, 'e1')).toMatchObject({ result: { accepted: false, reason: 'conflict' } })
  })
})

describe('a server that is not in the config', () => {
  test.each(['gone', 'switched off'])('has its events kept while it is %s, and run when it is back', async how => {
    const given = world()
    const raw = await server()
    await left(given, raw)
    const folder = await mkdtemp(join(tmpdir(), 'waiting-'))
    onTestFinished(() => rm(folder, { recursive: true }))
    const config = join(folder, 'mcp.json')
    const off = { raw: { url: String(raw.target), disabled: true } }
    await writeFile(config, JSON.stringify({ mcpServers: how === 'gone' ? {} : off }))
    const host = await given.start({}, { config })
    await host.open()
    given.clock.advance(hour)
    await expect.poll(() => noted(host)).toMatchObject([waited, { outcome: 'held', why: { code: 'SERVER_ABSENT' } }])
    given.clock.advance(hour)
    expect([await states(host), given.model.requests]).toEqual([['e1 waiting'], []])
    await host.close()
    const again = await given.start(given.named(raw))
    await again.open()
    await expect.poll(() => states(again)).toEqual(['e1 done'])
  })
})

describe('after a restart, while the server is down', () => {
  const widening: LiveSection = { enable: ['bell'], uses: { bell: ['pushEvents'] } }
  test.each<[string, object, LiveSection | undefined]>([
    ['the user’s yes', bell, undefined],
    ['an entry that names the set', bell, { enable: ['bell'] }],
    ['an entry that enables all', bell, { enable: ['*'] }],
    ['an entry that widens the set', { ...bell, uses: ['tools'] }, widening],
    ['a yes to what the set does not declare', { ...bell, uses: ['tools'] }, undefined],
  ])('an event that waits runs where consent stands by %s', async (_, set, live) => {
    const given = world()
    const raw = await server(set)
    await left(given, raw, live)
    await raw.close()
    const host = await given.start(given.named(raw, live))
    expect(host.server('raw')?.status).not.toBe('up')
    await host.open()
    given.clock.advance(hour)
    await expect.poll(() => states(host)).toEqual(['e1 done'])
    expect(given.model.requests).toHaveLength(1)
  })

  test('one runs where the user agreed to what the set declared anew', async () => {
    const given = world()
    const raw = await server({ ...bell, uses: ['tools'] })
    const live = { enable: ['bell'] }
    const first = await given.start(given.named(raw, live))
    await enabled(first)
    await first.close()
    const mcpl = { version: '0.2', pushEvents: true, featureSets: { bell } }
    raw.script.on('initialize', ({ protocolVersion }) => ({
      protocolVersion,
      capabilities: { tools: {}, experimental: { mcpl } },
      serverInfo: { name: 'raw', version: '2' },
    }))
    await left(given, raw, live)
    await raw.close()
    const host = await given.start(given.named(raw, live))
    await host.open()
    given.clock.advance(hour)
    await expect.poll(() => states(host)).toEqual(['e1 done'])
  })

  test.each<[string, (host: Host) => Promise<unknown>, Partial<HostOptions>]>([
    [
      'the user took the yes back',
      async host => {
        for (const { id } of await host.policy.grants('raw')) await host.policy.revoke('raw', id)
      },
      {},
    ],
    ['the config disables the set', async () => undefined, { policy: { rules: later, servers: { raw: { disable: ['bell'] } } } }],
    [
      'a rule forbids the set',
      async () => undefined,
      { policy: { rules: [...later, { name: 'no bells', do: 'deny', when: { kind: 'set', featureSet: 'bell' } }] } },
    ],
  ])('an event that waits does not run where %s', async (_, revoke, options) => {
    const given = world()
    const raw = await server()
    await left(given, raw)
    await raw.close()
    const host = await given.start(given.named(raw), options)
    await revoke(host)
    await host.close()
    const again = await given.start(given.named(raw), options)
    await again.open()
    given.clock.advance(hour)
    await expect.poll(() => states(again)).toEqual(['e1 refused'])
    expect(given.model.requests).toEqual([])
    expect(await noted(again)).toMatchObject([waited, { outcome: 'refused', eventId: 'e1' }])
  })

  test('an event that waits does not run where the yes was for a time that is over', async () => {
    const given = world({ onApproval: () => ({ yes: true, for: '30m' }) })
    const raw = await server()
    await left(given, raw)
    await raw.close()
    const host = await given.start(given.named(raw))
    await host.open()
    given.clock.advance(hour)
    await expect.poll(() => states(host)).toEqual(['e1 refused'])
    expect(given.model.requests).toEqual([])
  })

  test('an event that waits does not run where another process took the yes back', async () => {
    const given = world()
    const raw = await server()
    await left(given, raw)
    await raw.close()
    const host = await given.start(given.named(raw))
    await host.open()
    const other = await given.start(given.named(raw))
    for (const { id } of await other.policy.grants('raw')) await other.policy.revoke('raw', id)
    given.clock.advance(hour)
    await expect.poll(() => states(host)).toEqual(['e1 refused'])
    expect(given.model.requests).toEqual([])
  })
})
