/**
 * Bounds for whoever goes through a JSON Schema or a value: which keywords hold subschemas, how large it may be, how many steps
 * a check may take.
 */
import { clip, echoLength } from '../../jsonrpc/limits.ts'
import { isRecord } from '../../jsonrpc/message.ts'

/**
 * What an author may give as a schema: a Standard Schema (Zod, ArkType, Valibot, …) or a JSON Schema, and the types that follow from it.
 * The Standard Schema shapes are stated here structurally, so that no schema library is a dependency.
 */

/** A JSON Schema, as an object. */
export type JsonSchema = Readonly<Record<string, unknown>>

/** One issue that a schema library reports. */
export interface StandardIssue {
  /** What is wrong, in a sentence. */
  readonly message: string
  /** Where it is wrong: the keys from the root of the value. */
  readonly path?:
    | ReadonlyArray<
        | PropertyKey
        | {
            /** The key at this step of the path. */
            readonly key: PropertyKey
          }
      >
    | undefined
}

/** The result of validating a value. */
export type StandardResult<Output> =
  | {
      /** The validated value. */
      readonly value: Output
      /** What is wrong with the value. Absent if it is valid. */
      readonly issues?: undefined
    }
  | {
      /** What is wrong with the value. Absent if it is valid. */
      readonly issues: readonly StandardIssue[]
    }

/** Converts a schema to JSON Schema (Standard JSON Schema v1). */
interface StandardJsonSchema {
  /** Returns the JSON Schema of the input. */
  readonly input: (options: {
    /** The dialect of JSON Schema. */
    readonly target: 'draft-2020-12'
  }) => Record<string, unknown>
  /** Returns the JSON Schema of the output. */
  readonly output: (options: {
    /** The dialect of JSON Schema. */
    readonly target: 'draft-2020-12'
  }) => Record<string, unknown>
}

/** A schema of Zod, Valibot, ArkType or another library that implements Standard Schema v1. */
export interface StandardSchema<Input = unknown, Output = Input> {
  /** The members that Standard Schema defines. */
  readonly '~standard': {
    /** The version of Standard Schema. */
    readonly version: 1
    /** The name of the schema library. */
    readonly vendor: string
    /** Validates a value. */
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>
    /** The types of the schema, for the compiler only. */
    readonly types?:
      | {
          /** The type before validation. */
          readonly input: Input
          /** The type after validation. */
          readonly output: Output
        }
      | undefined
    /** Converts the schema to JSON Schema, if the library can. */
    readonly jsonSchema?: StandardJsonSchema | undefined
  }
}

/** A JSON Schema with the type that it describes; made by `jsonSchema`. */
type TypedJsonSchema<T> = JsonSchema & {
  /** The described type. It exists for the compiler only. */
  readonly '~type': T
}

/** A schema: of a Standard Schema library, a record of such schemas by field, or JSON Schema. */
export type Schema<T = unknown> = StandardSchema<unknown, T> | TypedJsonSchema<T> | JsonSchema | UncheckedSchema

/** The input and output types of a Standard Schema. */
type StandardTypes<S> = S extends { readonly '~standard': { readonly types?: infer Types } } ? NonNullable<Types> : never

/** The type after validation, which handlers get. A plain JSON Schema gives a record of unknown values. */
export type InferOutput<S> = S extends StandardSchema
  ? StandardTypes<S> extends { readonly output: infer Output }
    ? Output
    : unknown
  : S extends TypedJsonSchema<infer T>
    ? T
    : IsFields<S> extends true
      ? Optional<{ [K in keyof S]: InferOutput<S[K]> }>
      : Record<string, unknown>

/** A record with a Standard Schema for each field: `{ city: z.string() }`. */
type IsFields<S> = S extends Readonly<Record<string, StandardSchema>> ? (keyof S extends never ? false : true) : false

/** The names of the members that may be undefined. */
type MayMiss<T> = { [K in keyof T]-?: undefined extends T[K] ? K : never }[keyof T]

/** Fields that may be undefined may be left out. */
type Optional<T> = { [K in Exclude<keyof T, MayMiss<T>>]: T[K] } & { [K in MayMiss<T>]?: T[K] }

/** The type before validation, which handlers return for an output schema. A plain JSON Schema accepts anything. */
export type InferInput<S> = S extends StandardSchema
  ? StandardTypes<S> extends { readonly input: infer Input }
    ? Input
    : unknown
  : S extends TypedJsonSchema<infer T>
    ? T
    : IsFields<S> extends true
      ? Optional<{ [K in keyof S]: InferInput<S[K]> }>
      : unknown

/**
 * Gives a JSON Schema a TypeScript type. The object itself is returned unchanged.
 * @example
 * const input = jsonSchema<{ title: string }>({ type: 'object', properties: { title: { type: 'string' } }, required: ['title'] })
 */
export function jsonSchema<T>(json: JsonSchema): TypedJsonSchema<T> {
  return json as TypedJsonSchema<T>
}

/**
 * Adds a JSON Schema to a Standard Schema whose library cannot convert it.
 * @example
 * const input = withJsonSchema(v.object({ id: v.string() }), { type: 'object', properties: { id: { type: 'string' } }, required: ['id'] })
 */
export function withJsonSchema<Input, Output>(
  schema: StandardSchema<Input, Output>,
  json: JsonSchema,
): StandardSchema<Input, Output> {
  const { vendor, validate } = schema['~standard']
  return { '~standard': { version: 1, vendor, validate, jsonSchema: { input: () => json, output: () => json } } }
}

/** A schema that clients see and that is not validated here, because somebody else validates. */
export class UncheckedSchema {
  /** The JSON Schema that clients see. */
  readonly json: JsonSchema

