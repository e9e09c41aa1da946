/**
 * The public surface, read from the text of the sources or of the built declarations: what the entries export, the types that those
 * mention, and all their members, each with the comment that an editor shows.
 */
import { join, relative } from 'node:path'
import { readExports } from '../lib/exports.ts'
import { root } from '../lib/files.ts'
import { lineAt } from '../lib/source.ts'
import {
  commentAbove,
  findStatements,
  isNode,
  moduleFile,
  type Node,
  nameOf,
  nodes,
  plain,
  type SourceFile,
  type Statement,
  sourceFile,
} from '../schemas/declarations.ts'

/** One name that an editor can show: an export, a type that an export mentions, or a member of either. */
export interface SurfaceItem {
  /** `ToolOptions.confirm.ttl` for a member. */
  readonly name: string
  /** Relative to the repository. */
  readonly file: string
  readonly line: number
  readonly start: number
  readonly comment: string | undefined
  /** What mentions it; empty for an export. */
  readonly via: string
}

/** A type to be read, with the members that count. */
interface Mention {
  readonly statement: Statement
  readonly via: string
  readonly isShown: Filter
}

/** Which members of a type count: `Omit` and `Pick` choose. The key tells filters apart. */
interface Filter {
  readonly key: string
  shows(member: string): boolean
}

const everything: Filter = { key: '', shows: () => true }

/** Everything public that the entries lead to. `files` are the entries, relative to the folder. */
export function publicSurface(files: readonly string[], folder = root): readonly SurfaceItem[] {
  const reader = new SurfaceReader(folder)
  for (const path of files) {
    const file = sourceFile(join(folder, path))
    const { values, types } = readExports(file.text)
    for (const name of [...values, ...types]) reader.mention(name, file)
  }
  return reader.read()
}

/** What an editor shows no sentence about, one line each. */
export function findSilent(surface: readonly SurfaceItem[]): string[] {
  return surface
    .filter(({ comment }) => comment === undefined || plain(comment) === undefined)
    .map(({ file, line, name, via }) => {
      const through = via === '' || name.startsWith(`${via}.`) ? '' : `, which ${via} mentions,`
      return `${file}:${line}: ${name}${through} is public and has no doc comment, so that editors show nothing about it`
    })
}

class SurfaceReader {
  readonly #folder: string
  readonly #items = new Map<string, SurfaceItem>()
  readonly #queue: Mention[] = []
  readonly #seen = new Set<string>()

  constructor(folder: string) {
    this.#folder = folder
  }

  mention(name: string, file: SourceFile, via = '', isShown = everything): void {
    for (const statement of findStatements(name, file)) this.#queue.push({ statement, via, isShown })
  }

  read(): readonly SurfaceItem[] {
    for (let next = this.#queue.shift(); next !== undefined; next = this.#queue.shift()) this.#visit(next)
    return [...this.#items.values()].sort((a, b) => a.file.localeCompare(b.file) || a.start - b.start)
  }

  #visit({ statement, via, isShown }: Mention): void {
    const { name, file, node, start } = statement
    const key = [file.path, start, name, isShown.key].join(' ')
    if (this.#seen.has(key)) return
    this.#seen.add(key)
    const overloads = file.statements.get(name) ?? []
    const comments = overloads.map(each => commentAbove(file.text, each.start))
    this.#add(
      { name, via },
      file,
      start,
      comments.find(each => each !== undefined),
    )
    this.#declaration(node, file, { name, isExported: via === '', isShown })
  }

  #add({ name, via }: Pick<SurfaceItem, 'name' | 'via'>, file: SourceFile, start: number, comment: string | undefined): void {
    const key = `${file.path} ${start} ${name}`
    const path = relative(this.#folder, file.path).replaceAll('\\', '/')
    this.#items.set(key, { name, file: path, line: lineAt(file.text, start), start, comment, via })
  }

  #declaration(node: Node, file: SourceFile, { name, isExported, isShown }: Declaring): void {
    if (node.type === 'TSInterfaceDeclaration') {
      this.#types(node['typeParameters'], file, name)
      for (const base of nodes(node['extends'])) this.#named(base, file, name, isShown)
      this.#members(bodyOf(node), file, { name, isShown })
    } else if (node.type === 'ClassDeclaration') {
      this.#heritage(node['superClass'], file, name)
      this.#types([node['superTypeArguments'], node['implements']], file, name)
      const isReachable = (member: Node): boolean => isExported || member['static'] !== true
      this.#members(bodyOf(node).filter(isReachable), file, { name, isShown })
    } else if (node.type === 'VariableDeclaration') {
      for (const each of nodes(node['declarations'])) {
        const { id, init } = each
        if (nameOf(id) !== name) continue
        if (isNode(id) && isNode(id['typeAnnotation'])) this.#types(id['typeAnnotation'], file, name)
        else if (isNode(init) && /Function/.test(init.type)) this.#signature(init, file, name)
        else if (init !== undefined && isNode(init) && init.type === 'TSAsExpression')
          this.#types(init['typeAnnotation'], file, name)
      }
    } else if (/Function/.test(node.type)) this.#signature(node, file, name)
    else if (node.type === 'TSTypeAliasDeclaration') this.#types([node['typeParameters'], node['typeAnnotation']], file, name)
  }

