/**
 * The members of a type as a reader sees them: with those of what it extends, of both sides of an intersection, and of what `Pick`, `Omit`
 * and `Partial` make of another type. What the type parameters of a base stand for is put in.
 */
import {
  commentAbove,
  findStatements,
  isNode,
  type Node,
  nameOf,
  nodes,
  type SourceFile,
  type Statement,
} from '../schemas/declarations.ts'
import { annotated, type Rename, signatureText, typeText } from './type-text.ts'

export interface Member {
  /** `rates.calls` for a member of an object type within. */
  readonly name: string
  readonly isOptional: boolean
  /** Several of a method with overloads; for a property its type. */
  readonly types: readonly string[]
  readonly isMethod: boolean
  readonly comment: string | undefined
}

/** How members are read: what names are shown as, and what type parameters stand for. */
interface Reading {
  readonly rename: Rename
  readonly isPartial: boolean
  readonly shows: (name: string) => boolean
  readonly parameters: ReadonlyMap<string, string>
  readonly seen: ReadonlySet<string>
}

const WRAPPERS = new Set(['Omit', 'Pick', 'Partial', 'Required', 'Readonly', 'NonNullable'])

/** The members that a declaration has; none for types that are no objects. */
export function membersOf(statements: readonly Statement[], rename: Rename): readonly Member[] {
  const reading: Reading = { rename, isPartial: false, shows: () => true, parameters: new Map(), seen: new Set() }
  const all = statements.flatMap(statement =>
    ofStatement(statement, { ...reading, parameters: usualParameters(statement, reading) }),
  )
  return [...new Map(all.map(member => [member.name, member])).values()]
}

/** What the type parameters of a declaration are where nobody says: their defaults, or what they have to extend. */
function usualParameters({ node, file }: Statement, reading: Reading): ReadonlyMap<string, string> {
  const taken = nodes(isNode(node['typeParameters']) ? node['typeParameters']['params'] : undefined)
  return new Map(
    taken.flatMap(parameter => {
      const value = [parameter['default'], parameter['constraint']].find(isNode)
      return value === undefined ? [] : [[nameOf(parameter['name']), shown(value, file, reading)] as const]
    }),
  )
}

function ofStatement({ node, file, name, start }: Statement, reading: Reading): readonly Member[] {
  const key = `${file.path} ${name} ${start}`
  if (reading.seen.has(key)) return []
  const within: Reading = { ...reading, seen: new Set([...reading.seen, key]) }
  if (node.type === 'TSInterfaceDeclaration') {
    const own = ofBody(bodyOf(node), file, within)
    const inherited = nodes(node['extends']).flatMap(base => ofReference(base, file, within))
    const isOwn = new Set(own.map(member => member.name))
    return [...own, ...inherited.filter(member => !isOwn.has(member.name))]
  }
  if (node.type === 'ClassDeclaration') {
    const base = isNode(node['superClass']) ? ofSuperclass(nameOf(node['superClass']), file, within) : []
    // What extends a class, or mentions it, has no part in what the class itself offers.
    const body = bodyOf(node).filter(member => member['static'] !== true || reading.seen.size === 0)
    return [...ofBody(body, file, within), ...base]
  }
  return node.type === 'TSTypeAliasDeclaration' ? ofType(node['typeAnnotation'], file, within) : []
}

/** A class, or a constant that is one by what it makes. */
function ofSuperclass(name: string, file: SourceFile, reading: Reading): readonly Member[] {
  return findStatements(name, file).flatMap(statement => {
    if (statement.node.type !== 'VariableDeclaration') return ofStatement(statement, reading)
    const init = nodes(statement.node['declarations'])[0]?.['init']
    const made = isNode(init) && isNode(init['typeAnnotation']) ? init['typeAnnotation']['returnType'] : undefined
    return ofType(isNode(made) ? annotated(made) : undefined, statement.file, reading)
  })
}

function ofType(type: unknown, file: SourceFile, reading: Reading): readonly Member[] {
  if (!isNode(type)) return []
  if (type.type === 'TSTypeLiteral') return ofBody(nodes(type['members']), file, reading)
  if (type.type === 'TSIntersectionType') return nodes(type['types']).flatMap(each => ofType(each, file, reading))
  if (type.type === 'TSTypeReference') return ofReference(type, file, reading)
  return []
}

/** A type by name, as a base or alone. */
function ofReference(node: Node, file: SourceFile, reading: Reading): readonly Member[] {
  const name = nameOf(node['typeName'] ?? node['expression'])
  const given = nodes(isNode(node['typeArguments']) ? node['typeArguments']['params'] : undefined)
  if (WRAPPERS.has(name)) return ofType(given[0], file, wrapped(name, given[1], reading))
  return findStatements(name, file).flatMap(statement => {
    const taken = nodes(isNode(statement.node['typeParameters']) ? statement.node['typeParameters']['params'] : undefined)
    const parameters = new Map(
      taken.flatMap((parameter, at) => {
        const value = given[at] ?? parameter['default']
        const from = given[at] === undefined ? statement.file : file
        return isNode(value) ? [[nameOf(parameter['name']), shown(value, from, reading)] as const] : []
      }),
    )
    return ofStatement(statement, { ...reading, parameters })
  })
}

