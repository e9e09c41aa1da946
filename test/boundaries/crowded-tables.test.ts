/** Tables that all callers share: nobody fills them for the others, whether by many sessions, tasks, calls, streams or sockets. */
import { once } from 'node:events'
import { Agent, get, type IncomingMessage } from 'node:http'
import { connect as connectSocket, type Socket } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createServer, type Server, type ServerOptions } from 'vivarium/server'
import { type FakeClock, fakeClock } from 'vivarium/testing'
import { callerAccount } from '../../src/core/accounts.ts'
import { ProcessLeases } from '../../src/core/journal/process-leases.ts'
import { Occupancy } from '../../src/core/occupancy.ts'
import { type TableLimits, type TaskRecord, tableLimits } from '../../src/features/mcp/tasks/record.ts'
import { memoryTasks, storeTasks, type TaskTable } from '../../src/features/mcp/tasks/table.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { remove } from '../../src/stores/store.ts'
import { listenHttp } from '../../src/transports/http/listen.ts'
import { enveloped, type Frame, helloParams } from '../spec/wire.ts'
import { type From, hello, ping, post, user } from './raw-posts.ts'

const attacker = '198.51.100.7'
const neighbour = '203.0.113.9'

function serve(options: Partial<ServerOptions> = {}): { readonly server: Server; readonly clock: FakeClock } {
  const clock = fakeClock()
  const server = createServer({ name: 'crowded', version: '1.0.0', log: 'silent', clock, ...options })
  onTestFinished(() => server.close())
  return { server, clock }
}

/** Opens as many sessions; gives those that there are now. */
async function fill(server: Server, count: number, from: From): Promise<number> {
  for (let i = 0; i < count; i++) await post(server, hello, from)
  return [...server.engine.sessions.all()].length
}

