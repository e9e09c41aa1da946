/** What a peer's schemas make us do: linear patterns against the native engine, the walking validator against the compiled one. */
import { loadAjv } from '../../../src/core/schema/ajv.ts'
import type { Check } from '../../../src/core/schema/engine.ts'
import { linearPattern } from '../../../src/core/schema/linear-pattern.ts'
import { compileBounded } from '../../../src/core/schema/peer.ts'
import { type JsonSchema, OverBudget, SchemaError, StepMeter } from '../../../src/core/schema/schema.ts'
import { object } from '../json.ts'
import { Source } from '../source.ts'
import { attempt, demand, target } from '../target.ts'

const atoms = [
  'a',
  'b',
  '.',
  '[ab]',
  '[^a]',
  '\\d',
  '\\w',
  '\\s',
  '\\x61',
  '\\u0062',
  '\\u{1F600}',
  '😀',
  '\\.',
  '[\\]\\-x]',
  '\\p{L}',
  '[]',
  '[^]',
  '\\/',
  '[a-',
  '(?=a)',
  '\\1',
  '\\k<n>',
  '\\b',
  '^',
  '$',
  '\\cA',
  '\\0',
  '[\\b]',
  '\\ud83d\\ude00',
]
const quantifiers = ['', '', '*', '+', '?', '*?', '{2}', '{1,}', '{0,2}', '{2,3}?', '{30}', '{0,9999}']
const chars = ['a', 'b', '1', ' ', '.', ']', '-', '😀', 'é', '\n', '\ud83d', 'x', '\u0001', '\0']

interface Match {
  readonly pattern: string
  readonly text: string
}

export const patterns = target<Match>({
  name: 'patterns',
  make: source => {
    const text = source.list(10, () => source.pick(chars)).join('')
    return { pattern: patternText(source, 3), text: source.once(200) ? text.repeat(source.int(500)) : text }
  },
  check: ({ pattern, text }) => {
    const linear = linearPattern(pattern)
    if (linear === undefined) return
    const native = new RegExp(pattern, 'u')
    const meter = new StepMeter(200_000)
    const found = attempt(
      () => linear.test(text, meter),
      error => error instanceof OverBudget,
    )
    if (found === undefined || text.length > 24 || mayTakeLong(pattern)) return
    demand(native.test(text) === found, () => `/${pattern}/u on ${JSON.stringify(text)}: ${found}, natively ${!found}`)
  },
})

/** The native engine goes back and forth: it is only asked where that is short. */
function mayTakeLong(pattern: string): boolean {
  return /\{30\}|9999/.test(pattern) || (pattern.match(/\)[*+?{]/g)?.length ?? 0) > 1
}

function patternText(source: Source, depth: number): string {
  const sequences = [sequence(source, depth), ...source.list(source.once(3) ? 2 : 0, () => sequence(source, depth))]
  return sequences.join('|')
}

function sequence(source: Source, depth: number): string {
  const parts = source.list(3, () => {
    const group = depth > 0 && source.once(4)
    const inner = group
      ? `${source.pick(['(', '(?:', '(?<n>', '(?!', '(?i:'])}${patternText(source, depth - 1)})`
      : source.pick(atoms.slice(0, source.once(6) ? atoms.length : 15))
    return inner + source.pick(quantifiers)
  })
  return parts.join('')
}

const compile = await loadAjv('2020-12')
const bounds = { depth: 32, subschemas: 1_000 }
const names = ['a', 'b', 'aa', 'constructor', '__proto__']
const types = ['null', 'boolean', 'integer', 'number', 'string', 'array', 'object']
/** Compiling takes long: values are many, schemas few, and each schema is made from its number alone. */
const pool = 400
const compiled = new Map<number, { readonly json: JsonSchema; readonly check: Check | undefined }>()

interface Checked {
  readonly schema: number
  readonly data: unknown
}

export const schemas = target<Checked>({
  name: 'schemas',
  make: source => ({ schema: source.int(pool), data: dataOf(source, 3) }),
  check: ({ schema, data }) => {
    const { json, check } = schemaAt(schema)
    const bounded = attempt(
      () => compileBounded(json, '2020-12', bounds),
      error => error instanceof SchemaError,
    )
    if (bounded === undefined || check === undefined) return
    const issue = bounded.check(data, new StepMeter(2_000_000))
    const both = (issue === undefined) === (check(data) === undefined)
    demand(
      both,
      () =>
        `${JSON.stringify(json)} on ${JSON.stringify(data)}: ${issue === undefined ? 'passes' : issue.message}, compiled otherwise`,
    )
  },
})

/** Without a check where the compiled code is known to be wrong: `contains` beside `prefixItems` lets an empty list pass. */
function schemaAt(number: number): { readonly json: JsonSchema; readonly check: Check | undefined } {
  const known = compiled.get(number)
  if (known !== undefined) return known
  const json = schemaOf(Source.random(0, 'schema', number), 3)
  const misjudged = /"prefixItems"/.test(JSON.stringify(json)) && /"contains"/.test(JSON.stringify(json))
  const check = misjudged
    ? undefined
    : attempt(
        () => compile(json),
        () => true,
      )
  const made = { json, check }
  compiled.set(number, made)
  return made
}

function dataOf(source: Source, depth: number): unknown {
  const kind = depth === 0 ? 0 : source.int(5)
  if (kind === 3) return source.list(3, () => dataOf(source, depth - 1))
  if (kind === 4) return object(source.list(3, () => [source.pick(names), dataOf(source, depth - 1)] as const))
  return source.pick([null, true, 0, 1, 1.5, -1, '', 'a', 'ab', '😀', 2, 3])
}

function schemaOf(source: Source, depth: number): JsonSchema {
  return Object.assign({}, ...source.list(3, () => keyword(source, depth))) as JsonSchema
}

/** Without `unevaluated…`, which the compiled code misjudges, and names that it takes for inherited ones. */
function keyword(source: Source, depth: number): object {
  const sub = (): unknown => (depth === 0 || source.once(4) ? source.int(3) > 0 : schemaOf(source, depth - 1))
  const subs = (): unknown[] => [sub(), ...source.list(2, sub)]
  const own = names.slice(0, 3)
  const leaf = source.int(depth === 0 ? 6 : 12)
  if (leaf === 0) return { type: source.pick(types) }
  if (leaf === 1) return { [source.pick(['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum'])]: source.int(4) }
  if (leaf === 2)
    return { [source.pick(['minLength', 'maxLength', 'minItems', 'maxItems', 'minProperties', 'maxProperties'])]: source.int(4) }
  if (leaf === 3) return source.pick([{ pattern: '^a+$' }, { multipleOf: 0.5 }, { uniqueItems: true }, { required: ['a'] }])
  if (leaf === 4) return { enum: [dataOf(source, 2), dataOf(source, 1)] }
  if (leaf === 5) return { const: dataOf(source, 2) }
  if (leaf === 6) return { [source.pick(['allOf', 'anyOf', 'oneOf', 'prefixItems'])]: subs() }
  if (leaf === 7) return { [source.pick(['not', 'items', 'additionalProperties', 'propertyNames', 'contains'])]: sub() }
  if (leaf === 8)
    return {
      [source.pick(['properties', 'dependentSchemas'])]: object([
        [source.pick(own), sub()],
        [source.pick(own), sub()],
      ]),
    }
  if (leaf === 9) return { patternProperties: { '^a': sub(), b: sub() } }
  if (leaf === 10) return { [source.pick(['if'])]: sub(), [source.pick(['then'])]: sub(), else: sub() }
  return { contains: sub(), minContains: source.int(3), maxContains: source.int(3) }
}
