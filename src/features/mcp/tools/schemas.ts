/** Schemas of tools as older wires can take them: results are objects there, and some keywords came later. Made once per list, never per call. */
import { isRecord } from '../../../jsonrpc/message.ts'
import type { Wire } from '../../../revisions/index.ts'
import { without } from '../content/messages.ts'

/** Wires below 2026-07-28 know only objects as results; others are wrapped, in the schema and in the value alike. */
export const wrapKey = 'result'

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
