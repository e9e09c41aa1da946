import { afterEach, describe, expect, it } from 'vitest'
import { type StoreKind, storeKinds, storesUnderTest } from '../../../test/stores-under-test.ts'
import type { Why } from '../../core/suggestion.ts'
import { memoryStore } from '../../stores/memory.ts'
import type { Store } from '../../stores/store.ts'
import { type BudgetLimit, HostBudgets } from './budgets.ts'

type Estimate = Parameters<HostBudgets['reserve']>[0]
type Reserved = Awaited<ReturnType<HostBudgets['reserve']>>
type BudgetReservation = Exclude<Reserved, { readonly code: string }>

function isBudgetRefusal(reserved: Reserved): reserved is Exclude<Reserved, BudgetReservation> {
  return 'code' in reserved
}

const stores = storesUnderTest()
const opened: Store[] = []
afterEach(async () => {
  for (const store of opened.splice(0)) await store.close()
})

async function world(kind: StoreKind, limits: readonly BudgetLimit[]) {
  const clock = stores.clock()
  await clock.advance(86_400_000 - (clock.now() % 86_400_000))
  const store = await stores.open(kind, clock)
  opened.push(store)
  const warned: Why[] = []
  let ids = 0
  const start = () => new HostBudgets({ store, limits, clock, id: () => `b${++ids}`, onWarn: what => warned.push(what) })
  return { clock, start, warned }
}

const memory = { server: 'memory', featureSet: 'memory.consolidation' }

async function got(budgets: HostBudgets, estimate: Estimate): Promise<BudgetReservation> {
  const reserved = await budgets.reserve(estimate)
  if (isBudgetRefusal(reserved)) throw new Error(reserved.message)
  return reserved
}

const spend = async (budgets: HostBudgets, estimate: Estimate) =>
  (await got(budgets, estimate)).settle(estimate as { requests?: 1 })

describe.each(storeKinds)('budgets of a host on %s', kind => {
  const daily: BudgetLimit = { name: 'daily', counts: 'tokens', most: 1_000, per: '1d' }

  it('what is reserved is gone until it is settled, for all processes', async () => {
    const { start } = await world(kind, [daily])
    const [one, two] = [start(), start()]
    const first = await got(one, { ...memory, tokens: 800 })
    expect(await two.reserve({ ...memory, tokens: 300 })).toMatchObject({
      code: 'QUOTA_EXHAUSTED',
      rule: 'budgets.daily',
      retryAfterMs: 86_400_000,
      fix: expect.stringContaining('Raise the limit of budget daily'),
    })
    await first.settle({ tokens: 100 })
    expect(isBudgetRefusal(await two.reserve({ ...memory, tokens: 300 }))).toBe(false)
  })

  it('each server has its own, or each feature set, or all together, in each window anew', async () => {
    const { start, clock } = await world(kind, [
      { name: 'sets', counts: 'requests', most: 1, per: '1h', by: 'featureSet', server: 'memory' },
      { name: 'all', counts: 'requests', most: 3, per: '1h', by: 'all' },
    ])
    const budgets = start()
    const rule = async (server: string, featureSet: string) => {
      const reserved = await budgets.reserve({ server, featureSet })
      return isBudgetRefusal(reserved) ? reserved.rule : 'ok'
    }
    const rules = []
    for (const [server, set] of ['memory a', 'memory a', 'memory b', 'chat a', 'chat a'].map(text => text.split(' ')))
      rules.push(await rule(server ?? '', set ?? ''))
    expect(rules).toEqual(['ok', 'budgets.sets', 'ok', 'ok', 'budgets.all'])
    await clock.advance(3_600_000)
    expect(await rule('memory', 'a')).toBe('ok')
  })

  it('tokens, money and requests count beside each other, and a refusal of one takes nothing of the others', async () => {
    const { start } = await world(kind, [daily, { name: 'purse', counts: 'money', most: 0.5, per: '1d' }])
    const budgets = start()
    expect(await budgets.reserve({ ...memory, tokens: 900, money: 0.4 })).toHaveProperty('settle')
    expect(await budgets.reserve({ ...memory, tokens: 100, money: 0.2 })).toMatchObject({ rule: 'budgets.purse' })
    expect(await budgets.reserve({ ...memory, tokens: 100, money: 0.1 })).toHaveProperty('settle')
    expect(await budgets.reserve({ ...memory, money: 0.6 })).toMatchObject({ code: 'BUDGET_EXCEEDED', rule: 'budgets.purse' })
  })

  it('warns once in a window when most of it is gone', async () => {
    const { start, warned, clock } = await world(kind, [{ ...daily, warnAt: 0.5 }])
    const budgets = start()
    await spend(budgets, { ...memory, tokens: 400 })
    expect(warned).toEqual([])
    await spend(budgets, { ...memory, tokens: 100 })
    await spend(budgets, { ...memory, tokens: 100 })
    expect(warned).toMatchObject([{ code: 'BUDGET_WARNING', rule: 'budgets.daily' }])
    await clock.advance(86_400_000)
    await spend(budgets, { ...memory, tokens: 600 })
    expect(warned).toHaveLength(2)
  })

  it('says who spent what, also what no limit is about, by days', async () => {
    const { start, clock } = await world(kind, [{ ...daily, server: 'memory' }])
    const budgets = start()
    const day = new Date(clock.now()).toISOString().slice(0, 10)
    await spend(budgets, { ...memory, tokens: 10, money: 0.1 })
    await spend(budgets, { server: 'a/b', featureSet: 'x', tokens: 5, money: 0.2 })
    await (await got(budgets, { ...memory, tokens: 50 })).settle({ requests: 0 })
    await clock.advance(86_400_000)
    await spend(budgets, { ...memory, tokens: 1, money: 0.2 })
    expect(await budgets.spent()).toEqual([
      { ...memory, tokens: 11, money: 0.3, requests: 2 },
      { server: 'a/b', featureSet: 'x', tokens: 5, money: 0.2, requests: 1 },
    ])
    expect(await budgets.spent({ to: day })).toMatchObject([{ server: 'a/b' }, { tokens: 10 }])
    expect(await budgets.spent({ from: new Date(clock.now()).toISOString().slice(0, 10) })).toMatchObject([{ tokens: 1 }])
  })
})

it.each([
  [{ name: '' }, 'the name is missing'],
  [{ counts: 'euros' }, 'counts must be one of'],
  [{ most: -1 }, 'most must be a number above 0 and up to 1000000000, not -1'],
  [{ per: '1ms' }, 'per must be at least 1s'],
  [{ warnAt: 2 }, 'warnAt must be above 0 and at most 1, not 2'],
  [{ sever: 'x' }, 'sever is not known'],
])('a mistake in a budget is told: %j', (wrong, message) => {
  const limit = { name: 'x', counts: 'tokens', most: 1, per: '1h', ...wrong } as BudgetLimit
  expect(() => new HostBudgets({ store: memoryStore(), limits: [limit] })).toThrow(message)
})
