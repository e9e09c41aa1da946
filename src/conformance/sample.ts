/**
 * The smallest value that a JSON Schema allows, as far as that can be said by looking: examples, defaults, constants and enums first, else made
 * from type and bounds. Undefined where nothing fits; what is made is not checked again here.
 */
import { isRecord } from '../jsonrpc/message.ts'
import type { Json } from './scenario.ts'

const deepest = 8

/** Which of the possible values is made. */
interface SampleOptions {
  /** Chooses among several values where there are some. Default 0: the first one. */
  readonly variant?: number
}

/** @example sample({ type: 'object', properties: { id: { type: 'string' } }, required: ['id'] }) // { id: 'a' } */
export function sample(schema: unknown, options: SampleOptions = {}): unknown {
  return new Maker(schema, options.variant ?? 0).make(schema, 0)
}

/** Arguments for a tool; undefined where none can be made. */
export function sampleArguments(tool: Json, options?: SampleOptions): Json | undefined {
  const made = sample(tool['inputSchema'] ?? { type: 'object' }, options)
  return isRecord(made) ? made : undefined
}

class Maker {
  readonly #root: unknown
  readonly #variant: number

  constructor(root: unknown, variant: number) {
    this.#root = root
    this.#variant = variant
  }

  make(schema: unknown, depth: number): unknown {
    if (schema === true) return 'a'
    if (!isRecord(schema) || depth > deepest) return undefined
    const given = this.#given(schema)
    if (given !== undefined) return given
    if (typeof schema['$ref'] === 'string') return this.make(this.#resolve(schema['$ref']), depth + 1)
    const chosen = this.#chosen(schema, depth)
    if (chosen !== undefined) return chosen
    const merged = this.#merged(schema)
    const told = merged === schema ? undefined : this.#given(merged)
    if (told !== undefined) return told
    const { type } = merged
    const first = Array.isArray(type) ? type[0] : type
    const kind = first ?? (isRecord(merged['properties']) || merged['required'] !== undefined ? 'object' : 'string')
    if (kind === 'object') return this.#object(merged, depth)
    if (kind === 'array') return this.#array(merged, depth)
    return this.#scalar(String(kind), merged)
  }

  /** What the schema spells out. */
  #given(schema: Json): unknown {
    if ('const' in schema) return schema['const']
    for (const list of [schema['examples'], schema['enum']])
      if (Array.isArray(list) && list.length > 0) return list[this.#variant % list.length]
    return schema['default']
  }

  /** Where a schema is nothing but a choice: what its first branch gives that gives anything. */
  #chosen(schema: Json, depth: number): unknown {
    const branches = schema['anyOf'] ?? schema['oneOf']
    if (!Array.isArray(branches) || schema['type'] !== undefined || schema['properties'] !== undefined) return undefined
    for (const branch of branches) {
      const value = this.make(branch, depth + 1)
      if (value !== undefined) return value
    }
    return undefined
  }

  /** With the first branch of each choice, and all that must hold together. */
  #merged(schema: Json): Json {
    const parts = [schema]
    for (const word of ['anyOf', 'oneOf'])
      if (Array.isArray(schema[word]) && isRecord(schema[word][0])) parts.push(this.#followed(schema[word][0]))
    if (Array.isArray(schema['allOf'])) for (const part of schema['allOf']) if (isRecord(part)) parts.push(this.#followed(part))
    if (parts.length === 1) return schema
    const properties = Object.assign({}, ...parts.map(part => part['properties'] ?? {}))
    const required = parts.flatMap(part => (Array.isArray(part['required']) ? part['required'] : []))
    return { ...Object.assign({}, ...parts), properties, required }
  }

  #followed(schema: Json): Json {
    const target = typeof schema['$ref'] === 'string' ? this.#resolve(schema['$ref']) : schema
    return isRecord(target) ? target : schema
  }