describe('sessions', () => {
  it('that one address opened and never used leave room for every other caller', async () => {
    const { server } = serve({ limits: { sessions: 200 } })
    expect(await fill(server, 300, { address: attacker })).toBeLessThan(100)
    for (const from of [{ address: neighbour }, { principal: user('ann'), address: attacker }])
      expect((await post(server, hello, from)).status).toBe(200)
  })

  it('of many addresses give way to users, and the silent ones to whoever comes from elsewhere', async () => {
    const { server } = serve({ limits: { sessions: 40 } })
    for (let host = 1; host <= 60; host++) await post(server, hello, { address: `198.51.100.${host}` })
    for (let i = 0; i < 20; i++) expect((await post(server, hello, { principal: user(`user${i}`) })).status).toBe(200)
    for (let i = 0; i < 2; i++) expect((await post(server, hello, { address: attacker })).status).toBe(200)
  })

  it("of all parts of one customer's network of IPv6 (56 bits) are counted together, and never fill the table by one of 48 bits", async () => {
    const { server } = serve({ limits: { sessions: 400 } })
    const spoken = async (address: string): Promise<void> => {
      const { session } = await post(server, hello, { address })
      if (session !== undefined) await post(server, ping, { address, session })
    }
    const open = (): number => [...server.engine.sessions.all()].length
    for (let part = 0; part < 256; part++) await spoken(`2001:db8:1:${part.toString(16)}::1`)
    expect(open()).toBeLessThanOrEqual(150)
    for (let part = 0; part < 512; part++) await spoken(`2001:db8:1:${((part % 256) * 256).toString(16)}::1`)
    expect(open()).toBeLessThanOrEqual(225)
    for (let i = 0; i < 20; i++) expect((await post(server, hello, { address: '::ffff:203.0.113.9' })).status).toBe(200)
  })

  it('in which somebody speaks stay while there are silent ones', async () => {
    const { server } = serve({ limits: { sessions: 100 } })
    const { session } = await post(server, hello, { address: attacker })
    expect((await post(server, ping, { address: attacker, session })).status).toBe(200)
    await fill(server, 100, { address: attacker })
    for (let i = 0; i < 50; i++) expect((await post(server, hello, { principal: user(`user${i}`) })).status).toBe(200)
    expect((await post(server, ping, { address: attacker, session })).status).toBe(200)
  })

  it.each([attacker, '127.0.0.1', undefined])(
    'make room behind one proxy (%s): at once where they never spoke, after a minute else',
    async address => {
      const from = address === undefined ? {} : { address }
      const { server, clock } = serve({ limits: { sessions: 100, sessionIdleMs: 600_000 } })
      await fill(server, 150, from)
      expect((await post(server, hello, from)).status).toBe(200)
      for (const { session } of [...server.engine.sessions.all()])
        expect((await post(server, ping, { ...from, session })).status).toBe(200)
      clock.advance(59_999)
      expect((await post(server, hello, from)).status).toBe(503)
      expect((await post(server, hello, { principal: user('ann') })).status).toBe(200)
      clock.advance(1)
      expect((await post(server, hello, from)).status).toBe(200)
    },
  )

  it('remember only so much of what a client says of itself', async () => {
    const { server } = serve()
    const large = { experimental: { x: 'x'.repeat(1_000_000) } }
    const named = { ...helloParams('2025-11-25'), clientInfo: { name: 'x'.repeat(1_000_000), version: '1' } }
    for (const params of [helloParams('2025-11-25', large), named]) {
      const { frame } = await post(server, { method: 'initialize', params }, { address: attacker })
      expect(frame).toHaveProperty('error.code', -32602)
    }
    expect([...server.engine.sessions.all()]).toEqual([])
    const usual = helloParams('2025-11-25', { experimental: { x: 'x'.repeat(10_000) } })
    expect((await post(server, { method: 'initialize', params: usual }, { address: attacker })).status).toBe(200)
  })

  it('of others who hold less are not ended for one who has its share already', async () => {
    const { server, clock } = serve({ limits: { sessions: 100, sessionIdleMs: 600_000 } })
    const others = await Promise.all([1, 2, 3, 4, 5].map(host => post(server, hello, { address: `203.0.113.${host}` })))
    for (const [at, { session }] of others.entries())
      if (at > 0) await post(server, ping, { address: `203.0.113.${at + 1}`, session })
    clock.advance(60_000)
    for (let i = 0; i < 150; i++) {
      const { session } = await post(server, hello, { address: attacker })
      if (session !== undefined) await post(server, ping, { address: attacker, session })
    }
    for (const [at, { session }] of others.entries())
      expect((await post(server, ping, { address: `203.0.113.${at + 1}`, session })).status).toBe(200)
  })

  it('of one user are counted together, whatever programs it uses', async () => {
    const { server } = serve({ limits: { sessionsPerPrincipal: 3 } })
    for (const client of ['a', 'b', 'c']) expect((await post(server, hello, { principal: user('ann', client) })).status).toBe(200)
    const refused = await post(server, hello, { principal: user('ann', 'd') })
    expect([refused.status, refused.frame]).toEqual([503, expect.objectContaining({ error: expect.anything() })])
    expect((await post(server, hello, { principal: user('bob', 'a') })).status).toBe(200)
  })
})

const day = 86_400_000

