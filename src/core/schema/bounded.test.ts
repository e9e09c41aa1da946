/** The walking validator against the compiled one: on what both read alike they must agree (the compiled one misjudges some `unevaluated…`). */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { loadAjv } from './ajv.ts'
import { compileBounded } from './peer.ts'
import { type JsonSchema, StepMeter } from './schema.ts'

const bounds = { depth: 100, subschemas: 10_000 }
const compile = await loadAjv('2020-12')

function verdict(json: JsonSchema, value: unknown, dialect: '2020-12' | '2019-09' | 'draft-07' = '2020-12'): string {
  const issue = compileBounded(json, dialect, bounds).check(value, new StepMeter(1e6))
  return issue === undefined ? 'ok' : `${issue.path}: ${issue.message}`
}

const names = fc.constantFrom('a', 'b', 'aa', 'constructor')
const values = fc.letrec(tie => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.constantFrom(null, true, 0, 1, 1.5, -1, '', 'a', 'ab', '😀'),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(names, tie('value'), { maxKeys: 3, noNullPrototype: true }),
  ),
})).value
const types = fc.constantFrom('null', 'boolean', 'integer', 'number', 'string', 'array', 'object')
const small = fc.nat({ max: 3 })
const { schema } = fc.letrec<{
  schema: JsonSchema
  keyword: JsonSchema
  sub: JsonSchema | boolean
  subs: (JsonSchema | boolean)[]
}>(tie => ({
  schema: fc.array(tie('keyword'), { maxLength: 3 }).map(keywords => Object.assign({}, ...keywords)),
  sub: fc.oneof({ depthSize: 'small', withCrossShrink: true }, fc.boolean(), tie('schema')),
  subs: fc.array(tie('sub'), { minLength: 1, maxLength: 3 }),
  keyword: fc.oneof(
    fc.record({ type: fc.oneof(types, fc.uniqueArray(types, { minLength: 1, maxLength: 3 })) }),
    fc.record({ enum: fc.array(values, { minLength: 1, maxLength: 3 }) }),
    fc.record({ const: values }),
    ...['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum'].map(name => fc.record({ [name]: small })),
    ...['minLength', 'maxLength', 'minItems', 'maxItems', 'minProperties', 'maxProperties'].map(name =>
      fc.record({ [name]: small }),
    ),
    fc.record({ multipleOf: fc.constantFrom(1, 0.5, 2) }),
    fc.record({ pattern: fc.constantFrom('a', '^a+$', 'b$') }),
    fc.record({ uniqueItems: fc.boolean() }),
    fc.record({ required: fc.uniqueArray(names, { maxLength: 2 }) }),
    fc.record({ dependentRequired: fc.dictionary(names, fc.uniqueArray(names, { maxLength: 2 }), { maxKeys: 2 }) }),
    ...['properties', 'dependentSchemas'].map(name => fc.record({ [name]: fc.dictionary(names, tie('sub'), { maxKeys: 2 }) })),
    fc.record({ patternProperties: fc.dictionary(fc.constantFrom('a', '^b'), tie('sub'), { maxKeys: 2 }) }),
    fc.record({ contains: tie('sub') }),
    ...['allOf', 'anyOf', 'oneOf', 'prefixItems'].map(name => fc.record({ [name]: tie('subs') })),
    ...['not', 'items', 'additionalProperties', 'propertyNames'].map(name => fc.record({ [name]: tie('sub') })),
    fc.tuple(tie('sub'), tie('sub'), tie('sub')).map(([test, yes, no]) =>
      Object.fromEntries([
        ['if', test],
        ['then', yes],
        ['else', no],
      ]),
    ),
  ),
}))

it('finds a value right exactly when the compiled validator does', () => {
  fc.assert(
    fc.property(schema, values, (json, value) => {
      // Together on a short array, the compiled one forgets the first.
      fc.pre(!/"contains".*"prefixItems"|"prefixItems".*"contains"/.test(JSON.stringify(json)))
      expect([json, value, verdict(json, value) === 'ok']).toEqual([json, value, compile(json)(value) === undefined])
    }),
    { numRuns: 1_000, seed: 6570 },
  )
})

it('finds the branch that a mark names right exactly when trying all of them does', () => {
  const mark = fc.constantFrom('a', 'b', 'c')
  const member = fc.oneof(
    mark.map((text): JsonSchema => ({ const: text })),
    mark.map((text): JsonSchema => ({ enum: [text] })),
  )
  const branch = fc
    .tuple(member, schema, fc.boolean())
    .map(([kind, rest, required]) => ({ ...rest, properties: { a: kind }, required: required ? ['b', 'a'] : ['a'] }))
  const union = fc
    .tuple(fc.constantFrom('oneOf', 'anyOf'), fc.array(branch, { minLength: 2, maxLength: 3 }), fc.boolean())
    .map(([name, branches, closed]): JsonSchema => ({ [name]: branches, ...(closed ? { unevaluatedProperties: false } : {}) }))
  const marked = fc.oneof(
    values,
    fc.record({ a: fc.oneof(mark, values), b: values }, { requiredKeys: [], noNullPrototype: true }),
  )
  fc.assert(
    fc.property(union, marked, (json, value) => {
      fc.pre(!/"contains".*"prefixItems"|"prefixItems".*"contains"/.test(JSON.stringify(json)))
      expect([json, value, verdict(json, value) === 'ok']).toEqual([json, value, compile(json)(value) === undefined])
    }),
    { numRuns: 1_000, seed: 6571 },
  )
})

