import { afterEach, expect, it } from 'vitest'
import { ProcessLeases } from '../../core/journal/process-leases.ts'
import { memoryStore } from '../../stores/memory.ts'
import type { Op, Store } from '../../stores/store.ts'
import { fakeClock } from '../../testing/clock.ts'
import { type HttpLimits, httpLimits } from './limits.ts'
import { storeLogs } from './store-logs.ts'
import type { SharedLogs } from './stream-log.ts'

const opened: SharedLogs[] = []
afterEach(async () => {
  await Promise.all(opened.splice(0).map(logs => logs.close()))
})

function world(limits: Partial<HttpLimits> = {}) {
  const clock = fakeClock()
  const inner = memoryStore({ now: clock.now })
  const commits: (readonly Op[])[] = []
  const failures: unknown[] = []
  const state = { broken: false }
  const store: Store = {
    ...bound(inner),
    commit: async ops => {
      if (state.broken) throw new Error('The disk is gone')
      commits.push(ops)
      return inner.commit(ops)
    },
  }
  const runners = new ProcessLeases({ store, clock, id: 'one' })
  const logs = storeLogs({
    store: async () => store,
    runners: async () => runners,
    clock,
    limits: { ...httpLimits, ...limits },
    failed: error => failures.push(error),
  })
  opened.push(logs)
  const say = (stream: string, from: number, to: number, frame = 'x', session = 's'): void => {
    for (let number = from; number <= to; number++) logs.append(session, stream, { number, frame })
  }
  const numbers = async (stream: string, after = 0, session = 's'): Promise<number[]> =>
    (await logs.read(session, stream, after)).map(({ number }) => number)
  return { clock, inner, commits, failures, state, logs, say, numbers }
}

function bound(store: Store): Store {
  return {
    get: key => store.get(key),
    scan: (prefix, options) => store.scan(prefix, options),
    read: (log, options) => store.read(log, options),
    commit: ops => store.commit(ops),
    watch: (prefixes, signal) => store.watch(prefixes, signal),
    close: () => store.close(),
  }
}

const listening = { listening: false }

it('what is said on many streams in one turn is one write', async () => {
  const { commits, logs, say, numbers } = world()
  for (const stream of ['a', 'b', 'c']) {
    logs.begin('s', stream, listening)
    say(stream, 1, 100)
  }
  expect(await numbers('b', 98)).toEqual([99, 100])
  expect(commits.filter(ops => ops.some(op => 'key' in op && op.key.startsWith('streamed/')))).toHaveLength(1)
})

it('a stream keeps its newest events, bounded in number', async () => {
  const { logs, say, numbers } = world({ logEvents: 3 })
  logs.begin('s', 'a', listening)
  for (let number = 1; number <= 10; number++) {
    say('a', number, number)
    await numbers('a')
  }
  expect(await numbers('a')).toEqual([8, 9, 10])
})

it('and in bytes, but the newest whatever its size', async () => {
  const { logs, say, numbers } = world({ logBytes: 1_000 })
  logs.begin('s', 'a', listening)
  for (const [number, length] of [400, 400, 400, 600_000].entries()) {
    say('a', number + 1, number + 1, 'x'.repeat(length))
    if (number === 2) expect(await numbers('a')).toEqual([2, 3])
  }
  expect(await numbers('a')).toEqual([4])
  expect((await logs.read('s', 'a', 0))[0]?.frame).toHaveLength(600_000)
})

it.each<Partial<HttpLimits>>([{ logSessionBytes: 2_600 }, { logSessionEvents: 6 }, { logTotal: 2_600 }])(
  'the streams that were opened first give way where there is too much with %o, and what is let go leaves the store',
  async limits => {
    const { logs, say, numbers, inner } = world(limits)
    for (const stream of ['a', 'b', 'c', 'd']) {
      logs.begin('s', stream, listening)
      for (let number = 1; number <= 4; number++) {
        say(stream, number, number, 'x'.repeat(400))
        await numbers(stream)
      }
    }
    // The newest of each stays: it may be the answer.
    expect(await numbers('a')).toEqual([4])
    expect(await numbers('b')).toEqual([4])
    expect((await numbers('d')).length).toBeGreaterThan(1)
    expect((await inner.scan('streamed/')).length).toBeLessThanOrEqual(7)
  },
)

it('one session with many streams takes nothing from another where there is too much in all', async () => {
  const { logs, say, numbers } = world({ logTotal: 6_000 })
  logs.begin('s', 'mine', listening)
  for (let number = 1; number <= 3; number++) say('mine', number, number, 'x'.repeat(400))
  expect(await numbers('mine')).toEqual([1, 2, 3])
  for (let stream = 0; stream < 8; stream++) {
    logs.begin('other', `stream ${stream}`, listening)
    for (let number = 1; number <= 4; number++) await logs.append('other', `stream ${stream}`, { number, frame: 'x'.repeat(400) })
  }
  expect(await numbers('mine')).toEqual([1, 2, 3])
})

it('nothing is left of streams that ended, or whose process is gone, when their time is over', async () => {
  const { logs, say, numbers, inner, clock } = world()
  for (const stream of ['a', 'b']) {
    logs.begin('s', stream, listening)
    say(stream, 1, 3)
  }
  logs.end('s', 'a', true)
  await numbers('a')
  expect((await inner.scan('stream')).length).toBeGreaterThan(0)
  clock.advance(httpLimits.retainMs)
  expect(await inner.scan('stream')).toEqual([])
})

it('a stream that goes on is known as long as it does', async () => {
  const { logs, numbers, inner, clock } = world()
  logs.begin('s', 'a', listening)
  for (let minute = 0; minute < 20; minute++) {
    await numbers('a')
    clock.advance(60_000)
    logs.sweep?.()
  }
  await numbers('a')
  expect(await inner.scan('streams/')).toHaveLength(1)
})

it('what a store would not take is written when it does, and too much of it is let go and told', async () => {
  const { logs, say, numbers, state, clock, failures } = world({ logEvents: 5 })
  logs.begin('s', 'a', listening)
  await numbers('a')
  state.broken = true
  say('a', 1, 3)
  await numbers('a')
  expect(failures).toMatchObject([{ message: 'The disk is gone' }])
  say('a', 4, 7)
  expect(failures.slice(1).map(String)).toEqual(Array(2).fill(expect.stringContaining('1 events')))
  state.broken = false
  clock.advance(1_000)
  expect(await numbers('a')).toEqual([3, 4, 5, 6, 7])
})

it('a session that is over for all leaves nothing; one that is over here alone leaves it to others', async () => {
  const { logs, say, numbers, inner } = world()
  for (const session of ['here', 'all']) {
    logs.begin(session, 'a', listening)
    say('a', 1, 2, 'x', session)
    await numbers('a', 0, session)
  }
  await logs.dropSession('here', false)
  expect(await numbers('a', 0, 'here')).toEqual([1, 2])
  const [record] = (await inner.scan('streams/')).filter(({ value }) => value.includes('gone'))
  expect(JSON.parse(record?.value ?? '{}')).toEqual({ runner: 'one', listening: false, over: 'gone' })
  await logs.dropSession('all', true)
  expect(await numbers('a', 0, 'all')).toEqual([])
  expect(await inner.scan('streams/')).toHaveLength(1)
})
