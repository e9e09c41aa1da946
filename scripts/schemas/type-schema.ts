/** A type as JSON Schema 2020-12. Named types become `$defs`, so that the document tells them as the code does. */
import {
  above,
  type Declared,
  findType,
  findValue,
  isNode,
  type Node,
  nameOf,
  nodes,
  type SourceFile,
  type Tags,
  tagsAbove,
} from './declarations.ts'

export type Schema = Record<string, unknown>

/** The values that a file exports or keeps to itself, as they are when it runs. */
export type Values = (path: string, name: string) => unknown

/** What the comment of a type or a member says. */
export interface Comment {
  readonly about: string | undefined
  readonly tags: Tags
  /** The file in which it stands. */
  readonly file: SourceFile
}

/** Adds to a schema what the comment of its type or member says. */
export type Annotate = (schema: Schema, comment: Comment, definitions: Definitions) => Schema

const describe: Annotate = (schema, { about }) => ({ ...schema, ...(about !== undefined && { description: about }) })

/** A member of an object type. */
interface Member {
  readonly node: Node
  readonly file: SourceFile
}

export type Members = ReadonlyMap<string, Member>

export class Definitions {
  readonly all = new Map<string, Schema>()
  readonly #values: Values
  readonly #annotate: Annotate
  /** Which declaration has which name: two of one name are told apart. */
  readonly #names = new Map<Node, string>()

  /** `annotate`: by default the comment becomes the description. */
  constructor(values: Values, annotate = describe) {
    this.#values = values
    this.#annotate = annotate
  }

  /** The schema of a type as it is written. */
  of(node: Node, file: SourceFile): Schema {
    switch (node.type) {
      case 'TSStringKeyword':
      case 'TSTemplateLiteralType':
        return { type: 'string' }
      case 'TSNumberKeyword':
        return { type: 'number' }
      case 'TSBooleanKeyword':
        return { type: 'boolean' }
      case 'TSNullKeyword':
        return { type: 'null' }
      case 'TSUnknownKeyword':
        return {}
      case 'TSUndefinedKeyword':
        return { not: {} }
      case 'TSObjectKeyword':
        return { type: 'object' }
      case 'TSLiteralType':
        return literalSchema(node['literal'] as Node)
      case 'TSParenthesizedType':
      case 'TSTypeAnnotation':
      case 'TSTypeOperator':
        return this.of(node['typeAnnotation'] as Node, file)
      case 'TSArrayType':
        return { type: 'array', items: this.of(node['elementType'] as Node, file) }
      case 'TSUnionType':
        return this.#union(nodes(node['types']), file)
      case 'TSIntersectionType':
        return merged(nodes(node['types']).map(each => this.#resolved(each, file)))
      case 'TSTypeLiteral':
        return this.#object(membersIn(nodes(node['members']), file))
      case 'TSTypeReference':
        return this.#reference(node, file)
      case 'TSIndexedAccessType':
        return this.#member(node, file)
      default:
        throw new TypeError(`${file.path}: a type of the kind ${node.type} cannot be told in JSON Schema; write it otherwise`)
    }
  }

  /** A definition of its own, and the reference to it. */
  named(declared: Declared): Schema {
    const { node, file, about, tags } = declared
    const known = this.#names.get(node)
    if (known !== undefined) return { $ref: `#/$defs/${known}` }
    const own = nameOf(node['id'])
    const name = this.all.has(own) ? `${own}2` : own
    this.#names.set(node, name)
    this.all.set(name, {})
    const schema = this.#declaration(node, file)
    this.all.set(name, this.#annotate(schema, { about, tags, file }, this))
    return { $ref: `#/$defs/${name}` }
  }

  #declaration(node: Node, file: SourceFile): Schema {
    if (node.type === 'TSTypeAliasDeclaration') return this.of(node['typeAnnotation'] as Node, file)
    return this.#object(membersOf(node, file))
  }

  #object(members: Members): Schema {
    const properties: Schema = {}
    const required: string[] = []
    for (const [name, { node, file }] of members) {
      const comment = { about: above(file.text, node.start), tags: tagsAbove(file.text, node.start), file }
      properties[name] = this.#annotate(this.of(node['typeAnnotation'] as Node, file), comment, this)
      if (node['optional'] !== true) required.push(name)
    }
    return { type: 'object', properties, ...(required.length > 0 && { required }) }
  }

  #union(types: readonly Node[], file: SourceFile): Schema {
    const schemas = types.filter(({ type }) => type !== 'TSUndefinedKeyword').map(each => this.of(each, file))
    if (schemas.length === 1) return schemas[0] ?? {}
    if (schemas.every(schema => 'const' in schema || onlyEnum(schema)))
      return { enum: schemas.flatMap(schema => schema['enum'] ?? [schema['const']]) }
    return { anyOf: schemas }
  }

