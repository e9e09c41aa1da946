/**
 * JSON Schema by ajv, the only file that knows it: for schemas of our own side. Formats are annotations and defaults are not applied,
 * as 2020-12 has it; references are never fetched.
 */
import type { Ajv, Options, SchemaObject } from 'ajv'
import { canonicalJson } from '../digest.ts'
import type { Compile, Dialect } from './engine.ts'
import type { JsonSchema } from './schema.ts'
import { fewElements } from './size.ts'
import { wordFailures } from './wording.ts'

/** Values with more elements get only their first failure reported: one for each element would be a flood. */
const thoroughElements = 1_000

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