  #members(list: readonly Node[], file: SourceFile, { name, isShown }: { name: string; isShown: Filter }): void {
    let documented: string | undefined
    for (const member of list) {
      const { key, kind, computed, accessibility } = member
      const isPrivate = /^(?:private|protected)$/.test(String(accessibility)) || (isNode(key) && key.type === 'PrivateIdentifier')
      if (isPrivate || kind === 'constructor' || member.type === 'StaticBlock') continue
      if (!isNode(key)) {
        this.#types(member, file, name)
        continue
      }
      const own = computed === true ? file.text.slice(key.start, key.end) : nameOf(key)
      const comment = commentAbove(file.text, member.start)
      if (!isShown.shows(own) || isInternal(comment)) continue
      const path = `${name}.${own}`
      // Overloads, and setters, share the comment of the first.
      if (comment !== undefined || path !== documented) this.#add({ name: path, via: name }, file, member.start, comment)
      documented = path
      if (!isExperimental(comment)) this.#member(member, file, path)
    }
  }

  #member(member: Node, file: SourceFile, path: string): void {
    const { value } = member
    if (isNode(value) && /Function/.test(value.type)) this.#signature(value, file, path)
    else if (member.type === 'PropertyDefinition') this.#types(member['typeAnnotation'], file, path)
    else this.#types(without(member, 'key'), file, path)
  }

  #signature(node: Node, file: SourceFile, path: string): void {
    for (const parameter of nodes(node['params'])) {
      const [left, argument] = [parameter['left'], parameter['argument']]
      const typed = [parameter, left, argument].find(each => isNode(each) && isNode(each['typeAnnotation']))
      if (isNode(typed)) this.#types(typed['typeAnnotation'], file, path)
    }
    this.#types([node['typeParameters'], node['returnType']], file, path)
  }

  /** What types mention. Constants of which a type is derived (`typeof x`) have no place for comments. */
  #types(value: unknown, file: SourceFile, path: string): void {
    if (Array.isArray(value)) for (const each of value) this.#types(each, file, path)
    if (!isNode(value) || value.type === 'TSTypeQuery') return
    if (value.type === 'TSIndexedAccessType') return this.#indexed(value, file, path)
    if (value.type === 'TSTypeLiteral') return this.#members(nodes(value['members']), file, { name: path, isShown: everything })
    // What a conditional type compares with is nobody's value.
    if (value.type === 'TSConditionalType')
      return this.#types([value['checkType'], value['trueType'], value['falseType']], file, path)
    if (value.type === 'TSConstructorType') return this.#types(value['returnType'], file, path)
    if (value.type === 'TSImportType') return this.#importType(value, file, path)
    if (value['typeName'] !== undefined) return this.#named(value, file, path, everything)
    for (const each of Object.values(value)) this.#types(each, file, path)
  }

  /** A type by its name, with what is put in for its parameters. */
  #named(node: Node, file: SourceFile, path: string, isShown: Filter): void {
    const named = node['typeName'] ?? node['expression']
    const given = nodes(isNode(node['typeArguments']) ? node['typeArguments']['params'] : undefined)
    if (/^(?:Omit|Pick)$/.test(nameOf(named)) && given[0]?.type === 'TSTypeReference') {
      this.#named(given[0], file, path, filterOf(nameOf(named), given[1]))
    } else {
      this.#heritage(named, file, path, isShown)
      this.#types(given, file, path)
    }
  }

  /** `X['y']` mentions one member of `X`. */
  #indexed({ objectType, indexType }: Node, file: SourceFile, path: string): void {
    if (!isNode(objectType) || !isNode(indexType)) return
    if (objectType.type === 'TSTypeReference') this.#named(objectType, file, path, filterOf('Pick', indexType))
    else this.#types(objectType, file, path)
  }

  #heritage(named: unknown, file: SourceFile, path: string, isShown = everything): void {
    if (isNode(named) && named.type === 'Identifier') this.mention(nameOf(named), file, path, isShown)
  }

  #importType(node: Node, file: SourceFile, path: string): void {
    const { source, qualifier } = node
    const specifier = isNode(source) ? String(source['value']) : ''
    if (specifier.startsWith('.')) this.mention(nameOf(qualifier), sourceFile(moduleFile(file.path, specifier)), path)
    this.#types(node['typeArguments'], file, path)
  }
}

interface Declaring {
  readonly name: string
  readonly isExported: boolean
  readonly isShown: Filter
}

/** Left out of the declarations by `stripInternal`. */
function isInternal(comment: string | undefined): boolean {
  return comment !== undefined && /@internal\b/.test(comment)
}

/** Reachable, but not part of what versions keep stable: its types are those of the engine. */
function isExperimental(comment: string | undefined): boolean {
  return comment !== undefined && /@experimental\b/.test(comment)
}

function bodyOf(node: Node): readonly Node[] {
  return isNode(node['body']) ? nodes(node['body']['body']) : []
}

function filterOf(kind: string, node: Node | undefined): Filter {
  const all = node?.type === 'TSUnionType' ? nodes(node['types']) : node === undefined ? [] : [node]
  const names = new Set(all.map(each => nameOf(each['literal'])))
  return { key: [kind, ...names].join(' '), shows: member => names.has(member) === (kind === 'Pick') }
}

function without(node: Node, left: string): Node {
  return { ...node, [left]: undefined }
}