  #resolve(ref: string): unknown {
    if (!ref.startsWith('#')) return undefined
    let at: unknown = this.#root
    for (const part of ref.split('/').slice(1)) {
      const name = part.replaceAll('~1', '/').replaceAll('~0', '~')
      at = isRecord(at) && Object.hasOwn(at, name) ? at[name] : undefined
    }
    return at
  }

  #object(schema: Json, depth: number): Json | undefined {
    const properties = isRecord(schema['properties']) ? schema['properties'] : {}
    const required = Array.isArray(schema['required']) ? schema['required'] : []
    const made: [string, unknown][] = []
    for (const name of new Set(required)) {
      if (typeof name !== 'string') continue
      const value = this.make(Object.hasOwn(properties, name) ? properties[name] : true, depth + 1)
      if (value === undefined) return undefined
      made.push([name, value])
    }
    return Object.fromEntries(made)
  }

  #array(schema: Json, depth: number): readonly unknown[] | undefined {
    const least = wholeNumber(schema['minItems']) ?? 0
    const prefix = Array.isArray(schema['prefixItems']) ? schema['prefixItems'] : []
    const items: unknown[] = []
    for (let at = 0; at < least; at++) {
      const value = this.make(prefix[at] ?? schema['items'] ?? true, depth + 1)
      if (value === undefined) return undefined
      items.push(value)
    }
    return items
  }

  #scalar(kind: string, schema: Json): unknown {
    if (kind === 'boolean') return this.#variant % 2 === 0
    if (kind === 'null') return null
    if (kind === 'integer' || kind === 'number') return numberIn(schema, kind === 'integer', this.#variant)
    return text(schema, this.#variant)
  }
}

function numberIn(schema: Json, whole: boolean, variant: number): number | undefined {
  const { minimum, exclusiveMinimum, maximum, exclusiveMaximum, multipleOf } = schema
  const step = typeof multipleOf === 'number' && multipleOf > 0 ? multipleOf : whole ? 1 : undefined
  const low = typeof minimum === 'number' ? minimum : undefined
  const above = typeof exclusiveMinimum === 'number' ? exclusiveMinimum : undefined
  const high = typeof maximum === 'number' ? maximum : undefined
  const below = typeof exclusiveMaximum === 'number' ? exclusiveMaximum : undefined
  const fits = (n: number): boolean =>
    (low === undefined || n >= low) &&
    (above === undefined || n > above) &&
    (high === undefined || n <= high) &&
    (below === undefined || n < below)
  const unit = step ?? 1
  const base = low ?? above ?? high ?? below ?? 0
  const near = step === undefined ? base : Math.ceil(base / unit) * unit
  const candidates = [
    near,
    near + unit,
    near - unit,
    near + 2 * unit,
    ...(step === undefined ? between(low ?? above, high ?? below) : []),
  ]
  const fitting = candidates.filter(fits)
  return fitting[variant % Math.max(fitting.length, 1)]
}

function between(low: number | undefined, high: number | undefined): readonly number[] {
  return low === undefined || high === undefined ? [] : [low + (high - low) / 2, low + (high - low) / 4]
}

const formats: Readonly<Record<string, string>> = {
  'date-time': '2026-01-23T14:00:00Z',
  date: '2026-01-23',
  time: '14:00:00Z',
  email: 'kit@example.com',
  uri: 'https://example.com/',
  url: 'https://example.com/',
  uuid: '123e4567-e89b-42d3-a456-426614174000',
  ipv4: '192.0.2.1',
  ipv6: '2001:db8::1',
  hostname: 'example.com',
}

function text(schema: Json, variant: number): string | undefined {
  const { format, pattern } = schema
  if (typeof format === 'string' && Object.hasOwn(formats, format)) return formats[format]
  const least = wholeNumber(schema['minLength']) ?? 1
  const most = wholeNumber(schema['maxLength']) ?? Number.POSITIVE_INFINITY
  const made = 'abcdefgh'[variant % 8]?.repeat(Math.max(least, 1)).slice(0, Math.max(0, Math.min(most, 65_536))) ?? ''
  if (typeof pattern !== 'string') return made
  return matching(pattern, [made, ...simple])
}

/** Words that common patterns allow: ids, numbers, names. */
const simple = [...'a A 1 a1 T-1 A-1 aa abc ABC 12 123 1.0.0 #000000 a.b a/b 00000000'.split(' '), 'a'.repeat(16), '0'.repeat(32)]

function matching(pattern: string, words: readonly string[]): string | undefined {
  if (pattern.length > 1_000) return undefined
  try {
    const expression = new RegExp(pattern, 'u')
    return words.find(word => expression.test(word))
  } catch {
    return undefined
  }
}

function wholeNumber(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? Math.min(value, 65_536) : undefined
}
