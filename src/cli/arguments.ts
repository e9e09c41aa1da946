/** Arguments of a call as they are typed: `key=value` words that become what the schema of the tool wants. */
import { readFile } from 'node:fs/promises'
import { text } from 'node:stream/consumers'
import { meantText } from '../core/suggestion.ts'
import { clip } from '../jsonrpc/limits.ts'
import { isRecord } from '../jsonrpc/message.ts'
import { jsonValue } from '../recording/format.ts'
import { messageOf } from '../stores/store.ts'
import { CliError, type Io, readFault } from './io.ts'
import { brief } from './terminal/text.ts'

/** A JSON Schema, as servers write it. */
type Schema = Readonly<Record<string, unknown>>
/** Arguments by name, while they are put together. */
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
      throw new CliError(
        `"${clip(word)}" is not an argument`,
        `Write ${clip(word)}=value, or pass all arguments with --json '{…}'`,
      )
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

/** Sets the value at a path; lists that are given twice are joined. */
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

/** The failure for an argument that the schema does not have. */
function unknown(key: string, schema: Schema, of: string): CliError {
  const names = Object.keys(propertiesOf(schema))
  const all = names.length === 0 ? 'It takes no arguments' : `Its arguments are ${names.map(each => clip(each)).join(', ')}`
  return new CliError(`${clip(of)} has no argument ${clip(key)}`, meantText(key, names) ?? all)
}

/** The text as the first of the types that the schema allows and that it fits. */
function typedValue(key: string, text: string, schema: Schema, root: Schema): unknown {
  const { enum: listed } = resolved(schema, root) ?? {}
  if (Array.isArray(listed) && listed.every(isPlain)) return oneOf(key, text, listed)
  for (const type of typesOf(schema, root)) {
    const value = read(text, type, schema, root)
    if (value !== undefined) return value
  }
  throw new CliError(
    `${clip(key)}: "${clip(text)}" is not of type ${typeText(schema, root)}`,
    `Write ${exampleOf(clip(key), schema, root)}`,
  )
}

/** What an `enum` mostly holds. */
type Plain = string | number | boolean | null

/** Whether a listed value can be compared by its text. */
function isPlain(value: unknown): value is Plain {
  return value === null || ['string', 'number', 'boolean'].includes(typeof value)
}

