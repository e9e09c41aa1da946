/** The types that a file declares, read from its text: interfaces, aliases, what it imports, and the words that stand above each. */
import { readFileSync } from 'node:fs'
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
}

export interface SourceFile {
  readonly path: string
  readonly text: string
  /** What the file is about: the comment at its top. */
  readonly about: string | undefined
  readonly types: ReadonlyMap<string, Declared>
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
  const values = new Map<string, Node>()
  const imports = new Map<string, { path: string; name: string }>()
  const file: SourceFile = { path, text, about: topOf(text), types, values, imports }
  files.set(path, file)
  const program = parseAst(text, { lang: 'ts' }) as unknown as Node
  for (const statement of nodes(program['body'])) {
    if (/Import|ExportNamed/.test(statement.type)) readImports(statement, path, imports)
    const node = isNode(statement['declaration']) ? statement['declaration'] : statement
    if (node.type === 'TSInterfaceDeclaration' || node.type === 'TSTypeAliasDeclaration')
      types.set(nameOf(node['id']), { file, node, about: above(text, statement.start) })
    for (const each of nodes(node['declarations'])) if (isNode(each['init'])) values.set(nameOf(each['id']), each['init'])
  }
  return file
}

function readImports(statement: Node, path: string, imports: Map<string, { path: string; name: string }>): void {
  const source = isNode(statement['source']) ? String(statement['source']['value']) : ''
  if (!source.startsWith('.')) return
  for (const each of nodes(statement['specifiers'])) {
    const name = nameOf(each['imported'] ?? each['local'])
    imports.set(nameOf(each['exported'] ?? each['local']), { path: join(dirname(path), source), name })
  }
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

/** The comment that ends right before this place. */
export function above(text: string, at: number): string | undefined {
  const before = text.slice(0, at).trimEnd()
  if (!before.endsWith('*/')) return undefined
  return plain(before.slice(before.lastIndexOf('/**')))
}

function topOf(text: string): string | undefined {
  const [comment] = /^\/\*\*[\s\S]*?\*\//.exec(text) ?? []
  return comment === undefined ? undefined : plain(comment)
}

function plain(comment: string): string | undefined {
  const words = comment
    .replace(/^\/\*\*|\*\/$/g, '')
    .split('\n')
    .map(line => line.replace(/^\s*\*?\s?/, '').trim())
    .filter(line => line !== '' && !line.startsWith('@'))
    .join(' ')
    .trim()
  return words === '' ? undefined : words
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
