/**
 * JSON Schemas of the files that users write or that the command keeps: from the types that their readers are written against, and the
 * comments there.
 */
import { join } from 'node:path'
import { root } from '../lib/files.ts'
import { annotate } from './comments.ts'
import { findType, sourceFile } from './declarations.ts'
import { dialect } from './generate.ts'
import { constant } from './literals.ts'
import { Definitions, type Schema } from './type-schema.ts'

/** A file and the type that describes it. */
interface ConfigFile {
  readonly title: string
  readonly source: string
  readonly type: string
  /** Types whose texts may hold variables; `all`: those of the whole file. */
  readonly variables: 'all' | readonly string[]
}

/** By the name of the schema. */
export const configFiles: Readonly<Record<string, ConfigFile>> = {
  'host-config': {
    title: 'Config of a Vivarium host (.mcp.json)',
    source: 'src/cli/host-settings.ts',
    type: 'WrittenConfig',
    variables: ['WrittenServer', 'WrittenLive', 'WrittenScopes'],
  },
  'gateway-config': {
    title: 'Config of a Vivarium gateway (gateway.yaml)',
    source: 'src/gateway/config/written.ts',
    type: 'WrittenGateway',
    variables: 'all',
  },
  'trusted-files': {
    title: 'Files that the user of the vivarium command has agreed to (trusted.json)',
    source: 'src/cli/trust/consent.ts',
    type: 'TrustedFiles',
    variables: [],
  },
}

/** The document of one of these files. */
export interface ConfigSchema extends Schema {
  readonly $defs: Readonly<Record<string, Schema>>
  readonly properties: Readonly<Record<string, Schema>>
}

export function configSchemas(): ReadonlyMap<string, ConfigSchema> {
  return new Map(Object.entries(configFiles).map(([name, file]) => [`${name}.json`, schemaOf(name, file)]))
}

const variable: Schema = {
  title: 'variable',
  description: `A text with variables, which are replaced by their values: \`\${NAME}\`, \`\${NAME:-default}\` or \`\${env:NAME}\`.`,
  type: 'string',
  pattern: '\\$\\{[^}]*\\}',
}

function schemaOf(name: string, { title, source, type, variables }: ConfigFile): ConfigSchema {
  const file = sourceFile(join(root, source))
  const definitions = new Definitions((path, value) => constant(value, sourceFile(path)), annotate)
  const declared = findType(type, file)
  if (declared === undefined) throw new TypeError(`${source} declares no type ${type}`)
  definitions.named(declared)
  const all = new Map(
    [...definitions.all].map(([each, schema]) => {
      const closed = walked(schema, closeObject)
      return [each, variables === 'all' || variables.includes(each) ? walked(closed, withVariables) : closed] as const
    }),
  )
  all.set('Variable', variable)
  const { description, ...own } = all.get(type) ?? {}
  const $defs = Object.fromEntries([...all].filter(([each]) => reachable(type, all).has(each) && each !== type))
  return {
    ...{ $schema: dialect, $id: `urn:vivarium:schemas:${name}`, title, description, ...own },
    properties: own['properties'] as ConfigSchema['properties'],
    $defs,
  }
}

/** The schema with a change applied to each schema in it, from the innermost on. */
function walked(schema: Schema, change: (schema: Schema) => Schema): Schema {
  const again = (each: unknown): unknown => (isSchema(each) ? walked(each, change) : each)
  const inner = Object.entries(schema).map(([keyword, held]): [string, unknown] => {
    if (keyword === 'properties')
      return [keyword, Object.fromEntries(Object.entries(held as Schema).map(([k, v]) => [k, again(v)]))]
    if (keyword === 'anyOf') return [keyword, (held as readonly unknown[]).map(again)]
    return [keyword, keyword === 'items' || keyword === 'additionalProperties' ? again(held) : held]
  })
  return change(Object.fromEntries(inner))
}

function isSchema(schema: unknown): schema is Schema {
  return typeof schema === 'object' && schema !== null
}

/** A key that nobody knows is a mistake, where the type does not say otherwise. */
function closeObject(schema: Schema): Schema {
  return 'properties' in schema && !('additionalProperties' in schema) ? { ...schema, additionalProperties: false } : schema
}

/** Before it is checked a text has its variables replaced, so that any text with one may be right. */
function withVariables(schema: Schema): Schema {
  const { type, enum: values, const: only, pattern, minLength = 0, ...rest } = schema
  const texts = values ?? (only === undefined ? undefined : [only])
  const isText = Array.isArray(texts) && texts.some(each => typeof each === 'string')
  if (!isText && pattern === undefined && Number(minLength) < 5) return schema
  const { maxLength, ...said } = rest
  const checked = {
    ...(type !== undefined && { type }),
    ...(values !== undefined && { enum: values }),
    ...(only !== undefined && { const: only }),
    ...(pattern !== undefined && { pattern }),
    ...(Number(minLength) > 0 && { minLength }),
    ...(maxLength !== undefined && { maxLength }),
  }
  return { ...said, anyOf: [checked, { $ref: '#/$defs/Variable' }] }
}

/** The definitions that a definition leads to. */
function reachable(from: string, all: ReadonlyMap<string, Schema>): ReadonlySet<string> {
  const found = new Set([from])
  for (const name of found)
    for (const [, next = ''] of JSON.stringify(all.get(name)).matchAll(/"#\/\$defs\/(\w+)"/g)) found.add(next)
  return found
}
