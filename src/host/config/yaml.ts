/** Parses YAML into the same values with line numbers as JSON. Separate, so that the parser is loaded only for YAML files. */
import { isAlias, isMap, isScalar, isSeq, LineCounter, parseDocument, type YAMLMap } from 'yaml'
import type { ParsedConfig, PlacedValue, SyntaxFault } from './read.ts'

/** Parses a text. Duplicate names are a mistake, and so are aliases, because a few of them can expand to very much. */
export function readYaml(text: string): ParsedConfig {
  const lines = new LineCounter()
  const faults: SyntaxFault[] = []
  const lineAt = (offset: number | undefined): number => Math.max(1, lines.linePos(offset ?? 0).line)
  try {
    const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, uniqueKeys: true })
    for (const { message, pos } of document.errors) faults.push({ line: lineAt(pos[0]), message: firstLine(message) })
    const { contents } = document
    if (contents === null) return { root: undefined, faults: faults.length > 0 ? faults : [{ line: 1, message: 'it is empty' }] }
    return { root: placed(contents, lineAt, faults), faults }
  } catch (error) {
    // Nesting that is too deep for the parser.
    return { root: undefined, faults: [{ line: 1, message: error instanceof Error ? firstLine(error.message) : String(error) }] }
  }
}

type LineAt = (offset: number | undefined) => number

/** Converts a node of the parser. */
function placed(node: unknown, lineAt: LineAt, faults: SyntaxFault[]): PlacedValue {
  if (isMap(node)) return mapOf(node, lineAt, faults)
  if (isSeq(node)) {
    const items = node.items.map(item => placed(item, lineAt, faults))
    return { line: lineAt(node.range?.[0]), items, value: items.map(({ value }) => value) }
  }
  if (isScalar(node)) return { line: lineAt(node.range?.[0]), value: node.value }
  if (!isAlias(node)) return { line: 1, value: null }
  const line = lineAt(node.range?.[0])
  faults.push({ line, message: `the alias *${node.source} is not supported. Write its value instead` })
  return { line, value: null }
}

/** Converts a mapping; its members have the lines of their keys. */
function mapOf(node: YAMLMap, lineAt: LineAt, faults: SyntaxFault[]): PlacedValue {
  const members = new Map<string, PlacedValue>()
  const line = lineAt(node.range?.[0])
  for (const { key, value } of node.items) {
    const name = isScalar(key) ? String(key.value) : undefined
    const at = isScalar(key) ? lineAt(key.range?.[0]) : line
    if (name === undefined) faults.push({ line: at, message: 'a name is not a string' })
    else members.set(name, value === null ? { line: at, value: null } : { ...placed(value, lineAt, faults), line: at })
  }
  return { line, members, value: Object.fromEntries([...members].map(([name, { value }]) => [name, value])) }
}

/** The first line of a parser's message. */
function firstLine(text: string): string {
  return (text.split('\n')[0] ?? '').replace(/:$/, '')
}
