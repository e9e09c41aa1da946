/** A type as JSON Schema 2020-12. Named types become `$defs`, so that the document tells them as the code does. */
import { above, type Declared, findType, findValue, isNode, type Node, nameOf, nodes, type SourceFile } from './declarations.ts'

export type Schema = Record<string, unknown>

/** The values that a file exports or keeps to itself, as they are when it runs. */
export type Values = (path: string, name: string) => unknown

export class Definitions {
  readonly all = new Map<string, Schema>()
  readonly #values: Values
  /** Which declaration has which name: two of one name are told apart. */
  readonly #names = new Map<Node, string>()

  constructor(values: Values) {
    this.#values = values
  }

  /** The schema of a type as it is written. */
  of(node: Node, file: SourceFile): Schema {
    switch (node.type) {
      case 'TSStringKeyword':
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
        return { const: isNode(node['literal']) ? node['literal']['value'] : undefined }
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
        return this.#object(nodes(node['members']), file)
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
    const { node, file, about } = declared
    const known = this.#names.get(node)
    if (known !== undefined) return { $ref: `#/$defs/${known}` }
    const own = nameOf(node['id'])
    const name = this.all.has(own) ? `${own}2` : own
    this.#names.set(node, name)
    this.all.set(name, {})
    const schema = this.#declaration(node, file)
    this.all.set(name, { ...(about !== undefined && { description: about }), ...schema })
    return { $ref: `#/$defs/${name}` }
  }

  #declaration(node: Node, file: SourceFile): Schema {
    if (node.type === 'TSTypeAliasDeclaration') return this.of(node['typeAnnotation'] as Node, file)
    const body = isNode(node['body']) ? nodes(node['body']['body']) : []
    const parents = nodes(node['extends']).map(each => {
      const declared = findType(nameOf(each['expression']), file)
      return declared === undefined ? {} : this.#declaration(declared.node, declared.file)
    })
    return merged([...parents, this.#object(body, file)])
  }

  #object(members: readonly Node[], file: SourceFile): Schema {
    const properties: Schema = {}
    const required: string[] = []
    for (const member of members) {
      if (member.type !== 'TSPropertySignature') continue
      const name = nameOf(member['key'])
      const about = above(file.text, member.start)
      properties[name] = {
        ...this.of(member['typeAnnotation'] as Node, file),
        ...(about !== undefined && { description: about }),
      }
      if (member['optional'] !== true) required.push(name)
    }
    return { type: 'object', properties, ...(required.length > 0 && { required }) }
  }

  #union(types: readonly Node[], file: SourceFile): Schema {
    const schemas = types.filter(({ type }) => type !== 'TSUndefinedKeyword').map(each => this.of(each, file))
    if (schemas.length === 1) return schemas[0] ?? {}
    if (schemas.every(schema => 'const' in schema)) return { enum: schemas.map(schema => schema['const']) }
    return { anyOf: schemas }
  }

  #reference(node: Node, file: SourceFile): Schema {
    const name = nameOf(node['typeName'])
    const [first, second] = nodes(isNode(node['typeArguments']) ? node['typeArguments']['params'] : [])
    if (name === 'Readonly' || name === 'NonNullable') return this.of(first as Node, file)
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

  /** Without a reference at its top. */
  #resolved(node: Node, file: SourceFile): Schema {
    const schema = this.of(node, file)
    const name = typeof schema['$ref'] === 'string' ? schema['$ref'].split('/').at(-1) : undefined
    return name === undefined ? schema : (this.all.get(name) ?? {})
  }
}

function unwrapped(node: Node): Node {
  return node.type === 'TSParenthesizedType' ? unwrapped(node['typeAnnotation'] as Node) : node
}

/** Several objects that are one. */
function merged(schemas: readonly Schema[]): Schema {
  const [only] = schemas
  if (schemas.length === 1 && only !== undefined) return only
  const required = [...new Set(schemas.flatMap(schema => (schema['required'] ?? []) as readonly string[]))]
  const properties = Object.assign({}, ...schemas.map(schema => schema['properties'] ?? {}))
  return { type: 'object', properties, ...(required.length > 0 && { required }) }
}