/** A value that is listed, as its schema writes it. */
function oneOf(key: string, text: string, listed: readonly Plain[]): Plain {
  const found = listed.find(each => String(each) === text)
  if (found !== undefined) return found
  const names = listed.map(each => String(each))
  const some = names.slice(0, 12).map(each => clip(each))
  throw new CliError(
    `${clip(key)} does not allow the value "${clip(text)}"`,
    meantText(text, names) ?? `Write one of ${some.join(', ')}`,
  )
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

/** The types that a schema allows, the strictest first. */
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

/** The JSON type of a value. */
function kindOf(value: unknown): string {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'array' : typeof value
}

/** The text as a value of the type; undefined where it is none such. */
function read(text: string, type: string, schema: Schema, root: Schema): unknown {
  switch (type) {
    case 'null':
      return text === 'null' ? null : undefined
    case 'boolean':
      return /^(true|yes|on)$/i.test(text) ? true : /^(false|no|off)$/i.test(text) ? false : undefined
    case 'integer':
      return /^[+-]?\d+(e\d+)?$/i.test(text) ? Number(text) : undefined
    case 'number':
      return text.trim() !== '' && Number.isFinite(Number(text)) ? Number(text) : undefined
    case 'object':
      return structured(text, isRecord)
    case 'array':
      return structured(text, Array.isArray) ?? listOf(text, schema, root)
    default:
      return text
  }
}

/** Where anything may come a text stays one, unless it is clearly JSON. */
function structured(text: string, fits: (value: unknown) => boolean): unknown {
  const value = /^\s*[[{]/.test(text) ? jsonValue(text) : undefined
  return fits(value) ? value : undefined
}

/** `a,b,c` where the schema says that it is a list; not where it might be one. */
function listOf(text: string, schema: Schema, root: Schema): readonly unknown[] | undefined {
  const { type, items: said } = resolved(schema, root) ?? {}
  if (type !== 'array') return undefined
  const items: Schema = isRecord(said) ? said : {}
  const types = typesOf(items, root)
  const first = (part: string): unknown => types.map(each => read(part, each, items, root)).find(value => value !== undefined)
  const values = text === '' ? [] : text.split(',').map(first)
  return values.includes(undefined) ? undefined : values
}

/** The number of a port, as it is typed. */
export function portOf(text: string): number {
  const port = Number(text)
  if (/^\d+$/.test(text) && port <= 65_535) return port
  throw new TypeError(`"${clip(text)}" is not a port. Write a number from 0 to 65535`)
}

/** JSON that was typed or read from a file. */
function json(name: string, text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new CliError(
      `${clip(name)} is not valid JSON: ${messageOf(error)}`,
      `Put names and strings in double quotes, and the whole in single quotes: '{"name": "value"}'`,
    )
  }
}

/** The arguments that words and `--json` say. What is whole comes first, and words change it. `of`: who takes them. */
export async function givenArguments(
  words: readonly string[],
  whole: string | undefined,
  schema: Schema,
  of: string,
  io: Io,
): Promise<Values> {
  let known: Values = whole === undefined ? {} : objectOf('--json', whole)
  const pairs: string[] = []
  for (const word of words) {
    if (word === '-') known = { ...known, ...objectOf('Standard input', await fromInput(io)) }
    else if (word.startsWith('@')) known = { ...known, ...objectOf(word, await fromFile(word.slice(1))) }
    else pairs.push(word)
  }
  return readArguments(pairs, schema, known, of)
}

/** All of standard input; refused where it is a terminal, which would wait for ever. */
function fromInput({ input }: Io): Promise<string> {
  if (input.isTTY === true)
    throw new CliError(
      '- reads JSON from standard input, but standard input is a terminal',
      'Pipe JSON into the command, or write key=value',
    )
  return text(input)
}

/** The text of a file that an `@file` argument names. */
async function fromFile(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    throw new CliError(`The file ${clip(path)} ${readFault(error)}`, 'Correct the path', { cause: error })
  }
}

/** JSON that must be an object. */
function objectOf(name: string, source: string): Values {
  const value = json(name, source)
  if (isRecord(value)) return { ...value }
  throw new CliError(`${clip(name)} is not a JSON object`, `Write {"key": "value"}`)
}

// A JSON Schema as a line that people read: `add(a: number, b?: number = 1) → { sum: number }`.

/** How deep objects are shown before they become `{…}`. */
const deepest = 2
/** Members of one object that are shown. */
const mostMembers = 12
/** Choices that are shown. */
const mostValues = 6

/** A tool as a signature: its name, its arguments and its result. */
export function signature(name: string, input: Schema, output?: Schema): string {
  const result = output === undefined ? '' : ` → ${typeText(output, output)}`
  return `${name}(${membersOf(input, input, 0).join(', ')})${result}`
}

/** The type that a schema describes. */
export function typeText(schema: unknown, root: Schema, depth = 0): string {
  const at = isRecord(schema) ? resolved(schema, root) : undefined
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

/** The type of a list. */
function listText(schema: Schema, root: Schema, depth: number): string {
  const of = schema['items'] === undefined ? 'any' : typeText(schema['items'], root, depth + 1)
  return of.includes(' | ') ? `(${of})[]` : `${of}[]`
}

/** The type of an object, with its members where it is not too deep inside. */
function objectText(schema: Schema, root: Schema, depth: number): string {
  const members = depth >= deepest ? undefined : membersOf(schema, root, depth + 1)
  if (members === undefined) return '{…}'
  return members.length === 0 ? 'object' : `{ ${members.join(', ')} }`
}

/** The members of an object, a text each. */
function membersOf(schema: Schema, root: Schema, depth: number): readonly string[] {
  const at = resolved(schema, root) ?? {}
  const required = requiredOf(at)
  const all = Object.entries(propertiesOf(at)).map(([name, member]) => memberText(name, member, required.has(name), root, depth))
  return all.length <= mostMembers ? all : [...all.slice(0, mostMembers), `… ${all.length - mostMembers} more`]
}

/** A member: its name, whether it may be left out, its type and its default. */
function memberText(name: string, schema: unknown, needed: boolean, root: Schema, depth: number): string {
  const fallback = isRecord(schema) && 'default' in schema ? ` = ${brief(JSON.stringify(schema['default']) ?? '', 24)}` : ''
  return `${brief(name, 40)}${needed ? '' : '?'}: ${typeText(schema, root, depth)}${fallback}`
}

/** References inside the schema itself; those that lead outside or in circles are not followed. */
function resolved(schema: Schema, root: Schema): Schema | undefined {
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

/** The members that a schema lists. */
export function propertiesOf({ properties }: Schema): Schema {
  return isRecord(properties) ? properties : {}
}

/** The names of members that must be there. */
function requiredOf({ required }: Schema): ReadonlySet<unknown> {
  return new Set(Array.isArray(required) ? required : [])
}

/** Several types, each once. */
function union(texts: readonly string[]): string {
  const all = [...new Set(texts)]
  return all.length <= mostValues ? all.join(' | ') : `${all.slice(0, mostValues).join(' | ')} | …`
}

/** A constant value. */
function literal(value: unknown): string {
  return brief(JSON.stringify(value) ?? 'any', 40)
}