describe.each([
  ['in memory', (clock: FakeClock, limits: TableLimits) => memoryTasks(clock, limits)],
  [
    'on a store',
    (clock: FakeClock, limits: TableLimits) => {
      const store = memoryStore({ now: clock.now })
      return storeTasks({ open: async () => store, clock, limits })
    },
  ],
] as const)('tasks %s', (_, open) => {
  const record = (clock: FakeClock, id: string, from: From, more: Partial<TaskRecord> = {}): TaskRecord => {
    const connection = { remoteAddress: from.address }
    const account = callerAccount({ carrier: 'http', principal: from.principal, connection })
    const times = { createdAt: clock.now(), updatedAt: clock.now(), ttlMs: day, pollMs: 1_000 }
    const owner = from.principal?.id
    return { id, owner, account, revision: '2026-07-28', status: 'working', questions: {}, bytes: 0, ...times, ...more }
  }

  function table(limits: Partial<TableLimits> = {}): {
    tasks: TaskTable
    add: (id: string, from: From) => Promise<unknown>
    end: (id: string, bytes?: number) => Promise<unknown>
  } {
    const clock = fakeClock()
    const tasks = open(clock, { ...tableLimits, ...limits })
    return {
      tasks,
      add: async (id, from) => {
        clock.advance(1)
        await tasks.add(record(clock, id, from))
      },
      end: async (id, bytes = 1) => tasks.change(id, before => ({ ...before, status: 'completed', bytes })),
    }
  }

  it('that have ended give way: a caller who fills the table for a day keeps nobody out', async () => {
    const { tasks, add, end } = table({ tasks: 60 })
    for (let i = 0; i < 80; i++) {
      await add(`a${i}`, { address: attacker })
      await end(`a${i}`)
    }
    for (const from of [{ address: neighbour }, { principal: user('ann') }, { address: attacker }])
      await expect(add(`b${from.principal?.id.length ?? from.address}`, from)).resolves.toBeUndefined()
    // What goes is the oldest of whoever has most.
    expect([await tasks.get('a0'), (await tasks.get('a79'))?.id]).toEqual([undefined, 'a79'])
  })

  it('at work are never forgotten; those of one address are no more than its share', async () => {
    const { tasks, add } = table({ tasks: 60 })
    const refused: string[] = []
    for (let i = 0; i < 60; i++) await add(`a${i}`, { address: attacker }).catch(() => refused.push(`a${i}`))
    expect(refused.length).toBeGreaterThan(20)
    for (let i = 0; i < 10; i++) await add(`b${i}`, { address: neighbour })
    for (let i = 0; i < 10; i++) await add(`u${i}`, { principal: user('ann') })
    expect([await tasks.get('a0'), await tasks.get('b0'), await tasks.get('u0')]).not.toContain(undefined)
  })

  it('of one user are counted together, whatever programs it uses; its own ended ones go first', async () => {
    const { tasks, add, end } = table({ tasksPerPrincipal: 3 })
    for (const client of ['a', 'b', 'c']) await add(client, { principal: user('ann', client) })
    await expect(add('d', { principal: user('ann', 'd') })).rejects.toThrow('3 of your tasks are kept')
    await end('b')
    await add('d', { principal: user('ann', 'd') })
    expect([(await tasks.get('a'))?.id, await tasks.get('b')]).toEqual(['a', undefined])
    await add('e', { principal: user('bob', 'a') })
  })

  it('whose results take all the room give way to those of others, and not to more of their own', async () => {
    const { tasks, add, end } = table({ bytes: 100 })
    await add('a', { address: attacker })
    await add('b', { address: attacker })
    await end('a', 90)
    await expect(end('b', 20)).rejects.toThrow('which is the limit')
    await add('u', { principal: user('ann') })
    expect(await end('u', 60)).toMatchObject({ status: 'completed' })
    expect(await tasks.get('a')).toBeUndefined()
  })
})

it('tasks whose process has gone make room once they are found to have failed', async () => {
  const clock = fakeClock()
  const store = memoryStore({ now: clock.now })
  const start = (id: string): TaskTable => {
    const runners = new ProcessLeases({ store, clock, id })
    onTestFinished(() => runners.close())
    return storeTasks({
      open: async () => store,
      clock,
      runners: async () => runners,
      limits: { ...tableLimits, tasksPerPrincipal: 1 },
    })
  }
  const times = { createdAt: clock.now(), updatedAt: clock.now(), ttlMs: day, pollMs: 1_000 }
  const record: TaskRecord = {
    id: 'a',
    owner: 'ann',
    revision: '2026-07-28',
    status: 'working',
    questions: {},
    bytes: 0,
    ...times,
  }
  await start('gone').add(record)
  await store.commit((await store.scan('runner/')).map(({ key }) => remove(key)))
  const here = start('here')
  expect((await here.get('a'))?.status).toBe('failed')
  await expect(here.add({ ...record, id: 'b' })).resolves.toBeUndefined()
})

