/** Values against JSON Schemas, by both engines: what they must agree on, and what the compiled one says. */
import { beforeAll, describe, expect, it } from 'vitest'
import { loadAjv } from './ajv.ts'
import { compileSchema } from './compile.ts'
import type { Compile, Dialect } from './engine.ts'
import { loadInterpreter } from './interpreter.ts'
import { issueText } from './schema.ts'

const latest: [string, object, unknown, string | undefined][] = [
  ['a good value', { type: 'object', required: ['a'] }, { a: 1 }, undefined],
  ['a wrong type', { properties: { title: { type: 'string' } } }, { title: 1 }, 'title: must be string'],
  ['a wrong root', { type: 'object' }, [], 'must be object'],
  ['a choice of types', { properties: { a: { type: ['string', 'null'] } } }, { a: 1 }, 'a: must be string or null'],
  ['a missing member', { properties: { a: { required: ['b'] } } }, { a: {} }, 'a.b: is required'],
  ['an item', { properties: { a: { items: { required: ['b'] } } } }, { a: [{ b: 1 }, {}] }, 'a[1].b: is required'],
  [
    'a name with a slash and a tilde',
    { properties: { 'a/b~c#%': { type: 'string' } } },
    { 'a/b~c#%': 1 },
    'a/b~c#%: must be string',
  ],
  ['a format, which is an annotation', { type: 'string', format: 'email' }, 'no address', undefined],
  ['an unknown keyword', { type: 'string', 'x-note': 1, widget: { type: 'number' } }, 'x', undefined],
  ['a reference into $defs', { $defs: { s: { type: 'string' } }, items: { $ref: '#/$defs/s' } }, [1], '[0]: must be string'],
  ['a reference to an anchor', { $defs: { s: { $anchor: 'here', type: 'string' } }, $ref: '#here' }, 1, 'must be string'],
  ['a member every object inherits', { required: ['constructor'] }, {}, 'constructor: is required'],
  ['an inherited member that is described', { properties: { toString: { type: 'string' } } }, {}, undefined],
]

const engines: [string, (dialect: Dialect) => Promise<Compile>][] = [
  ['compiled', loadAjv],
  ['interpreted', loadInterpreter],
]

describe.each(engines)('%s', (_, load) => {
  const compilers = new Map<Dialect, Compile>()
  beforeAll(async () => {
    for (const dialect of ['2020-12', '2019-09', 'draft-07'] as const) compilers.set(dialect, await load(dialect))
  })
  const issuesOf = (json: object, value: unknown, dialect: Dialect = '2020-12') => {
    const issues = compilers.get(dialect)?.({ ...json })(value)
    return issues === undefined ? undefined : issueText(issues)
  }

  it.each(latest)('%s', (_, json, value, text) => {
    const before = JSON.stringify(json)
    expect(issuesOf(json, value)).toBe(text)
    expect(JSON.stringify(json)).toBe(before)
  })

  it('reads older dialects as they meant it', () => {
    expect(issuesOf({ items: [{ type: 'string' }], additionalItems: false }, ['a', 1], 'draft-07')).toBeDefined()
    expect(issuesOf({ definitions: { s: { type: 'string' } }, $ref: '#/definitions/s' }, 1, 'draft-07')).toBe('must be string')
    expect(issuesOf({ properties: { a: {} }, unevaluatedProperties: false }, { b: 1 }, '2019-09')).toBeDefined()
  })

  it('does not stumble over foreign names and absent values', () => {
    expect(issuesOf({ additionalProperties: { type: 'string' } }, JSON.parse('{"__proto__":"x","\\ud800":"y"}'))).toBe(
      _ === 'compiled' ? undefined : 'must contain only well-formed Unicode',
    )
    expect(issuesOf({ type: 'object' }, undefined)).toBeDefined()
  })
})

