import { describe, expect, it } from 'vitest'
import { readJson } from '../json-text/read.ts'
import { alternativeOf, faultsOf, fits } from './fit.ts'
import { shapeOf } from './shape.ts'
import { beginOf, startOf } from './start.ts'
import { isUnfinished, readText, Typed, withMember, writeText } from './typed.ts'

const order = {
  type: 'object',
  properties: {
    item: { type: 'string', minLength: 2 },
    loaves: { type: 'integer', minimum: 1, default: 1 },
    when: { anyOf: [{ type: 'string', format: 'date' }, { type: 'null' }] },
    size: { enum: ['small', 'large', 3] },
    to: { $ref: '#/$defs/place' },
    tags: { type: 'array', items: { type: 'string' } },
  },
  required: ['item', 'to'],
  $defs: {
    place: { type: 'object', properties: { street: { type: 'string' }, near: { $ref: '#/$defs/place' } }, required: ['street'] },
  },
}
const kind = (schema: unknown) => shapeOf(schema, schema).kind

describe('the shape of a schema', () => {
  it('names the control of each type', () => {
    expect(['string', 'number', 'integer', 'boolean', 'array', 'object'].map(type => kind({ type, items: {} }))).toEqual([
      'text',
      'number',
      'number',
      'boolean',
      'list',
      'object',
    ])
    expect(kind({ const: 'a' })).toBe('values')
    expect(kind({ properties: {} })).toBe('object')
    expect(kind({ type: ['string', 'null'] })).toBe('alternatives')
    expect(shapeOf({ oneOf: [{ const: 'a' }, { const: 'b' }] }, {})).toMatchObject({ kind: 'values', values: ['a', 'b'] })
  })

  it.each([
    [true],
    [false],
    [null],
    [{}],
    [{ type: 'array' }],
    [{ type: 'object', allOf: [{}, {}] }],
    [{ $ref: '#' }],
    [{ type: 'unheard' }],
    [{ $ref: 'https://example.com/schema.json' }],
    [{ $ref: '#/$defs/%' }],
    [{ type: 'array', items: {}, prefixItems: [{}] }],
  ])('leaves to JSON what no control can say: %j', schema => expect(kind(schema)).toBe('json'))

  it('follows references, and keeps the description beside them', () => {
    const schema = {
      $defs: { 'a/b': { type: 'string', title: 'Far' } },
      properties: { x: { $ref: '#/$defs/a~1b', description: 'near' } },
    }
    expect(shapeOf(schema.properties.x, schema)).toMatchObject({ kind: 'text', title: 'Far', description: 'near' })
    expect(shapeOf({ allOf: [{ $ref: '#/$defs/a~1b' }] }, schema).kind).toBe('text')
  })

  it('names alternatives by title, constant or type, and gives each the members that stand beside them', () => {
    const shape = shapeOf(
      {
        type: 'object',
        properties: { id: { type: 'string' } },
        required: ['id'],
        oneOf: [{ title: 'By hand' }, { properties: { kind: { const: 'cat' } }, required: ['kind'] }],
      },
      {},
    )
    expect(shape).toMatchObject({
      kind: 'alternatives',
      alternatives: [{ title: 'By hand' }, { title: 'cat', schema: { required: ['id', 'kind'] } }],
    })
  })
})

describe('the value of a form', () => {
  it('begins with defaults and with required objects, also where the schema contains itself', () => {
    expect(startOf(order, order)).toEqual({ loaves: 1, to: {} })
    const endless = { type: 'object', properties: { again: { $ref: '#' } }, required: ['again'] }
    expect(JSON.stringify(startOf(endless, endless)).length).toBeLessThan(200)
    expect(beginOf({ type: 'string' }, {})).toBe('')
    const circle = { anyOf: [{ $ref: '#' }, { type: 'string' }] }
    expect(beginOf(circle, circle)).toBeNull()
  })

  it('tells each mistake at its field', () => {
    const faults = faultsOf({ item: 'x', loaves: 1.5, size: 'huge', tags: ['a', 2], near: new Typed('{', 'no end') }, order)
    expect([...faults.keys()].sort()).toEqual(['/item', '/loaves', '/near', '/size', '/tags/1', '/to'])
    expect(faults.get('/to')).toBe('This is required.')
    expect(faultsOf({ item: 'bread', to: { street: 'A', near: { street: 'B' } } }, order).size).toBe(0)
  })

  it('is shown by the alternative that it fits best', () => {
    const alternatives = [
      { schema: { type: 'string' } },
      { schema: { type: 'object', required: ['a'], properties: { a: {} } } },
      { schema: { type: 'object' } },
    ]
    expect(['x', { a: 1 }, { b: 1 }, 7].map(value => alternativeOf(value, alternatives, {}))).toEqual([0, 1, 2, 0])
  })

  it('is judged in bounded time, whatever the schema', () => {
    const each = { type: 'object', properties: { a: { $ref: '#/$defs/any' } } }
    const schema = {
      $ref: '#/$defs/any',
      $defs: { any: { anyOf: [each, each, each, each, { type: 'string', pattern: '(a+)+$' }] } },
    }
    let value: unknown = `${'a'.repeat(60)}!`
    for (let depth = 0; depth < 30; depth++) value = { a: value }
    expect(faultsOf(value, schema).size).toBeLessThan(50)
  })

  it('goes through JSON and back without a change, whatever was typed', () => {
    const value = { text: '<b>"\\u0041"\n\t\u202e\\n', number: 1.5, list: [[], {}, null], ['__proto__']: { a: '' } }
    expect(readText(writeText(value))).toEqual(value)
    expect(readText('')).toBeUndefined()
  })

  it('keeps characters that are no value as they were typed', () => {
    const value = { loaves: readText('3x'), item: 'bread' }
    expect(isUnfinished(value)).toBe(true)
    expect(writeText(value)).toBe('{\n  "loaves": 3x,\n  "item": "bread"\n}')
    expect(readJson(writeText(value))).toMatchObject({ fault: { line: 2 } })
  })

  it('keeps its order when a member changes, and takes a member with any name', () => {
    expect(Object.keys(withMember({ b: 1, a: 2 }, 'b', 3))).toEqual(['b', 'a'])
    expect(withMember({ b: 1 }, 'b', undefined)).toEqual({})
    expect(Object.keys(withMember({}, '__proto__', 1))).toEqual(['__proto__'])
  })

  it('that does not fit its control is edited as JSON', () => {
    expect(fits('3', { kind: 'number', whole: false })).toBe(false)
    expect(fits(new Typed('3x', ''), { kind: 'number', whole: false })).toBe(true)
    expect(fits({ a: 1 }, { kind: 'values', values: [{ a: 1 }] })).toBe(true)
  })
})
