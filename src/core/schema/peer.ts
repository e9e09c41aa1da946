/**
 * Checking against a schema that a peer sent (2025-06-18 and later: a tool's output schema). Neither the schema nor the value may cost more than
 * it should: the schema is bounded before it is compiled, its patterns are tested in linear time, and each step of a check is counted.
 */
import { clip } from '../../jsonrpc/limits.ts'
import { type Awaitable, isRecord, isThenable } from '../../jsonrpc/message.ts'
import { type Check, type Compile, canGenerateCode, type Dialect, dialectOf } from './engine.ts'
import { makeIssue, type Validation } from './issue.ts'
import { linearPattern } from './linear-pattern.ts'
import { Meter, OverBudget, type Step } from './meter.ts'
import { type JsonSchema, SchemaError } from './schema.ts'
import { subschemas } from './walk.ts'

export interface PeerSchemaLimits {
  /** UTF-8 bytes of its JSON text. */
  readonly bytes: number
  /** Subschemas within subschemas. */
  readonly depth: number
  readonly subschemas: number
  /** What checking one value may cost; some tens of nanoseconds each. */
  readonly steps: number
}

export const peerSchemaLimits: PeerSchemaLimits = { bytes: 64 * 1024, depth: 32, subschemas: 1_000, steps: 2_000_000 }

export interface PeerSchema {
  /** What of the schema is not checked, and why: for a trace. */
  readonly unchecked: readonly string[]
  validate(value: unknown): Awaitable<Validation>
}

/**
 * Throws `SchemaError` for a schema that is beyond the limits or refers to what it does not hold.
 *
 * @example
 * const schema = compilePeerSchema(tool.outputSchema)
 * const { ok } = await schema.validate(result.structuredContent)
 */
export function compilePeerSchema(json: JsonSchema, limits: Partial<PeerSchemaLimits> = {}): PeerSchema {
  const whole = { ...peerSchemaLimits, ...limits }
  const text = JSON.stringify(json)
  const key = JSON.stringify([whole, text])
  const known = byText.get(key)
  if (known !== undefined) return known
  const schema = compileAnew(json, text, whole)
  if (byText.size >= maxSchemas) for (const [oldest] of byText) if (byText.delete(oldest)) break
  byText.set(key, schema)
  return schema
}

/** A peer's list is fetched again and again, and is mostly the same. */
const maxSchemas = 256
const byText = new Map<string, PeerSchema>()

function compileAnew(json: JsonSchema, text: string, { bytes, depth, subschemas: most, steps }: PeerSchemaLimits): PeerSchema {
  if (new TextEncoder().encode(text).length > bytes)
    throw new SchemaError(`The peer's schema is larger than ${bytes} bytes, which is the limit`)
  const dialect = dialectOf(json)
  if (!canGenerateCode())
    return { unchecked: ['all: this runtime allows no code to be generated'], validate: value => ({ ok: true, value }) }
  const prepared = prepare(JSON.parse(text), depth, most)
  let check: Check | undefined
  const first = (compile: Compile, value: unknown): Validation => {
    check ??= explained(compile, prepared.json)
    return verdict(check, value, steps)
  }
  return {
    unchecked: prepared.unchecked,
    validate(value) {
      if (check !== undefined) return verdict(check, value, steps)
      const compile = meteredCompiler(dialect)
      return isThenable(compile) ? compile.then(ready => first(ready, value)) : first(compile, value)
    },
  }
}

/** Checks are synchronous: one at a time, so one meter does for all. */
const meter = new Meter()
const stepKeyword = '$step'
const compilers = new Map<Dialect, Awaitable<Compile>>()

function meteredCompiler(dialect: Dialect): Awaitable<Compile> {
  const known = compilers.get(dialect)
  if (known !== undefined) return known
  const loading = import('./ajv.ts')
    .then(({ loadMeteredAjv }) => loadMeteredAjv(dialect, meter, stepKeyword))
    .then(compile => {
      compilers.set(dialect, compile)
      return compile
    })
  compilers.set(dialect, loading)
  return loading
}

