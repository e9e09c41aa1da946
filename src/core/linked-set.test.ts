import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type LinkedItem, LinkedSet } from './deadlines.ts'

class Thing implements LinkedItem {
  place = -1
}

describe('Bag', () => {
  it('holds what a set would hold, whatever comes and goes', () => {
    const steps = fc.array(fc.record({ add: fc.boolean(), which: fc.nat(9) }), { maxLength: 200 })
    fc.assert(
      fc.property(steps, list => {
        const things = Array.from({ length: 10 }, () => new Thing())
        const bag = new LinkedSet<Thing>()
        const model = new Set<Thing>()
        for (const { add, which } of list) {
          const thing = things[which] as Thing
          if (!add) expect(bag.delete(thing)).toBe(model.delete(thing))
          else if (!model.has(thing)) {
            bag.add(thing)
            model.add(thing)
          }
          expect(bag.size).toBe(model.size)
        }
        expect(new Set(bag.all())).toEqual(model)
        for (const thing of things) expect(thing.place === -1).toBe(!model.has(thing))
      }),
    )
  })

  it('may be emptied while it is looked through', () => {
    const bag = new LinkedSet<Thing>()
    for (let n = 0; n < 5; n++) bag.add(new Thing())
    for (const thing of bag.all()) bag.delete(thing)
    expect([bag.size, bag.all()]).toEqual([0, []])
  })
})
