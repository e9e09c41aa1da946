import fc from 'fast-check'
import { expect, test } from 'vitest'
import { fillValues, matchFrame } from './difference.ts'

const none: ReadonlyMap<string, unknown> = new Map()

test('a frame meets itself, and no other', () => {
  const plain = fc.jsonValue().filter(value => !JSON.stringify(value).includes('$') && !JSON.stringify(value).includes('<'))
  fc.assert(fc.property(plain, value => void expect(matchFrame(value, structuredClone(value), none)).toBeDefined()))
  fc.assert(
    fc.property(plain, plain, (written, actual) => {
      fc.pre(JSON.stringify(written) !== JSON.stringify(actual))
      const same = matchFrame(written, actual, none) !== undefined
      // Members may come in another order.
      if (same) expect(actual).toEqual(written)
    }),
  )
})

test('a member too many and a member too few are both told', () => {
  expect(matchFrame({ a: 1 }, { a: 1, b: 2 }, none)).toBeUndefined()
  expect(matchFrame({ a: 1, b: 2 }, { a: 1 }, none)).toBeUndefined()
  expect(matchFrame([1], [1, 2], none)).toBeUndefined()
})

test('a name takes any value once, and then only that one', () => {
  const taken = matchFrame({ id: '$id', again: '$id' }, { id: { x: 1 }, again: { x: 1 } }, none)
  expect(taken?.get('$id')).toEqual({ x: 1 })
  expect(matchFrame({ id: '$id', again: '$id' }, { id: 1, again: 2 }, none)).toBeUndefined()
  expect(matchFrame('$id', 8, new Map([['$id', 7]]))).toBeUndefined()
})

test('a failed match takes nothing', () => {
  const values = new Map<string, unknown>()
  expect(matchFrame(['$a', 1], ['x', 2], values)).toBeUndefined()
  expect(values.size).toBe(0)
})

test('a type takes what is of it', () => {
  expect(matchFrame(['<string>', '<number>', '<boolean>', '<object>', '<any>'], ['', 0, false, {}, null], none)).toBeDefined()
  for (const [type, value] of [
    ['<string>', 1],
    ['<number>', '1'],
    ['<object>', []],
    ['<object>', null],
  ] as const)
    expect(matchFrame(type, value, none)).toBeUndefined()
})

test('known names are filled in wherever they stand, unknown ones stay', () => {
  expect(fillValues({ a: ['$x', { b: '$y' }] }, new Map<string, unknown>([['$x', { deep: true }]]))).toEqual({
    a: [{ deep: true }, { b: '$y' }],
  })
})
