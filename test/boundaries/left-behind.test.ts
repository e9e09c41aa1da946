/** What processes that died, and callers that went away, leave in tables which all share: it makes room, and nobody waits for its time. */
import { describe, expect, it, onTestFinished } from 'vitest'
import { createServer, type Server, type ServerOptions } from 'vivarium/server'
import { fakeClock } from 'vivarium/testing'
import { ProcessLeases } from '../../src/core/journal/process-leases.ts'
import { type TableLimits, type TaskRecord, tableLimits } from '../../src/features/mcp/tasks/record.ts'
import { storeTasks, type TaskTable } from '../../src/features/mcp/tasks/table.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { remove } from '../../src/stores/store.ts'
import { type From, hello, ping, post, user } from './raw-posts.ts'

const day = 86_400_000

describe('tasks of a process that has gone, which nobody asks about,', () => {
  function world(limits: Partial<TableLimits>) {
    const clock = fakeClock()
    const store = memoryStore({ now: clock.now })
    const start = (id: string): TaskTable => {
      const runners = new ProcessLeases({ store, clock, id })
      onTestFinished(() => runners.close())
      return storeTasks({
        open: async () => store,
        clock,
        runners: async () => runners,
        limits: { ...tableLimits, ...limits },
      })
    }
    const task = (id: string, account: string, more: Partial<TaskRecord> = {}): TaskRecord => {
      clock.advance(1)
      const times = { createdAt: clock.now(), updatedAt: clock.now(), ttlMs: day, pollMs: 1_000 }
      const owner = account.startsWith('=') ? account.slice(1) : undefined
      return { id, owner, account, revision: '2026-07-28', status: 'working', questions: {}, bytes: 0, ...times, ...more }
    }
    /** The process with that id has stopped to renew its lease. */
    const kill = (id: string) => store.commit([remove(`runner/${id}`)])
    return { store, start, task, kill }
  }

  it('make room for new ones of their owner', async () => {
    const { start, task, kill } = world({ tasksPerPrincipal: 2 })
    const gone = start('gone')
    await gone.add(task('a', '=ann'))
    await gone.add(task('b', '=ann'))
    const here = start('here')
    await expect(here.add(task('c', '=ann'))).rejects.toThrow('2 of your tasks are kept')
    await kill('gone')
    await here.add(task('c', '=ann'))
    // The other one is told as failed to whoever asks at last.
    expect([await here.get('a'), (await here.get('b'))?.status, (await here.get('c'))?.status]).toEqual([
      undefined,
      'failed',
      'working',
    ])
  })

  it('make room for others where they fill the table, also while they wait for an answer', async () => {
    const { start, task, kill } = world({ tasks: 40 })
    const gone = start('gone')
    for (let i = 0; i < 15; i++) await gone.add(task(`a${i}`, '@192.0.2.1', { status: 'input_required' }))
    for (let i = 0; i < 15; i++) await gone.add(task(`b${i}`, '@192.0.2.2'))
    const here = start('here')
    await expect(here.add(task('c', '@192.0.2.3'))).rejects.toThrow('already use their share')
    await kill('gone')
    for (let i = 0; i < 10; i++) await here.add(task(`c${i}`, '@192.0.2.3'))
    expect((await here.get('c0'))?.status).toBe('working')
  })

  it('go before any that is at work, and those of the living stay', async () => {
    const { start, task, kill } = world({ tasksPerPrincipal: 3 })
    const [living, gone, here] = [start('living'), start('gone'), start('here')]
    await living.add(task('a', '=ann'))
    await gone.add(task('b', '=ann'))
    await here.add(task('c', '=ann'))
    await kill('gone')
    await here.add(task('d', '=ann'))
    expect(await here.get('b')).toBeUndefined()
    await expect(here.add(task('e', '=ann'))).rejects.toThrow('3 of your tasks are kept')
    for (const id of ['a', 'c', 'd']) expect((await here.get(id))?.status).toBe('working')
  })

  it('are told as failed to those who listen for them', async () => {
    const { start, task, kill } = world({ tasksPerPrincipal: 2 })
    const gone = start('gone')
    for (const id of ['a', 'b']) await gone.add(task(id, '=ann'))
    await kill('gone')
    const here = start('here')
    const told: string[] = []
    here.onAbandoned?.(({ id, status }) => told.push(`${id} ${status}`))
    await here.add(task('c', '=ann'))
    expect(told).toEqual(['a failed', 'b failed'])
  })

  it('are noticed where an older version wrote their places, which name no process', async () => {
    const { store, start, task, kill } = world({ tasksPerPrincipal: 1 })
    await start('gone').add(task('a', '=ann'))
    await kill('gone')
    for (const { key } of await store.scan('tasks/of/')) await store.commit([{ op: 'put', key, value: '0 open =ann', ttl: day }])
    await expect(start('here').add(task('b', '=ann'))).resolves.toBeUndefined()
  })
})

