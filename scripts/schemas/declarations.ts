/** What a file declares, read from its text: types, functions, classes, what it imports, and the comment above each. */
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { parseAst } from 'rolldown/parseAst'

/** A node of the syntax tree: what it is, where it stands, and members that depend on it. */
export interface Node {
  readonly type: string
  readonly start: number
  readonly end: number
  readonly [member: string]: unknown
}

export interface Declared {
  readonly file: SourceFile
  readonly node: Node
  readonly about: string | undefined
  readonly tags: Tags
}

/** A statement that declares a name, and where it begins (`export` included). */
export interface Statement {
  readonly name: string
  readonly file: SourceFile
  readonly node: Node
  readonly start: number
}

/** The tags of a comment (`@default 5s`), each with its texts in their order. */
export type Tags = ReadonlyMap<string, readonly string[]>

export interface SourceFile {
  readonly path: string
  readonly text: string
  /** What the file is about: the comment at its top. */
  readonly about: string | undefined
  readonly types: ReadonlyMap<string, Declared>
  /** All statements that declare a name, in their order: overloads are several. */
  readonly statements: ReadonlyMap<string, readonly Statement[]>
  /** `const name = …`, by name: the expression. */
  readonly values: ReadonlyMap<string, Node>
  readonly imports: ReadonlyMap<string, { readonly path: string; readonly name: string }>
}

const files = new Map<string, SourceFile>()

export function sourceFile(path: string): SourceFile {
  const known = files.get(path)
  if (known !== undefined) return known
  const text = readFileSync(path, 'utf8')
  const types = new Map<string, Declared>()
  const statements = new Map<string, Statement[]>()
  const values = new Map<string, Node>()
  const imports = new Map<string, { path: string; name: string }>()
  const file: SourceFile = { path, text, about: topOf(text), types, statements, values, imports }
  files.set(path, file)
  const program = parseAst(text, { lang: 'ts' }) as unknown as Node
  for (const statement of nodes(program['body'])) {
    if (/Import|ExportNamed/.test(statement.type)) readImports(statement, path, imports)
    const node = isNode(statement['declaration']) ? statement['declaration'] : statement
    if (node.type === 'TSInterfaceDeclaration' || node.type === 'TSTypeAliasDeclaration')
      types.set(nameOf(node['id']), { file, node, about: above(text, statement.start), tags: tagsAbove(text, statement.start) })
    for (const name of namesOf(node)) {
      const known = statements.get(name) ?? []
      statements.set(name, [...known, { name, file, node, start: statement.start }])
    }
    for (const each of nodes(node['declarations'])) if (isNode(each['init'])) values.set(nameOf(each['id']), each['init'])
  }
  return file
}

function namesOf(node: Node): readonly string[] {
  if (node.type === 'VariableDeclaration') return nodes(node['declarations']).map(each => nameOf(each['id']))
  return isNode(node['id']) ? [nameOf(node['id'])] : []
}

function readImports(statement: Node, path: string, imports: Map<string, { path: string; name: string }>): void {
  const source = isNode(statement['source']) ? String(statement['source']['value']) : ''
  if (!source.startsWith('.')) return
  for (const each of nodes(statement['specifiers'])) {
    const name = nameOf(each['imported'] ?? each['local'])
    imports.set(nameOf(each['exported'] ?? each['local']), { path: moduleFile(path, source), name })
  }
}

/** The file of a relative import: a source, or the declarations of what was built. */
export function moduleFile(from: string, source: string): string {
  const path = join(dirname(from), source)
  const declarations = path.replace(/\.js$/, '.d.ts')
  return existsSync(declarations) ? declarations : path
}

/** The statements that declare a name, whichever file it comes from. */
export function findStatements(name: string, file: SourceFile): readonly Statement[] {
  const own = file.statements.get(name)
  if (own !== undefined) return own
  const from = file.imports.get(name)
  return from === undefined ? [] : findStatements(from.name, sourceFile(from.path))
}

/** Where a name is declared, whichever file it comes from. */
export function findType(name: string, file: SourceFile): Declared | undefined {
  const own = file.types.get(name)
  if (own !== undefined) return own
  const from = file.imports.get(name)
  return from === undefined ? undefined : findType(from.name, sourceFile(from.path))
}

/** The file in which a value of this name is made. */
export function findValue(name: string, file: SourceFile): { readonly path: string; readonly name: string } | undefined {
  if (file.values.has(name)) return { path: file.path, name }
  const from = file.imports.get(name)
  return from === undefined ? undefined : findValue(from.name, sourceFile(from.path))
}

/** The sentences of the comment that ends right before this place. */
export function above(text: string, at: number): string | undefined {
  const comment = commentAbove(text, at)
  return comment === undefined ? undefined : plain(comment)
}

/** The tags of the comment that ends right before this place. */
export function tagsAbove(text: string, at: number): Tags {
  const tags = new Map<string, string[]>()
  let last: string[] = []
  for (const line of linesOf(commentAbove(text, at) ?? '')) {
    const [, name, rest = ''] = /^@(\w+)\s*(.*)$/.exec(line) ?? []
    if (name === undefined) last.push(`${last.pop() ?? ''} ${line}`.trim())
    else {
      last = [...(tags.get(name) ?? []), rest]
      tags.set(name, last)
    }
  }
  return tags
}

/** The comment itself, over notes to the linter. Patterns such as `src/**` may stand in it. */
export function commentAbove(text: string, at: number): string | undefined {
  let before = text.slice(0, at).trimEnd()
  for (let line = lastLine(before); line.startsWith('//'); line = lastLine(before))
    before = before.slice(0, -line.length).trimEnd()
  return before.endsWith('*/') ? /\/\*\*(?:(?!\*\/)[\s\S])*\*\/$/.exec(before)?.[0] : undefined
}

function lastLine(text: string): string {
  return text.slice(text.lastIndexOf('\n') + 1).trimStart()
}

function topOf(text: string): string | undefined {
  const [comment] = /^\/\*\*[\s\S]*?\*\//.exec(text) ?? []
  return comment === undefined ? undefined : plain(comment)
}

/** The sentences of a comment, without tags, which stand at the end. */
export function plain(comment: string): string | undefined {
  const lines = linesOf(comment)
  const end = lines.findIndex(line => line.startsWith('@'))
  const words = lines.slice(0, end === -1 ? lines.length : end).join(' ')
  return words === '' ? undefined : words
}

function linesOf(comment: string): readonly string[] {
  return comment
    .replace(/^\/\*\*|\*\/$/g, '')
    .split('\n')
    .map(line => line.replace(/^\s*\*?\s?/, '').trim())
    .filter(line => line !== '')
}

export function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && typeof (value as { type?: unknown }).type === 'string'
}

export function nodes(value: unknown): readonly Node[] {
  return Array.isArray(value) ? value.filter(isNode) : []
}

export function nameOf(node: unknown): string {
  if (!isNode(node)) return ''
  return String(node['name'] ?? node['value'] ?? '')
}
