import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { PendingCalls } from './pending-calls.ts'

describe('Waiting', () => {
  it('finds what a map would find, however long some wait', () => {
    const steps = fc.array(fc.record({ ends: fc.boolean(), which: fc.nat(50) }), { maxLength: 500 })
    fc.assert(
      fc.property(steps, list => {
        const waiting = new PendingCalls<{ id: number }>()
        const model = new Map<number, { id: number }>()
        let next = 1
        for (const { ends, which } of list) {
          const id = [...model.keys()][which]
          if (ends && id !== undefined) {
            waiting.delete(id)
            model.delete(id)
            expect(waiting.get(id)).toBeUndefined()
          } else {
            const waiter = { id: next++ }
            waiting.add(waiter)
            model.set(waiter.id, waiter)
          }
        }
        for (const [id, waiter] of model) expect(waiting.get(id)).toBe(waiter)
        expect(new Set(waiting.all())).toEqual(new Set(model.values()))
      }),
    )
  })

  it.each(['1', '0x1', 1.5, 65, 1e300, Number.NaN, -63, ''])('does not take %s for 1', id => {
    const waiting = new PendingCalls<{ id: string | number }>()
    const waiter = { id: 1 }
    waiting.add(waiter)
    expect(waiting.get(id)).toBeUndefined()
    waiting.delete(id)
    expect(waiting.get(1)).toBe(waiter)
  })

  it('is not misled by what is no id at all', () => {
    const waiting = new PendingCalls<{ id: number }>()
    waiting.add({ id: 1 })
    for (const id of [null, undefined, {}, [1], true]) expect(waiting.get(id as never)).toBeUndefined()
  })
})
