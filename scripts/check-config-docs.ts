/**
 * Keeps the tables of keys in docs/reference: they are made from the JSON Schemas of config files, and every key stands in one of them.
 * `--write` brings them up to date. A table stands right below `<!-- keys: TYPE -->`; names behind a second colon choose among the keys of
 * the type.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { basename } from 'node:path/posix'
import { root } from './lib/files.ts'
import { runCheck } from './lib/report.ts'
import { anchorOf, formatTable } from './lib/tables.ts'
import { defaultSentence } from './schemas/comments.ts'
import { type ConfigSchema, configFiles, configSchemas } from './schemas/config.ts'
import type { Schema } from './schemas/type-schema.ts'

/** A page with tables, by its path. */
export interface Page {
  readonly path: string
  readonly text: string
}

/** A type with keys, and the document in which it is defined. */
interface Described {
  readonly schema: Schema
  readonly document: ConfigSchema
}

/** Types with keys by name; of those that several files have, the first counts. */
type Types = ReadonlyMap<string, Described>

export const pagePaths = ['host-config', 'gateway-config', 'gateway-clients', 'rules'].map(name => `docs/reference/${name}.md`)
/** The files whose keys have to stand on the pages. */
const documented = ['host-config', 'gateway-config']

const TABLE = /<!-- keys: (\w+)(?:: ([^>]*?))? -->\n(?:\|.*\n)*/g

/** The pages with their tables as they should be. */
export function withTables(pages: readonly Page[], types: Types): readonly Page[] {
  return pages.map(page => {
    const places = placesOf(pages, page.path)
    const text = page.text.replace(TABLE, (found, type: string, chosen: string | undefined) => {
      const described = types.get(type)
      if (described === undefined) return found
      const choice = chosen === undefined ? '' : `: ${chosen}`
      return `<!-- keys: ${type}${choice} -->\n${tableOf(described, keysIn(chosen), places)}\n`
    })
    return { ...page, text }
  })
}

/** Tables about what is not there, and keys that stand in no table. */
export function findKeyProblems(pages: readonly Page[], types: Types): readonly string[] {
  const shown = new Set<string>()
  const strangers = pages.flatMap(({ path, text }) =>
    [...text.matchAll(TABLE)].flatMap(([, type = '', chosen]) => {
      const known = memberNames(types.get(type)?.schema)
      const keys = keysIn(chosen) ?? known
      for (const key of keys) shown.add(`${type}.${key}`)
      if (!types.has(type)) return [`${path}: there is no type ${type}`]
      return keys.filter(key => !known.includes(key)).map(key => `${path}: ${type} has no key ${key}`)
    }),
  )
  const missing = [...types].flatMap(([type, { schema }]) => {
    if (schema['deprecated'] === true) return []
    return memberNames(schema)
      .filter(key => !shown.has(`${type}.${key}`))
      .map(key => `${type}.${key}`)
  })
  return [...strangers, ...missing.map(key => `${key} stands in no table of ${pages.map(({ path }) => path).join(', ')}`)]
}

/** All types of the files that have keys. */
export function typesOf(documents: ReadonlyMap<string, ConfigSchema>): Types {
  const types = new Map<string, Described>()
  for (const name of documented) {
    const document = documents.get(`${name}.json`)
    if (document === undefined) continue
    for (const [type, schema] of Object.entries({ [configFiles[name]?.type ?? '']: document, ...document.$defs }))
      if (memberNames(schema).length > 0 && !types.has(type)) types.set(type, { schema, document })
  }
  return types
}

function keysIn(chosen: string | undefined): readonly string[] | undefined {
  return chosen?.split(/,\s*/)
}

function memberNames(schema: Schema | undefined): readonly string[] {
  return Object.keys((schema?.['properties'] ?? {}) as Schema)
}

