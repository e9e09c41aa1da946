/**
 * What comments beside the keys of a config file say, as JSON Schema: the sentences are the description, and tags say the rest.
 *
 * | tag                                                     | means                                                                   |
 * | ------------------------------------------------------- | ----------------------------------------------------------------------- |
 * | `@default 5s`, `@defaults {name}`                       | the default of a key; those of all keys, from a constant                |
 * | `@example text`                                         | an example: JSON, else a text                                           |
 * | `@pattern`, `@minimum 1`, `@integer`, `@keys`, …        | a constraint; of an interface: of each of its members                   |
 * | `@ignoreCase`                                           | upper and lower case are the same                                       |
 * | `@atLeastOne a b`, `@atMostOne a b`, `@exactlyOne a b`  | which keys have to stand there, or exclude each other                   |
 * | `@requiresWhen a=1 b`                                   | a key that is required where another one has a value                    |
 * | `@open`, `@nullable`                                    | of an interface: other keys are fine; null is the same as no value      |
 * | `@title`, `@deprecated`                                 | what a type is called in tables; what is read and should not be written |
 *
 * In the place of a value a tag may name a constant, `@maxLength {longestName}`: the one by which the reader checks.
 */
import type { SourceFile, Tags } from './declarations.ts'
import { constant } from './literals.ts'
import type { Annotate, Definitions, Schema } from './type-schema.ts'

/** Constraints by the type that they are about. */
const constraints: Readonly<Record<string, readonly string[]>> = {
  string: ['pattern', 'minLength', 'maxLength'],
  number: ['minimum', 'maximum', 'exclusiveMinimum'],
  array: ['minItems', 'maxItems'],
  object: ['maxProperties'],
}

const keywords = Object.values(constraints).flat()

/** The sentence with which descriptions end. */
export const defaultSentence = / Default: (?:none|`[^`]*`)\.$/

/** The default in a comment for readers of code, where a tag gives it too. */
const spokenDefault = / Default:? [^.]+\.$/

/** Adds all that a comment says. */
export const annotate: Annotate = (schema, { about, tags, file }, definitions) => {
  let result = constrained(schema, tags, file, definitions)
  if (tags.has('nullable')) result = eachMember(result, nullable)
  const defaults = named(tags.get('defaults')?.[0], file) as Readonly<Record<string, unknown>> | undefined
  if (defaults !== undefined)
    result = eachMember(result, (member, name) => (name in defaults ? withDefault(member, defaults[name]) : member))
  const [title] = tags.get('title') ?? []
  const [standard] = tags.get('default') ?? []
  const examples = tags.get('example')?.map(value)
  return withDefault(
    {
      ...result,
      ...structure(tags),
      ...(title !== undefined && { title }),
      ...(about !== undefined && { description: about }),
      ...(examples !== undefined && { examples }),
      ...(tags.has('deprecated') && { deprecated: true }),
    },
    standard === undefined ? undefined : value(standard),
  )
}

/** The default, and the sentence about it. */
function withDefault({ description, ...schema }: Schema, standard: unknown): Schema {
  const about = typeof description === 'string' && { description }
  if (standard === undefined) return { ...about, ...schema }
  const isEmpty = typeof standard === 'object' && standard !== null && Object.keys(standard).length === 0
  const text = isEmpty ? 'none' : `\`${typeof standard === 'string' ? standard : JSON.stringify(standard)}\``
  const told = String(description).replace(spokenDefault, '')
  return { ...(about && { description: `${told} Default: ${text}.` }), ...schema, default: standard }
}

