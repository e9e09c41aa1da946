/** What the rules of a foreign schema share: their shape, and the run of one check through a value. */
import { clip } from '../../jsonrpc/limits.ts'
import type { Dialect } from './engine.ts'
import type { LinearPattern } from './linear-pattern.ts'
import { type JsonSchema, SchemaError, type StepMeter } from './schema.ts'

/** What is wrong with a value, and where in it. */
export interface Fault {
  /** From the value outwards: each level adds its name on the way up, so that success costs nothing. Absent: the value itself. */
  readonly segments: PropertyKey[] | undefined
  /** What would be right. */
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

/** Checks a value; undefined where nothing is wrong with it. */
export type Apply = (data: unknown, run: Run) => Fault | undefined

/** What every value passes: rules that only say so are left out. */
export const acceptsAll: Apply = () => undefined

/** One check that a schema asks for. */
export interface SchemaRule {
  /** Rules of order 1 come after all of order 0. */
  readonly order: 0 | 1
  readonly test: Apply
}

/** What a rule is made from: its schema, and the way to the subschemas and references in it. */
export interface RuleSource {
  readonly schema: JsonSchema
  readonly dialect: Dialect
  /** The check that a subschema stands for. */
  apply(schema: unknown): Apply
  /** The check that a `$ref` leads to. */
  reference(ref: string): Apply
  /** Undefined for a pattern that is left unchecked; a name pattern must be checked, or nothing else is right. */
  pattern(source: string, mustHave: boolean): LinearPattern | undefined
}

/** Makes a rule of a check. */
export function rule(test: Apply, order: 0 | 1 = 0): SchemaRule {
  return { order, test }
}

/** Made once with its rule: many values may fail it, and that must cost little. */
export function fault(message: string, types = 0): Fault {
  return { segments: undefined, message, types }
}

/** A fault of a member or an item, as seen from the value that holds it. Written member by member: a union fails by the ten thousand. */
export function faultWithin(name: PropertyKey, found: Fault): Fault {
  if (found.segments === undefined) return { segments: [name], message: found.message, types: found.types }
  found.segments.push(name)
  return found
}

/** Whether the value of a keyword is a count. */
export function isSchemaCount(value: unknown): value is number {
  return typeof value === 'number' && value >= 0
}

/** Whether the value of a keyword is a number. */
export function isNumber(value: unknown): value is number {
  return typeof value === 'number'
}

/** Whether the value of a keyword is text. */
export function isText(value: unknown): value is string {
  return typeof value === 'string'
}

/** Whether a value is an array. */
export function isList(value: unknown): value is readonly unknown[] {
  return Array.isArray(value)
}

/** Whether the value of a keyword is a list of names. */
export function isNames(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every(isText)
}

/** The value of a keyword, if it is there; a keyword that holds something else makes the schema unusable. */
export function keyword<T>(schema: JsonSchema, name: string, is: (value: unknown) => value is T): T | undefined {
  const value = Object.hasOwn(schema, name) ? schema[name] : undefined
  if (value === undefined || is(value)) return value
  throw new SchemaError(`The peer's schema has ${clip(JSON.stringify(value))} as ${name}, which is not a valid value`)
}

// What one check of a value against a foreign schema carries along: its budget, and what it has seen so far.

/** Which members and items of a value some rule has looked at: what `unevaluated…` asks about. */
export class SeenMembers {
  readonly names = new Set<string>()
  readonly items = new Set<number>()
  /** All items before this one. */
  upTo = 0

  /** Counts what another has looked at as looked at here. */
  take({ names, items, upTo }: SeenMembers, meter: StepMeter): void {
    meter.spend(6 * (names.size + items.size))
    for (const name of names) this.names.add(name)
    for (const item of items) this.items.add(item)
    this.upTo = Math.max(this.upTo, upTo)
  }
}

/** The members of an object. */
export type Members = Readonly<Record<string, unknown>>

/** Objects with more members than this are kept as tables by the engine: going through one is slower. */
const fewMembers = 64

/** The names of an object's members: many rules may ask for those of the same object, and a large one takes long. */
class Names {
  readonly #meter: StepMeter
  readonly #wide = new Map<Members, readonly string[]>()
  #last: Members | undefined = undefined
  #names: readonly string[] = []

  constructor(meter: StepMeter) {
    this.#meter = meter
  }

  of(members: Members): readonly string[] {
    if (members === this.#last) return this.#names
    let names = this.#wide.size === 0 ? undefined : this.#wide.get(members)
    if (names === undefined) {
      names = Object.keys(members)
      this.#meter.spend(names.length > fewMembers ? names.length * 10 : names.length + 2)
      if (names.length > fewMembers) this.#wide.set(members, names)
    }
    this.#last = members
    this.#names = names
    return names
  }
}

/** The state of one validation: its budget of steps, and what has been evaluated so far. */
export class Run {
  readonly meter: StepMeter
  readonly names: Names
  /** Only where some schema around asks. */
  readonly seen: SeenMembers | undefined
  /** The same for the values within, whose members and items are nobody's business out here. */
  readonly below: Run

  constructor(meter: StepMeter, names: Names = new Names(meter), seen?: SeenMembers, below?: Run) {
    this.meter = meter
    this.names = names
    this.seen = seen
    this.below = below ?? this
  }

  /** The same value once more, with an account of its own of what was looked at. */
  apart(): Run & { readonly seen: SeenMembers } {
    this.meter.spend(seenPrice)
    return new Run(this.meter, this.names, new SeenMembers(), this.below) as Run & { readonly seen: SeenMembers }
  }
}

/** Two sets and their holder. */
const seenPrice = 24
