/** A JSON Schema as a line that people read: `add(a: number, b?: number = 1) → { sum: number }`. */
import { isRecord } from '../jsonrpc/message.ts'
import { brief } from './terminal/text.ts'

type Schema = Readonly<Record<string, unknown>>

/** How deep objects are shown before they become `{…}`. */
const deepest = 2
const mostMembers = 12
const mostValues = 6

export function signature(name: string, input: Schema, output?: Schema): string {
  const result = output === undefined ? '' : ` → ${typeText(output, output)}`
  return `${name}(${membersOf(input, input, 0).join(', ')})${result}`
}

export function typeText(schema: unknown, root: Schema, depth = 0): string {
  if (schema === true) return 'any'
  if (!isRecord(schema)) return 'any'
  const at = resolved(schema, root)
  if (at === undefined) return 'any'
  if ('const' in at) return literal(at['const'])
  if (Array.isArray(at['enum'])) return union(at['enum'].map(literal))
  const choices = [at['anyOf'], at['oneOf']].find(Array.isArray)
  if (choices !== undefined) return union(choices.map(each => typeText(each, root, depth + 1)))
  const { type } = at
  if (Array.isArray(type)) return union(type.map(each => typeText({ ...at, type: each }, root, depth)))
  if (type === 'array') return listText(at, root, depth)
  if (type === 'object' || at['properties'] !== undefined) return objectText(at, root, depth)
  return typeof type === 'string' ? type : 'any'
}

function listText(schema: Schema, root: Schema, depth: number): string {
  const of = schema['items'] === undefined ? 'any' : typeText(schema['items'], root, depth + 1)
  return of.includes(' | ') ? `(${of})[]` : `${of}[]`
}

function objectText(schema: Schema, root: Schema, depth: number): string {
  const members = depth >= deepest ? undefined : membersOf(schema, root, depth + 1)
  if (members === undefined) return '{…}'
  return members.length === 0 ? 'object' : `{ ${members.join(', ')} }`
}

function membersOf(schema: Schema, root: Schema, depth: number): readonly string[] {
  const at = resolved(schema, root) ?? {}
  const required = requiredOf(at)
  const all = Object.entries(propertiesOf(at)).map(([name, member]) => memberText(name, member, required.has(name), root, depth))
  return all.length <= mostMembers ? all : [...all.slice(0, mostMembers), `… ${all.length - mostMembers} more`]
}

function memberText(name: string, schema: unknown, needed: boolean, root: Schema, depth: number): string {
  const fallback = isRecord(schema) && 'default' in schema ? ` = ${brief(JSON.stringify(schema['default']) ?? '', 24)}` : ''
  return `${brief(name, 40)}${needed ? '' : '?'}: ${typeText(schema, root, depth)}${fallback}`
}

/** References inside the schema itself; those that lead outside or in circles are not followed. */
export function resolved(schema: Schema, root: Schema): Schema | undefined {
  let at: unknown = schema
  for (let hops = 0; hops < 8; hops++) {
    if (!isRecord(at)) return undefined
    const { $ref } = at
    if (typeof $ref !== 'string') return at
    if (!$ref.startsWith('#/')) return undefined
    at = $ref
      .slice(2)
      .split('/')
      .reduce<unknown>(
        (found, key) => (isRecord(found) ? found[key.replaceAll('~1', '/').replaceAll('~0', '~')] : undefined),
        root,
      )
  }
  return undefined
}

export function propertiesOf({ properties }: Schema): Schema {
  return isRecord(properties) ? properties : {}
}

export function requiredOf({ required }: Schema): ReadonlySet<unknown> {
  return new Set(Array.isArray(required) ? required : [])
}

function union(texts: readonly string[]): string {
  const all = [...new Set(texts)]
  return all.length <= mostValues ? all.join(' | ') : `${all.slice(0, mostValues).join(' | ')} | …`
}

function literal(value: unknown): string {
  return brief(JSON.stringify(value) ?? 'any', 40)
}
