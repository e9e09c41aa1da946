/**
 * What is wrong with the value of a form, by the place of its field. The server is the judge: this says early what a person can see at the
 * field, and never refuses what the server might take.
 */
import { resolve, type Shape, shapeOf } from './shape.ts'
import { isObject, type JsonObject, Typed } from './typed.ts'

/** Mistakes by path: members and numbers of items, joined by `/`. */
export type Faults = ReadonlyMap<string, string>

/** The path of a member or an item. */
export function pathOf(parent: string, step: string | number): string {
  return `${parent}/${String(step).replaceAll('~', '~0').replaceAll('/', '~1')}`
}

/** More are not shown. */
const mostFaults = 50

/** The mistakes of `value`. */
export function faultsOf(value: unknown, schema: unknown): Faults {
  const search: Search = { root: schema, faults: new Map(), left: { steps: mostSteps } }
  collect(value, schema, '', search)
  return search.faults
}

interface Search {
  readonly root: unknown
  readonly faults: Map<string, string>
  /** Alternatives within alternatives multiply; this ends them. */
  readonly left: { steps: number }
}

const mostSteps = 20_000

function collect(value: unknown, schema: unknown, path: string, search: Search): void {
  const { root, faults, left } = search
  if (faults.size >= mostFaults || left.steps-- <= 0) return
  if (value instanceof Typed) return void faults.set(path, value.why)
  if (value === undefined) return
  const shape = shapeOf(schema, root)
  if (!fits(value, shape)) return void faults.set(path, `This should be ${wordOf(shape)}.`)
  const why = limitBroken(value, resolve(schema, root))
  if (why !== undefined) faults.set(path, why)
  const inside = (step: string | number, each: unknown, of: unknown) => collect(each, of, pathOf(path, step), search)
  if (shape.kind === 'object' && isObject(value)) {
    for (const { name, schema: each, required } of shape.fields) {
      const member = Object.hasOwn(value, name) ? value[name] : undefined
      if (member === undefined && required) faults.set(pathOf(path, name), 'This is required.')
      else inside(name, member, each)
    }
    for (const [name, each] of Object.entries(value))
      if (!shape.fields.some(field => field.name === name)) inside(name, each, shape.others || true)
  } else if (shape.kind === 'list' && Array.isArray(value)) {
    for (const [index, item] of value.entries()) inside(index, item, shape.item)
  } else if (shape.kind === 'alternatives') {
    collect(value, shape.alternatives[bestOf(value, shape.alternatives, search)]?.schema, path, search)
  } else if (shape.kind === 'json') {
    const within = Array.isArray(value) ? [...value.entries()] : isObject(value) ? Object.entries(value) : []
    for (const [step, each] of within) inside(step, each, true)
  }
}

/** Whether the control of a shape can show a value. Another value is edited as JSON. */
export function fits(value: unknown, shape: Shape): boolean {
  if (value === undefined) return true
  switch (shape.kind) {
    case 'text':
      return typeof value === 'string'
    case 'number':
      return value instanceof Typed || (typeof value === 'number' && (!shape.whole || Number.isInteger(value)))
    case 'boolean':
      return typeof value === 'boolean'
    case 'values':
      return placeIn(shape.values, value) >= 0
    case 'list':
      return Array.isArray(value)
    case 'object':
      return isObject(value)
    default:
      return true
  }
}

/** The place of a value among others, compared as JSON. */
export function placeIn(values: readonly unknown[], value: unknown): number {
  if (value instanceof Typed) return -1
  const text = JSON.stringify(value)
  return values.findIndex(each => JSON.stringify(each) === text)
}

/** The alternative that a value is of: the first without a mistake, else the one with the fewest. */
export function alternativeOf(value: unknown, alternatives: readonly { readonly schema: unknown }[], root: unknown): number {
  return bestOf(value, alternatives, { root, faults: new Map(), left: { steps: mostSteps } })
}

function bestOf(value: unknown, alternatives: readonly { readonly schema: unknown }[], { root, left }: Search): number {
  let [best, fewest] = [0, Number.POSITIVE_INFINITY]
  for (const [index, { schema }] of alternatives.entries()) {
    const faults = new Map<string, string>()
    collect(value, schema, '', { root, faults, left })
    // A value of another kind is further away than one with mistakes inside.
    const weight = faults.size + (faults.has('') ? mostFaults : 0)
    if (weight >= fewest) continue
    best = index
    fewest = weight
  }
  return best
}

function wordOf(shape: Shape): string {
  switch (shape.kind) {
    case 'text':
      return 'a text'
    case 'number':
      return shape.whole ? 'a whole number' : 'a number'
    case 'boolean':
      return 'true or false'
    case 'values':
      return shape.values.length === 1 ? JSON.stringify(shape.values[0]) : 'one of the listed values'
    case 'list':
      return 'a list'
    default:
      return 'an object'
  }
}

type Limit = readonly [word: string, broken: (value: never, limit: number) => boolean, say: (limit: string) => string]

/** A `pattern` is not tried: one of a stranger may take for ever. The form shows it beside the field. */
const limits: readonly Limit[] = [
  ['minLength', (text: string, least: number) => [...text].length < least, least => `At least ${least} characters.`],
  ['maxLength', (text: string, most: number) => [...text].length > most, most => `At most ${most} characters.`],
  ['minimum', (value: number, least: number) => value < least, least => `At least ${least}.`],
  ['maximum', (value: number, most: number) => value > most, most => `At most ${most}.`],
  ['exclusiveMinimum', (value: number, least: number) => value <= least, least => `More than ${least}.`],
  ['exclusiveMaximum', (value: number, most: number) => value >= most, most => `Less than ${most}.`],
  ['minItems', (items: readonly unknown[], least: number) => items.length < least, least => `At least ${least} items.`],
  ['maxItems', (items: readonly unknown[], most: number) => items.length > most, most => `At most ${most} items.`],
]

const typeOfLimit = (word: string) => (word.endsWith('Items') ? 'list' : word.endsWith('Length') ? 'string' : 'number')

function limitBroken(value: unknown, schema: unknown): string | undefined {
  if (!isObject(schema)) return undefined
  const type = Array.isArray(value) ? 'list' : typeof value
  for (const [word, broken, say] of limits) {
    const limit = (schema as JsonObject)[word]
    if (typeof limit !== 'number' || typeOfLimit(word) !== type) continue
    if (broken(value as never, limit)) return say(String(limit))
  }
  return undefined
}
