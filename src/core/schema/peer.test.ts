import { describe, expect, it } from 'vitest'
import { compilePeerSchema } from './peer.ts'
import { issueText, type JsonSchema, SchemaError } from './schema.ts'

function said(json: JsonSchema, value: unknown): string {
  const result = compilePeerSchema(json).validate(value)
  return result.ok ? 'ok' : issueText(result.issues)
}

it('checks like any other schema, and leaves the schema as it was', () => {
  const json = Object.freeze({ type: 'object', properties: { id: { type: 'string', pattern: '^[a-z]+$' } }, required: ['id'] })
  expect(said(json, { id: 'abc' })).toBe('ok')
  expect(said(json, { id: 'a1' })).toBe('id: must match the pattern ^[a-z]+$')
  expect(said(json, {})).toBe('id: is required')
  expect(Object.keys(json)).toEqual(['type', 'properties', 'required'])
})

it('follows references to itself, which trees need', () => {
  const tree = {
    type: 'object',
    properties: { children: { type: 'array', items: { $ref: '#' } }, name: { $ref: '#/$defs/name' } },
    $defs: { name: { type: 'string' } },
  }
  expect(said(tree, { children: [{ children: [], name: 'x' }] })).toBe('ok')
  expect(said(tree, { children: [{ children: [{ name: 1 }] }] })).toBe('children[0].children[0].name: must be string')
})

it('equal schemas are prepared once', () => {
  expect(compilePeerSchema({ type: 'string', title: 'once' })).toBe(compilePeerSchema({ type: 'string', title: 'once' }))
})

describe('a schema beyond the limits is refused before it is compiled', () => {
  const nested = (depth: number): JsonSchema => (depth === 0 ? {} : { items: nested(depth - 1) })
  const wide = (count: number) => ({ anyOf: Array.from({ length: count }, () => ({})) })

  it.each<[string, JsonSchema, RegExp]>([
    ['too large', { description: 'x'.repeat(65_536) }, /larger than 65536 bytes/],
    ['too large in bytes, though not in characters', { description: 'ä'.repeat(33_000) }, /larger than 65536 bytes/],
    [
      'far too large to be written down',
      { enum: Array.from({ length: 150_000 }, (_, index) => index) },
      /larger than 65536 bytes/,
    ],
    ['too deep', nested(33), /deeper than 32 levels/],
    ['5,000 levels deep (H9)', nested(5_000), /nested/],
    ['too many subschemas', wide(1_000), /more than 1000 subschemas/],
    [
      'a reference to elsewhere',
      { $ref: 'https://example.com/s' },
      /refers to https:\/\/example\.com\/s, which it does not contain/,
    ],
    ['a reference to what is no schema', { title: 'x', $ref: '#/title' }, /has "x" in place of a schema/],
    ['a reference to nowhere', { $ref: '#/$defs/constructor', $defs: {} }, /which it does not contain/],
    ['a keyword that holds what it may not', { minLength: '3' }, /has "3" as minLength/],
    ['a resource within', { $defs: { a: { $id: 'https://example.com/a' } } }, /a nested \$id/],
    ['names by an evil pattern', { patternProperties: { '^(?=a)': {} } }, /cannot be tested in linear time/],
    ['an unknown dialect', { $schema: 'urn:mine' }, /dialect/],
  ])('%s', (_, json, message) => {
    expect(() => compilePeerSchema(json)).toThrow(SchemaError)
    expect(() => compilePeerSchema(json)).toThrow(message)
  })

  it('and one just within them is taken', () => {
    expect(said(nested(32), [[[1]]])).toBe('ok')
    expect(said(wide(999), 1)).toBe('ok')
  })
})

it('a pattern that has no linear test is left out, and that is said', () => {
  const schema = compilePeerSchema({ properties: { a: { type: 'string', pattern: '^(?!x)' } } })
  expect(schema.unchecked).toEqual(['the pattern ^(?!x) cannot be tested in linear time'])
  expect(schema.validate({ a: 'x' }).ok).toBe(true)
  expect(schema.validate({ a: 1 }).ok).toBe(false)
})

