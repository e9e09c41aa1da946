/**
 * JSON Schema by ajv, the only file that knows it: for schemas of our own side. Formats are annotations and defaults are not applied,
 * as 2020-12 has it; references are never fetched.
 */
import type { Ajv, Options, SchemaObject } from 'ajv'
import { canonicalJson } from '../digest.ts'
import type { Compile, Dialect } from './engine.ts'
import { fewElements, type Issue, type JsonSchema, makeIssue, maxIssues, pointerSegments } from './schema.ts'

/** Values with more elements get only their first failure reported: one for each element would be a flood. */
const thoroughElements = 1_000

/** Loads ajv and gives the function that compiles schemas of a dialect. */
export async function loadAjv(dialect: Dialect): Promise<Compile> {
  const create = await loadDialect(dialect)
  const instances = new Map<string, Ajv>()
  const compile = (json: JsonSchema, needs: Needs) => {
    const key = JSON.stringify(needs)
    const ajv = instances.get(key) ?? prepared(create({ ...options, ...needs }), needs)
    instances.set(key, ajv)
    return compileOnce(ajv, json)
  }
  return json => {
    const needs = needsOf(JSON.stringify(json))
    const quick = compile(json, needs)
    let thorough: typeof quick | undefined
    return value => {
      if (quick(value)) return undefined
      const first = quick.errors ?? []
      if (!fewElements(value, thoroughElements)) return wordFailures(first)
      try {
        thorough ??= compile(json, { ...needs, allErrors: true })
        thorough(value)
        return wordFailures(thorough.errors ?? first)
      } catch {
        // For some unusual schemas the code that looks for all failures breaks; the first one is there in any case.
        return wordFailures(first)
      }
    }
  }
}

/** What costs time in the generated code and is left out where a schema has no use for it. */
interface Needs {
  /** A member that every object inherits looks present everywhere, unless own members are asked for. */
  readonly ownProperties: boolean
  /** Keeping track of what has been looked at; also where the generated code has its mistakes. */
  readonly unevaluated: boolean
  readonly allErrors?: true
}

function needsOf(text: string): Needs {
  const inherited = /"(?:constructor|hasOwnProperty|isPrototypeOf|propertyIsEnumerable|toLocaleString|toString|valueOf|__\w+__)"/
  return { ownProperties: inherited.test(text), unevaluated: text.includes('"unevaluated') }
}

function prepared(ajv: Ajv, { unevaluated }: Needs): Ajv {
  // The constructors of the newer dialects switch it on, whatever they are given.
  ajv.opts.unevaluated = unevaluated
  return replaceUniqueItems(ajv)
}

/** Authors write patterns that the Unicode mode refuses (`\-`); they mean what they mean without it. */
const lenientPattern = Object.assign(
  (pattern: string, flags: string): RegExp => {
    try {
      return new RegExp(pattern, flags)
    } catch {
      return new RegExp(pattern)
    }
  },
  { code: 'lenientPattern' },
)

const options: Options = {
  strict: false,
  // The meta-schema takes a quarter of a second to compile; a wrong schema is found by compiling it, all the same.
  validateSchema: false,
  validateFormats: false,
  logger: false,
  code: { regExp: lenientPattern },
}

async function loadDialect(dialect: Dialect): Promise<(options: Options) => Ajv> {
  switch (dialect) {
    case '2020-12': {
      const { Ajv2020 } = await import('ajv/dist/2020.js')
      return given => new Ajv2020(given)
    }
    case '2019-09': {
      const { Ajv2019 } = await import('ajv/dist/2019.js')
      return given => new Ajv2019(given)
    }
    case 'draft-07': {
      const { Ajv } = await import('ajv')
      return given => new Ajv(given)
    }
  }
}

/** The instance would keep each schema for ever, and refuse a second one of the same id. */
function compileOnce(ajv: Ajv, json: SchemaObject) {
  try {
    return ajv.compile(json)
  } finally {
    // Removal goes by id too: a schema that calls itself by a meta-schema's name was refused, and must not take that with it.
    if (!metaSchema.test(String(json.$id))) ajv.removeSchema(json)
  }
}

const metaSchema = /^https?:\/\/json-schema\.org\//

/** The built-in rule compares each item with each other one. */
function replaceUniqueItems(ajv: Ajv): Ajv {
  ajv.removeKeyword('uniqueItems')
  return ajv.addKeyword({
    keyword: 'uniqueItems',
    type: 'array',
    schemaType: 'boolean',
    validate: (unique: boolean, items: unknown[]) => !unique || allUnique(items),
  })
}

