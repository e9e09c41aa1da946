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

/** A JSON Schema that is an object. */
export type JsonSchema = Readonly<Record<string, unknown>>

/** One issue as a Standard Schema library reports it. */
export interface StandardIssue {
  readonly message: string
  readonly path?: ReadonlyArray<PropertyKey | { readonly key: PropertyKey }> | undefined
}

/** What a Standard Schema library says of a value. */
export type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] }

interface StandardJsonSchema {
  readonly input: (options: { readonly target: 'draft-2020-12' }) => Record<string, unknown>
  readonly output: (options: { readonly target: 'draft-2020-12' }) => Record<string, unknown>
}

/** The part of Standard Schema v1 and Standard JSON Schema v1 that is used here. */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: string
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>
    readonly types?: { readonly input: Input; readonly output: Output } | undefined
    readonly jsonSchema?: StandardJsonSchema | undefined
  }
}

/** A JSON Schema that says (to the compiler only) what it describes. By a name that declarations of other programs can write. */
type TypedJsonSchema<T> = JsonSchema & { readonly '~type': T }

/** What is accepted wherever a schema is asked for. */
export type Schema<T = unknown> = StandardSchema<unknown, T> | TypedJsonSchema<T> | JsonSchema | UncheckedSchema

type StandardTypes<S> = S extends { readonly '~standard': { readonly types?: infer Types } } ? NonNullable<Types> : never

/** What comes out of validation: a handler's arguments. A plain JSON Schema gives a record of unknowns. */
export type InferOutput<S> = S extends StandardSchema
  ? StandardTypes<S> extends { readonly output: infer Output }
    ? Output
    : unknown
  : S extends TypedJsonSchema<infer T>
    ? T
    : IsFields<S> extends true
      ? Optional<{ [K in keyof S]: InferOutput<S[K]> }>
      : Record<string, unknown>

/** A plain object with a Standard Schema for each field: `{ city: z.string() }`. */
type IsFields<S> = S extends Readonly<Record<string, StandardSchema>> ? (keyof S extends never ? false : true) : false

type MayMiss<T> = { [K in keyof T]-?: undefined extends T[K] ? K : never }[keyof T]

/** Fields that may be undefined may be left out. */
type Optional<T> = { [K in Exclude<keyof T, MayMiss<T>>]: T[K] } & { [K in MayMiss<T>]?: T[K] }

/** What goes into validation: what a handler returns for an output schema. A plain JSON Schema takes anything. */
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
 * Gives a JSON Schema a type; the object itself stays as it is.
 *
 * @example
 * const input = jsonSchema<{ title: string }>({ type: 'object', properties: { title: { type: 'string' } }, required: ['title'] })
 */
export function jsonSchema<T>(json: JsonSchema): TypedJsonSchema<T> {
  return json as TypedJsonSchema<T>
}

/**
 * Gives a Standard Schema whose library cannot state it as JSON Schema the one it lacks.
 *
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

/** A schema that is shown and not checked by: whoever is shown it, somebody else does the checking. */
export class UncheckedSchema {
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
    if (this.#left < 0) throw new OverBudget('The budget for checking this value is used up')
  }
}
