/**
 * Bounds for whoever goes through a JSON Schema or a value: which keywords hold subschemas, how large it may be, how many steps
 * a check may take.
 */
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

// How large a value is, looked at no further than needed.

/** Whether a value has at most `limit` members and items in all. */
export function fewElements(value: unknown, limit: number): boolean {
  const stack: unknown[] = [value]
  let seen = 0
  for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
    if (typeof next !== 'object' || next === null) continue
    const members: unknown[] = Array.isArray(next) ? next : Object.values(next)
    seen += members.length
    if (seen > limit) return false
    for (const member of members) if (typeof member === 'object' && member !== null) stack.push(member)
  }
  return true
}

/** A budget for checking one value. Counted in steps, so that it is the same on every machine. */

export class OverBudget extends Error {
  override readonly name = 'OverBudget'
}

export class StepMeter {
  #left: number

  constructor(steps: number) {
    this.#left = steps
  }

  get left(): number {
    return this.#left
  }

  spend(steps: number): void {
    this.#left -= steps
    if (this.#left < 0) throw new OverBudget('The budget for checking this value is used up')
  }
}
