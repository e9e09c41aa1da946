/**
 * Checking against a schema that a peer sent, such as the output schema of a server's tool. Neither the schema nor the value may cost more than
 * it should: the schema is bounded before use, its patterns are tested in linear time, and each step of a check is counted.
 */
import { clip } from '../../jsonrpc/limits.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import { arrayRules } from './bounded-array.ts'
import { objectRules } from './bounded-object.ts'
import { type Apply, acceptsAll, fault, type RuleSource, Run, type SchemaRule } from './bounded-rule.ts'
import { applicatorRules, valueRules } from './bounded-value.ts'
import { type Dialect, schemaDialectOf } from './engine.ts'
import { type LinearPattern, linearPattern } from './linear-pattern.ts'
import {
  type Issue,
  type JsonSchema,
  makeIssue,
  OverBudget,
  SchemaError,
  StepMeter,
  subschemas,
  UnsupportedSchema,
  type Validation,
} from './schema.ts'

interface PeerSchemaLimits {
  /** UTF-8 bytes of its JSON text. */
  readonly bytes: number
  /** Subschemas within subschemas. */
  readonly depth: number
  readonly subschemas: number
  /** What checking one value may cost: some tens of nanoseconds each, so that all of them stay well below 50 ms. */
  readonly steps: number
}

const peerSchemaLimits: PeerSchemaLimits = { bytes: 64 * 1024, depth: 32, subschemas: 1_000, steps: 1_300_000 }

/** A schema that a peer sent, ready to check values with bounded work. */
export interface PeerSchema {
  /** What of the schema is not checked, and why: for a trace. */
  readonly unchecked: readonly string[]
  /** Reports the first thing that is wrong. A value that cannot be checked within the steps allowed does not pass. */
  validate(value: unknown): Validation
}

/**
 * Throws `SchemaError` for a schema that is beyond the limits or refers to what it does not hold.
 *
 * @example
 * const { ok } = compilePeerSchema(tool.outputSchema).validate(result.structuredContent)
 */
export function compilePeerSchema(json: JsonSchema, limits: Partial<PeerSchemaLimits> = {}): PeerSchema {
  const whole = { ...peerSchemaLimits, ...limits }
  if (!mayFit(json, whole.bytes)) throw tooLarge(whole.bytes)
  const text = textOf(json)
  const key = JSON.stringify(whole) + text
  const known = byText.get(key)
  if (known !== undefined) return known
  if (new TextEncoder().encode(text).length > whole.bytes) throw tooLarge(whole.bytes)
  const schema = peerSchema(compileBounded(json, schemaDialectOf(json), whole), whole.steps)
  if (byText.size >= maxSchemas) for (const [oldest] of byText) if (byText.delete(oldest)) break
  byText.set(key, schema)
  return schema
}

/** A peer's list is fetched again and again, and is mostly the same. */
const maxSchemas = 256
const byText = new Map<string, PeerSchema>()

function tooLarge(bytes: number): UnsupportedSchema {
  return new UnsupportedSchema(`The peer's schema is larger than ${bytes} bytes, which is the limit`)
}

/** False as soon as its text is sure to be too long: writing that down to find out would take longer than any schema is worth. */
function mayFit(json: unknown, bytes: number): boolean {
  let least = 0
  const todo: unknown[] = [json]
  for (let next = todo.pop(); next !== undefined && least <= bytes; next = todo.pop()) {
    if (typeof next === 'string') least += next.length + 2
    else if (typeof next !== 'object' || next === null) least++
    else if (Array.isArray(next)) {
      least += next.length + 1
      if (least <= bytes) for (const item of next) todo.push(item ?? null)
    } else {
      for (const [name, member] of Object.entries(next)) {
        least += name.length + 3
        if (least > bytes) break
        todo.push(member ?? null)
      }
    }
  }
  return least <= bytes
}

function textOf(json: JsonSchema): string {
  try {
    return JSON.stringify(json)
  } catch (cause) {
    throw new UnsupportedSchema("The peer's schema is nested too deeply to be written as JSON", { cause })
  }
}

function peerSchema(bounded: BoundedSchema, steps: number): PeerSchema {
  return {
    unchecked: bounded.unchecked,
    validate(value) {
      try {
        const issue = bounded.check(value, new StepMeter(steps))
        return issue === undefined ? { ok: true, value } : { ok: false, issues: [issue] }
      } catch (error) {
        // A schema that refers to itself without end runs out of stack before it runs out of steps.
        if (!(error instanceof OverBudget || error instanceof RangeError)) throw error
        return { ok: false, issues: [makeIssue([], `cannot be checked against the peer's schema within ${steps} steps`)] }
      }
    },
  }
}

/**
 * JSON Schema checked by walking it, for schemas that come from others: compiled code cannot be stopped half-way, this can. Each subschema becomes a
 * list of rules once; each rule applied is a step on a meter. A schema is one resource here (no `$id` within), which makes every reference static.
 */
interface SchemaBounds {
  /** Subschemas within subschemas. */
  readonly depth: number
  readonly subschemas: number
}

interface BoundedSchema {
  /** What of the schema is not checked, and why. */
  readonly unchecked: readonly string[]
  /** The first thing that is wrong with a value. */
  check(value: unknown, meter: StepMeter): Issue | undefined
}

