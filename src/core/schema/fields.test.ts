import { type } from 'arktype'
import { assertType, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { createServer } from '../../server/index.ts'
import { connectInMemory } from '../../testing/connect.ts'
import { compileSchema } from './compile.ts'
import type { InferInput, InferOutput } from './schema.ts'

const fields = { city: z.string().min(1), days: z.number().default(3), unit: z.enum(['C', 'F']).optional() }

describe('a plain object of schemas, one for each field', () => {
  it('is shown to peers as an object with these fields', () => {
    expect(compileSchema(fields).json).toEqual({
      type: 'object',
      properties: {
        city: { type: 'string', minLength: 1 },
        days: { type: 'number', default: 3 },
        unit: { type: 'string', enum: ['C', 'F'] },
      },
      required: ['city'],
    })
    expect(compileSchema(fields, { side: 'output' }).json).toMatchObject({ required: ['city', 'days'] })
  })

  it('checks each field, fills in defaults and leaves out the rest', () => {
    expect(compileSchema(fields).validate({ city: 'Oslo', more: 1 })).toEqual({ ok: true, value: { city: 'Oslo', days: 3 } })
    expect(compileSchema(fields).validate({ days: 'x' })).toMatchObject({
      ok: false,
      issues: [{ path: 'city' }, { path: 'days' }],
    })
    expect(compileSchema(fields).validate('Oslo')).toMatchObject({ ok: false, issues: [{ message: 'must be an object' }] })
  })

  it('may be of several libraries, and asynchronous', async () => {
    const known = z.string().refine(async city => city === 'Oslo', 'is not known')
    const mixed = compileSchema({ city: known, days: type('number') })
    expect(await mixed.validate({ city: 'Oslo', days: 1 })).toEqual({ ok: true, value: { city: 'Oslo', days: 1 } })
    expect(await mixed.validate({ city: 'Rome', days: 1 })).toMatchObject({ issues: [{ path: 'city', message: 'is not known' }] })
  })

  it('has the types of its fields', () => {
    assertType<InferOutput<typeof fields>>({ city: 'Oslo', days: 3 })
    assertType<InferInput<typeof fields>>({ city: 'Oslo' })
    // @ts-expect-error the city is a text
    assertType<InferOutput<typeof fields>>({ city: 1, days: 3 })
    // @ts-expect-error the city is needed
    assertType<InferOutput<typeof fields>>({ days: 3 })
  })

  it('of which some are none is refused by name', () => {
    expect(() => compileSchema({ city: z.string(), type: 'object' }, { where: 'input of tool "x"' })).toThrow(
      'input of tool "x": some members are schemas of fields, but "type" is not a schema. Give an object schema, such as z.object({ … })',
    )
  })

  it('of which one refers to itself is refused with what to write instead', () => {
    type Tree = { children: Tree[] }
    const tree: z.ZodType<Tree> = z.object({ children: z.array(z.lazy(() => tree)) })
    expect(() => compileSchema({ tree })).toThrow('The schema of the field "tree" refers to itself: give one object schema')
  })

  it('is what a tool takes as its input and its output', async () => {
    const server = createServer({ name: 's', version: '1' })
    server.tool(
      'forecast',
      { description: 'Tells', input: { city: z.string() }, output: { degrees: z.number() } },
      ({ city }) => ({
        degrees: city.length,
      }),
    )
    await using mcp = await connectInMemory(server)
    expect((await mcp.callTool('forecast', { city: 'Oslo' })).structured).toEqual({ degrees: 4 })
    await server.close()
  })
})
