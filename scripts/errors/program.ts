/**
 * The source as syntax trees with what the extraction of messages has to know of them: which function a node is in, what a name stands
 * for, and who calls a function.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { dirname, join as joinPosix } from 'node:path/posix'
import { parseAst } from 'rolldown/parseAst'
import { isNode, type Node, nameOf, nodes } from '../schemas/declarations.ts'

/** One parsed file. */
export interface Source {
  readonly path: string
  readonly text: string
  /** What the module declares at its top, by name. */
  readonly declared: ReadonlyMap<string, Node>
  readonly imports: ReadonlyMap<string, { readonly path: string; readonly name: string }>
}

/** What a name stands for. */
export type Meaning =
  | { readonly as: 'parameter'; readonly of: Node; readonly at: number; readonly member: string | undefined }
  | { readonly as: 'value'; readonly node: Node; readonly member: string | undefined }
  | { readonly as: 'declaration'; readonly node: Node }

/** All parsed files together. */
export class Program {
  readonly #sources = new Map<string, Source>()
  readonly #parents = new Map<Node, Node>()
  /** By the root of each tree. */
  readonly #roots = new Map<Node, Source>()
  readonly #calls = new Map<Node, Node[]>()
  readonly #methods = new Map<string, Node[]>()
  readonly #news: Node[] = []
  readonly #objects: Node[] = []

  /** `files`: texts by path. */
  constructor(files: ReadonlyMap<string, string>) {
    const calls: Node[] = []
    for (const [path, text] of files) {
      const program = parseAst(text, { lang: 'ts' }) as unknown as Node
      const source = { path, text, declared: topLevel(program), imports: importsOf(program, path) }
      this.#sources.set(path, source)
      this.#roots.set(program, source)
      this.#walk(program, calls)
    }
    for (const call of calls)
      for (const callee of this.calleesOf(call)) this.#calls.set(callee, [...(this.#calls.get(callee) ?? []), call])
  }

  /** Everything made by `new`. */
  get news(): readonly Node[] {
    return this.#news
  }

  /** Every object literal. */
  get objects(): readonly Node[] {
    return this.#objects
  }

  fileOf(node: Node): Source {
    let top = node
    for (let at: Node | undefined = node; at !== undefined; at = this.#parents.get(at)) top = at
    const source = this.#roots.get(top)
    if (source === undefined) throw new TypeError('The node is of another program')
    return source
  }

  textOf(node: Node): string {
    return this.fileOf(node).text.slice(node.start, node.end)
  }

  parentOf(node: Node): Node | undefined {
    return this.#parents.get(node)
  }

  /** The calls of a function, as far as they can be seen: by its name, and of methods by theirs. */
  callsOf(fn: Node): readonly Node[] {
    return this.#calls.get(fn) ?? []
  }

  /** The functions that a call may run. */
  calleesOf(call: Node): readonly Node[] {
    const callee = call['callee'] as Node
    if (callee.type === 'Identifier') {
      const found = this.functionNamed(nameOf(callee), callee)
      return found === undefined ? [] : [found]
    }
    if (callee.type !== 'MemberExpression') return []
    const all = this.#methods.get(nameOf(callee['property'])) ?? []
    const { path, imports } = this.fileOf(call)
    const own = all.filter(each => this.fileOf(each).path === path)
    if (own.length > 0) return own
    const near = new Set([...imports.values()].map(each => each.path))
    const imported = all.filter(each => near.has(this.fileOf(each).path))
    if (imported.length > 0) return imported
    return all.length === 1 ? all : []
  }

  /** The function that a name stands for at a node. */
  functionNamed(name: string, at: Node): Node | undefined {
    const meaning = this.meaningOf(name, at)
    if (meaning === undefined || meaning.as === 'parameter') return undefined
    return isFunction(meaning.node) ? meaning.node : undefined
  }

  /** What a name stands for at a node, whichever file it comes from. */
  meaningOf(name: string, at: Node): Meaning | undefined {
    for (let scope = this.parentOf(at); scope !== undefined; scope = this.parentOf(scope)) {
      const found = this.#declaredIn(scope, name, at)
      if (found !== undefined) return found
    }
    return this.#topMeaning(name, this.fileOf(at))
  }

  /** The body of a class, by its name, whichever file it comes from. */
  classNamed(name: string, at: Node): Node | undefined {
    const meaning = this.#topMeaning(name, this.fileOf(at))
    return meaning?.as === 'declaration' && meaning.node.type === 'ClassDeclaration' ? meaning.node : undefined
  }

  #topMeaning(name: string, source: Source): Meaning | undefined {
    const node = source.declared.get(name)
    if (node !== undefined)
      return isFunction(node) || node.type === 'ClassDeclaration'
        ? { as: 'declaration', node }
        : { as: 'value', node, member: undefined }
    const from = source.imports.get(name)
    const other = from && this.#sources.get(from.path)
    return from === undefined || other === undefined ? undefined : this.#topMeaning(from.name, other)
  }