/** In one pass: equal values have equal canonical text. */
function allUnique(items: readonly unknown[]): boolean {
  const seen = new Set<unknown>()
  for (const item of items) {
    const structured = typeof item === 'object' && item !== null
    // A mark tells a string from the text of an object that reads the same.
    const key = structured ? canonicalJson(item) : typeof item === 'string' ? `"${item}` : item
    if (seen.has(key)) return false
    seen.add(key)
  }
  return true
}

// Turns what the compiled validator reports into issues that name the field and say what would be right.

/** One failure as the validator reports it. */
interface Failure {
  readonly keyword: string
  readonly instancePath: string
  readonly schemaPath: string
  readonly params: Readonly<Record<string, unknown>>
  readonly message?: string | undefined
}

/** Unions within unions report in great numbers; more than this are not looked at. */
const maxFailures = 100

function wordFailures(failures: readonly Failure[]): Issue[] {
  const issues: Issue[] = []
  for (const failure of withoutBranches(failures.slice(0, maxFailures))) {
    const segments = pointerSegments(failure.instancePath)
    const named = memberOf(failure)
    issues.push(makeIssue(named === undefined ? segments : [...segments, named], wording(failure)))
    if (issues.length === maxIssues) break
  }
  return issues
}

/** Failures about a member point at its parent; the member is what has to be named. */
function memberOf({ params }: Failure): string | undefined {
  const name = params.missingProperty ?? params.additionalProperty ?? params.unevaluatedProperty
  return typeof name === 'string' ? name : undefined
}

function wording({ keyword, params, message }: Failure): string {
  switch (keyword) {
    case 'type':
      return `must be ${Array.isArray(params.type) ? params.type.join(' or ') : String(params.type)}`
    case 'required':
      return 'is required'
    case 'dependentRequired':
      return `is required together with ${String(params.property)}`
    case 'additionalProperties':
    case 'unevaluatedProperties':
      return 'is not a known member; remove it'
    case 'enum':
      return `must be one of ${Array.isArray(params.allowedValues) ? params.allowedValues.map(json).join(', ') : '…'}`
    case 'const':
      return `must be ${json(params.allowedValue)}`
    case 'minLength':
      return `must have at least ${String(params.limit)} characters`
    case 'maxLength':
      return `must have at most ${String(params.limit)} characters`
    case 'minItems':
      return `must have at least ${String(params.limit)} items`
    case 'maxItems':
      return `must have at most ${String(params.limit)} items`
    case 'items':
    case 'additionalItems':
      return params.limit === undefined ? (message ?? keyword) : `must have at most ${String(params.limit)} items`
    case 'uniqueItems':
      return 'must not contain the same item twice'
    case 'pattern':
      return `must match the pattern ${String(params.pattern)}`
    case 'anyOf':
      return 'must match one of the allowed forms'
    case 'oneOf':
      return Array.isArray(params.passingSchemas)
        ? 'must match only one of the allowed forms'
        : 'must match one of the allowed forms'
    case 'not':
      return 'matches a form that is not allowed'
    case 'false schema':
      return 'is not allowed here'
    default:
      return message ?? `breaks the rule ${keyword}`
  }
}

function json(value: unknown): string {
  return JSON.stringify(value) ?? String(value)
}

/** Of the failures of all branches of a union only those of the branch that came nearest help anyone. */
function withoutBranches(failures: readonly Failure[]): Failure[] {
  let stored = failures.filter(({ keyword }) => keyword !== 'if')
  for (const union of failures) {
    if (union.keyword !== 'anyOf' && union.keyword !== 'oneOf') continue
    const inside = (failure: Failure) => failure.schemaPath.startsWith(`${union.schemaPath}/`)
    const branches = stored.filter(inside)
    if (branches.length === 0) continue
    const instead = Array.isArray(union.params.passingSchemas) ? [union] : nearest(union, branches)
    stored = stored.flatMap(failure => (failure === union ? instead : inside(failure) ? [] : [failure]))
  }
  return stored
}

function nearest(union: Failure, failures: readonly Failure[]): readonly Failure[] {
  if (failures.every(({ keyword, instancePath }) => keyword === 'type' && instancePath === union.instancePath)) {
    return [{ ...union, keyword: 'type', params: { type: failures.flatMap(({ params }) => params.type) } }]
  }
  const byBranch = Map.groupBy(failures, ({ schemaPath }) => schemaPath.slice(union.schemaPath.length + 1).split('/', 1)[0])
  return [...byBranch.values()].reduce((best, branch) => (branch.length < best.length ? branch : best))
}