function verdict(check: Check, value: unknown, steps: number): Validation {
  try {
    meter.reset(steps)
    const issues = check(value)
    return issues === undefined ? { ok: true, value } : { ok: false, issues }
  } catch (error) {
    // A schema that refers to itself without end runs out of stack before it runs out of steps.
    if (!(error instanceof OverBudget || error instanceof RangeError)) throw error
    return { ok: false, issues: [makeIssue([], `cannot be checked against the peer's schema within ${steps} steps`)] }
  }
}

function explained(compile: Compile, json: JsonSchema): Check {
  try {
    return compile(json)
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new SchemaError(`The peer's schema cannot be used: ${clip(why)}`, { cause })
  }
}

interface Prepared {
  readonly json: JsonSchema
  readonly unchecked: string[]
}

/** Bounds a schema and marks the price of each subschema in it. The schema is a copy and is changed in place. */
function prepare(json: Record<string, unknown>, maxDepth: number, maxSubschemas: number): Prepared {
  const unchecked: string[] = []
  const places = new Set<string>()
  const refs: string[] = []
  delete json.$id
  let count = 0
  const todo: [pointer: string, schema: Record<string, unknown>, depth: number][] = [['#', json, 0]]
  for (let next = todo.pop(); next !== undefined; next = todo.pop()) {
    const [pointer, schema, depth] = next
    if (depth > maxDepth) throw new SchemaError(`The peer's schema is nested deeper than ${maxDepth} levels, which is the limit`)
    if (++count > maxSubschemas)
      throw new SchemaError(`The peer's schema has more than ${maxSubschemas} subschemas, which is the limit`)
    places.add(pointer)
    if (schema.$id !== undefined)
      throw new SchemaError(`The peer's schema has an $id within it (at ${clip(pointer)}), which is not supported`)
    for (const anchor of [schema.$anchor, schema.$dynamicAnchor]) if (typeof anchor === 'string') places.add(`#${anchor}`)
    for (const ref of [schema.$ref, schema.$dynamicRef]) if (typeof ref === 'string') refs.push(ref)
    dropPatterns(schema, pointer, unchecked)
    for (const [below, subschema] of subschemas(schema)) todo.push([pointer + below, subschema, depth + 1])
    schema[stepKeyword] = priceOf(schema)
  }
  // A place that the walk did not see has no price: nothing may lead there.
  for (const ref of refs)
    if (!places.has(decoded(ref))) throw new SchemaError(`The peer's schema refers to ${clip(ref)}, which is not in it`)
  return { json, unchecked }
}

function dropPatterns(schema: Record<string, unknown>, pointer: string, unchecked: string[]): void {
  const { pattern, patternProperties } = schema
  if (typeof pattern === 'string' && linearPattern(pattern) === undefined) {
    unchecked.push(`${clip(pointer)}/pattern: cannot be tested in linear time`)
    delete schema.pattern
  }
  if (!isRecord(patternProperties)) return
  for (const name of Object.keys(patternProperties)) {
    if (linearPattern(name) === undefined)
      throw new SchemaError(`The peer's schema has a pattern for names that cannot be tested in linear time: ${clip(name)}`)
  }
}

/** Rules that go through every member of an object by themselves. */
const memberRules = [
  'additionalProperties',
  'unevaluatedProperties',
  'propertyNames',
  'patternProperties',
  'minProperties',
  'maxProperties',
]
/** Rules that go through a whole text by themselves. */
const textRules = ['minLength', 'maxLength']
/** Rules whose work grows with what they list. */
const listRules = ['required', 'enum', 'const', 'dependentRequired', 'dependencies']

function priceOf(schema: Record<string, unknown>): Step {
  let weight = 1
  for (const rule of listRules) if (schema[rule] !== undefined) weight += JSON.stringify(schema[rule]).length >> 5
  if (isRecord(schema.properties)) weight += Object.keys(schema.properties).length >> 1
  const has = (rule: string) => schema[rule] !== undefined
  return { weight, text: textRules.some(has), members: memberRules.some(has) }
}

function decoded(ref: string): string {
  try {
    return decodeURIComponent(ref)
  } catch {
    return ref
  }
}