it('answers to questions that a task did not ask are not left on the store for the process that works on it', async () => {
  const store = memoryStore()
  const { server, clock } = serve({ store })
  server.tool('long', { task: 'optional' }, () => 'done')
  const times = { createdAt: clock.now(), updatedAt: clock.now(), ttlMs: day, pollMs: 1_000 }
  const question = { method: 'elicitation/create', params: { message: 'Who?' } }
  const task = { id: 'a', owner: undefined, revision: '2026-07-28', status: 'input_required', bytes: 0, ...times } as const
  await storeTasks({ open: async () => store, clock }).add({ ...task, questions: { who: question } })
  const update = async (inputResponses: Frame): Promise<number> => {
    const extensions = { 'io.modelcontextprotocol/tasks': {} }
    const params = enveloped('2026-07-28', { taskId: 'a', inputResponses }, { extensions })
    expect((await post(server, { method: 'tasks/update', params }, { name: 'a' })).status).toBe(200)
    return (await store.scan('tasks/answers/')).length
  }
  expect(await update({ junk: 'x'.repeat(100_000) })).toBe(0)
  expect(await update({ who: { action: 'decline' }, junk: 'x' })).toBe(1)
})

describe('work under way', () => {
  const stateless = (name: string): Frame => ({ method: 'tools/call', params: enveloped('2026-07-28', { name, arguments: {} }) })
  const turn = (): Promise<void> => new Promise(resolve => setImmediate(resolve))

  /** Begins calls of a tool that never ends; gives how many were refused at once. */
  async function flood(server: Server, count: number, from: From, body: Frame): Promise<number> {
    let refused = 0
    for (let i = 0; i < count; i++) void post(server, body, from).then(({ status }) => (refused += status === 503 ? 1 : 0))
    await turn()
    return refused
  }

  it('for one address leaves places for the calls of others', async () => {
    const { server } = serve({ limits: { calls: 400, rates: false } })
    server.tool('wait', {}, () => new Promise<string>(() => {}))
    server.tool('echo', {}, async () => 'here')
    expect(await flood(server, 500, { address: attacker }, stateless('wait'))).toBeGreaterThan(100)
    for (const from of [{ address: neighbour }, { principal: user('ann') }])
      expect((await post(server, stateless('echo'), from)).status).toBe(200)
    expect((await post(server, stateless('echo'), { address: attacker })).status).toBe(503)
  })

  it('for one user is counted over all programs that act for it', async () => {
    const { server } = serve({ limits: { callsPerConversation: 4, rates: false } })
    server.tool('wait', {}, () => new Promise<string>(() => {}))
    server.tool('echo', {}, async () => 'here')
    for (const client of ['a', 'b', 'c', 'd']) await flood(server, 1, { principal: user('ann', client) }, stateless('wait'))
    expect((await post(server, stateless('echo'), { principal: user('ann', 'e') })).status).toBe(503)
    expect((await post(server, stateless('echo'), { principal: user('bob', 'e') })).status).toBe(200)
  })

  it('as subscriptions of one address, on however many connections, leaves some for others', async () => {
    const { server } = serve({ limits: { listeners: 100 } })
    server.resource('x://1', { name: 'x' }, () => 'x')
    const body: Frame = {
      method: 'subscriptions/listen',
      params: enveloped('2026-07-28', { notifications: { resourcesListChanged: true } }),
    }
    expect(await flood(server, 120, { address: attacker }, body)).toBeGreaterThan(40)
    expect(await flood(server, 10, { address: neighbour }, body)).toBe(0)
    expect(await flood(server, 10, { principal: user('ann') }, body)).toBe(0)
  })

  const live = (more: Frame = {}): Frame => ({
    method: 'live/listen',
    params: enveloped(
      '2026-07-28',
      { host: { version: '0.2' }, ...more },
      { extensions: { 'dev.vivarium/live': { version: '0.2' } } },
    ),
  })

  it('as hosts of one address that listen leaves places for other hosts', async () => {
    const { server } = serve({ limits: { listeners: 100 } })
    server.featureSet('memory', { description: 'Finds memories' }).beforeInference(() => undefined)
    await server.listen()
    expect(await flood(server, 120, { address: attacker }, live())).toBeGreaterThan(40)
    expect(await flood(server, 10, { address: neighbour }, live())).toBe(0)
    expect(await flood(server, 10, { principal: user('ann') }, live())).toBe(0)
  })

  it('as subscriptions takes no place of a call, however many calls ran when they were opened', async () => {
    const { server } = serve({ limits: { calls: 100, rates: false } })
    server.tool('wait', {}, () => new Promise<string>(() => {}))
    server.tool('echo', {}, async () => 'here')
    server.resource('x://1', { name: 'x' }, () => 'x')
    await flood(server, 70, { address: attacker }, stateless('wait'))
    const listen = enveloped('2026-07-28', { notifications: { resourcesListChanged: true } })
    expect(await flood(server, 150, { address: attacker }, { method: 'subscriptions/listen', params: listen })).toBe(0)
    for (const from of [{ address: neighbour }, { principal: user('ann') }])
      expect((await post(server, stateless('echo'), from)).status).toBe(200)
  })
})

