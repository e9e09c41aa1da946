import { describe, expect, it } from 'vitest'
import { array, dictionary, integer, object, oneOf, optional, record, string, token } from './shape.ts'

const shape = object({
  name: string,
  size: optional(integer),
  tags: optional(array(object({ label: string }))),
  level: optional(oneOf('low', 'high')),
  more: optional(dictionary(string)),
})

describe('a shape', () => {
  it('lets members pass that it does not know', () => {
    expect(shape.check({ name: 'a', other: 1 })).toBeUndefined()
  })

  it.each([
    [{}, 'name', 'a string'],
    [{ name: 1 }, 'name', 'a string'],
    [{ name: 'a', size: 1.5 }, 'size', 'an integer'],
    [{ name: 'a', tags: [{ label: 'x' }, { label: 2 }] }, 'tags[1].label', 'a string'],
    [{ name: 'a', level: 'middle' }, 'level', 'one of low, high'],
    [{ name: 'a', more: { x: 1 } }, 'more.x', 'a string'],
    [[], '', 'an object'],
    [null, '', 'an object'],
  ])('names the member that is wrong in %j', (value, path, expected) => {
    expect(shape.check(value)).toEqual({ path, expected })
  })

  it('takes a string or a safe integer as an id, and nothing else', () => {
    expect(['a', '', 0, -1, 2 ** 53 - 1].map(id => token.check(id))).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
      undefined,
    ])
    for (const id of [null, 1.5, 2 ** 53, Number.NaN, true, {}]) expect(token.check(id)).toBeDefined()
  })

  it('states itself as JSON Schema with what is required', () => {
    expect(shape.schema()).toMatchObject({ type: 'object', required: ['name'], properties: { size: { type: 'integer' } } })
    expect(record.schema()).toEqual({ type: 'object' })
  })
})
