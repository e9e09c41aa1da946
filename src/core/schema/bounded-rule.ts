/** The shapes that the rules of a foreign schema share. */
import { clip } from '../../jsonrpc/limits.ts'
import type { Run } from './bounded-run.ts'
import type { Dialect } from './engine.ts'
import type { LinearPattern } from './linear-pattern.ts'
import { type JsonSchema, SchemaError } from './schema.ts'

export interface Fault {
  /** From the value outwards: each level adds its name on the way up, so that success costs nothing. Absent: the value itself. */
  readonly segments: PropertyKey[] | undefined
  readonly message: string
  /** The types that would have been right, when that is all there is to say: a bit for each, so that those of many branches are one number. */
  readonly types: number
}

/** One bit for each type; an integer is a number too. */
export const typeBits: ReadonlyMap<string, number> = new Map([
  ['string', 8],
  ['number', 32 | 64],
  ['integer', 64],
  ['boolean', 16],
  ['object', 4],
  ['array', 2],
  ['null', 1],
])

export type Apply = (data: unknown, run: Run) => Fault | undefined

/** What every value passes: rules that only say so are left out. */
export const anything: Apply = () => undefined

export interface Rule {
  /** Rules of order 1 come after all of order 0. */
  readonly order: 0 | 1
  readonly test: Apply
}

/** What a rule is made from: its schema, and the way to the subschemas and references in it. */
export interface RuleSource {
  readonly schema: JsonSchema
  readonly dialect: Dialect
  apply(schema: unknown): Apply
  reference(ref: string): Apply
  /** Undefined for a pattern that is left unchecked; a name pattern must be checked, or nothing else is right. */
  pattern(source: string, mustHave: boolean): LinearPattern | undefined
}

export function rule(test: Apply, order: 0 | 1 = 0): Rule {
  return { order, test }
}

/** Made once with its rule: many values may fail it, and that must cost little. */
export function fault(message: string, types = 0): Fault {
  return { segments: undefined, message, types }
}

/** A fault of a member or an item, as seen from the value that holds it. Written member by member: a union fails by the ten thousand. */
export function within(name: PropertyKey, found: Fault): Fault {
  if (found.segments === undefined) return { segments: [name], message: found.message, types: found.types }
  found.segments.push(name)
  return found
}

export function isCount(value: unknown): value is number {
  return typeof value === 'number' && value >= 0
}

export function isNumber(value: unknown): value is number {
  return typeof value === 'number'
}

export function isText(value: unknown): value is string {
  return typeof value === 'string'
}

export function isList(value: unknown): value is readonly unknown[] {
  return Array.isArray(value)
}

export function isNames(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every(isText)
}

/** The value of a keyword, if it is there; a keyword that holds something else makes the schema unusable. */
export function keyword<T>(schema: JsonSchema, name: string, is: (value: unknown) => value is T): T | undefined {
  const value = Object.hasOwn(schema, name) ? schema[name] : undefined
  if (value === undefined || is(value)) return value
  throw new SchemaError(`The peer's schema has ${clip(JSON.stringify(value))} as ${name}, which is not allowed there`)
}
