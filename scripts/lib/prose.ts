/**
 * What people read, apart from code: pages, doc comments of public names, and sentences in string literals. A passage is the whole file with
 * everything else blanked, so that offsets and lines stay; inside a passage code becomes `¤`, which is no word and no space.
 */
import { parseAst } from 'rolldown/parseAst'
import { childrenOf } from '../errors/program.ts'
import { isNode, type Node, nodes } from '../schemas/declarations.ts'

export interface Passage {
  readonly path: string
  readonly text: string
}

const gap = '¤'

/** Keeps the ranges, and line breaks; `fill` takes the place of the rest. */
function keepOnly(text: string, ranges: readonly (readonly [from: number, to: number])[], fill: string): string {
  const blank = (part: string): string => part.replace(/[^\n]/g, fill)
  let [out, at] = ['', 0]
  for (const [from, to] of [...ranges].sort(([a], [b]) => a - b)) {
    if (from < at) continue
    out += blank(text.slice(at, from)) + text.slice(from, to)
    at = to
  }
  return out + blank(text.slice(at))
}

/** Code, addresses and marks of a page are no prose. */
const UNREAD = [
  /^(```+|~~~+)[\s\S]*?^\1/gm,
  /<!--[\s\S]*?-->/g,
  /(`+)[\s\S]*?\1/g,
  /\]\([^)\s]*\)/g,
  /^\[[^\]]+\]:.*$/gm,
  /<[a-zA-Z/][^>]*>/g,
  /https?:\/\/[^\s)>\]]+/g,
  // A placeholder in a quoted message.
  /\{\w[^}\s]*\}/g,
]

/** The prose of a page, or of a comment. */
export function pageProse(path: string, text: string): Passage {
  const read = UNREAD.reduce((left, pattern) => left.replace(pattern, found => found.replace(/[^\n]/g, gap)), text)
  // Marks of emphasis stand inside words' borders.
  return { path, text: read.replaceAll('**', '  ').replace(/(?<!\w)_(?=\S)|(?<=\S)_(?!\w)/g, ' ') }
}

/** The prose of some doc comments of a file: each starts right behind its `/**`. */
export function commentProse(
  path: string,
  source: string,
  comments: readonly { readonly start: number; readonly end: number }[],
): Passage {
  const ranges = comments.map(({ start, end }) => [start, end] as const)
  const marks = (line: string): string => line.replace(/^(\s*)(?:\/\*\*|\*(?!\/))/, found => ' '.repeat(found.length))
  const tags = (line: string): string =>
    line.replace(/@example.*$|@\w+/, found => ' '.repeat(found.length)).replace('*/', `${gap}${gap}`)
  // An example ends where another tag begins, or the comment.
  const blankExamples = (text: string): string =>
    text.replace(/@example[\s\S]*?(?=\n\s*\* @|\*\/)/g, found => found.replace(/[^\n]/g, ' '))
  const lines = blankExamples(keepOnly(source, ranges, gap))
    .split('\n')
    .map(marks)
    .map(tags)
  return pageProse(path, lines.map(line => (/^¤*$/.test(line) ? line.replaceAll(gap, ' ') : line)).join('\n'))
}

/** At least three words in a row, as no identifier, query or path has them. */
const SENTENCE = /[A-Za-z]{2,},? [a-z]+,? [a-z]+/
const QUERY = /^\s*(?:select|insert|update|create|delete|with|begin|alter|drop|pragma|explain)\b/i

/** The prose of sentences in string literals and templates. */
export function literalProse(path: string, source: string): Passage {
  const ranges: (readonly [number, number])[] = []
  const visit = (node: Node): void => {
    const text = source.slice(node.start, node.end)
    if (node.type === 'Literal' && /^['"]/.test(text)) {
      if (isProse(text.slice(1, -1))) ranges.push([node.start + 1, node.end - 1])
      return
    }
    const quasis = node.type === 'TemplateLiteral' ? nodes(node['quasis']).map(each => insideOf(each, source)) : []
    if (isProse(quasis.map(range => source.slice(...range)).join(gap))) ranges.push(...quasis)
    for (const each of childrenOf(node)) if (isNode(each)) visit(each)
  }
  visit(parseAst(source, { lang: 'ts' }) as unknown as Node)
  // An escape is no letter of the word that follows.
  return pageProse(path, keepOnly(source, ranges, gap).replace(/\\[nrt'"`\\]/g, '  '))
}

/** A part of a template without what begins and ends it: backticks and braces. */
function insideOf({ start, end }: Node, source: string): readonly [from: number, to: number] {
  const from = /[`}]/.test(source[start] ?? '') ? start + 1 : start
  const to = source.slice(from, end).endsWith('${') ? end - 2 : source[end - 1] === '`' && from < end ? end - 1 : end
  return [from, Math.max(from, to)]
}

function isProse(text: string): boolean {
  return SENTENCE.test(text) && !QUERY.test(text)
}
