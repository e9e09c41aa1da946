/** Rules about arrays (JSON Schema validation §6.4, core §10.3.1 and §11.2). */

import { isRecord } from '../../jsonrpc/message.ts'
import {
  acceptsAll,
  type Fault,
  fault,
  faultWithin,
  isList,
  isSchemaCount,
  keyword,
  type RuleSource,
  type Run,
  rule,
  type SchemaRule,
} from './bounded-rule.ts'
import type { StepMeter } from './schema.ts'

/** The rules of a schema about arrays. */
export function arrayRules(source: RuleSource): SchemaRule[] {
  return [...sizeRules(source), ...itemRules(source), ...containsRules(source), ...unevaluatedRules(source)]
}

function sizeRules({ schema }: RuleSource): SchemaRule[] {
  const rules: SchemaRule[] = []
  const least = keyword(schema, 'minItems', isSchemaCount)
  if (least !== undefined) {
    const short = fault(`must have at least ${least} items`)
    rules.push(onArrays(items => (items.length < least ? short : undefined)))
  }
  const most = keyword(schema, 'maxItems', isSchemaCount)
  if (most !== undefined) {
    const long = fault(`must have at most ${most} items`)
    rules.push(onArrays(items => (items.length > most ? long : undefined)))
  }
  if (schema.uniqueItems === true) {
    const twice = fault('must not contain the same item twice')
    rules.push(onArrays((items, { meter }) => (allDistinct(items, meter) ? undefined : twice)))
  }
  return rules
}

/** Up to 2019-09 a list under `items` is what `prefixItems` is now, and `additionalItems` is the rest. */
function itemRules({ schema, dialect, apply }: RuleSource): SchemaRule[] {
  const older = dialect !== '2020-12'
  const listed = older && isList(schema.items)
  const prefix =
    (listed ? keyword(schema, 'items', isList) : older ? [] : keyword(schema, 'prefixItems', isList))?.map(apply) ?? []
  const others = listed ? schema.additionalItems : schema.items
  if (prefix.length === 0 && others === undefined) return []
  const rest = others === undefined || others === true ? undefined : apply(others)
  return [
    onArrays((items, { meter, seen, below }) => {
      const end = rest === undefined ? Math.min(items.length, prefix.length) : items.length
      meter.spend(1 + (end >> 2))
      for (let index = 0; index < end; index++) {
        const found = (prefix[index] ?? rest ?? acceptsAll)(items[index], below)
        if (found !== undefined) return faultWithin(index, found)
      }
      if (seen !== undefined) seen.upTo = Math.max(seen.upTo, others === undefined ? end : items.length)
      return undefined
    }),
  ]
}

function containsRules({ schema, dialect, apply }: RuleSource): SchemaRule[] {
  if (schema.contains === undefined) return []
  const contains = apply(schema.contains)
  const least = keyword(schema, 'minContains', isSchemaCount) ?? 1
  const most = keyword(schema, 'maxContains', isSchemaCount) ?? Number.POSITIVE_INFINITY
  const few = fault(`must contain at least ${least} items that match "contains"`)
  const many = fault(`must contain at most ${most} items that match "contains"`)
  return [
    onArrays((items, { meter, seen, below }) => {
      let count = 0
      meter.spend(1 + items.length)
      for (let index = 0; index < items.length; index++) {
        if (contains(items[index], below) !== undefined) continue
        count++
        if (dialect !== '2020-12' || seen === undefined) continue
        meter.spend(3)
        seen.items.add(index)
      }
      if (count < least) return few
      return count > most ? many : undefined
    }),
  ]
}

function unevaluatedRules({ schema, apply }: RuleSource): SchemaRule[] {
  if (schema.unevaluatedItems === undefined) return []
  const unevaluated = apply(schema.unevaluatedItems)
  const test = onArrays((items, { meter, seen, below }) => {
    if (seen === undefined) return undefined
    meter.spend(1 + items.length)
    for (let index = seen.upTo; index < items.length; index++) {
      if (seen.items.has(index)) continue
      const found = unevaluated(items[index], below)
      if (found !== undefined) return faultWithin(index, found)
    }
    seen.upTo = items.length
    return undefined
  })
  return [rule(test.test, 1)]
}

function onArrays(test: (items: readonly unknown[], run: Run) => Fault | undefined): SchemaRule {
  return rule((data, run) => (isList(data) ? test(data, run) : undefined))
}

// Equality of JSON values from a peer, arrays without equal items, and lists of allowed values. Values are told apart by a
// hash before they are compared, and each step of either is counted: no value can make everything be compared with everything.

/** Strings up to this length are hashed whole, longer ones by their length and so many of their characters. */
const sampled = 64