/** Links to the tables by type, from one page: to the heading above each. */
function placesOf(pages: readonly Page[], from: string): ReadonlyMap<string, string> {
  const places = new Map<string, string>()
  for (const { path, text } of pages) {
    let heading = ''
    for (const line of text.split('\n')) {
      const [, title] = /^#+ (.*)$/.exec(line) ?? []
      if (title !== undefined) heading = anchorOf(title)
      const [, type] = /^<!-- keys: (\w+)/.exec(line) ?? []
      if (type !== undefined && (path === from || !places.has(type)))
        places.set(type, path === from ? `#${heading}` : `${basename(path)}#${heading}`)
    }
  }
  return places
}

type Places = ReadonlyMap<string, string>

function tableOf({ schema, document }: Described, chosen: readonly string[] | undefined, places: Places): string {
  const { properties = {}, required = [] } = schema as { properties?: Record<string, Schema>; required?: readonly string[] }
  const rows = (chosen ?? Object.keys(properties)).map(key => {
    const member = properties[key] ?? {}
    const { default: standard, description } = member
    const about = String(description ?? '').replace(defaultSentence, '')
    return [`\`${key}\``, typeText(member, document, places), required.includes(key) ? 'required' : shown(standard), about]
  })
  return formatTable([['key', 'type', 'default', 'meaning'], ...rows])
}

function shown(standard: unknown): string {
  if (standard === undefined) return ''
  return typeof standard === 'object' ? 'none' : `\`${standard}\``
}

/** A type in a few words, with a link to the table of its keys. */
function typeText(member: Schema, document: ConfigSchema, places: Places): string {
  const { $ref, type, title, enum: values, const: only, anyOf, items, additionalProperties: others } = member
  const again = (each: unknown): string => typeText(each as Schema, document, places)
  if (typeof $ref === 'string') {
    const name = $ref.split('/').at(-1) ?? ''
    const target = document.$defs[name] ?? {}
    if (memberNames(target).length === 0) return again(target)
    const place = places.get(name)
    return place === undefined ? 'object' : `[object](${place})`
  }
  if (typeof title === 'string') return title
  if (Array.isArray(values)) return values.map(each => `\`${each}\``).join(', ')
  if (only !== undefined) return `\`${only}\``
  if (Array.isArray(anyOf)) {
    const told = (anyOf as readonly Schema[]).filter(each => isTold(each, document))
    return [...new Set(told.map(again))].join(' or ')
  }
  const [first] = [type].flat()
  if (first === 'array') return listOf('list', again(items))
  if (typeof others === 'object') return listOf('map', again(others))
  return typeof first === 'string' ? first : 'any'
}

/** `list of strings`, `map of [objects](#a)`. */
function listOf(what: 'list' | 'map', item: string): string {
  if (item === 'any') return what
  if (item.includes(' or ')) return `${what} of (${item})`
  return `${what} of ${item.replace(/^(\[?(?:string|number|integer|boolean|duration|kind|object|list|map))\b/, '$1s')}`
}

/** Null and variables are not worth a word, and what is deprecated should not be written. */
function isTold({ type, $ref }: Schema, { $defs }: ConfigSchema): boolean {
  const name = String($ref).split('/').at(-1) ?? ''
  return type !== 'null' && name !== 'Variable' && $defs[name]?.['deprecated'] !== true
}

if (import.meta.main) {
  const types = typesOf(configSchemas())
  const pages = pagePaths.map(path => ({ path, text: readFileSync(join(root, path), 'utf8') }))
  const fresh = withTables(pages, types)
  const writing = process.argv.includes('--write')
  if (writing) for (const { path, text } of fresh) writeFileSync(join(root, path), text)
  const stale = writing ? [] : pages.filter(({ text }, at) => fresh[at]?.text !== text)
  runCheck('config', () => [
    ...stale.map(({ path }) => `${path}: its tables are not those of the schemas; run \`npm run fix\``),
    ...findKeyProblems(pages, types),
  ])
}
