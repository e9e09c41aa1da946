import fc from 'fast-check'
import { afterEach, describe, expect, test } from 'vitest'
import { type StoreKind, storeKinds, storesUnderTest } from '../../../test/stores-under-test.ts'
import { put, type Store } from '../../stores/store.ts'
import { ProcessLeases } from '../journal/process-leases.ts'
import { Budgets, type Reservation } from './budgets.ts'
import type { GrantTerms } from './grant.ts'
import { Grants } from './grants.ts'
import { type Quota, refundOps } from './quota.ts'

const tenUnits: GrantTerms = { effect: 'budget', action: 'call', resource: '*', units: 10, standing: true, source: 'operator' }
const costing = (units: number) => ({ action: 'call', resource: 'search', units })

const stores = storesUnderTest()
const opened: Store[] = []
afterEach(async () => {
  for (const store of opened.splice(0)) await store.close()
})

/** Processes on one store and one clock; `silence` is what others see of one that died. */
async function world(kind: StoreKind, reservations?: number) {
  const clock = stores.clock()
  const store = await stores.open(kind, clock)
  opened.push(store)
  let ids = 0
  const id = () => `i${++ids}`
  const grants = new Grants({ store, clock, id })
  const start = () => {
    const runners = new ProcessLeases({ store, clock, id: `process-${id()}` })
    const budgets = new Budgets({ grants, runners, id, ...(reservations !== undefined && { reservations }) })
    const silence = async () => {
      runners.close()
      await clock.advance(6_001)
    }
    return { budgets, silence }
  }
  return { clock, store, grants, start }
}

function got(reservation: Reservation | undefined): Reservation {
  if (reservation === undefined) throw new Error('no budget covers the call')
  return reservation
}