/** Equal values have equal hashes, whatever the order of their members. Depth is bounded by the frame that brought the value. */
function hashOf(value: unknown, meter: StepMeter): number {
  if (typeof value === 'string') return stringHash(value, meter)
  if (typeof value === 'number') return numberHash(value)
  if (typeof value !== 'object' || value === null) return value === true ? 3 : value === false ? 5 : 7
  if (Array.isArray(value)) return arrayHash(value, meter)
  let sum = 11
  meter.spend(2)
  // Parsed from JSON, so that nothing is inherited: no list of its names is made.
  for (const name in value) {
    meter.spend(4)
    // A sum, so that the order does not matter; names and values are mixed first, so that they cannot be exchanged.
    const member = (value as Readonly<Record<string, unknown>>)[name]
    sum = (sum + mix(Math.imul(stringHash(name, meter), 31) ^ hashOf(member, meter))) | 0
  }
  return sum
}

function arrayHash(items: readonly unknown[], meter: StepMeter): number {
  meter.spend(2 + items.length)
  let hash = 13
  for (const item of items) hash = (Math.imul(hash, 31) + mix(hashOf(item, meter))) | 0
  return hash
}

function stringHash(text: string, meter: StepMeter): number {
  const { length } = text
  meter.spend(1 + (Math.min(length, sampled) >> 4))
  if (length <= sampled) return rangeHash(text, 0, length, 1, length)
  // What differs is mostly at the beginning or the end; what is made to differ in between only is compared.
  const edge = sampled >> 2
  const ends = rangeHash(text, length - edge, length, 1, rangeHash(text, 0, edge, 1, length))
  return rangeHash(text, edge, length - edge, Math.ceil(length / (2 * edge)), ends)
}

function rangeHash(text: string, from: number, to: number, step: number, seed: number): number {
  let hash = seed
  for (let at = from; at < to; at += step) hash = (Math.imul(hash, 31) + text.charCodeAt(at)) | 0
  return hash
}

function numberHash(value: number): number {
  // The remainder keeps what 32 bits would cut off, the fraction what an integer would.
  return Number.isInteger(value) ? (value % 4_294_967_291) | 0 : mix(((value * 1e9) % 4_294_967_291) | 0)
}

function mix(hash: number): number {
  const half = Math.imul(hash ^ (hash >>> 16), 0x45d9f3b)
  return (half ^ (half >>> 15)) | 0
}

function sameJson(one: unknown, other: unknown, meter: StepMeter): boolean {
  if (typeof one === 'string' && typeof other === 'string') {
    meter.spend(1 + (Math.min(one.length, other.length) >> 6))
    return one === other
  }
  meter.spend(1)
  if (one === other) return true
  if (Array.isArray(one)) {
    if (!Array.isArray(other) || one.length !== other.length) return false
    for (let index = 0; index < one.length; index++) if (!sameJson(one[index], other[index], meter)) return false
    return true
  }
  if (!isRecord(one) || !isRecord(other)) return false
  const names = Object.keys(one)
  meter.spend(names.length * 4)
  if (names.length !== Object.keys(other).length) return false
  for (const name of names) if (!Object.hasOwn(other, name) || !sameJson(one[name], other[name], meter)) return false
  return true
}

/** In one pass over an open table of positions, which costs no object an item. */
function allDistinct(items: readonly unknown[], meter: StepMeter): boolean {
  const count = items.length
  meter.spend(2 + count * 8)
  const hashes = new Int32Array(count)
  const mask = 2 ** Math.ceil(Math.log2(count * 2 + 2)) - 1
  const places = new Int32Array(mask + 1)
  for (let index = 0; index < count; index++) {
    const hash = mix(hashOf(items[index], meter))
    hashes[index] = hash
    let place = hash & mask
    for (let before = places[place] ?? 0; before !== 0; before = places[place] ?? 0) {
      meter.spend(1)
      if (hashes[before - 1] === hash && sameJson(items[before - 1], items[index], meter)) return false
      place = (place + 1) & mask
    }
    places[place] = index + 1
  }
  return true
}

/** A list of allowed values: looked up, however many there are. */
export class EnumValues {
  readonly #scalars: ReadonlySet<unknown>
  readonly #others = new Map<number, unknown[]>()

  /** The meter pays for reading the list itself. */
  constructor(choices: readonly unknown[], meter: StepMeter) {
    this.#scalars = new Set(choices.filter(choice => typeof choice !== 'object' || choice === null))
    for (const choice of choices) {
      if (typeof choice !== 'object' || choice === null) continue
      const hash = hashOf(choice, meter)
      const alike = this.#others.get(hash)
      if (alike === undefined) this.#others.set(hash, [choice])
      else alike.push(choice)
    }
  }

  has(value: unknown, meter: StepMeter): boolean {
    if (typeof value !== 'object' || value === null) {
      meter.spend(typeof value === 'string' ? 1 + (value.length >> 5) : 1)
      return this.#scalars.has(value)
    }
    if (this.#others.size === 0) return false
    return this.#others.get(hashOf(value, meter))?.some(choice => sameJson(choice, value, meter)) ?? false
  }
}