function wrapped(name: string, left: Node | undefined, reading: Reading): Reading {
  const all = left?.type === 'TSUnionType' ? nodes(left['types']) : left === undefined ? [] : [left]
  const names = new Set(all.map(each => nameOf(each['literal'])))
  const shows = (member: string): boolean =>
    reading.shows(member) && (name === 'Pick' ? names.has(member) : name !== 'Omit' || !names.has(member))
  return { ...reading, shows, isPartial: reading.isPartial || name === 'Partial' }
}

function ofBody(list: readonly Node[], file: SourceFile, reading: Reading): readonly Member[] {
  const found = new Map<string, Member>()
  for (const node of list) {
    const { key, computed, accessibility, kind } = node
    const comment = commentAbove(file.text, node.start)
    const isHidden = /^(?:private|protected)$/.test(String(accessibility)) || kind === 'constructor' || kind === 'set'
    if (isHidden || !isNode(key) || key.type === 'PrivateIdentifier' || computed === true || /@internal\b/.test(comment ?? ''))
      continue
    const name = nameOf(key)
    if (!reading.shows(name)) continue
    const before = found.get(name)
    const member = memberOf(name, node, comment, file, reading)
    // The last of several declarations of a method in a class is its implementation.
    const isImplementation = before !== undefined && isNode(node['value']) && isNode(node['value']['body'])
    if (before === undefined) found.set(name, member)
    else if (!isImplementation) found.set(name, { ...before, types: [...before.types, ...member.types] })
    if (before === undefined) for (const inner of innerOf(name, node, file, reading)) found.set(inner.name, inner)
  }
  return [...found.values()]
}

function memberOf(name: string, node: Node, comment: string | undefined, file: SourceFile, reading: Reading): Member {
  const isOptional = node['optional'] === true || reading.isPartial
  // What versions do not keep stable leads no further.
  const within = /@experimental\b/.test(comment ?? '') ? { ...reading, rename: () => undefined } : reading
  const signatures = signaturesOf(node, file)
  if (signatures.length > 0) {
    const types = signatures.map(each =>
      substituted(signatureText(each.node, { file: each.file, rename: within.rename }), within),
    )
    return { name, isOptional, types, isMethod: true, comment }
  }
  const type = typeOf(node)
  const { value } = node
  const literal = isNode(value) && value.type === 'Literal' ? String(value['raw']) : 'unknown'
  return { name, isOptional, types: [type === undefined ? literal : shown(type, file, within)], isMethod: false, comment }
}

/** A method has one; a property whose type is nothing but ways to call it has those. */
function signaturesOf(node: Node, file: SourceFile): readonly { readonly node: Node; readonly file: SourceFile }[] {
  const own = signatureOf(node)
  if (own !== undefined) return node['kind'] === 'get' ? [] : [{ node: own, file }]
  const type = typeOf(node)
  if (type?.type !== 'TSTypeReference') return []
  return findStatements(nameOf(type['typeName']), file).flatMap(statement => {
    const body = statement.node.type === 'TSInterfaceDeclaration' ? bodyOf(statement.node) : []
    const isCallable = body.length > 0 && body.every(each => each.type === 'TSCallSignatureDeclaration')
    return isCallable ? body.map(each => ({ node: each, file: statement.file })) : []
  })
}

/** The members of an object type that a member has, perhaps in a list or beside other types. */
function innerOf(name: string, node: Node, file: SourceFile, reading: Reading): readonly Member[] {
  const literals = signaturesOf(node, file).length === 0 ? literalsIn(typeOf(node)) : []
  return literals.flatMap(literal =>
    ofBody(nodes(literal['members']), file, { ...reading, shows: () => true, isPartial: false }).map(member => ({
      ...member,
      name: `${name}.${member.name}`,
    })),
  )
}

function literalsIn(type: unknown): readonly Node[] {
  if (!isNode(type)) return []
  if (type.type === 'TSTypeLiteral') return [type]
  if (/^TS(?:Union|Intersection)Type$/.test(type.type)) return nodes(type['types']).flatMap(literalsIn)
  if (type.type === 'TSTypeOperator' || type.type === 'TSParenthesizedType') return literalsIn(type['typeAnnotation'])
  if (type.type === 'TSArrayType') return literalsIn(type['elementType'])
  const isRecord = type.type === 'TSTypeReference' && /^(?:Readonly|Record)$/.test(nameOf(type['typeName']))
  const given = isRecord && isNode(type['typeArguments']) ? nodes(type['typeArguments']['params']) : []
  return given.flatMap(literalsIn)
}

/** What has parameters: a method, or the function that a getter is. */
function signatureOf(node: Node): Node | undefined {
  if (node.type === 'TSMethodSignature') return node
  const { value } = node
  return isNode(value) && /Function/.test(value.type) && node.type === 'MethodDefinition' ? value : undefined
}

function typeOf(node: Node): Node | undefined {
  const { typeAnnotation, value, returnType } = node
  const annotation = [typeAnnotation, returnType, isNode(value) ? value['returnType'] : undefined].find(isNode)
  return annotation === undefined ? undefined : annotated(annotation)
}

function shown(node: Node, file: SourceFile, reading: Reading): string {
  return substituted(typeText(node, { file, rename: reading.rename }), reading)
}

function substituted(text: string, { parameters }: Reading): string {
  if (parameters.size === 0) return text
  return text.replace(/(?<![\w.'"`$])([A-Z]\w*)(?![\w'"`$]|\??:)/g, name => parameters.get(name) ?? name)
}

function bodyOf(node: Node): readonly Node[] {
  return isNode(node['body']) ? nodes(node['body']['body']) : []
}
