/** Finds the subschemas of a JSON Schema: where a keyword holds schemas, and not where it holds mere values. */
import { isRecord } from '../../jsonrpc/message.ts'

const inOne: ReadonlySet<string> = new Set([
  'additionalItems',
  'additionalProperties',
  'contains',
  'contentSchema',
  'else',
  'if',
  'items',
  'not',
  'propertyNames',
  'then',
  'unevaluatedItems',
  'unevaluatedProperties',
])
const inList: ReadonlySet<string> = new Set(['allOf', 'anyOf', 'items', 'oneOf', 'prefixItems'])
const inMap: ReadonlySet<string> = new Set([
  '$defs',
  'definitions',
  'dependencies',
  'dependentSchemas',
  'patternProperties',
  'properties',
])

/** The direct subschemas that are objects (`true` and `false` hold nothing), each with the JSON Pointer from `schema`. */
export function subschemas(schema: Record<string, unknown>): [pointer: string, subschema: Record<string, unknown>][] {
  const found: [string, Record<string, unknown>][] = []
  for (const [keyword, value] of Object.entries(schema)) {
    if (isRecord(value)) {
      if (inOne.has(keyword)) found.push([`/${keyword}`, value])
      else if (inMap.has(keyword)) {
        for (const [name, item] of Object.entries(value)) if (isRecord(item)) found.push([`/${keyword}/${escaped(name)}`, item])
      }
    } else if (Array.isArray(value) && inList.has(keyword)) {
      for (const [index, item] of value.entries()) if (isRecord(item)) found.push([`/${keyword}/${index}`, item])
    }
  }
  return found
}

function escaped(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1')
}