it('of branches told apart by a mark, the fault is that of the one that the mark names', () => {
  const shape = (kind: string, size: string): JsonSchema => ({
    type: 'object',
    properties: { kind: { const: kind }, [size]: { type: 'number' } },
    required: ['kind', size],
  })
  const json = { oneOf: [shape('circle', 'radius'), shape('square', 'side')] }
  expect(verdict(json, { kind: 'square', side: 2 })).toBe('ok')
  expect(verdict(json, { kind: 'square', side: 'long' })).toBe('side: must be number')
  expect(verdict(json, { kind: 'oval' })).toBe('kind: must be one of "circle", "square"')
  expect(verdict(json, 7)).toBe(': must be object')
})

it.each<[JsonSchema, unknown, string]>([
  [{ properties: { a: { items: { type: 'string' } } } }, { a: ['x', 1] }, 'a[1]: must be string'],
  [{ required: ['a'] }, {}, 'a: is required'],
  [{ dependentRequired: { a: ['b'] } }, { a: 1 }, 'b: is required together with a'],
  [{ additionalProperties: false }, { x: 1 }, 'x: is not a known member; remove it'],
  [{ propertyNames: { maxLength: 1 } }, { xx: 1 }, 'xx: is a name that is not allowed'],
  [{ enum: ['red', 7] }, 'blue', ': must be one of "red", 7'],
  [{ anyOf: [{ type: 'string' }, { type: ['null', 'string'] }] }, 1, ': must be string or null'],
  [{ anyOf: [{ type: 'string' }, { properties: { a: { type: 'string' } } }] }, { a: 1 }, 'a: must be string'],
  [{ oneOf: [{}, {}] }, 1, ': must match only one of the allowed forms'],
  [{ contains: { type: 'string' }, minContains: 2 }, ['a'], ': must contain at least 2 items that match "contains"'],
])('%j says what would be right', (json, value, text) => {
  expect(verdict(json, value)).toBe(text)
})

it('what nobody has looked at is judged by unevaluatedProperties and unevaluatedItems', () => {
  const json = {
    allOf: [{ properties: { a: true } }],
    anyOf: [{ properties: { b: { type: 'string' } }, required: ['b'] }, {}],
    unevaluatedProperties: false,
  }
  expect(verdict(json, { a: 1, b: 'x' })).toBe('ok')
  expect(verdict(json, { a: 1, b: 2 })).toBe('b: is not a known member; remove it')
  expect(verdict({ prefixItems: [true], contains: { type: 'string' }, unevaluatedItems: false }, [1, 'x', 'y'])).toBe('ok')
  expect(verdict({ prefixItems: [true], contains: { type: 'string' }, unevaluatedItems: false }, [1, 'x', 2])).toBe(
    '[2]: is not allowed here',
  )
})

it('references lead to anchors, into places without a keyword, and to the root by its own id', () => {
  expect(verdict({ $ref: '#here', $defs: { a: { $anchor: 'here', type: 'string' } } }, 1)).toBe(': must be string')
  expect(verdict({ $ref: '#/elsewhere/a~1b%25', elsewhere: { 'a/b%': { type: 'string' } } }, 1)).toBe(': must be string')
  expect(verdict({ $id: 'urn:x', properties: { n: { $ref: 'urn:x' } }, type: 'object' }, { n: 1 })).toBe('n: must be object')
  expect(verdict({ $dynamicRef: '#n', $defs: { n: { $dynamicAnchor: 'n', type: 'string' } } }, 1)).toBe(': must be string')
})

it('older dialects are read as they meant it', () => {
  expect(verdict({ items: [{ type: 'string' }], additionalItems: false }, ['a', 1], '2019-09')).toBe('[1]: is not allowed here')
  expect(verdict({ dependencies: { a: ['b'], c: { required: ['d'] } } }, { c: 1 }, 'draft-07')).toBe('d: is required')
  expect(verdict({ $ref: '#/definitions/a', maxLength: 1, definitions: { a: { type: 'string' } } }, 'xx', 'draft-07')).toBe('ok')
})

it('a member called __proto__ is a member like any other', () => {
  const json = JSON.parse('{"properties":{"__proto__":{"type":"string"}},"required":["__proto__"],"additionalProperties":false}')
  expect(verdict(json, {})).toBe('__proto__: is required')
  expect(verdict(json, JSON.parse('{"__proto__":1}'))).toBe('__proto__: must be string')
  expect(verdict(json, JSON.parse('{"__proto__":"x"}'))).toBe('ok')
})