describe('sessions that made room, on a store that several processes share,', () => {
  const stranger = { address: '198.51.100.7' }

  function world() {
    const clock = fakeClock()
    const store = memoryStore({ now: clock.now })
    const start = (limits: ServerOptions['limits'] = {}): Server => {
      const server = createServer({ name: 'replica', version: '1.0.0', log: 'silent', clock, store, limits })
      onTestFinished(() => server.close())
      return server
    }
    const open = async (server: Server, from: From): Promise<From> => ({
      ...from,
      session: (await post(server, hello, from)).session,
    })
    const say = async (server: Server, from: From): Promise<number> => (await post(server, ping, from)).status
    const records = async (): Promise<number> => (await store.scan('sessions/', { limit: 1_000 })).length
    return { clock, store, start, open, say, records }
  }

  it('leave nothing there: whoever opens one after the other does not fill the store', async () => {
    const { start, open, records } = world()
    const server = start({ sessions: 20 })
    for (let i = 0; i < 200; i++) await open(server, stranger)
    await expect.poll(records).toBe([...server.engine.sessions.all()].length)
  })

  it('leave nothing there either where each was used at two processes', async () => {
    const { start, open, say, records } = world()
    const [one, two] = [start({ sessions: 20 }), start({ sessions: 20 })]
    for (let i = 0; i < 60; i++) {
      const opened = await open(one, { principal: user(`user${i}`) })
      await say(two, opened)
      for (let j = 0; j < 2; j++) for (const server of [one, two]) await open(server, { principal: user(`other${i}`) })
    }
    const held = () => new Set([one, two].flatMap(server => [...server.engine.sessions.all()].map(({ session }) => session))).size
    await expect.poll(async () => (await records()) - held()).toBe(0)
  })

  it('stay for the process that serves them: giving one up at the first does not end it at the second', async () => {
    const { start, open, say, store } = world()
    const [one, two] = [start({ sessions: 20 }), start()]
    const mine = await open(one, stranger)
    expect(await say(two, mine)).toBe(200)
    const isAtOne = (): boolean => [...one.engine.sessions.all()].some(({ session }) => session === mine.session)
    const atBoth = async () => (await store.scan('sessions/')).filter(({ value }) => JSON.parse(value).at.length > 1).length
    for (let i = 0; i < 60; i++) await open(one, { address: `203.0.113.${i}` })
    await expect.poll(atBoth).toBe(0)
    expect([isAtOne(), await say(two, mine)]).toEqual([false, 200])
    // Also where its client comes to the first again, which gives it up once more.
    expect([await say(one, mine), isAtOne(), await atBoth()]).toEqual([200, true, 1])
    for (let i = 0; i < 60; i++) await open(one, { principal: user(`user${i}`) })
    await expect.poll(atBoth).toBe(0)
    expect([isAtOne(), await say(two, mine)]).toEqual([false, 200])
  })

  it('end at the last that has them', async () => {
    const { start, open, say, records } = world()
    const [one, two] = [start({ sessions: 20 }), start({ sessions: 20 })]
    const mine = await open(one, stranger)
    await say(two, mine)
    for (const server of [one, two]) for (let i = 0; i < 40; i++) await open(server, { principal: user(`user${i}`) })
    await expect.poll(records).toBe(40)
    for (const server of [one, two]) expect(await say(server, mine)).toBe(404)
  })

  it('are not given up by a server that closes: its successor goes on with them', async () => {
    const { start, open, say } = world()
    const before = start()
    const mine = await open(before, stranger)
    await before.close()
    expect(await say(start(), mine)).toBe(200)
  })
})

it('sessions of a caller that is disconnected end for all processes, and leave nothing on the store', async () => {
  const store = memoryStore()
  const server = createServer({ name: 'replica', version: '1.0.0', log: 'silent', store })
  onTestFinished(() => server.close())
  for (const subject of ['ann', 'bob']) await post(server, hello, { principal: user(subject) })
  server.engine.disconnect(({ subject }) => subject === 'ann')
  await expect.poll(async () => (await store.scan('sessions/')).length).toBe(1)
})