describe('sockets and streams, really opened', () => {
  /** Another address of this machine: what comes from it is another network. */
  const elsewhere = '127.0.0.2'

  async function stream(url: string, session: string, localAddress: string): Promise<IncomingMessage> {
    const agent = new Agent({ keepAlive: false, localAddress } as object)
    const headers = { accept: 'text/event-stream', 'mcp-session-id': session, 'mcp-protocol-version': '2025-11-25' }
    const [response] = (await once(get(url, { agent, headers }), 'response')) as [IncomingMessage]
    response.on('error', () => {})
    onTestFinished(() => void response.destroy())
    return response
  }

  it('of one address are no more than its share of the event streams', async () => {
    const { server } = serve()
    const { url, close } = await listenHttp(server.acceptor, { limits: { streams: 60 } })
    onTestFinished(close)
    const statuses: (number | undefined)[] = []
    for (let i = 0; i < 40; i++) {
      const { session = '' } = await post(server, hello)
      statuses.push((await stream(url, session, '127.0.0.3')).statusCode)
    }
    expect([statuses[0], statuses.at(-1)]).toEqual([200, 503])
    const { session = '' } = await post(server, hello)
    expect((await stream(url, session, elsewhere)).statusCode).toBe(200)
  })

  it('of one address are no more than its share of the connections, whatever becomes of them', async () => {
    const { server } = serve()
    const { port, close } = await listenHttp(server.acceptor, { limits: { connections: 60 } })
    onTestFinished(close)
    const open = async (localAddress: string): Promise<boolean> => {
      const socket: Socket = connectSocket({ port, host: '127.0.0.1', localAddress })
      socket.on('error', () => {})
      onTestFinished(() => void socket.destroy())
      socket.write('GET /nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n')
      return new Promise(resolve => {
        socket.once('data', () => resolve(true))
        socket.once('close', () => resolve(false))
      })
    }
    const opened: boolean[] = []
    for (let i = 0; i < 50; i++) opened.push(await open('127.0.0.3'))
    expect([opened[0], opened.at(-1)]).toEqual([true, false])
    expect(await open(elsewhere)).toBe(true)
  })
})

describe('whose a place is', () => {
  it('is told by the user, else by the network: 56 bits of an address of IPv6 are one', () => {
    const from = (remoteAddress: string): string => callerAccount({ carrier: 'http', connection: { remoteAddress } })
    expect(from('2001:db8::1')).toBe(from('2001:db8:0:0:ffff::2'))
    expect(from('2001:db8::1')).toBe(from('2001:db8:0:ff::1'))
    expect(from('2001:db8::1')).not.toBe(from('2001:db8:0:100::1'))
    expect(from('::ffff:192.0.2.1')).toBe(from('192.0.2.1'))
    expect(callerAccount({ carrier: 'http', connection: {}, principal: user('ann', 'a') })).toBe(
      callerAccount({ carrier: 'websocket', connection: {}, principal: user('ann', 'b') }),
    )
  })

  it('leaves a quarter to users however many networks there are, and each network finds some', () => {
    const places = new Occupancy(400)
    for (let host = 0; host < 1_000; host++) {
      const account = `@10.0.${host >> 8}.${host & 255}`
      for (let i = 0; i < 50; i++) if (places.refusal(account) === undefined) places.enter(account)
    }
    expect(places.held).toBe(300)
    expect(places.refusal('=ann')).toBeUndefined()
    const calm = new Occupancy(400)
    for (let i = 0; i < 400; i++) if (calm.refusal('@a') === undefined) calm.enter('@a')
    expect([calm.of('@a'), calm.refusal('@b')]).toEqual([150, undefined])
  })
})
