import { expect, test } from 'vitest'
import { signature } from './arguments.ts'

const object = (properties: object, required: readonly string[] = []) => ({ type: 'object', properties, required })

test('a schema reads like the signature of a function', () => {
  const input = object(
    { a: { type: 'number' }, b: { type: 'integer', default: 1 }, tags: { type: 'array', items: { enum: ['x', 'y'] } } },
    ['a'],
  )
  expect(signature('add', input, object({ sum: { type: 'number' } }, ['sum']))).toBe(
    'add(a: number, b?: integer = 1, tags?: ("x" | "y")[]) → { sum: number }',
  )
})

test('unions, references and what is nested deeply stay on one line', () => {
  const input = {
    ...object({
      of: { $ref: '#/$defs/of' },
      one: { anyOf: [{ type: 'string' }, { type: 'null' }] },
      two: { type: ['string', 'number'] },
    }),
    $defs: { of: object({ in: object({ deep: object({ x: {} }) }) }) },
  }
  expect(signature('f', input)).toBe('f(of?: { in?: { deep?: {…} } }, one?: string | null, two?: string | number)')
})

test('a reference in a circle, or to elsewhere, is anything', () => {
  expect(signature('f', { ...object({ a: { $ref: '#/$defs/a' } }), $defs: { a: { $ref: '#/$defs/a' } } })).toBe('f(a?: any)')
  expect(signature('f', object({ a: { $ref: 'https://example.com/x' } }))).toBe('f(a?: any)')
})
