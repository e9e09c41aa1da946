/** JSON Schema by @cfworker/json-schema, the only file that knows it: slower than compiled code, but needs none to be generated. */
import type { Schema as InterpretedSchema, OutputUnit } from '@cfworker/json-schema'
import type { Compile, Dialect } from './engine.ts'
import { type Issue, makeIssue, maxIssues, pointerSegments, subschemas } from './schema.ts'

/** Loads the interpreter of JSON Schemas, for runtimes that make no code from text. */
export async function loadInterpreter(dialect: Dialect): Promise<Compile> {
  const { Validator } = await import('@cfworker/json-schema')
  const draft = dialect === 'draft-07' ? '7' : dialect
  return json => {
    const validator = new Validator(withoutFormats(json), draft)
    return value => {
      if (value === undefined) return [makeIssue([], 'is required')]
      try {
        const { valid, errors } = validator.validate(value)
        return valid ? undefined : wordErrors(errors)
      } catch (error) {
        // Names that no URI can hold (half a surrogate pair) stop the library short.
        if (error instanceof URIError) return [makeIssue([], 'must contain only well-formed Unicode')]
        throw error
      }
    }
  }
}

/** A copy, since the library marks what it is given; without formats, which are annotations here as everywhere. */
function withoutFormats(json: object): InterpretedSchema {
  const copy: Record<string, unknown> = JSON.parse(JSON.stringify(json))
  const todo = [copy]
  for (let schema = todo.pop(); schema !== undefined; schema = todo.pop()) {
    delete schema.format
    for (const [, subschema] of subschemas(schema)) todo.push(subschema)
  }
  return copy
}

/** Keywords that only report that something below them failed. */
const containers: ReadonlySet<string> = new Set([
  'properties',
  'items',
  'prefixItems',
  'allOf',
  '$ref',
  '$recursiveRef',
  'additionalProperties',
  'patternProperties',
  'dependentSchemas',
  'if',
])

function wordErrors(errors: readonly OutputUnit[]): Issue[] {
  const leaves = errors.filter(({ keyword }) => !containers.has(keyword))
  const chosen = leaves.length === 0 ? errors.slice(-1) : leaves.slice(0, maxIssues)
  return chosen.map(({ keyword, instanceLocation, error }) => {
    const segments = pointerSegments(decodeURIComponent(instanceLocation.slice(1)))
    const [, named] = /property "([^"]*)"/.exec(error) ?? []
    if (keyword === 'required' && named !== undefined) return makeIssue([...segments, named], 'is required')
    if (keyword === 'false') return makeIssue(segments, 'is not allowed here')
    const [, expected] = keyword === 'type' ? (/Expected "(.*)"\./.exec(error) ?? []) : []
    return makeIssue(segments, expected === undefined ? error : `must be ${expected.replaceAll('", "', ' or ')}`)
  })
}
