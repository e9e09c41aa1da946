/** Arguments of a call as they are typed: `key=value` words that become what the schema of the tool wants. */

import { readFile } from 'node:fs/promises'
import { text } from 'node:stream/consumers'
import { nearest } from '../core/suggestion.ts'
import { clip } from '../jsonrpc/limits.ts'
import { isRecord } from '../jsonrpc/message.ts'
import { CliError } from './errors.ts'
import type { Io } from './io.ts'
import { propertiesOf, requiredOf, resolved, typeText } from './signature.ts'

type Schema = Readonly<Record<string, unknown>>
type Values = Record<string, unknown>

/**
 * `a=1 tags=x tags=y point.x=3 raw:='{"any": "JSON"}'`. What is said twice becomes a list, a dot leads into an object, and `:=` is
 * followed by JSON whatever the schema says.
 */
export function readArguments(words: readonly string[], schema: Schema, given: Values = {}, of = 'It'): Values {
  const values: Values = { ...given }
  for (const word of words) {
    const [, key, raw, text] = /^(.+?)(:?)=(.*)$/s.exec(word) ?? []
    if (key === undefined || text === undefined)
      throw new CliError(1, `"${clip(word)}" is no argument`, `Write ${clip(word)}=value, or the whole as --json '{…}'`)
    const path = Object.hasOwn(propertiesOf(schema), key) ? [key] : key.split('.')
    const at = schemaAt(schema, path)
    if (at === undefined) throw unknown(key, schema, of)
    put(values, path, raw === ':' ? json(key, text) : typedValue(key, text, at, schema), at)
  }
  return values
}

/** What the schema needs and nobody gave. */
export function missingArguments(schema: Schema, values: Values): readonly string[] {
  return [...requiredOf(schema)].filter(name => typeof name === 'string' && !Object.hasOwn(values, name)).map(String)
}

function put(values: Values, path: readonly string[], value: unknown, at: Schema): void {
  const [key = '', ...rest] = path
  if (rest.length > 0) {
    const inner = Object.hasOwn(values, key) ? values[key] : undefined
    const next: Values = isRecord(inner) ? { ...inner } : {}
    put(next, rest, value, at)
    define(values, key, next)
    return
  }
  const before = Object.hasOwn(values, key) ? values[key] : undefined
  define(values, key, Array.isArray(before) && Array.isArray(value) ? [...before, ...value] : value)
}

/** As an own member, whatever it is called. */
function define(values: Values, key: string, value: unknown): void {
  Object.defineProperty(values, key, { value, enumerable: true, configurable: true, writable: true })
}

/** Of what has no schema but is allowed, anything is fine: {}. Undefined: it is not allowed. */
function schemaAt(root: Schema, path: readonly string[]): Schema | undefined {
  let at: Schema | undefined = root
  for (const key of path) {
    const here: Schema = (at && resolved(at, root)) ?? {}
    const properties = propertiesOf(here)
    const member: unknown = Object.hasOwn(properties, key) ? properties[key] : others(here)
    if (member === false) return undefined
    at = isRecord(member) ? member : {}
  }
  return at
}

/** Where a schema can say more than its list of members does. */
const open = ['$ref', 'allOf', 'anyOf', 'oneOf', 'if', 'patternProperties', 'dependentSchemas', 'unevaluatedProperties']

/** What a member may be that is not listed. A list without a word about others is meant to be whole: tools leave them out unseen. */
function others(schema: Schema): unknown {
  const said = schema['additionalProperties']
  if (said !== undefined) return said
  return Object.keys(propertiesOf(schema)).length === 0 || open.some(word => word in schema)
}

function unknown(key: string, schema: Schema, of: string): CliError {
  const names = Object.keys(propertiesOf(schema))
  const near = nearest(key, names).map(each => clip(each))
  const all = names.length === 0 ? 'It takes none' : `There are ${names.map(each => clip(each)).join(', ')}`
  return new CliError(1, `${clip(of)} has no ${clip(key)}`, near.length > 0 ? `Did you mean ${near.join(' or ')}?` : all)
}

function typedValue(key: string, text: string, schema: Schema, root: Schema): unknown {
  const { enum: listed } = resolved(schema, root) ?? {}
  if (Array.isArray(listed) && listed.every(isPlain)) return oneOf(key, text, listed)
  for (const type of typesOf(schema, root)) {
    const value = read(text, type, schema, root)
    if (value !== undefined) return value.is
  }
  throw new CliError(
    1,
    `${clip(key)}: "${clip(text)}" is no ${typeText(schema, root)}`,
    `Write ${exampleOf(clip(key), schema, root)}`,
  )
}

type Plain = string | number | boolean | null

function isPlain(value: unknown): value is Plain {
  return value === null || ['string', 'number', 'boolean'].includes(typeof value)
}

