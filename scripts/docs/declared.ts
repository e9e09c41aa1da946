/** The code that stands over the description of a name: the signature of a function, or what a type is. */
import { isNode, type Node, nodes, type Statement } from '../schemas/declarations.ts'
import { unmarked } from './api-page.ts'
import type { EntryExport } from './entry-exports.ts'
import { annotated, type Printing, partsOf, type Rename, signatureText, typeText } from './type-text.ts'

/** A line is broken at its alternatives from this width on. */
const width = 100
/** A longer type is left to the table of its members. */
const longest = 200

/** One line for each overload; undefined where a table says all. */
export function declaredText(each: EntryExport, rename: Rename, hasMembers: boolean): string | undefined {
  const lines = each.statements.flatMap(statement => {
    const isImplementation = each.statements.length > 1 && isNode(statement.node['body']) && each.kind === 'function'
    const line = isImplementation ? undefined : declared(each.name, statement, rename, hasMembers)
    return line === undefined ? [] : [line]
  })
  return lines.length === 0 ? undefined : lines.join('\n')
}

function declared(shown: string, { node, file, name }: Statement, rename: Rename, hasMembers: boolean): string | undefined {
  const printing = { file, rename }
  if (/Function/.test(node.type)) return brokenSignature(`function ${shown}${signatureText(node, printing)}`)
  if (node.type === 'VariableDeclaration') return constant(shown, name, node, printing)
  if (node.type !== 'TSTypeAliasDeclaration' || !isNode(node['typeAnnotation'])) return undefined
  const given = isNode(node['typeParameters']) ? typeText(node['typeParameters'], printing) : ''
  const type = typeText(node['typeAnnotation'], printing)
  return hasMembers && unmarked(type).length > longest ? undefined : `type ${shown}${given} = ${broken(type)}`
}

function constant(shown: string, name: string, node: Node, printing: Printing): string {
  const found = nodes(node['declarations']).find(({ id }) => isNode(id) && id['name'] === name)
  const annotation = isNode(found?.['id']) ? found['id']['typeAnnotation'] : undefined
  if (isNode(annotation)) return `const ${shown}: ${typeText(annotated(annotation), printing)}`
  const init = found?.['init']
  return isNode(init) && /Function/.test(init.type) ? `function ${shown}${signatureText(init, printing)}` : `const ${shown}`
}

/** Alternatives on lines of their own, where one line would be long. */
function broken(type: string): string {
  const parts = unmarked(type).length <= width ? [] : partsOf(type, '|')
  return parts.length < 2 ? type : parts.map(part => `\n  | ${part}`).join('')
}

/** Parameters on lines of their own, where one line would be long. */
export function brokenSignature(line: string): string {
  if (unmarked(line).length <= width) return line
  const open = /^(?:[^(<]|<(?:[^<>]|=>|<[^<>]*>)*>)*\(/.exec(line)?.[0] ?? ''
  const rest = line.slice(open.length)
  const inside = partsOf(`${rest} `, ')')[0] ?? ''
  const parameters = partsOf(inside, ',')
  if (open === '' || parameters.length < 2) return line
  return `${open}\n${parameters.map(each => `  ${each},\n`).join('')}${rest.slice(inside.length)}`
}
