/** What a form begins with: the defaults of the schema, and values of which only one is possible. */
import { shapeOf } from './shape.ts'

/** Objects within objects are begun only where they are required, so that a schema that contains itself ends by this. */
const deepest = 6

/** The first value of a field; `undefined` leaves it unset. */
export function startOf(schema: unknown, root: unknown, required = true, depth = 0): unknown {
  const shape = shapeOf(schema, root)
  if (shape.preset !== undefined) return shape.preset
  if (!required || depth > deepest) return undefined
  if (shape.kind === 'values' && shape.values.length === 1) return shape.values[0]
  if (shape.kind === 'list') return []
  if (shape.kind !== 'object') return undefined
  const members = shape.fields
    .map(({ name, schema: each, required: needed }) => [name, startOf(each, root, needed, depth + 1)] as const)
    .filter(([, value]) => value !== undefined)
  return Object.fromEntries(members)
}

/** What a new item or an alternative that was just chosen begins with: never nothing, so that its control is there. */
export function beginOf(schema: unknown, root: unknown, depth = 0): unknown {
  const begun = startOf(schema, root)
  if (begun !== undefined) return begun
  const shape = shapeOf(schema, root)
  switch (shape.kind) {
    case 'text':
      return ''
    case 'number':
      return 0
    case 'boolean':
      return false
    case 'values':
      return shape.values[0]
    case 'alternatives':
      return depth > deepest ? null : beginOf(shape.alternatives[0]?.schema, root, depth + 1)
    default:
      return null
  }
}
