/** An author's schema, made ready: the JSON Schema that peers are shown, and the check that values pass. */
import { clip } from '../../jsonrpc/limits.ts'
import { type Awaitable, isRecord, isThenable } from '../../jsonrpc/message.ts'
import { type Check, checkFor, schemaDialectOf } from './engine.ts'
import {
  type InferOutput,
  isStandardSchema,
  type JsonSchema,
  makeIssue,
  maxIssues,
  type Schema,
  SchemaError,
  type StandardIssue,
  type StandardResult,
  type StandardSchema,
  UncheckedSchema,
  type Validation,
} from './schema.ts'

/** A schema that is ready for use: its JSON Schema for peers, and its validation. */
export interface CompiledSchema<T = unknown> {
  /** For peers. A JSON Schema that was given as such is this very object. */
  readonly json: JsonSchema
  /**
   * Checks a value and gives what the schema makes of it (defaults, transformations); a JSON Schema never changes anything.
   * Answers at once unless the schema is asynchronous or the validator has yet to be loaded.
   */
  validate(value: unknown): Awaitable<Validation<T>>
}

/** How a schema is compiled. */
export interface CompileOptions {
  /** Which end of a transforming schema peers are shown: what goes in (arguments) or what comes out (results). */
  readonly side?: 'input' | 'output'
  /** Names the schema in errors, e.g. `input of tool "echo"`. */
  readonly where?: string
}

/**
 * @example
 * const { json, validate } = compileSchema(z.object({ title: z.string() }))
 * await validate({ title: 1 }) // { ok: false, issues: [{ path: 'title', message: '…' }] }
 */
export function compileSchema<S extends Schema>(schema: S, options?: CompileOptions): CompiledSchema<InferOutput<S>>
export function compileSchema(schema: Schema, { side = 'input', where = 'schema' }: CompileOptions = {}): CompiledSchema {
  if (schema instanceof UncheckedSchema) return new UncheckedCompiled(schema.json)
  if (isStandardSchema(schema)) return new StandardCompiled(schema, jsonOf(schema, side, where))
  if (isRecord(schema)) {
    const fields = fieldsIn(schema, where)
    if (fields !== undefined) {
      const whole = fieldsSchema(fields, (field, of, name) => jsonOf(field, of, `${where}, field "${clip(name)}"`))
      return new StandardCompiled(whole, jsonOf(whole, side, where))
    }
    schemaDialectOf(schema)
    return new JsonCompiled(schema, where)
  }
  throw new SchemaError(
    `${where}: give a JSON Schema object, a Standard Schema (Zod 4, ArkType, Valibot) or one such schema per field, not ${clip(String(schema))}`,
  )
}

function jsonOf(schema: StandardSchema, side: 'input' | 'output', where: string): JsonSchema {
  const { vendor, jsonSchema } = schema['~standard']
  if (jsonSchema === undefined) {
    throw new SchemaError(
      `${where}: this ${clip(vendor)} schema cannot be converted to JSON Schema, which peers need. ${companion(vendor)}`,
    )
  }
  try {
    return jsonSchema[side]({ target: 'draft-2020-12' })
  } catch (cause) {
    if (cause instanceof SchemaError) throw cause
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new SchemaError(
      `${where}: ${clip(vendor)} cannot convert this schema to JSON Schema (${clip(why, 200)}). ` +
        'Use types that JSON has, or declare the JSON Schema with withJsonSchema(schema, json)',
      { cause },
    )
  }
}

/** What makes a schema of this library one that can. */
function companion(vendor: string): string {
  const byHand = "add one: import { withJsonSchema } from 'vivarium/server', then withJsonSchema(schema, json)"
  if (vendor !== 'valibot') return `Use a newer ${clip(vendor)}, or ${byHand}`
  return (
    'Install @valibot/to-json-schema 1.5 or newer and wrap it: ' +
    `import { toStandardJsonSchema } from '@valibot/to-json-schema', then toStandardJsonSchema(schema). Or ${byHand}`
  )
}

class StandardCompiled implements CompiledSchema {
  readonly json: JsonSchema
  readonly #standard: StandardSchema['~standard']

  constructor(schema: StandardSchema, json: JsonSchema) {
    this.json = json
    this.#standard = schema['~standard']
  }

  validate(value: unknown): Awaitable<Validation> {
    const result = this.#standard.validate(value)
    return isThenable(result) ? result.then(fromStandard) : fromStandard(result)
  }
}

function fromStandard(result: StandardResult<unknown>): Validation {
  if (result.issues === undefined) return { ok: true, value: result.value }
  const issues = result.issues.slice(0, maxIssues).map(({ path = [], message }) =>
    makeIssue(
      path.map(segment => (typeof segment === 'object' ? segment.key : segment)),
      message,
    ),
  )
  return { ok: false, issues }
}

class UncheckedCompiled implements CompiledSchema {
  readonly json: JsonSchema

  constructor(json: JsonSchema) {
    this.json = json
  }

  validate(value: unknown): Validation {
    return { ok: true, value }
  }
}

class JsonCompiled implements CompiledSchema {
  readonly json: JsonSchema
  readonly #where: string
  #check: Check | undefined

  constructor(json: JsonSchema, where: string) {
    this.json = json
    this.#where = where
  }

  validate(value: unknown): Awaitable<Validation> {
    if (this.#check !== undefined) return verdict(this.#check, value)
    const check = checkFor(this.json, this.#where)
    if (isThenable(check)) return check.then(ready => this.#first(ready, value))
    return this.#first(check, value)
  }

  #first(check: Check, value: unknown): Validation {
    this.#check = check
    return verdict(check, value)
  }
}

function verdict(check: Check, value: unknown): Validation {
  const issues = check(value)
  return issues === undefined ? { ok: true, value } : { ok: false, issues }
}

/**
 * A plain object of schemas, one for each field, as the official SDK takes it: `{ city: z.string() }`. It becomes one Standard Schema
 * of an object with these fields; others are left out, as by the schema libraries themselves.
 */
type Fields = Readonly<Record<string, StandardSchema>>

/** Undefined: it is no object of fields. Throws where only some members are schemas. */
function fieldsIn(schema: object, where: string): Fields | undefined {
  const members = Object.entries(schema)
  if (!members.some(([, member]) => isStandardSchema(member))) return undefined
  const other = members.find(([, member]) => !isStandardSchema(member))
  if (other === undefined) return schema as Fields
  throw new SchemaError(
    `${where}: some members are schemas of fields, but "${other[0].slice(0, 80)}" is not a schema. Give an object schema, such as z.object({ … }), or a JSON Schema`,
  )
}

type Side = 'input' | 'output'

/** `jsonOf` says what a field is as JSON Schema. */
function fieldsSchema(
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
