/**
 * What control a JSON Schema asks for. A form says texts, numbers, booleans, choices of values, lists, objects and alternatives; whatever it
 * cannot say is edited as JSON. References are followed when a field is drawn, so that a schema that contains itself has an end.
 */
import { isObject, type JsonObject } from './typed.ts'

interface About {
  readonly title?: string
  readonly description?: string
  /** Suggested where nothing is set. */
  readonly preset?: unknown
}

/** A member of an object. `others` is the schema of further members; `false`: there are none. */
export interface Field {
  readonly name: string
  readonly schema: unknown
  readonly required: boolean
}

/** One of several alternatives. */
export interface Alternative {
  readonly title: string
  readonly schema: unknown
}

export type Shape = About &
  (
    | { readonly kind: 'text'; readonly format?: string; readonly pattern?: string }
    | { readonly kind: 'number'; readonly whole: boolean }
    | { readonly kind: 'boolean' }
    | { readonly kind: 'values'; readonly values: readonly unknown[] }
    | { readonly kind: 'list'; readonly item: unknown }
    | { readonly kind: 'object'; readonly fields: readonly Field[]; readonly others: unknown }
    | { readonly kind: 'alternatives'; readonly alternatives: readonly Alternative[] }
    | { readonly kind: 'json' }
  )

/** Longer chains of references are circles. */
const longestChain = 20

/** The shape of `schema`; `root` is the whole schema, into which references point. */
export function shapeOf(schema: unknown, root: unknown): Shape {
  const found = resolve(schema, root)
  if (!isObject(found)) return { kind: 'json' }
  const about: About = {
    ...(typeof found['title'] === 'string' && { title: found['title'] }),
    ...(typeof found['description'] === 'string' && { description: found['description'] }),
    ...('default' in found && { preset: found['default'] }),
  }
  return { ...about, ...controlOf(found, root) }
}

/** The schema behind references, and behind an `allOf` of one. */
export function resolve(schema: unknown, root: unknown): unknown {
  let found = schema
  for (let step = 0; step < longestChain; step++) {
    if (!isObject(found)) return found
    const { $ref, allOf, ...beside } = found
    let target: unknown
    if (typeof $ref === 'string' && allOf === undefined) target = pointed(root, $ref)
    else if (Array.isArray(allOf) && allOf.length === 1 && $ref === undefined) target = allOf[0]
    else return found
    // What stands beside a reference, often a description, is closer to the field.
    found = isObject(target) ? { ...target, ...beside } : undefined
  }
  return undefined
}

/** What a reference within the document points at. Others are not fetched. */
function pointed(root: unknown, reference: string): unknown {
  if (reference !== '#' && !reference.startsWith('#/')) return undefined
  return reference
    .split('/')
    .slice(1)
    .map(step => decoded(step).replaceAll('~1', '/').replaceAll('~0', '~'))
    .reduce<unknown>(
      (place, step) =>
        typeof place === 'object' && place !== null && Object.hasOwn(place, step) ? (place as JsonObject)[step] : undefined,
      root,
    )
}

function decoded(step: string): string {
  try {
    return decodeURIComponent(step)
  } catch {
    return step
  }
}

/** Words of a schema that change what fits in a way that no control shows. */
const beyondForms = ['allOf', 'not', 'if', 'dependentSchemas', 'dependencies', 'patternProperties', 'prefixItems', '$dynamicRef']

function controlOf(schema: JsonObject, root: unknown): Shape {
  if (Array.isArray(schema['enum'])) return { kind: 'values', values: schema['enum'] }
  if ('const' in schema) return { kind: 'values', values: [schema['const']] }
  if (beyondForms.some(word => word in schema)) return { kind: 'json' }
  const several = schema['oneOf'] ?? schema['anyOf']
  if (Array.isArray(several)) return alternativesOf(schema, several, root)
  const type = schema['type']
  if (Array.isArray(type)) {
    const alternatives = type.map(each => ({ title: String(each), schema: { ...schema, type: each, title: String(each) } }))
    return alternatives.length === 1 ? shapeOf(alternatives[0]?.schema, root) : { kind: 'alternatives', alternatives }
  }
  switch (type ?? (isObject(schema['properties']) ? 'object' : undefined)) {
    case 'string':
      return {
        kind: 'text',
        ...(typeof schema['format'] === 'string' && { format: schema['format'] }),
        ...(typeof schema['pattern'] === 'string' && { pattern: schema['pattern'] }),
      }
    case 'number':
    case 'integer':
      return { kind: 'number', whole: type === 'integer' }
    case 'boolean':
      return { kind: 'boolean' }
    case 'null':
      return { kind: 'values', values: [null] }
    case 'array':
      return isObject(schema['items']) ? { kind: 'list', item: schema['items'] } : { kind: 'json' }
    case 'object':
      return objectShape(schema)
    default:
      return { kind: 'json' }
  }
}

function objectShape(schema: JsonObject): Shape {
  const properties = isObject(schema['properties']) ? schema['properties'] : {}
  const required: readonly unknown[] = Array.isArray(schema['required']) ? schema['required'] : []
  const fields = Object.entries(properties).map(([name, each]) => ({ name, schema: each, required: required.includes(name) }))
  // Most schemas say nothing about further members and mean none: only where some are meant the form asks for them.
  const others = schema['additionalProperties'] ?? (fields.length === 0 ? true : false)
  return { kind: 'object', fields, others }
}

function alternativesOf(schema: JsonObject, several: readonly unknown[], root: unknown): Shape {
  // Members that stand beside the alternatives hold for each of them.
  const { oneOf, anyOf, title, description, default: preset, ...shared } = schema
  const alternatives = several.map((each, index) => {
    const own = resolve(each, root)
    const whole = isObject(own) ? merged(shared, own) : own
    return { title: titleOf(own, root) ?? `alternative ${index + 1}`, schema: whole }
  })
  const constants = alternatives.map(each => each.schema)
  if (constants.length > 0 && constants.every(each => isObject(each) && 'const' in each && !('title' in each)))
    return { kind: 'values', values: constants.map(each => (each as JsonObject)['const']) }
  return alternatives.length === 1 ? shapeOf(alternatives[0]?.schema, root) : { kind: 'alternatives', alternatives }
}

function merged(shared: JsonObject, own: JsonObject): JsonObject {
  const { properties, required, ...rest } = shared
  return {
    ...rest,
    ...own,
    ...(isObject(properties) && { properties: { ...properties, ...(isObject(own['properties']) ? own['properties'] : {}) } }),
    ...(Array.isArray(required) && { required: [...required, ...(Array.isArray(own['required']) ? own['required'] : [])] }),
  }
}

/** What an alternative is called: its title, the constant that tells it from the others, or its type. */
function titleOf(schema: unknown, root: unknown): string | undefined {
  if (!isObject(schema)) return undefined
  if (typeof schema['title'] === 'string') return schema['title']
  if ('const' in schema) return String(schema['const'])
  const properties = isObject(schema['properties']) ? Object.values(schema['properties']) : []
  for (const each of properties) {
    const property = resolve(each, root)
    if (isObject(property) && 'const' in property) return String(property['const'])
  }
  return typeof schema['type'] === 'string' ? schema['type'] : undefined
}
