/** Types and signatures as text on one line: as the source writes them, without comments, and by the names that the entries export. */
import { isNode, type Node, nameOf, nodes, type SourceFile } from '../schemas/declarations.ts'

/** What a name in a type is shown as; undefined leaves it as it is. */
export type Rename = (name: string, file: SourceFile) => string | undefined

/** Where a node stands, and what names in it mean. */
export interface Printing {
  readonly file: SourceFile
  readonly rename: Rename
}

/** Pieces of the source that are written otherwise. */
interface Piece {
  readonly start: number
  readonly end: number
  readonly text: string
}

/** A type, or any other node, on one line. */
export function typeText(node: Node, printing: Printing): string {
  return oneLine(written(node, printing)).replace(/^\| /, '')
}

/** A signature: type parameters, parameters and result. */
export function signatureText(node: Node, printing: Printing): string {
  const { typeParameters, params, returnType } = node
  const given = isNode(typeParameters) ? typeText(typeParameters, printing) : ''
  const taken = nodes(params).map(parameter => parameterText(parameter, printing))
  const result = isNode(returnType) ? typeText(annotated(returnType), printing) : 'void'
  return `${given}(${taken.join(', ')}): ${result}`
}

/** Parts of a text between a separator, outside of all brackets. */
export function partsOf(text: string, separator: string): readonly string[] {
  const parts = ['']
  let depth = 0
  for (const char of text) {
    const last = parts.at(-1) ?? ''
    if (char === separator && depth === 0) parts.push('')
    else parts[parts.length - 1] = last + char
    if ('([{<'.includes(char)) depth++
    if (')]}'.includes(char) || (char === '>' && !last.endsWith('='))) depth--
  }
  return parts.map(part => part.trim())
}

/** The type within an annotation. */
export function annotated(node: Node): Node {
  return node.type === 'TSTypeAnnotation' && isNode(node['typeAnnotation']) ? node['typeAnnotation'] : node
}

/** A parameter by its name; one that is taken apart goes by `options`. */
function parameterText(parameter: Node, printing: Printing): string {
  const isRest = parameter.type === 'RestElement'
  const inner = parameter.type === 'AssignmentPattern' ? parameter['left'] : isRest ? parameter['argument'] : parameter
  const taken = isNode(inner) ? inner : parameter
  const isOptional = parameter.type === 'AssignmentPattern' || taken['optional'] === true
  const name = taken.type === 'Identifier' ? nameOf(taken).replace(/^_/, '') : 'options'
  const annotation = [taken, parameter].map(each => each['typeAnnotation']).find(isNode)
  const type = annotation === undefined ? typeOfLiteral(parameter['right']) : typeText(annotated(annotation), printing)
  return `${isRest ? '...' : ''}${name}${isOptional ? '?' : ''}${type === undefined ? '' : `: ${type}`}`
}

/** Of a parameter that only its default value describes. */
function typeOfLiteral(node: unknown): string | undefined {
  return isNode(node) && node.type === 'Literal' ? typeof node['value'] : undefined
}

/** The source of a node, with object types spelled on one line and names as the entries have them. */
function written(node: Node, printing: Printing): string {
  if (node.type === 'TSTypeLiteral') {
    const members = nodes(node['members']).map(member => oneLine(inside(member, printing)).replace(/[;,]$/, ''))
    return members.length === 0 ? '{}' : `{ ${members.join('; ')} }`
  }
  return inside(node, printing)
}

function inside(node: Node, { file, rename }: Printing): string {
  const pieces: Piece[] = []
  const visit = (value: unknown): void => {
    if (Array.isArray(value)) for (const each of value) visit(each)
    if (!isNode(value)) return
    const name = value.type === 'TSTypeReference' ? value['typeName'] : undefined
    const shown = isNode(name) && name.type === 'Identifier' ? rename(nameOf(name), file) : undefined
    if (isNode(name) && shown !== undefined) pieces.push({ start: name.start, end: name.end, text: shown })
    if (value !== node && value.type === 'TSTypeLiteral')
      pieces.push({ start: value.start, end: value.end, text: written(value, { file, rename }) })
    else for (const each of Object.values(value)) if (typeof each === 'object') visit(each)
  }
  visit(node)
  const sorted = pieces.sort((a, b) => a.start - b.start)
  let at = node.start
  let text = ''
  for (const piece of sorted) {
    text += bare(file.text.slice(at, piece.start)) + piece.text
    at = piece.end
  }
  return text + bare(file.text.slice(at, node.end))
}

/** Without comments. */
function bare(text: string): string {
  return text.replace(/\/\*[\s\S]*?\*\/|\/\/[^\n]*/g, '')
}

function oneLine(text: string): string {
  return text
    .replace(/\s+/g, ' ')
    .replace(/([([<]) \|?\s?/g, '$1')
    .replace(/,? ([)\]>])(?!=)/g, '$1')
    .replace(/\breadonly (?=[\w'"[]+\??:)/g, '')
    .trim()
}