describe.each(storeKinds)('budgets on %s', kind => {
  test('X9: what is reserved is gone until it is settled, and then what was spent is', async () => {
    const { grants, start } = await world(kind)
    const { budgets } = start()
    const { id } = await grants.issue('ann', tenUnits, 60_000)
    const reservation = got(await budgets.reserve('ann', costing(4)))
    expect(await budgets.left('ann', id)).toBe(6)
    expect(await reservation.settle(1.5)).toBe(true)
    expect(await budgets.left('ann', id)).toBe(8.5)
    await expect(reservation.settle(1)).rejects.toThrow('already')
  })

  test('X9, E3-2: calls at once, in two processes, never reserve more than there is', async () => {
    const { grants, start } = await world(kind)
    const processes = [start().budgets, start().budgets]
    await grants.issue('ann', tenUnits, 60_000)
    const outcomes = await Promise.allSettled(
      Array.from({ length: 8 }, (_, i) => (processes[i % 2] as Budgets).reserve('ann', costing(3))),
    )
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(3)
    const refused = outcomes.find(({ status }) => status === 'rejected')
    expect(refused).toMatchObject({ reason: { code: 'BUDGET_EXCEEDED', details: { units: 3, left: 1 } } })
  })

  test('X9: what was spent beyond the reservation is counted, and leaves no less than nothing', async () => {
    const { grants, start } = await world(kind)
    const { budgets } = start()
    const { id } = await grants.issue('ann', tenUnits, 60_000)
    await got(await budgets.reserve('ann', costing(1))).settle(12)
    expect(await budgets.left('ann', id)).toBe(0)
    await expect(budgets.reserve('ann', costing(1))).rejects.toMatchObject({ code: 'BUDGET_EXCEEDED' })
  })

  test('X9: what a process had reserved when it died comes back, and once', async () => {
    const { grants, start } = await world(kind)
    const [dead, one, two] = [start(), start(), start()]
    const { id } = await grants.issue('ann', tenUnits, 60_000)
    await dead.budgets.reserve('ann', costing(8))
    await expect(one.budgets.reserve('ann', costing(5))).rejects.toMatchObject({ code: 'BUDGET_EXCEEDED' })
    await dead.silence()
    await Promise.all([one.budgets.reserve('ann', costing(5)), two.budgets.reserve('ann', costing(5))])
    expect(await one.budgets.left('ann', id)).toBe(0)
  })

  test('X9: a process that was only slow still pays what it spent', async () => {
    const { grants, start } = await world(kind)
    const [slow, other] = [start(), start()]
    const { id } = await grants.issue('ann', tenUnits, 60_000)
    const reservation = got(await slow.budgets.reserve('ann', costing(8)))
    await slow.silence()
    await got(await other.budgets.reserve('ann', costing(5))).settle(2)
    expect(await reservation.settle(7)).toBe(true)
    expect(await other.budgets.left('ann', id)).toBe(1)
  })

  test('X9, X10: a reservation that is never settled is given up in the end, though its process lives', async () => {
    const { grants, start, clock } = await world(kind)
    const { budgets } = start()
    await grants.issue('ann', tenUnits, 3_600_000)
    await budgets.reserve('ann', costing(8))
    await clock.advance(599_999)
    await expect(budgets.reserve('ann', costing(8))).rejects.toMatchObject({ code: 'BUDGET_EXCEEDED' })
    await clock.advance(1)
    expect(await budgets.reserve('ann', costing(8))).toBeDefined()
  })

  test('every budget that covers a call must have room, and one that has not takes nothing from the others', async () => {
    const { grants, start } = await world(kind)
    const { budgets } = start()
    const large = await grants.issue('ann', tenUnits, 60_000)
    const small = await grants.issue('ann', { ...tenUnits, resource: 'sea*', units: 2, standing: false }, 60_000)
    const other = await grants.issue('ann', { ...tenUnits, resource: 'mail', units: 1 }, 60_000)
    const presented = [small.id]
    await expect(budgets.reserve('ann', { ...costing(3), presented })).rejects.toMatchObject({ details: { left: 2 } })
    await got(await budgets.reserve('ann', { ...costing(2), presented })).settle(2)
    const left = await Promise.all([large, small, other].map(({ id }) => budgets.left('ann', id)))
    expect(left).toEqual([8, 0, 1])
  })

  test('where no budget covers a call nothing is reserved, and another’s budget is none', async () => {
    const { grants, start } = await world(kind)
    const { budgets } = start()
    const { id } = await grants.issue('ann', tenUnits, 60_000)
    expect(await budgets.reserve('bob', costing(99))).toBeUndefined()
    expect(await budgets.left('bob', id)).toBeUndefined()
  })

  test('X10: reservations of one budget are so many at once, and leave nothing when it has ended', async () => {
    const { grants, start, store, clock } = await world(kind, 2)
    const { budgets } = start()
    await grants.issue('ann', tenUnits, 60_000)
    const first = got(await budgets.reserve('ann', costing(0)))
    await budgets.reserve('ann', costing(0))
    await expect(budgets.reserve('ann', costing(0))).rejects.toMatchObject({ code: 'SERVER_UNAVAILABLE', retryable: true })
    await first.settle(0)
    await budgets.reserve('ann', costing(0))
    await clock.advance(121_000)
    expect(await store.scan('budget/')).toEqual([])
  })

  test('what is written with a settlement is written with it or not at all', async () => {
    const { grants, start, store } = await world(kind)
    const { budgets } = start()
    const { id } = await grants.issue('ann', tenUnits, 60_000)
    await store.commit([put('taken', '')])
    const reservation = got(await budgets.reserve('ann', costing(4)))
    expect(await reservation.settle(4, { also: [put('taken', '', { ifAbsent: true })] })).toBe(false)
    expect(await budgets.left('ann', id)).toBe(6)
  })
})

