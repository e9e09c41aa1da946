import { type } from 'arktype'
import * as v from 'valibot'
import { assertType, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { compileSchema } from './compile.ts'
import {
  type InferInput,
  type InferOutput,
  issueText,
  jsonSchema,
  objectRoot,
  SchemaError,
  type StandardSchema,
  withJsonSchema,
} from './schema.ts'

const street = {
  type: 'object',
  properties: { title: { type: 'string' }, address: { type: 'object', properties: { street: { type: 'string' } } } },
  required: ['title'],
}

const libraries: [string, StandardSchema][] = [
  ['zod', z.object({ title: z.string(), address: z.object({ street: z.string() }).optional() })],
  ['arktype', type({ title: 'string', 'address?': { street: 'string' } })],
  ['valibot', withJsonSchema(v.object({ title: v.string(), address: v.optional(v.object({ street: v.string() })) }), street)],
]

describe.each(libraries)('a schema of %s', (_, schema) => {
  const compiled = compileSchema(schema)

  it('is shown to peers as JSON Schema 2020-12 with an object at its root', () => {
    expect(objectRoot(compiled.json)).toBe(true)
    expect(compiled.json).toMatchObject({ properties: { title: { type: 'string' } }, required: ['title'] })
  })

  it('lets a good value pass, at once', () => {
    expect(compiled.validate({ title: 'x' })).toEqual({ ok: true, value: { title: 'x' } })
  })

  it('names the field that is wrong, also inside another', () => {
    expect(compiled.validate({ title: 1 })).toMatchObject({ ok: false, issues: [{ path: 'title' }] })
    expect(compiled.validate({ title: 'x', address: { street: 1 } })).toMatchObject({
      ok: false,
      issues: [{ path: 'address.street' }],
    })
  })
})

it('a message that begins with the path does not say it twice', () => {
  const result = compileSchema(type({ title: 'string' })).validate({ title: 1 })
  expect(result).toMatchObject({ issues: [{ path: 'title', message: expect.stringMatching(/^must be a string/) }] })
})

it('what the schema makes of a value is what comes out', () => {
  const schema = z.object({ n: z.coerce.number(), unit: z.string().default('m') })
  expect(compileSchema(schema).validate({ n: '3' })).toEqual({ ok: true, value: { n: 3, unit: 'm' } })
})

it('peers see what goes in for arguments, and what comes out for results', () => {
  const schema = z.object({ unit: z.string().default('m') })
  expect(compileSchema(schema).json.required).toBeUndefined()
  expect(compileSchema(schema, { side: 'output' }).json.required).toEqual(['unit'])
})

it('an asynchronous schema is waited for', async () => {
  const schema = z.object({ id: z.string().refine(async id => id !== 'taken', 'is taken') })
  const { validate } = compileSchema(schema)
  expect(await compileSchema(schema).validate({ id: 'free' })).toEqual({ ok: true, value: { id: 'free' } })
  expect(await compileSchema(schema).validate({ id: 'taken' })).toEqual({
    ok: false,
    issues: [{ path: 'id', message: 'is taken' }],
  })
  expect(validate).toBeTypeOf('function')
})

it('a flood of issues is cut to five, and long foreign text is clipped', () => {
  const many = compileSchema(z.array(z.string())).validate(Array.from({ length: 100 }, () => 1))
  expect(many).toMatchObject({ issues: { length: 5 } })
  const long = compileSchema(withJsonSchema(v.object({ n: v.number() }), {})).validate({ n: `\u001b${'x'.repeat(500)}` })
  const text = 'issues' in long && Array.isArray(long.issues) ? issueText(long.issues) : ''
  expect(text.length).toBeLessThanOrEqual(130)
  expect(text).not.toContain('\u001b')
})

it('a library that cannot state JSON Schema is told how (rev E tools: inputSchema)', () => {
  expect(() => compileSchema(v.object({}), { where: 'input of tool "x"' })).toThrow(SchemaError)
  expect(() => compileSchema(v.object({}), { where: 'input of tool "x"' })).toThrow(
    /^input of tool "x": .*import \{ toStandardJsonSchema \} from '@valibot\/to-json-schema', then toStandardJsonSchema\(schema\).*withJsonSchema\(schema, json\)/,
  )
})

it('a type that JSON does not have is refused with the way out', () => {
  expect(() => compileSchema(z.object({ when: z.date() }))).toThrow(/zod cannot convert.*Date.*withJsonSchema/)
})

it.each([['text'], [7], [null], [undefined], [[]], [() => {}]])('%s is no schema', wrong => {
  expect(() => compileSchema(wrong as never)).toThrow('give a JSON Schema object, a Standard Schema')
})

it('types follow from the schema', () => {
  const zod = z.object({ n: z.string().transform(Number) })
  assertType<InferOutput<typeof zod>>({ n: 1 })
  assertType<InferInput<typeof zod>>({ n: '1' })
  const typed = jsonSchema<{ title: string }>({ type: 'object' })
  assertType<InferOutput<typeof typed>>({ title: 'x' })
  // @ts-expect-error: the schema says text
  assertType<InferOutput<typeof typed>>({ title: 1 })
  const plain = { type: 'object' }
  assertType<Record<string, unknown>>({} as InferOutput<typeof plain>)
  const ark = type({ a: 'string' })
  assertType<{ a: string }>({ a: '' } satisfies InferOutput<typeof ark>)
  const companion = withJsonSchema(v.object({ a: v.string() }), {})
  assertType<{ a: string }>({ a: '' } satisfies InferOutput<typeof companion>)
  expect(typed).toEqual({ type: 'object' })
})