  #reference(node: Node, file: SourceFile): Schema {
    const name = nameOf(node['typeName'])
    const [first, second] = nodes(isNode(node['typeArguments']) ? node['typeArguments']['params'] : [])
    if (name === 'Readonly' || name === 'NonNullable') return this.of(first as Node, file)
    if (name === 'Partial' && first !== undefined) {
      const { required: _, ...rest } = this.resolved(this.of(first, file))
      return rest
    }
    if ((name === 'Pick' || name === 'Omit') && first !== undefined) return this.#object(membersOf(node, file))
    if ((name === 'Extract' || name === 'Exclude') && second !== undefined)
      return chosen(this.resolved(this.of(first as Node, file)), this.of(second, file), name === 'Extract')
    if (name === 'Record' && second !== undefined) {
      const values = this.of(second, file)
      return { type: 'object', ...(Object.keys(values).length > 0 && { additionalProperties: values }) }
    }
    if (name === 'Params') return { type: 'object' }
    if (name === 'Infer' && first !== undefined) return this.#shape(first, file)
    const declared = findType(name, file)
    if (declared === undefined) throw new TypeError(`${file.path}: where is the type ${name}?`)
    return this.named(declared)
  }

  /** `Infer<typeof shape>`: the shape says it itself. */
  #shape(query: Node, file: SourceFile): Schema {
    const value = this.#value(query, file)
    const { schema } = value as { schema?: () => Schema }
    if (schema === undefined) throw new TypeError(`${file.path}: Infer<…> of something that is no shape`)
    return schema()
  }

  /** `(typeof list)[number]`, `Type['member']`, `Type['list'][number]`. */
  #member(node: Node, file: SourceFile): Schema {
    const object = unwrapped(node['objectType'] as Node)
    const index = node['indexType'] as Node
    if (object.type === 'TSTypeQuery') return { enum: [...(this.#value(object, file) as readonly unknown[])] }
    const schema = this.#resolved(object, file)
    if (index.type === 'TSNumberKeyword') return (schema['items'] ?? {}) as Schema
    const name = isNode(index['literal']) ? String(index['literal']['value']) : ''
    return ((schema['properties'] as Record<string, Schema> | undefined)?.[name] ?? {}) as Schema
  }

  #value(query: Node, file: SourceFile): unknown {
    const name = nameOf(query['exprName'])
    const found = findValue(name, file)
    return found === undefined ? undefined : this.#values(found.path, found.name)
  }

  #resolved(node: Node, file: SourceFile): Schema {
    return this.resolved(this.of(node, file))
  }

  /** Without a reference at its top. */
  resolved(schema: Schema): Schema {
    const name = typeof schema['$ref'] === 'string' ? schema['$ref'].split('/').at(-1) : undefined
    return name === undefined ? schema : (this.all.get(name) ?? {})
  }
}

function unwrapped(node: Node): Node {
  return node.type === 'TSParenthesizedType' ? unwrapped(node['typeAnnotation'] as Node) : node
}

function onlyEnum(schema: Schema): boolean {
  return 'enum' in schema && Object.keys(schema).length === 1
}

/** A text with parts that are not fixed is any text. */
function literalSchema(literal: Node): Schema {
  return literal.type === 'TemplateLiteral' ? { type: 'string' } : { const: literal['value'] }
}

/** The alternatives that are of this type or among these values, or those that are not. */
function chosen({ description: _, anyOf, ...schema }: Schema, wanted: Schema, keep: boolean): Schema {
  const fits = (each: Schema): boolean =>
    'type' in wanted ? each['type'] === wanted['type'] : valuesOf(wanted).includes(each['const'])
  const among = (anyOf ?? valuesOf(schema).map(value => ({ const: value }))) as readonly Schema[]
  const left = among.filter(each => fits(each) === keep)
  if (left.every(each => 'const' in each)) return { enum: left.map(each => each['const']) }
  return { ...schema, ...(left.length === 1 ? left[0] : { anyOf: left }) }
}

function valuesOf(schema: Schema): readonly unknown[] {
  return 'const' in schema ? [schema['const']] : ((schema['enum'] ?? []) as readonly unknown[])
}

/** The members of an interface with those that it inherits, or of a part of one (`Pick`, `Omit`). */
export function membersOf(node: Node, file: SourceFile): Members {
  if (node.type === 'TSInterfaceDeclaration') {
    const parents = nodes(node['extends']).flatMap(each => [...membersOf(each, file)])
    const body = isNode(node['body']) ? nodes(node['body']['body']) : []
    return new Map([...parents, ...membersIn(body, file)])
  }
  if (node.type === 'TSTypeLiteral') return membersIn(nodes(node['members']), file)
  // A parent of an interface names its type in another member than other references.
  const name = nameOf(node['typeName'] ?? node['expression'])
  const [first, second] = nodes(isNode(node['typeArguments']) ? node['typeArguments']['params'] : [])
  if (first !== undefined && (name === 'Pick' || name === 'Omit')) {
    const named = (second?.type === 'TSUnionType' ? nodes(second['types']) : [second]).map(each =>
      isNode(each?.['literal']) ? each['literal']['value'] : undefined,
    )
    return new Map([...membersOf(first, file)].filter(([member]) => named.includes(member) === (name === 'Pick')))
  }
  const declared = findType(name, file)
  if (declared === undefined) throw new TypeError(`${file.path}: where is the type ${name}?`)
  return membersOf(declared.node, declared.file)
}

function membersIn(body: readonly Node[], file: SourceFile): Members {
  const signatures = body.filter(({ type }) => type === 'TSPropertySignature')
  return new Map(signatures.map(node => [nameOf(node['key']), { node, file }]))
}

/** Several objects that are one. */
function merged(schemas: readonly Schema[]): Schema {
  const [only] = schemas
  if (schemas.length === 1 && only !== undefined) return only
  const required = [...new Set(schemas.flatMap(schema => (schema['required'] ?? []) as readonly string[]))]
  const properties = Object.assign({}, ...schemas.map(schema => schema['properties'] ?? {}))
  return { type: 'object', properties, ...(required.length > 0 && { required }) }
}
