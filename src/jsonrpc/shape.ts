/**
 * One small description per message shape, from which its type, its check and its JSON Schema come.
 * A check allocates nothing when the value is right; the fault is built only when something is wrong.
 * Unknown members pass: a newer peer may say more than we know.
 */
import { isRecord } from './message.ts'

interface Fault {
  readonly path: string
  readonly expected: string
}

/** Describes the values of a type: checks them, and says what they are as JSON Schema. */
export interface Shape<T> {
  /** What does not fit; undefined: all does. */
  readonly check: (value: unknown) => Fault | undefined
  /** The same as JSON Schema. */
  readonly schema: () => Record<string, unknown>
  /** Whether the member may be absent. */
  readonly optional: boolean
  /** Carries the type; never set. */
  readonly type?: T
}

/** The type that a shape describes. */
export type Infer<S> = S extends Shape<infer T> ? T : never

type Members = Readonly<Record<string, Shape<unknown>>>
type OptionalKeys<M extends Members> = { [K in keyof M]: undefined extends Infer<M[K]> ? K : never }[keyof M]
type ObjectOf<M extends Members> = { readonly [K in Exclude<keyof M, OptionalKeys<M>>]: Infer<M[K]> } & {
  readonly [K in OptionalKeys<M>]?: Infer<M[K]>
}

function leaf<T>(expected: string, test: (value: unknown) => boolean, schema: Record<string, unknown>): Shape<T> {
  const fault: Fault = { path: '', expected }
  return { check: value => (test(value) ? undefined : fault), schema: () => schema, optional: false }
}

/** Any string. */
export const string: Shape<string> = leaf('a string', value => typeof value === 'string', { type: 'string' })
export const number: Shape<number> = leaf('a number', value => typeof value === 'number', { type: 'number' })
/** An integer that JSON parsers agree about. */
export const integer: Shape<number> = leaf('an integer', Number.isSafeInteger, { type: 'integer' })
export const boolean: Shape<boolean> = leaf('true or false', value => typeof value === 'boolean', { type: 'boolean' })
/** Any value. */
export const anything: Shape<unknown> = leaf('any value', () => true, {})
export const record: Shape<Readonly<Record<string, unknown>>> = leaf('an object', isRecord, { type: 'object' })
/** A request id or progress token. */
export const token: Shape<string | number> = leaf(
  'a string or an integer',
  value => typeof value === 'string' || Number.isSafeInteger(value),
  { type: ['string', 'integer'] },
)

/** One of a few strings. */
export function oneOf<const T extends readonly string[]>(...values: T): Shape<T[number]> {
  return leaf(`one of ${values.join(', ')}`, value => values.includes(value as string), { type: 'string', enum: values })
}

/** The same shape, or nothing. */
export function optional<T>(shape: Shape<T>): Shape<T | undefined> {
  return { check: value => (value === undefined ? undefined : shape.check(value)), schema: shape.schema, optional: true }
}

/** An object whose members all have one shape, by any name. */
export function dictionary<T>(shape: Shape<T>): Shape<Readonly<Record<string, T>>> {
  return {
    optional: false,
    schema: () => ({ type: 'object', additionalProperties: shape.schema() }),
    check: value => {
      if (!isRecord(value)) return { path: '', expected: 'an object' }
      for (const key in value) {
        const fault = shape.check(value[key])
        if (fault !== undefined) return inside(key, fault)
      }
      return undefined
    },
  }
}

/** A list whose items all have one shape. */
export function array<T>(shape: Shape<T>): Shape<readonly T[]> {
  return {
    optional: false,
    schema: () => ({ type: 'array', items: shape.schema() }),
    check: value => {
      if (!Array.isArray(value)) return { path: '', expected: 'an array' }
      for (let at = 0; at < value.length; at++) {
        const fault = shape.check(value[at])
        if (fault !== undefined) return inside(`[${at}]`, fault)
      }
      return undefined
    },
  }
}

/** An object with these members; others pass. */
export function object<M extends Members>(members: M): Shape<ObjectOf<M>> {
  const names = Object.keys(members)
  const shapes = Object.values(members)
  return {
    optional: false,
    schema: () => ({
      type: 'object',
      properties: Object.fromEntries(names.map((name, at) => [name, shapes[at]?.schema() ?? {}])),
      required: names.filter((_, at) => shapes[at]?.optional === false),
    }),
    check: value => {
      if (!isRecord(value)) return { path: '', expected: 'an object' }
      for (let at = 0; at < names.length; at++) {
        const name = names[at] as string
        const fault = (shapes[at] as Shape<unknown>).check(value[name])
        if (fault !== undefined) return inside(name, fault)
      }
      return undefined
    },
  }
}

/**
 * An object that is one of several, as its member `tag` says. A member that belongs only to another one is refused: whoever reads
 * that member, and not the tag, would take the object for something else. Members that belong to none pass. `otherwise`: which one it
 * is without a tag.
 */
export function tagged<T>(tag: string, variants: Readonly<Record<string, Members>>, otherwise?: string): Shape<T> {
  const tags = Object.keys(variants)
  const shapes = new Map(Object.entries(variants).map(([name, members]) => [name, object(members)]))
  const foreign = new Map(tags.map(name => [name, foreignTo(variants, name)]))
  const unknown: Fault = { path: tag, expected: `one of ${tags.join(', ')}` }
  return {
    optional: false,
    schema: () => ({ anyOf: tags.map(name => taggedSchema(shapes.get(name), tag, name, name !== otherwise)) }),
    check: value => {
      if (!isRecord(value)) return { path: '', expected: 'an object' }
      const name = value[tag] === undefined ? otherwise : value[tag]
      const shape = typeof name === 'string' ? shapes.get(name) : undefined
      if (shape === undefined) return unknown
      for (const other of foreign.get(name as string) ?? [])
        if (value[other] !== undefined) return { path: other, expected: `absent when ${tag} is ${String(name)}` }
      return shape.check(value)
    },
  }
}

/** The members of the others that this one does not have. */
function foreignTo(variants: Readonly<Record<string, Members>>, own: string): readonly string[] {
  const all = Object.values(variants).flatMap(members => Object.keys(members))
  return [...new Set(all)].filter(name => !Object.hasOwn(variants[own] ?? {}, name))
}

function taggedSchema(shape: Shape<unknown> | undefined, tag: string, name: string, required: boolean): Record<string, unknown> {
  const { properties, required: members = [] } = (shape?.schema() ?? {}) as { properties?: object; required?: readonly string[] }
  return {
    type: 'object',
    properties: { [tag]: { type: 'string', const: name }, ...properties },
    required: required ? [tag, ...members] : members,
  }
}

function inside(key: string, fault: Fault): Fault {
  const tail = fault.path === '' || fault.path.startsWith('[') ? fault.path : `.${fault.path}`
  return { path: `${key}${tail}`, expected: fault.expected }
}