describe('no schema freezes us (H10): each of these ends by the count of steps, not by luck', () => {
  const doubling = (keyword: string, levels: number) => {
    const defs = Object.fromEntries(
      Array.from({ length: levels }, (_, level) => [
        `d${level}`,
        { [keyword]: [{ $ref: `#/$defs/d${level + 1}` }, { $ref: `#/$defs/d${level + 1}` }] },
      ]),
    )
    return { $ref: '#/$defs/d0', $defs: { ...defs, [`d${levels}`]: { type: 'null' } } }
  }
  const again = { properties: { n: { $ref: '#' } }, additionalProperties: false, minProperties: 1 }
  const twice = { anyOf: [again, { ...again }] }
  const deep = (levels: number): unknown => (levels === 0 ? {} : { n: deep(levels - 1) })
  const many = Array.from({ length: 60_000 }, (_, index) => index)
  let state = 1
  const noise = Array.from({ length: 300_000 }, () => {
    state = (state * 1_103_515_245 + 12_345) & 0x7fffffff
    return (state & 0x10000) === 0 ? 'a' : 'b'
  }).join('')
  const manyKeys = Object.fromEntries(Array.from({ length: 20_000 }, (_, index) => [`k${index}`, 1]))

  it.each<[string, JsonSchema, unknown]>([
    ['a reference to itself', { $ref: '#' }, 1],
    ['two references to each other', { $ref: '#/$defs/a', $defs: { a: { $ref: '#/$defs/b' }, b: { $ref: '#/$defs/a' } } }, 1],
    ['doubling by anyOf', doubling('anyOf', 60), 1],
    ['doubling by oneOf', doubling('oneOf', 60), 1],
    ['doubling along the value', twice, deep(60)],
    [
      'a long text measured again and again',
      { allOf: Array.from({ length: 900 }, () => ({ minLength: 3_000_000 })) },
      'x'.repeat(4_000_000),
    ],
    [
      'many members looked at again and again',
      { allOf: Array.from({ length: 400 }, () => ({ additionalProperties: { type: 'integer' } })) },
      manyKeys,
    ],
    [
      'a large array made unique again and again',
      { allOf: Array.from({ length: 900 }, () => ({ uniqueItems: true })) },
      Array.from({ length: 100_000 }, (_, index) => [index]),
    ],
    [
      'items that differ only where their hash does not look',
      { uniqueItems: true },
      Array.from({ length: 3_000 }, (_, index) => ({
        a: `${'x'.repeat(101)}${String(index).padStart(4, '0')}${'y'.repeat(5_000)}`,
      })),
    ],
    ['a pattern whose places never repeat', { pattern: '(?:a|b)*a(?:a|b){16}c' }, noise],
    [
      'many kinds of names sought in many objects',
      { items: { allOf: Array.from({ length: 300 }, () => ({ properties: { a: true }, unevaluatedProperties: true })) } },
      Array.from({ length: 50_000 }, () => ({ a: 1, b: 1 })),
    ],
  ])('%s', (_, json, value) => {
    expect(said(json, value)).toMatch(/cannot be checked against the peer's schema within 1300000 steps/)
  })

  it.each<[string, JsonSchema, unknown, RegExp]>([
    ['rules that say nothing', { items: { allOf: Array.from({ length: 10_000 }, () => true) } }, many, /^ok$/],
    ['one type said many times', { items: { type: [...Array.from({ length: 8_000 }, () => 'null'), 'integer'] } }, many, /^ok$/],
    [
      'needs that nothing has',
      { items: { dependentRequired: Object.fromEntries(many.slice(0, 4_000).map(index => [`n${index}`, []])) } },
      many.map(() => ({})),
      /^ok$/,
    ],
    [
      'one member required many times',
      { items: { required: Array.from({ length: 9_000 }, () => 'a') } },
      many.map(() => ({ a: 1 })),
      /^ok$/,
    ],
    [
      'values listed by the hundred',
      { items: { enum: many.slice(0, 900).map(a => ({ a })) } },
      many.map(a => ({ a: a % 900 })),
      /^ok$/,
    ],
    ['members counted again and again', { allOf: Array.from({ length: 900 }, () => ({ minProperties: 1 })) }, manyKeys, /^ok$/],
    ['a counted repetition of what may be missing', { pattern: '(?:a?){500}b' }, 'a'.repeat(1_000_000), /must match the pattern/],
    ['nested repetitions', { pattern: '^(a+)+$' }, `${'a'.repeat(1_000_000)}!`, /must match the pattern/],
    ['overlapping alternatives', { pattern: '^(?:a|aa|a?)*$' }, `${'a'.repeat(1_000_000)}!`, /must match the pattern/],
  ])('%s cost so little that they are checked', (_, json, value, verdict) => {
    expect(said(json, value)).toMatch(verdict)
  })

  it('and a large honest result is checked whole', () => {
    const rows = Array.from({ length: 50_000 }, (_, index) => ({ id: `row ${index}`, state: 'open', n: index }))
    const json = {
      type: 'array',
      items: {
        type: 'object',
        properties: {
          id: { type: 'string', pattern: '^row \\d+$' },
          state: { enum: ['open', 'closed'] },
          n: { type: 'integer' },
        },
        required: ['id'],
        additionalProperties: false,
      },
    }
    expect(said(json, rows)).toBe('ok')
    expect(said(json, [...rows, { id: 7 }])).toBe('[50000].id: must be string')
  })
})
