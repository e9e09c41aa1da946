/** A store that goes away between an effect and its record: whoever repeats the call gets a definite answer, and nothing runs twice. */
import { afterEach, describe, expect, it } from 'vitest'
import { createServer, type Server } from '../../src/server/index.ts'
import { type Store, StoreError } from '../../src/stores/store.ts'
import { codeOf, call as keyed, replayOf } from '../reliability/keyed-world.ts'
import { errorOf, type Frame, resultOf, speak, textOf, type Wire } from '../spec/wire.ts'
import { type StoreClock, storeKinds, storesUnderTest } from '../stores-under-test.ts'

const stores = storesUnderTest()
const ends: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

/** `away`: nothing can be written. `deaf`: it is written, but the answer is lost. */
type Condition = 'well' | 'away' | 'deaf'

function failing(inner: Store): Store & { condition: Condition } {
  const made = {
    condition: 'well' as Condition,
    get: (key: string) => inner.get(key),
    scan: (prefix: string, options?: object) => inner.scan(prefix, options),
    read: (log: string, options?: object) => inner.read(log, options),
    watch: (prefixes: readonly string[], signal: AbortSignal) => inner.watch(prefixes, signal),
    close: async () => {},
    commit: async (ops: Parameters<Store['commit']>[0]) => {
      if (made.condition === 'away') throw new StoreError('failed', 'Connection refused')
      const outcome = await inner.commit(ops)
      if (made.condition === 'deaf') throw new StoreError('failed', 'Connection reset')
      return outcome
    },
  }
  return made
}

const capabilities = {
  extensions: { 'dev.vivarium/idempotency': {}, 'dev.vivarium/problem': {}, 'dev.vivarium/transactions': {} },
}

/** Two processes on one store; the way of the first to it can be cut. */
async function pair(kind: (typeof storeKinds)[number]) {
  const clock: StoreClock = stores.clock()
  const inner = await stores.open(kind, clock)
  ends.push(() => inner.close())
  const way = failing(inner)
  const runs: string[] = []
  let during = (): void => {}
  const start = async (store: Store): Promise<{ server: Server; wire: Wire }> => {
    const server = createServer({ name: 'pay', version: '1.0.0', log: 'silent', store, clock, idempotency: { join: '0ms' } })
    ends.push(() => server.close())
    const pay = () => {
      runs.push('paid')
      during()
      return `payment ${runs.length}`
    }
    server.tool('pay', { undo: { tool: 'refund' } }, pay)
    server.tool('refund', { idempotent: true }, () => {
      runs.push('refunded')
      return 'refunded'
    })
    server.tool('hold', {}, (_, ctx) => {
      return new Promise<string>(resolve => ctx.signal.addEventListener('abort', () => resolve('stopped')))
    })
    return { server, wire: await speak(server, '2026-07-28', { principal: 'ann', capabilities }) }
  }
  const one = await start(way)
  const two = await start(inner)
  const duringPay = (fn: () => void): void => {
    during = fn
  }
  return { clock, way, runs, one: one.wire, two: two.wire, duringPay }
}

const pay = (wire: Wire): Promise<Frame> => wire.ask('tools/call', keyed('pay', 'k'))

describe.each(storeKinds)('on %s', kind => {
  it('E5-6: a result that could not be written is written when the store is back, and given to whoever repeats it anywhere', async () => {
    const { clock, way, runs, one, two, duringPay } = await pair(kind)
    // Something else runs there all the time, so that its process never looks dead.
    void one.ask('tools/call', keyed('hold', 'other')).catch(() => {})
    duringPay(() => {
      way.condition = 'away'
    })
    expect(textOf(await pay(one))).toBe('payment 1')
    expect(codeOf(await pay(two))).toBe('IDEMPOTENCY_IN_PROGRESS')
    way.condition = 'well'
    await expect
      .poll(async () => {
        await clock.advance(300)
        return codeOf(await pay(two))
      })
      .toBeUndefined()
    const again = await pay(two)
    expect([textOf(again), replayOf(again)['was_replay'], runs]).toEqual(['payment 1', true, ['paid']])
  })

  it('E5-6: whoever repeats it in the same process need not wait for that', async () => {
    const { way, runs, one, duringPay } = await pair(kind)
    duringPay(() => {
      way.condition = 'away'
    })
    await pay(one)
    expect(codeOf(await pay(one))).toBe('SERVER_UNAVAILABLE')
    way.condition = 'well'
    expect([textOf(await pay(one)), runs]).toEqual(['payment 1', ['paid']])
  })

  it('E5-6: a result that was written although the store said no is given, and the call is not run again', async () => {
    const { way, runs, one, two, duringPay } = await pair(kind)
    duringPay(() => {
      way.condition = 'deaf'
    })
    await pay(one)
    way.condition = 'well'
    for (const wire of [two, one]) expect(textOf(await pay(wire))).toBe('payment 1')
    expect(runs).toEqual(['paid'])
  })

  it('E5-6: a process that dies with it leaves an unknown outcome, once its lease is over', async () => {
    const { clock, way, runs, one, two, duringPay } = await pair(kind)
    duringPay(() => {
      way.condition = 'away'
    })
    await pay(one)
    await clock.advance(6_001)
    expect([codeOf(await pay(two)), runs]).toEqual(['OUTCOME_UNKNOWN', ['paid']])
  })

  it('E5-4: a claim whose answer was lost was never begun: it is taken back, and the call runs once', async () => {
    const { clock, way, runs, one, two } = await pair(kind)
    void one.ask('tools/call', keyed('hold', 'other')).catch(() => {})
    await expect
      .poll(async () => resultOf(await one.ask('idempotency/get', { idempotency_key: 'other' }))['status'])
      .toBe('running')
    way.condition = 'deaf'
    expect(codeOf(await pay(one))).toBe('SERVER_UNAVAILABLE')
    way.condition = 'well'
    await expect
      .poll(async () => {
        await clock.advance(300)
        return codeOf(await pay(two))
      })
      .toBeUndefined()
    expect([textOf(await pay(one)), runs]).toEqual(['payment 1', ['paid']])
  })

  it('E5-18: a step whose end could not be written comes to a definite end, and the transaction with it', async () => {
    const { clock, way, runs, one, two, duringPay } = await pair(kind)
    void one.ask('tools/call', keyed('hold', 'other')).catch(() => {})
    await one.ask('transaction/begin', { transaction_id: 't', timeout_seconds: 60 })
    duringPay(() => {
      way.condition = 'away'
    })
    const step = { name: 'pay', arguments: {}, _meta: { 'dev.vivarium/transactions': { transaction_id: 't' } } }
    await one.ask('tools/call', step)
    way.condition = 'well'
    const ended = async (): Promise<unknown> => {
      await clock.advance(5_000)
      const found = await two.ask('transaction/get', { transaction_id: 't' })
      return found['error'] === undefined ? resultOf(found)['status'] : errorOf(found).message
    }
    await expect.poll(ended).toMatch(/^(partially_)?rolled_back$/)
    expect(runs.filter(run => run === 'paid')).toHaveLength(1)
  })
})
