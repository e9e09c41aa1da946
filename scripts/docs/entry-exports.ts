/** What each public entry exports, and which of the declarations a name means that several entries export. */
import { join } from 'node:path'
import { PUBLIC } from '../lib/entries.ts'
import { readExports } from '../lib/exports.ts'
import { root } from '../lib/files.ts'
import { commentAbove, findStatements, type SourceFile, type Statement, sourceFile } from '../schemas/declarations.ts'

export interface EntryExport {
  readonly entry: string
  readonly name: string
  readonly kind: 'function' | 'class' | 'constant' | 'type'
  /** Overloads are several. */
  readonly statements: readonly Statement[]
  readonly comment: string | undefined
}

/** All exports by entry, in the order of the alphabet. */
export function exportsByEntry(): ReadonlyMap<string, readonly EntryExport[]> {
  return new Map(Object.entries(PUBLIC).map(([entry, path]) => [entry, exportsOf(entry, sourceFile(join(root, path)))]))
}

function exportsOf(entry: string, file: SourceFile): readonly EntryExport[] {
  const { values, types } = readExports(file.text)
  return [...values, ...types].flatMap(name => {
    const statements = findStatements(name, file)
    return statements.length === 0 ? [] : [exported(entry, name, statements)]
  })
}

export function exported(entry: string, name: string, statements: readonly Statement[]): EntryExport {
  const comment = statements.map(({ file, start }) => commentAbove(file.text, start)).find(each => each !== undefined)
  return { entry, name, kind: kindOf(statements), statements, comment }
}

function kindOf(statements: readonly Statement[]): EntryExport['kind'] {
  const type = statements[0]?.node.type ?? ''
  if (/Function/.test(type)) return 'function'
  if (type === 'ClassDeclaration') return 'class'
  return type === 'VariableDeclaration' ? 'constant' : 'type'
}

/** Tells declarations apart, whichever names they go by. */
export function keyOf({ file, name }: Pick<Statement, 'file' | 'name'>): string {
  return `${file.path}#${name}`
}
