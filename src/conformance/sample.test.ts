import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { compileSchema, jsonSchema } from '../core/schema/index.ts'
import { sample, sampleArguments } from './sample.ts'

type Schema = Record<string, unknown>

/** Whether our own validator takes it. */
async function fits(schema: Schema, value: unknown): Promise<boolean> {
  const compiled = compileSchema(jsonSchema({ type: 'object', properties: { it: schema }, required: ['it'] }))
  const verdict = await compiled.validate({ it: value })
  return verdict.ok
}

const bounded = fc.tuple(fc.integer({ min: -50, max: 50 }), fc.integer({ min: 3, max: 50 }))
const leaf: fc.Arbitrary<Schema> = fc.oneof(
  fc.constantFrom<Schema>(
    { type: 'string' },
    { type: 'boolean' },
    { type: 'null' },
    { type: 'integer' },
    { type: 'number' },
    {},
    { const: 7 },
  ),
  fc.record({ type: fc.constant('string'), minLength: fc.integer({ min: 0, max: 20 }) }),
  fc.record({ type: fc.constant('string'), maxLength: fc.integer({ min: 1, max: 20 }) }),
  bounded.map(([low, span]) => ({ type: 'integer', minimum: low, maximum: low + span })),
  bounded.map(([low, span]) => ({ type: 'number', exclusiveMinimum: low, exclusiveMaximum: low + span })),
  bounded.map(([low]) => ({ type: 'integer', exclusiveMaximum: low })),
  fc.integer({ min: 2, max: 9 }).map(step => ({ type: 'integer', multipleOf: step, minimum: 1 })),
  fc
    .array(fc.string({ maxLength: 5 }), { minLength: 1, maxLength: 4 })
    .map(list => ({ type: 'string', enum: [...new Set(list)] })),
  fc.constantFrom<Schema>(
    { type: 'string', format: 'date-time' },
    { type: 'string', format: 'uri' },
    { type: 'string', pattern: '^T-\\d+$' },
  ),
)

const { schema } = fc.letrec<{ schema: Schema }>(tie => ({
  schema: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    leaf,
    fc.record({ type: fc.constant('array'), items: tie('schema'), minItems: fc.integer({ min: 0, max: 3 }) }),
    fc.dictionary(fc.string({ minLength: 1, maxLength: 5 }), tie('schema'), { maxKeys: 3 }).map(properties => ({
      type: 'object',
      properties,
      required: Object.keys(properties),
      additionalProperties: false,
    })),
    fc.array(tie('schema'), { minLength: 1, maxLength: 2 }).map(anyOf => ({ anyOf })),
  ),
}))

describe('a value from a schema', () => {
  it('fits it, whatever the schema is made of', async () => {
    await fc.assert(
      fc.asyncProperty(schema, fc.integer({ min: 0, max: 3 }), async (given, variant) => {
        const value = sample(given, { variant })
        fc.pre(value !== undefined)
        expect(await fits(given, value)).toBe(true)
      }),
      { numRuns: 300 },
    )
  })

  it('is made for nearly every schema that has one', () => {
    const made = fc.sample(schema, 300).filter(one => sample(one) !== undefined)
    expect(made.length).toBeGreaterThan(280)
  })

  it('is what the schema gives as an example, else its default, and leaves out what need not be there', () => {
    const input = {
      type: 'object',
      properties: {
        id: { type: 'string', examples: ['T-1', 'T-2'] },
        size: { type: 'integer', default: 7 },
        note: { type: 'string' },
      },
      required: ['id', 'size'],
    }
    expect(sampleArguments({ inputSchema: input })).toEqual({ id: 'T-1', size: 7 })
    expect(sampleArguments({ inputSchema: input }, { variant: 1 })).toEqual({ id: 'T-2', size: 7 })
  })

  it('follows references, and comes to an end where they go round', () => {
    const tree = { type: 'object', properties: { child: { $ref: '#' } }, required: ['child'] }
    expect(sample(tree)).toBeUndefined()
    const named = {
      $defs: { id: { type: 'string', const: 'x' } },
      type: 'object',
      properties: { id: { $ref: '#/$defs/id' } },
      required: ['id'],
    }
    expect(sample(named)).toEqual({ id: 'x' })
  })

  it('is not made where nothing that the kit knows fits a pattern', () => {
    expect(sample({ type: 'string', pattern: '^zebra-[0-9]{17}$' })).toBeUndefined()
  })
})
