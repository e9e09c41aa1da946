/** The value of a constant, from its text: literals, lists and objects of them, and what these take from other constants. */
import { findValue, isNode, type Node, nameOf, nodes, type SourceFile, sourceFile } from './declarations.ts'

/** The value of the constant of this name. Throws where it is none, or where it is made by code that has to run. */
export function constant(name: string, file: SourceFile): unknown {
  const found = findValue(name, file)
  const from = found && sourceFile(found.path)
  const node = found && from?.values.get(found.name)
  if (node === undefined || from === undefined) throw new TypeError(`${file.path}: there is no constant ${name}`)
  return evaluated(node, from)
}

function evaluated(node: Node, file: SourceFile): unknown {
  switch (node.type) {
    case 'Literal':
      return isRegExp(node['regex']) ? new RegExp(node['regex'].pattern, node['regex'].flags) : node['value']
    case 'Identifier':
      return constant(nameOf(node), file)
    case 'ArrayExpression':
      return nodes(node['elements']).flatMap(each => {
        if (each.type === 'SpreadElement') return evaluated(each['argument'] as Node, file) as readonly unknown[]
        return [evaluated(each, file)]
      })
    case 'ObjectExpression':
      return Object.fromEntries(nodes(node['properties']).flatMap(each => members(each, file)))
    case 'BinaryExpression':
      if (node['operator'] === '*')
        return Number(evaluated(node['left'] as Node, file)) * Number(evaluated(node['right'] as Node, file))
      break
    case 'TSAsExpression':
    case 'TSSatisfiesExpression':
    case 'ParenthesizedExpression':
      return evaluated(node['expression'] as Node, file)
  }
  throw new TypeError(`${file.path}: the value of ${file.text.slice(node.start, node.end)} is known only when it runs`)
}

function members(node: Node, file: SourceFile): readonly (readonly [string, unknown])[] {
  if (node.type === 'SpreadElement') return Object.entries(evaluated(node['argument'] as Node, file) as object)
  return [[nameOf(node['key']), evaluated(node['value'] as Node, file)]]
}

function isRegExp(value: unknown): value is { readonly pattern: string; readonly flags: string } {
  return typeof value === 'object' && value !== null && 'pattern' in value && !isNode(value)
}