/** JSON where it is some, else a text. */
function value(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** The constant that a tag names in braces. */
function named(text: string | undefined, file: SourceFile): unknown {
  const [, name] = /^\{(\w+)\}$/.exec(text ?? '') ?? []
  return name === undefined ? undefined : constant(name, file)
}

function constrained(schema: Schema, tags: Tags, file: SourceFile, definitions: Definitions): Schema {
  let result = schema
  for (const keyword of keywords) {
    const [text] = tags.get(keyword) ?? []
    if (text === undefined) continue
    const given = named(text, file) ?? (keyword === 'pattern' ? text : Number(text))
    result = constrain(result, keyword, given instanceof RegExp ? given.source : given, definitions)
  }
  if (tags.has('integer')) result = constrain(result, 'type', 'integer', definitions)
  if (tags.has('ignoreCase')) result = anyCase(definitions.resolved(result))
  const [keys] = tags.get('keys') ?? []
  return keys === undefined ? result : { ...result, propertyNames: { pattern: keys } }
}

/** The keyword wherever a schema is about its type: in alternatives, in items and in values, but not in other objects. */
function constrain(schema: Schema, keyword: string, given: unknown, definitions: Definitions): Schema {
  const again = (each: Schema): Schema => constrain(each, keyword, given, definitions)
  if ('$ref' in schema) {
    const { description: _, ...target } = definitions.resolved(schema)
    return 'properties' in target ? schema : again(target)
  }
  if (Array.isArray(schema['anyOf'])) return { ...schema, anyOf: schema['anyOf'].map(again) }
  if (isAbout(schema, keyword)) return { ...schema, [keyword]: given }
  if (isSchema(schema['items'])) return { ...schema, items: again(schema['items']) }
  if (isSchema(schema['additionalProperties'])) return { ...schema, additionalProperties: again(schema['additionalProperties']) }
  return eachMember(schema, again)
}

function isAbout({ type }: Schema, keyword: string): boolean {
  return keyword === 'type'
    ? type === 'number'
    : constraints[type === 'integer' ? 'number' : String(type)]?.includes(keyword) === true
}

function isSchema(schema: unknown): schema is Schema {
  return typeof schema === 'object' && schema !== null
}

function eachMember(schema: Schema, change: (member: Schema, name: string) => Schema): Schema {
  if (!isSchema(schema['properties'])) return schema
  const changed = Object.entries(schema['properties']).map(([name, member]) => [name, change(member as Schema, name)])
  return { ...schema, properties: Object.fromEntries(changed) }
}

/** Some programs write null for what they have no value for. */
function nullable({ description, default: standard, examples, ...schema }: Schema): Schema {
  const said = { ...(description !== undefined && { description }), ...(standard !== undefined && { default: standard }) }
  const either =
    typeof schema['type'] === 'string' ? { ...schema, type: [schema['type'], 'null'] } : { anyOf: [schema, { type: 'null' }] }
  return { ...said, ...either, ...(examples !== undefined && { examples }) }
}

/** The names of an enumeration in their usual spelling, and in any other one. */
function anyCase(schema: Schema): Schema {
  const names = (schema['enum'] ?? []) as readonly string[]
  const letters = (name: string): string => name.replace(/[a-z]/g, letter => `[${letter}${letter.toUpperCase()}]`)
  return { anyOf: [{ enum: names }, { type: 'string', pattern: `^(${names.map(letters).join('|')})$` }] }
}

/** Which keys have to stand together, or exclude each other. */
function structure(tags: Tags): Schema {
  const all = ['exactlyOne', 'atMostOne', 'requiresWhen'].flatMap(tag =>
    (tags.get(tag) ?? []).flatMap(text => together(tag, text.split(/\s+/))),
  )
  const [some] = tags.get('atLeastOne') ?? []
  return {
    ...(tags.has('open') && { additionalProperties: true }),
    ...(some !== undefined && { anyOf: some.split(/\s+/).map(key => ({ required: [key] })) }),
    ...(all.length > 0 && { allOf: all }),
  }
}

function together(tag: string, words: readonly string[]): readonly Schema[] {
  if (tag === 'exactlyOne') return [{ oneOf: words.map(key => ({ required: [key] })) }]
  if (tag === 'requiresWhen') {
    const [[key = '', given] = [], ...required] = [words[0]?.split('='), ...words.slice(1)]
    const condition: [string, unknown][] = [
      ['if', { properties: { [key]: { const: given } }, required: [key] }],
      ['then', { required }],
    ]
    return [Object.fromEntries(condition)]
  }
  return words.flatMap((one, at) => words.slice(at + 1).map(other => ({ not: { required: [one, other] } })))
}