  #declaredIn(scope: Node, name: string, at: Node): Meaning | undefined {
    if (isFunction(scope)) {
      for (const [index, parameter] of parametersOf(scope).entries()) {
        const member = bound(parameter, name)
        if (member !== undefined) return { as: 'parameter', of: scope, at: index, member: member || undefined }
      }
      return undefined
    }
    if (scope.type === 'ForOfStatement' || scope.type === 'CatchClause' || scope.type === 'ForStatement') {
      const left = scope['left'] ?? scope['param'] ?? scope['init']
      return isNode(left) && JSON.stringify(left).includes(`"name":"${name}"`)
        ? { as: 'value', node: at, member: '?' }
        : undefined
    }
    if (scope.type !== 'BlockStatement' && scope.type !== 'StaticBlock' && scope.type !== 'SwitchCase') return undefined
    for (const statement of nodes(scope['body'] ?? scope['consequent'])) {
      if (statement.type === 'FunctionDeclaration' && nameOf(statement['id']) === name)
        return { as: 'declaration', node: statement }
      if (statement.type !== 'VariableDeclaration') continue
      for (const { id, init } of nodes(statement['declarations']) as readonly (Node & { id?: Node; init?: Node })[]) {
        const member = isNode(id) ? bound(id, name) : undefined
        if (member === undefined) continue
        if (!isNode(init)) return { as: 'value', node: at, member: '?' }
        return isFunction(init) ? { as: 'declaration', node: init } : { as: 'value', node: init, member: member || undefined }
      }
    }
    return undefined
  }

  #walk(node: Node, calls: Node[]): void {
    if (node.type === 'CallExpression') calls.push(node)
    else if (node.type === 'NewExpression') this.#news.push(node)
    else if (node.type === 'ObjectExpression') this.#objects.push(node)
    else if (node.type === 'MethodDefinition' || node.type === 'PropertyDefinition' || node.type === 'Property') {
      const { value } = node
      const name = nameOf(node['key'])
      if (isNode(value) && isFunction(value) && name !== 'constructor')
        this.#methods.set(name, [...(this.#methods.get(name) ?? []), value])
    }
    for (const child of childrenOf(node)) {
      this.#parents.set(child, node)
      this.#walk(child, calls)
    }
  }
}

/** The nodes right below one; types say nothing about messages. */
export function childrenOf(node: Node): readonly Node[] {
  const found: Node[] = []
  for (const value of Object.values(node)) {
    if (Array.isArray(value)) found.push(...nodes(value))
    else if (isNode(value)) found.push(value)
  }
  return found.filter(({ type }) => !/^TS(?:Type|Interface)/.test(type))
}

export function isFunction({ type }: Node): boolean {
  return type === 'FunctionDeclaration' || type === 'FunctionExpression' || type === 'ArrowFunctionExpression'
}

/** The patterns of the parameters of a function. */
export function parametersOf(fn: Node): readonly Node[] {
  return nodes(fn['params'])
}

/** Reads files of the repository. */
export function readProgram(root: string, paths: readonly string[]): Program {
  return new Program(new Map(paths.map(path => [path, readFileSync(join(root, path), 'utf8')])))
}

/** The member under which a pattern binds a name: '' for the whole; undefined where it does not. */
function bound(pattern: Node, name: string): string | undefined {
  if (pattern.type === 'Identifier') return nameOf(pattern) === name ? '' : undefined
  if (pattern.type === 'AssignmentPattern') return bound(pattern['left'] as Node, name)
  if (pattern.type === 'TSParameterProperty') return bound(pattern['parameter'] as Node, name)
  if (pattern.type === 'ObjectPattern')
    for (const each of nodes(pattern['properties'])) {
      if (each.type === 'RestElement' && bound(each['argument'] as Node, name) !== undefined) return ''
      if (each.type === 'Property' && bound(each['value'] as Node, name) !== undefined) return nameOf(each['key'])
    }
  if (pattern.type === 'ArrayPattern')
    return nodes(pattern['elements']).some(each => bound(each, name) !== undefined) ? '?' : undefined
  if (pattern.type === 'RestElement') return bound(pattern['argument'] as Node, name) === undefined ? undefined : '?'
  return undefined
}

function topLevel(program: Node): ReadonlyMap<string, Node> {
  const found = new Map<string, Node>()
  for (const statement of nodes(program['body'])) {
    const node = isNode(statement['declaration']) ? statement['declaration'] : statement
    if (node.type === 'FunctionDeclaration' || node.type === 'ClassDeclaration') found.set(nameOf(node['id']), node)
    for (const each of nodes(node['declarations'])) if (isNode(each['init'])) found.set(nameOf(each['id']), each['init'])
  }
  return found
}

function importsOf(program: Node, path: string): ReadonlyMap<string, { readonly path: string; readonly name: string }> {
  const found = new Map<string, { path: string; name: string }>()
  for (const statement of nodes(program['body'])) {
    const specifier = isNode(statement['source']) ? String(statement['source']['value']) : ''
    if (!specifier.startsWith('.')) continue
    for (const each of nodes(statement['specifiers'])) {
      const name = nameOf(each['imported'] ?? each['local'])
      found.set(nameOf(each['exported'] ?? each['local']), { path: joinPosix(dirname(path), specifier), name })
    }
  }
  return found
}