/** A value that is listed, as its schema writes it. */
function oneOf(key: string, text: string, listed: readonly Plain[]): Plain {
  const found = listed.find(each => String(each) === text)
  if (found !== undefined) return found
  const names = listed.map(each => String(each))
  const near = nearest(text, names)
  const which = (near.length > 0 ? near : names.slice(0, 12)).map(each => clip(each))
  const fix = near.length > 0 ? `Did you mean ${which.join(' or ')}?` : `Write one of ${which.join(', ')}`
  throw new CliError(1, `${clip(key)} has no value "${clip(text)}"`, fix)
}

/** A word as it could be typed. */
function exampleOf(key: string, schema: Schema, root: Schema): string {
  const [type = 'string'] = typesOf(schema, root)
  const values: Readonly<Record<string, string>> = {
    boolean: `${key}=true or ${key}=false`,
    integer: `${key}=3`,
    number: `${key}=1.5`,
    object: `${key}='{"name": "value"}', or ${key}.name=value`,
    array: `${key}=one,two, or ${key}='["one"]'`,
  }
  return values[type] ?? `${key}:=JSON`
}

/** Those that are stricter come first: everything is a text. */
const order = ['null', 'boolean', 'integer', 'number', 'object', 'array', 'string']

function typesOf(schema: Schema, root: Schema): readonly string[] {
  const at = resolved(schema, root) ?? {}
  const choices = [at['anyOf'], at['oneOf']].find(Array.isArray)
  const values = Array.isArray(at['enum']) ? at['enum'] : 'const' in at ? [at['const']] : undefined
  const said =
    choices !== undefined
      ? choices.filter(isRecord).flatMap(each => typesOf(each, root))
      : values !== undefined
        ? values.map(kindOf)
        : [at['type'] ?? (at['properties'] === undefined ? order : 'object')].flat()
  return order.filter(type => said.includes(type))
}

function kindOf(value: unknown): string {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'array' : typeof value
}

/** Undefined: the text is none such. */
function read(text: string, type: string, schema: Schema, root: Schema): { readonly is: unknown } | undefined {
  switch (type) {
    case 'null':
      return text === 'null' ? { is: null } : undefined
    case 'boolean':
      return /^(true|yes|on)$/i.test(text) ? { is: true } : /^(false|no|off)$/i.test(text) ? { is: false } : undefined
    case 'integer':
      return /^[+-]?\d+(e\d+)?$/i.test(text) ? { is: Number(text) } : undefined
    case 'number':
      return text.trim() !== '' && Number.isFinite(Number(text)) ? { is: Number(text) } : undefined
    case 'object':
      return structured(text, isRecord)
    case 'array':
      return structured(text, Array.isArray) ?? listOf(text, schema, root)
    default:
      return { is: text }
  }
}

/** Where anything may come a text stays one, unless it is clearly JSON. */
function structured(text: string, fits: (value: unknown) => boolean): { readonly is: unknown } | undefined {
  if (!/^\s*[[{]/.test(text)) return undefined
  try {
    const value: unknown = JSON.parse(text)
    return fits(value) ? { is: value } : undefined
  } catch {
    return undefined
  }
}

/** `a,b,c` where the schema says that it is a list; not where it might be one. */
function listOf(text: string, schema: Schema, root: Schema): { readonly is: unknown } | undefined {
  const at = resolved(schema, root) ?? {}
  if (at['type'] !== 'array') return undefined
  const items: Schema = isRecord(at['items']) ? at['items'] : {}
  const parts = text === '' ? [] : text.split(',')
  const values = parts.map(part =>
    typesOf(items, root)
      .map(type => read(part, type, items, root))
      .find(value => value !== undefined),
  )
  return values.includes(undefined) ? undefined : { is: values.map(value => value?.is) }
}

/** JSON that was typed or read from a file. */
function json(name: string, text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw new CliError(1, `${clip(name)} is no JSON: ${why}`, `Names and texts stand in ", all of it in ': '{"name": "value"}'`)
  }
}

/** What is whole comes first, and words change it. */
export async function givenArguments(
  words: readonly string[],
  whole: string | undefined,
  io: Io,
  read: (pairs: readonly string[], known: Values) => Values,
): Promise<Values> {
  let known: Values = whole === undefined ? {} : objectOf('--json', whole)
  const pairs: string[] = []
  for (const word of words) {
    if (word === '-') known = { ...known, ...objectOf('Standard input', await fromInput(io)) }
    else if (word.startsWith('@')) known = { ...known, ...objectOf(word, await fromFile(word.slice(1))) }
    else pairs.push(word)
  }
  return read(pairs, known)
}

function fromInput({ input }: Io): Promise<string> {
  if (input.isTTY === true)
    throw new CliError(1, '- reads standard input, which is a terminal', 'Pipe JSON into it, or write key=value')
  return text(input)
}

async function fromFile(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    throw new CliError(1, `The file ${clip(path)} cannot be read`, 'Correct the path', { cause: error })
  }
}

function objectOf(name: string, source: string): Values {
  const value = json(name, source)
  if (isRecord(value)) return { ...value }
  throw new CliError(1, `${clip(name)} is no JSON object`, `Write {"key": "value"}`)
}
