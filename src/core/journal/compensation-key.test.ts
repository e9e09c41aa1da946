import fc from 'fast-check'
import { expect, it } from 'vitest'
import { compensationKey } from './unit.ts'

it('E5-17: the key of a compensation names the transaction and the step', async () => {
  expect(await compensationKey('tx-1', 'make')).toBe('compensate-tx-1-make')
})

it('E5-17: two steps never share the key of their compensation, and each is a key that servers take', async () => {
  const id = fc.stringMatching(/^[ab\-_ é]{1,6}$/)
  const pair = fc.tuple(id, id)
  await fc.assert(
    fc.asyncProperty(pair, pair, async (one, other) => {
      const keys = [await compensationKey(...one), await compensationKey(...other)]
      for (const key of keys) expect(key).toMatch(/^[a-zA-Z0-9_\-:.]{1,128}$/)
      expect(keys[0] === keys[1]).toBe(one.join('\n') === other.join('\n'))
    }),
    {
      examples: [
        [
          ['a', 'b-a'],
          ['a-b', 'a'],
        ],
        [
          ['a b', 'a'],
          ['a_b', 'a'],
        ],
      ],
    },
  )
})

it('E5-17: steps of a transaction with a long id keep keys of their own', async () => {
  const unit = 'x'.repeat(128)
  expect(await compensationKey(unit, '1')).not.toBe(await compensationKey(unit, '2'))
})
