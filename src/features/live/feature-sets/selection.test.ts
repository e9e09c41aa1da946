import fc from 'fast-check'
import { expect, it } from 'vitest'
import { SelectedSets, selectionIn } from './server.ts'

const names = ['a', 'a.b', 'a.b.c', 'd']
const list = fc.option(fc.subarray([...names, 'a.*', '*', 'none']), { nil: undefined })
const update = fc.record({ enabled: list, disabled: list })

it('a set that is disabled is off, whatever else is said of it', () => {
  fc.assert(
    fc.property(fc.array(update, { maxLength: 5 }), fc.constantFrom('delta', 'whole', 'narrow'), (updates, reading) => {
      const selection = new SelectedSets()
      for (const one of updates) selection.apply(one, names, reading)
      const last = updates.at(-1)
      for (const name of names) {
        if (last?.disabled?.includes(name) === true) expect(selection.enabled(name)).toBe(false)
        expect(selection.enabled(name) && selection.disabled(name)).toBe(false)
        if (reading === 'narrow') expect(selection.enabled(name)).toBe(false)
      }
    }),
  )
})

it('another process finds what was selected', () => {
  fc.assert(
    fc.property(update, one => {
      const [here, there] = [new SelectedSets(), new SelectedSets()]
      here.apply({ ...one, scopes: { a: { whitelist: ['x'] } } }, names, 'whole')
      there.restore(JSON.parse(JSON.stringify(here.save())))
      for (const name of names)
        expect([there.enabled(name), there.disabled(name), there.said]).toEqual([
          here.enabled(name),
          here.disabled(name),
          here.said,
        ])
      expect(there.scopes('a')).toEqual({ whitelist: ['x'] })
    }),
  )
})

it('wildcards cover the names below them, and exact names always work', () => {
  const selection = new SelectedSets()
  selection.apply({ enabled: ['a.*'] }, names, 'delta')
  expect(names.map(name => selection.enabled(name))).toEqual([false, true, true, false])
  selection.apply({ disabled: ['a.b'] }, names, 'delta')
  expect(names.map(name => selection.enabled(name))).toEqual([false, false, true, false])
})

it('what is no selection says nothing', () => {
  for (const value of [true, null, 'x', { enabled: 'a' }, { scopes: { a: 1 } }]) expect(selectionIn(value)).toBeUndefined()
  expect(selectionIn({ enabled: ['a'] })).toEqual({ enabled: ['a'] })
})