test('X9: a reservation is refused exactly where it would overdraw, and in the end exactly what was spent is gone', async () => {
  const units = fc.integer({ min: 0, max: 9 })
  const act = fc.record({ process: fc.nat(1), reserve: units, spend: units, settles: fc.boolean() })
  await fc.assert(
    fc.asyncProperty(fc.array(act, { maxLength: 12 }), async acts => {
      const { grants, start } = await world('memory')
      const processes = [start(), start()]
      const { id } = await grants.issue('ann', { ...tenUnits, units: 20 }, 3_600_000)
      let [spent, reserved] = [0, 0]
      for (const { process, reserve, spend, settles } of acts) {
        const { budgets } = processes[process] as ReturnType<typeof start>
        const reservation = await budgets.reserve('ann', costing(reserve)).catch(() => undefined)
        expect(reservation === undefined).toBe(spent + reserved + reserve > 20)
        if (reservation === undefined) continue
        if (settles) await reservation.settle(spend)
        if (settles) spent += spend
        else reserved += reserve
      }
      for (const { silence } of processes) silence()
      const last = start().budgets
      const whole = await last.reserve('ann', costing(20)).catch(() => undefined)
      await whole?.settle(0)
      expect(await last.left('ann', id)).toBe(Math.max(0, 20 - spent))
    }),
  )
})

const twoCalls: Quota = { name: 'search', counts: 'calls', most: 2, periodMs: 60_000 }

describe.each(storeKinds)('quotas on %s', kind => {
  test('E3-4: a quota counts once for each call that was made, in all processes, and not those that were not begun', async () => {
    const { start } = await world(kind)
    const [one, two] = [start().budgets, start().budgets]
    const first = got(await one.reserve('ann', { ...costing(7), quotas: [twoCalls] }))
    await first.settle(0, { calls: 0 })
    for (const budgets of [one, two]) await got(await budgets.reserve('ann', { ...costing(7), quotas: [twoCalls] })).settle(7)
    const over = two.reserve('ann', { ...costing(7), quotas: [twoCalls] })
    await expect(over).rejects.toMatchObject({ code: 'QUOTA_EXHAUSTED', details: { remaining: 0 } })
    expect(await two.reserve('bob', { ...costing(7), quotas: [twoCalls] })).toBeDefined()
  })

  test('E3-5: a quota that is used up says how long it is until the next period, which begins whole', async () => {
    const { start, clock } = await world(kind)
    const { budgets } = start()
    const quotas: readonly Quota[] = [{ name: 'all', counts: 'units', most: 10, periodMs: 60_000 }]
    await clock.advance(60_000 - (clock.now() % 60_000) + 1_500)
    await got(await budgets.reserve('ann', { ...costing(8), quotas })).settle(8)
    await expect(budgets.reserve('ann', { ...costing(3), quotas })).rejects.toMatchObject({
      code: 'QUOTA_EXHAUSTED',
      retryAfter: 58_500,
    })
    // What costs more than there ever is gets no better by waiting.
    await expect(budgets.reserve('ann', { ...costing(11), quotas })).rejects.toMatchObject({ code: 'BUDGET_EXCEEDED' })
    await clock.advance(58_500)
    const next = got(await budgets.reserve('ann', { ...costing(3), quotas }))
    expect((await next.quotas()).map(({ remaining }) => remaining)).toEqual([7])
  })

  test('X9: what was paid for something that is taken back is given back where it was kept for that, and once', async () => {
    const { start, store, clock, grants } = await world(kind)
    const { budgets } = start()
    const { id } = await grants.issue('ann', tenUnits, 60_000)
    await got(await budgets.reserve('ann', costing(4))).settle(3, { refundable: 'ann/step' })
    await got(await budgets.reserve('ann', costing(4))).settle(2)
    const [ops, again] = [await refundOps(store, clock, 'ann/step'), await refundOps(store, clock, 'ann/step')]
    expect((await store.commit([...ops])).ok).toBe(true)
    expect((await store.commit([...again])).ok).toBe(false)
    expect(await budgets.left('ann', id)).toBe(8)
    expect(await refundOps(store, clock, 'ann/step')).toEqual([])
  })
})