describe('in words', () => {
  const said = async (json: object, value: unknown) => {
    const result = await compileSchema({ ...json }).validate(value)
    return result.ok ? undefined : issueText(result.issues)
  }

  it.each<[object, unknown, string]>([
    [{ additionalProperties: false }, { extra: 1 }, 'extra: is not a known member; remove it'],
    [{ unevaluatedProperties: false }, { extra: 1 }, 'extra: is not a known member; remove it'],
    [{ enum: ['red', 'green'] }, 'blue', 'must be one of "red", "green"'],
    [{ const: 1 }, 2, 'must be 1'],
    [{ minLength: 3 }, 'ab', 'must have at least 3 characters'],
    [{ maxLength: 1 }, 'ab', 'must have at most 1 characters'],
    [{ minItems: 1 }, [], 'must have at least 1 items'],
    [{ maxItems: 0 }, [1], 'must have at most 0 items'],
    [{ minimum: 3 }, 2, 'must be >= 3'],
    [{ pattern: '^a$' }, 'b', 'must match the pattern ^a$'],
    [
      { uniqueItems: true },
      [
        { a: 1, b: 2 },
        { b: 2, a: 1 },
      ],
      'must not contain the same item twice',
    ],
    [{ dependentRequired: { a: ['b'] } }, { a: 1 }, 'b: is required together with a'],
    [{ not: {} }, 1, 'matches a form that is not allowed'],
    [JSON.parse('{ "if": { "type": "number" }, "then": { "minimum": 5 } }'), 1, 'must be >= 5'],
    [{ prefixItems: [{}], items: false }, [1, 2], 'must have at most 1 items'],
    [{ anyOf: [{ type: 'string' }, { type: 'null' }] }, 1, 'must be string or null'],
    [{ oneOf: [{ type: 'number' }, { minimum: 1 }] }, 2, 'must match only one of the allowed forms'],
    [
      {
        oneOf: [
          { properties: { kind: { const: 'a' } }, required: ['kind', 'x', 'y'] },
          { properties: { kind: { const: 'b' } }, required: ['z'] },
        ],
      },
      { kind: 'b' },
      'z: is required',
    ],
  ])('%j', async (json, value, text) => {
    expect(await said(json, value)).toBe(text)
  })

  it('all fields that are wrong are named, up to five', async () => {
    const properties = Object.fromEntries(Array.from('abcdefg', name => [name, { type: 'string' }]))
    const value = Object.fromEntries(Array.from('abcdefg', name => [name, 1]))
    expect(await said({ properties, required: ['h'] }, { a: 1 })).toBe('h: is required; a: must be string')
    expect((await said({ properties }, value))?.split('; ')).toHaveLength(5)
  })

  it('a value with very many elements has only its first failure looked for', async () => {
    const value = Array.from({ length: 100_000 }, () => 1)
    expect(await said({ items: { type: 'string' } }, value)).toBe('[0]: must be string')
  })

  it('names and patterns of others are clipped', async () => {
    expect((await said({ additionalProperties: false }, { ['x'.repeat(5_000)]: 1 }))?.length).toBeLessThan(150)
  })
})

it('the JSON Schema that was given is shown unchanged, the very object', () => {
  const json = { $defs: { a: { $anchor: 'x' } }, 'x-unknown': { deep: true }, type: 'object' }
  expect(compileSchema(json).json).toBe(json)
})

it('a value is never changed, not by defaults either', async () => {
  const value = Object.freeze({})
  const result = await compileSchema({ properties: { a: { default: 1 } } }).validate(value)
  expect(result).toEqual({ ok: true, value: {} })
  expect('value' in result && result.value).toBe(value)
})

it('answers at once when the validator has been loaded', async () => {
  await compileSchema({ type: 'string' }).validate('x')
  expect(compileSchema({ type: 'string', minLength: 1 }).validate('x')).toEqual({ ok: true, value: 'x' })
})

it('two schemas may have the same $id', async () => {
  for (const expected of ['string', 'number']) {
    expect((await compileSchema({ $id: 'https://example.com/same', type: expected }).validate(null)).ok).toBe(false)
  }
})

it('uniqueItems is linear: a hundred thousand different objects pass', async () => {
  const items = Array.from({ length: 100_000 }, (_, index) => [index])
  expect((await compileSchema({ uniqueItems: true }).validate(items)).ok).toBe(true)
  expect((await compileSchema({ uniqueItems: true }).validate([1, '1', true, 'true', null, 'null', [1], '[1]'])).ok).toBe(true)
})

it('patterns that the Unicode mode refuses mean what they mean without it', async () => {
  expect((await compileSchema({ pattern: '^[a-z]\\-\\_$' }).validate('a-_')).ok).toBe(true)
})

it('an unknown dialect is refused when the schema is given, with those that are known', () => {
  expect(() => compileSchema({ $schema: 'http://json-schema.org/draft-04/schema#' })).toThrow(
    /draft-04.*2020-12.*2019-09 or draft-07/,
  )
  expect(() => compileSchema({ $schema: 7 })).toThrow('is not supported')
})

it.each([
  ['a type that is none', { type: 'strin' }, /input of tool "x".*is not valid.*type/],
  [
    'a reference to elsewhere, which is never fetched',
    { $ref: 'https://example.com/s.json' },
    /is not valid.*https:\/\/example\.com/,
  ],
])('%s is refused when the first value comes', async (_, json, message) => {
  await expect(async () => compileSchema(json, { where: 'input of tool "x"' }).validate(1)).rejects.toThrow(message)
})
