/**
 * A plain object of schemas, one for each field, as the official SDK takes it: `{ city: z.string() }`. It becomes one Standard Schema
 * of an object with these fields; others are left out, as by the schema libraries themselves.
 */
import { isRecord, isThenable } from '../../jsonrpc/message.ts'
import { isStandardSchema, SchemaError, type StandardIssue, type StandardResult, type StandardSchema } from './schema.ts'

export type Fields = Readonly<Record<string, StandardSchema>>

/** Undefined: it is no object of fields. Throws where only some members are schemas. */
export function fieldsIn(schema: object, where: string): Fields | undefined {
  const members = Object.entries(schema)
  if (!members.some(([, member]) => isStandardSchema(member))) return undefined
  const other = members.find(([, member]) => !isStandardSchema(member))
  if (other === undefined) return schema as Fields
  throw new SchemaError(
    `${where}: some members are schemas of fields and "${other[0].slice(0, 80)}" is none. Give an object schema, such as z.object({ … }), or a JSON Schema`,
  )
}

type Side = 'input' | 'output'

/** `jsonOf` says what a field is as JSON Schema. */
export function fieldsSchema(
  fields: Fields,
  jsonOf: (field: StandardSchema, side: Side, name: string) => Readonly<Record<string, unknown>>,
): StandardSchema {
  const json = (side: Side): Record<string, unknown> => {
    const properties = Object.fromEntries(
      Object.entries(fields).map(([name, field]) => [name, nested(jsonOf(field, side, name), name)]),
    )
    const required = Object.keys(fields).filter(name => isRequired(fields[name], side))
    return { type: 'object', properties, ...(required.length > 0 && { required }) }
  }
  return {
    '~standard': {
      version: 1,
      vendor: 'fields',
      validate: value => validated(fields, value),
      jsonSchema: { input: () => json('input'), output: () => json('output') },
    },
  }
}

/** A field that refers to parts of itself by their place would have another place here. */
function nested(json: Readonly<Record<string, unknown>>, name: string): Readonly<Record<string, unknown>> {
  const { $schema: _, ...rest } = json
  if (JSON.stringify(rest).includes('"$ref"'))
    throw new SchemaError(`The schema of the field "${name}" refers to itself: give one object schema, such as z.object({ … })`)
  return rest
}

/** Whether it may be left out is what the schema makes of nothing. */
function isRequired(field: StandardSchema | undefined, side: Side): boolean {
  const result = field?.['~standard'].validate(undefined)
  if (result === undefined || isThenable(result) || result.issues !== undefined) return true
  return side === 'output' && result.value !== undefined
}

function validated(fields: Fields, value: unknown): StandardResult<unknown> | Promise<StandardResult<unknown>> {
  if (!isRecord(value)) return { issues: [{ message: 'must be an object' }] }
  const results = Object.entries(fields).map(
    ([name, field]) => [name, field['~standard'].validate(Object.hasOwn(value, name) ? value[name] : undefined)] as const,
  )
  if (!results.some(([, result]) => isThenable(result))) return joined(results as readonly Result[])
  return Promise.all(results.map(async ([name, result]): Promise<Result> => [name, await result])).then(joined)
}

type Result = readonly [name: string, result: StandardResult<unknown>]

function joined(results: readonly Result[]): StandardResult<unknown> {
  const issues: StandardIssue[] = []
  const values: [string, unknown][] = []
  for (const [name, result] of results) {
    if (result.issues === undefined) {
      if (result.value !== undefined) values.push([name, result.value])
    } else for (const { path = [], message } of result.issues) issues.push({ message, path: [name, ...path] })
  }
  return issues.length > 0 ? { issues } : { value: Object.fromEntries(values) }
}
