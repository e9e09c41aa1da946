/**
 * JSON Schema checked by walking it, for schemas that come from others: compiled code cannot be stopped half-way, this can. Each subschema becomes a
 * list of rules once; each rule applied is a step on a meter. A schema is one resource here (no `$id` within), which makes every reference static.
 */
import { clip } from '../../jsonrpc/limits.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import { arrayRules } from './bounded-array.ts'
import { objectRules } from './bounded-object.ts'
import { type Apply, anything, fault, type Rule, type RuleSource } from './bounded-rule.ts'
import { Run } from './bounded-run.ts'
import { applicatorRules, valueRules } from './bounded-value.ts'
import type { Dialect } from './engine.ts'
import { type Issue, makeIssue } from './issue.ts'
import { type LinearPattern, linearPattern } from './linear-pattern.ts'
import type { Meter } from './meter.ts'
import { type JsonSchema, SchemaError, UnsupportedSchema } from './schema.ts'
import { subschemas } from './walk.ts'

export interface SchemaBounds {
  /** Subschemas within subschemas. */
  readonly depth: number
  readonly subschemas: number
}

export interface Bounded {
  /** What of the schema is not checked, and why. */
  readonly unchecked: readonly string[]
  /** The first thing that is wrong with a value. */
  check(value: unknown, meter: Meter): Issue | undefined
}

export function compileBounded(json: JsonSchema, dialect: Dialect, bounds: SchemaBounds): Bounded {
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
      if (schema.$id !== undefined && schema !== root) throw unsupported('has an $id within it, which is not supported')
      for (const anchor of [schema.$anchor, schema.$dynamicAnchor]) {
        if (typeof anchor === 'string') this.#anchors.set(anchor, schema)
      }
      for (const [, subschema] of subschemas(schema)) todo.push([subschema, depth + 1])
    }
  }

  apply(schema: unknown): Apply {
    if (schema === true) return anything
    if (schema === false) return () => nothing
    if (!isRecord(schema)) throw refuse(`has ${clip(JSON.stringify(schema) ?? 'nothing')} where a schema should be`)
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

  #rules(schema: JsonSchema): Rule[] {
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
      throw unsupported(`has a pattern for names that cannot be tested in linear time: ${clip(text)}`)
    if (pattern === undefined) this.unchecked.push(`the pattern ${clip(text)} cannot be tested in linear time`)
    return pattern
  }

  #find(ref: string): unknown {
    const id = this.#root.$id
    const local = typeof id === 'string' && ref.startsWith(id) ? ref.slice(id.length) : ref
    if (local === '' || local === '#') return this.#root
    const found = local.startsWith('#/') ? atPointer(this.#root, local.slice(2)) : this.#anchors.get(local.slice(1))
    if (!local.startsWith('#') || found === undefined) throw refuse(`refers to ${clip(ref)}, which is not in it`)
    return found
  }
}

const nothing = fault('is not allowed here')

function applyAll(rules: readonly Rule[]): Apply {
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