/** Compiles a schema of a peer within bounds. Throws where the schema is wrong or exceeds them. */
export function compileBounded(json: JsonSchema, dialect: Dialect, bounds: SchemaBounds): BoundedSchema {
  const compiler = new Compiler(json, dialect, bounds)
  const apply = compiler.apply(json)
  return {
    unchecked: compiler.unchecked,
    check(value, meter) {
      const found = apply(value, new Run(meter))
      return found === undefined ? undefined : makeIssue(found.segments?.toReversed() ?? [], found.message)
    },
  }
}

class Compiler {
  readonly unchecked: string[] = []
  readonly dialect: Dialect
  readonly #root: JsonSchema
  readonly #bounds: SchemaBounds
  readonly #known = new Map<JsonSchema, { apply: Apply | undefined }>()
  readonly #anchors = new Map<string, JsonSchema>()

  constructor(root: JsonSchema, dialect: Dialect, bounds: SchemaBounds) {
    this.#root = root
    this.dialect = dialect
    this.#bounds = bounds
    this.#survey(root)
  }

  /** Before anything recursive touches the schema. */
  #survey(root: JsonSchema): void {
    let count = 0
    const todo: [schema: JsonSchema, depth: number][] = [[root, 0]]
    for (let next = todo.pop(); next !== undefined; next = todo.pop()) {
      const [schema, depth] = next
      if (depth > this.#bounds.depth) throw unsupported(`is nested deeper than ${this.#bounds.depth} levels, which is the limit`)
      if (++count > this.#bounds.subschemas)
        throw unsupported(`has more than ${this.#bounds.subschemas} subschemas, which is the limit`)
      if (schema.$id !== undefined && schema !== root) throw unsupported('has a nested $id, which is not supported')
      for (const anchor of [schema.$anchor, schema.$dynamicAnchor]) {
        if (typeof anchor === 'string') this.#anchors.set(anchor, schema)
      }
      for (const [, subschema] of subschemas(schema)) todo.push([subschema, depth + 1])
    }
  }

  apply(schema: unknown): Apply {
    if (schema === true) return acceptsAll
    if (schema === false) return () => nothing
    if (!isRecord(schema)) throw refuse(`has ${clip(JSON.stringify(schema) ?? 'nothing')} in place of a schema`)
    const known = this.#known.get(schema)
    // A schema that leads back to itself is met again while its own rules are being made.
    if (known !== undefined) return (data, run) => known.apply?.(data, run)
    const entry: { apply: Apply | undefined } = { apply: undefined }
    this.#known.set(schema, entry)
    if (this.#known.size > this.#bounds.subschemas)
      throw unsupported(`has more than ${this.#bounds.subschemas} subschemas, which is the limit`)
    entry.apply = applyAll(this.#rules(schema))
    return entry.apply
  }

  #rules(schema: JsonSchema): SchemaRule[] {
    const source: RuleSource = {
      schema,
      dialect: this.dialect,
      apply: subschema => this.apply(subschema),
      reference: ref => this.apply(this.#find(ref)),
      pattern: (text, mustHave) => this.#pattern(text, mustHave),
    }
    // In draft-07 nothing beside a reference counts.
    if (this.dialect === 'draft-07' && typeof schema.$ref === 'string')
      return applicatorRules({ ...source, schema: { $ref: schema.$ref } })
    // What is not evaluated by anyone is asked last, when all others have been.
    return [...valueRules(source), ...applicatorRules(source), ...arrayRules(source), ...objectRules(source)].sort(
      (a, b) => a.order - b.order,
    )
  }

  #pattern(text: string, mustHave: boolean): LinearPattern | undefined {
    const pattern = linearPattern(text)
    if (pattern === undefined && mustHave)
      throw unsupported(`has a pattern for member names that cannot be tested in linear time: ${clip(text)}`)
    if (pattern === undefined) this.unchecked.push(`the pattern ${clip(text)} cannot be tested in linear time`)
    return pattern
  }

  #find(ref: string): unknown {
    const id = this.#root.$id
    const local = typeof id === 'string' && ref.startsWith(id) ? ref.slice(id.length) : ref
    if (local === '' || local === '#') return this.#root
    const found = local.startsWith('#/') ? atPointer(this.#root, local.slice(2)) : this.#anchors.get(local.slice(1))
    if (!local.startsWith('#') || found === undefined) throw refuse(`refers to ${clip(ref)}, which it does not contain`)
    return found
  }
}

const nothing = fault('is not allowed here')

function applyAll(rules: readonly SchemaRule[]): Apply {
  const tracks = rules.some(({ order }) => order > 0)
  const tests = rules.map(({ test }) => test)
  const price = 1 + (tests.length >> 2)
  return (data, run) => {
    run.meter.spend(price)
    const own = tracks ? run.apart() : run
    for (let index = 0; index < tests.length; index++) {
      const found = tests[index]?.(data, own)
      if (found !== undefined) return found
    }
    if (tracks && own.seen !== undefined) run.seen?.take(own.seen, run.meter)
    return undefined
  }
}

function atPointer(root: unknown, pointer: string): unknown {
  let at = root
  for (const part of decoded(pointer).split('/')) {
    const name = part.replaceAll('~1', '/').replaceAll('~0', '~')
    if (Array.isArray(at)) at = at[Number(name)]
    else at = isRecord(at) && Object.hasOwn(at, name) ? at[name] : undefined
  }
  return at
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

function unsupported(why: string): UnsupportedSchema {
  return new UnsupportedSchema(`The peer's schema ${why}`)
}

function refuse(why: string): SchemaError {
  return new SchemaError(`The peer's schema ${why}`)
}