  constructor(json: JsonSchema) {
    this.json = json
  }
}

/** ArkType's schemas are functions; everyone else's are objects. */
export function isStandardSchema(schema: unknown): schema is StandardSchema {
  if (schema === null || (typeof schema !== 'object' && typeof schema !== 'function')) return false
  return '~standard' in schema && typeof schema['~standard'] === 'object' && schema['~standard'] !== null
}

/** Whether a JSON Schema says by its root that it describes objects. */
export function objectRoot(json: JsonSchema): boolean {
  return json.type === 'object'
}

/** The schema itself is wrong or cannot be used here: its author's mistake, or a foreign schema beyond the limits. */
export class SchemaError extends Error {
  override readonly name: string = 'SchemaError'
}

/** A foreign schema that may be in order, and is beyond the limits or uses what is not supported: nothing is checked by it. */
export class UnsupportedSchema extends SchemaError {
  override readonly name = 'UnsupportedSchema'
}

// What a validation found, in one form whichever library looked.

/** The most issues that one validation reports. */
export const maxIssues = 5

/** Room for a library's own words around a clipped value. */
const messageLength = 120

/** One thing that is wrong with a value. */
export interface Issue {
  /** `address.street`, `items[0].name`; empty for the whole value. */
  readonly path: string
  /** What would be right. */
  readonly message: string
}

/** The outcome of a validation: the value, or what is wrong with it. */
export type Validation<T = unknown> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly issues: readonly Issue[] }

/** `title: must be string; count: is required` */
export function issueText(issues: readonly Issue[]): string {
  return issues.map(({ path, message }) => (path === '' ? message : `${path}: ${message}`)).join('; ')
}

/** Names and messages may carry foreign text: both are clipped here, once for all validators. */
export function makeIssue(segments: readonly PropertyKey[], message: string): Issue {
  const path = clip(pathText(segments))
  // Some libraries begin their sentence with the path that stands before it already.
  const said = path !== '' && message.startsWith(`${path} `) ? message.slice(path.length + 1) : message
  const echoed = said.length > echoLength ? said.slice(0, 1_000).replace(quoted, run => clip(run)) : said
  return { path, message: clip(echoed, messageLength) }
}

/** What a library quotes is foreign text, unlike its own words around it. */
const quoted = new RegExp(`(["'\`])(?:(?!\\1).){${echoLength - 1},}(?:\\1|$)`, 'gs')

function pathText(segments: readonly PropertyKey[]): string {
  let text = ''
  for (const segment of segments) {
    if (typeof segment === 'number') text += `[${segment}]`
    else text += text === '' ? String(segment) : `.${String(segment)}`
  }
  return text
}

/** The segments of a JSON Pointer (RFC 6901); digits are taken for positions in an array. */
export function pointerSegments(pointer: string): PropertyKey[] {
  if (pointer === '') return []
  return pointer
    .slice(1)
    .split('/')
    .map(part => (/^(0|[1-9]\d*)$/.test(part) ? Number(part) : part.replaceAll('~1', '/').replaceAll('~0', '~')))
}

// Bounds for whoever goes through a JSON Schema or a value: which keywords hold subschemas, how large it may be, how many steps
// a check may take.

const inOne: ReadonlySet<string> = new Set([
  'additionalItems',
  'additionalProperties',
  'contains',
  'contentSchema',
  'else',
  'if',
  'items',
  'not',
  'propertyNames',
  'then',
  'unevaluatedItems',
  'unevaluatedProperties',
])
const inList: ReadonlySet<string> = new Set(['allOf', 'anyOf', 'items', 'oneOf', 'prefixItems'])
const inMap: ReadonlySet<string> = new Set([
  '$defs',
  'definitions',
  'dependencies',
  'dependentSchemas',
  'patternProperties',
  'properties',
])

/** The direct subschemas that are objects (`true` and `false` hold nothing), each with the JSON Pointer from `schema`. */
export function subschemas(schema: Record<string, unknown>): [pointer: string, subschema: Record<string, unknown>][] {
  const found: [string, Record<string, unknown>][] = []
  for (const [keyword, value] of Object.entries(schema)) {
    if (isRecord(value)) {
      if (inOne.has(keyword)) found.push([`/${keyword}`, value])
      else if (inMap.has(keyword)) {
        for (const [name, item] of Object.entries(value)) if (isRecord(item)) found.push([`/${keyword}/${escaped(name)}`, item])
      }
    } else if (Array.isArray(value) && inList.has(keyword)) {
      for (const [index, item] of value.entries()) if (isRecord(item)) found.push([`/${keyword}/${index}`, item])
    }
  }
  return found
}

function escaped(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1')
}

// How large a value is, looked at no further than needed.

/** Whether a value has at most `limit` members and items in all. */
export function fewElements(value: unknown, limit: number): boolean {
  const stack: unknown[] = [value]
  let seen = 0
  for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
    if (typeof next !== 'object' || next === null) continue
    const members: unknown[] = Array.isArray(next) ? next : Object.values(next)
    seen += members.length
    if (seen > limit) return false
    for (const member of members) if (typeof member === 'object' && member !== null) stack.push(member)
  }
  return true
}

/** A budget for checking one value. Counted in steps, so that it is the same on every machine. */

/** The work on one value exceeds its budget. */
export class OverBudget extends Error {
  override readonly name = 'OverBudget'
}

/** Counts the steps of one check and throws when the budget is used up. */
export class StepMeter {
  #left: number

  constructor(steps: number) {
    this.#left = steps
  }

  get left(): number {
    return this.#left
  }

  spend(steps: number): void {
    this.#left -= steps
    if (this.#left < 0) throw new OverBudget('Checking this value takes more steps than allowed')
  }
}
