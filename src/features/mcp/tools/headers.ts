/**
 * Arguments mirrored in HTTP headers: a property marked `x-mcp-header: "Name"` travels as `Mcp-Param-Name` too, so that
 * proxies can route by it; the server refuses a header that differs from the body (2026-07-28 basic/transports).
 */
import { clip } from '../../../jsonrpc/limits.ts'
import { isRecord, type Params } from '../../../jsonrpc/message.ts'
import { decodeHeaderValue, encodeHeaderValue, headerFault, type Wire } from '../../../revisions/index.ts'
import { without } from '../content/messages.ts'

/** An argument of a tool that also travels in a header, where proxies can read it. */
export interface MirroredParam {
  /** The header, in lower case. */
  readonly header: string
  /** Where the value is in the arguments. */
  readonly path: readonly string[]
  readonly type: 'string' | 'integer' | 'boolean'
}

const mark = 'x-mcp-header'
/** Plain digits alone: in other notations two readers may see two numbers. */
const decimal = /^-?\d+(?:\.0+)?$/
const tokenPattern = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/

/** The mirrored parameters of an input schema, or what is wrong with its marks. */
export function mirroredParams(schema: Wire): readonly MirroredParam[] | { readonly fault: string } {
  const found: MirroredParam[] = []
  const reached = new Set<unknown>()
  const fault = collect(schema, [], found, reached)
  if (fault !== undefined) return { fault }
  if (countMarks(schema) > reached.size) return { fault: `${mark} is allowed only on properties reached through "properties"` }
  const names = new Set(found.map(({ header }) => header))
  return names.size < found.length ? { fault: `two properties have the same ${mark}` } : found
}

function collect(schema: Wire, path: readonly string[], found: MirroredParam[], reached: Set<unknown>): string | undefined {
  const properties = schema['properties']
  if (!isRecord(properties)) return undefined
  for (const [name, property] of Object.entries(properties)) {
    if (!isRecord(property)) continue
    const inner = [...path, name]
    if (mark in property) {
      reached.add(property)
      const value = property[mark]
      if (typeof value !== 'string' || !tokenPattern.test(value)) return `${mark} of "${clip(name)}" must be an HTTP token`
      const type = property['type']
      if (type !== 'string' && type !== 'integer' && type !== 'boolean')
        return `${mark} of "${clip(name)}" needs type string, integer or boolean`
      found.push({ header: `mcp-param-${value.toLowerCase()}`, path: inner, type })
    }
    const fault = collect(property, inner, found, reached)
    if (fault !== undefined) return fault
  }
  return undefined
}

/** Every schema object that carries the mark, wherever it stands; each object once, as references may be shared. */
function countMarks(root: unknown): number {
  let count = 0
  const open: unknown[] = [root]
  const seen = new Set<unknown>()
  while (open.length > 0) {
    const value = open.pop()
    if (typeof value !== 'object' || value === null || seen.has(value)) continue
    seen.add(value)
    if (!Array.isArray(value) && typeof (value as Wire)['type'] !== 'undefined' && mark in value) count++
    else if (!Array.isArray(value) && mark in value && typeof (value as Wire)[mark] !== 'object') count++
    // One by one: a call does not take as many arguments as a list may have items.
    for (const inner of Object.values(value)) if (typeof inner === 'object' && inner !== null) open.push(inner)
  }
  return count
}

/** Undefined for what no header can say: what is absent or null, and objects and arrays, which the schema refuses here. */
function valueAt(args: Params | undefined, path: readonly string[]): string | number | boolean | undefined {
  let value: unknown = args
  for (const name of path) value = isRecord(value) && Object.hasOwn(value, name) ? value[name] : undefined
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? value : undefined
}

/** The headers that a client sends with a call. */
export function mirrorHeaders(params: readonly MirroredParam[], args: Params | undefined): Record<string, string> {
  const headers: Record<string, string> = {}
  for (const { header, path } of params) {
    const value = valueAt(args, path)
    if (value !== undefined) headers[header] = encodeHeaderValue(String(value))
  }
  return headers
}

/** Refuses a call whose headers say something else than its arguments. */
export function checkMirrored(
  params: readonly MirroredParam[],
  args: Params | undefined,
  header: (name: string) => string | undefined,
): void {
  for (const { header: name, path, type } of params) {
    const value = valueAt(args, path)
    const sent = header(name)
    if (value === undefined) {
      if (sent !== undefined) throw headerFault(`The header ${name} is present, but the argument ${clip(path.join('.'))} is not`)
      continue
    }
    if (sent === undefined)
      throw headerFault(`The header ${name} is missing; it must mirror the argument ${clip(path.join('.'))}`)
    const decoded = decodeHeaderValue(sent)
    if (decoded === undefined) throw headerFault(`The header ${name} is not valid base64 of UTF-8 text`)
    if (decoded !== String(value) && !(type === 'integer' && decimal.test(decoded) && Number(decoded) === value))
      throw headerFault(`The header ${name} says "${clip(decoded)}", but the argument ${clip(path.join('.'))} has another value`)
  }
}

// Schemas of tools as older wires can take them: results are objects there, and some keywords came later. Made once per list, never per call.

/** Wires below 2026-07-28 know only objects as results; others are wrapped, in the schema and in the value alike. */
export const wrapKey = 'result'

/** Whether a schema describes objects, which older revisions demand. */
export function isObjectSchema(schema: Wire): boolean {
  return schema['type'] === 'object'
}

/** The same schema one level deeper, its references still pointing at what they named. */
export function wrapSchema(schema: Wire): Wire {
  const { $schema, ...rest } = schema
  return {
    ...($schema === undefined ? {} : { $schema }),
    type: 'object',
    properties: { [wrapKey]: moved(rest, `/properties/${wrapKey}`) },
    required: [wrapKey],
  }
}

/** Keywords whose members are schemas by any name, and those that hold mere values. */
const named: ReadonlySet<string> = new Set(['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas'])
const values: ReadonlySet<string> = new Set(['const', 'enum', 'default', 'examples'])

function moved(node: unknown, under: string): unknown {
  if (Array.isArray(node)) return node.map(item => moved(item, under))
  // Within a schema that has an identity of its own references count from there.
  if (!isRecord(node) || typeof node['$id'] === 'string') return node
  const copy: Record<string, unknown> = {}
  for (const [key, value] of Object.entries(node)) {
    if ((key === '$ref' || key === '$dynamicRef') && typeof value === 'string')
      copy[key] = value.replace(/^#(?=\/|$)/, `#${under}`)
    else if (named.has(key) && isRecord(value)) copy[key] = eachMember(value, member => moved(member, under))
    else copy[key] = values.has(key) ? value : moved(value, under)
  }
  return copy
}

/** Arguments are mirrored in headers on the stateless wires alone. */
export function withoutHeaderMarks(schema: Wire): Wire {
  const { properties } = schema
  if (!isRecord(properties)) return schema
  const plain = eachMember(properties, property =>
    isRecord(property) ? withoutHeaderMarks(without(property, 'x-mcp-header')) : property,
  )
  return { ...schema, properties: plain }
}

function eachMember(members: Wire, change: (member: unknown) => unknown): Wire {
  return Object.fromEntries(Object.entries(members).map(([name, member]) => [name, change(member)]))
}
