/** JSON with comments by `jsonc-parser`, as values that know their line: mistakes in a file are told by where they are. */
import { type Node, type ParseError, parseTree, printParseErrorCode } from 'jsonc-parser'

/** A value of the file. */
export interface Placed {
  /** Counted from 1. */
  readonly line: number
  readonly value: unknown
  /** Of an object, by name. */
  readonly members?: ReadonlyMap<string, Placed>
  /** Of an array. */
  readonly items?: readonly Placed[]
}

export interface SyntaxFault {
  readonly line: number
  readonly message: string
}

/** Reads a text. Comments and trailing commas are allowed; a name that stands twice in an object is a mistake. */
export function readJsonc(text: string): { readonly root: Placed | undefined; readonly faults: readonly SyntaxFault[] } {
  const errors: ParseError[] = []
  const tree = parseTree(text, errors, { allowTrailingComma: true, disallowComments: false })
  const lineAt = lines(text)
  // What misses its end does so on its last line, not on the empty one behind it.
  const end = text.trimEnd().length
  const faults = errors.map(({ error, offset }) => ({
    line: lineAt(Math.min(offset, end)),
    message: words(printParseErrorCode(error)),
  }))
  if (tree === undefined) return { root: undefined, faults: faults.length > 0 ? faults : [{ line: 1, message: 'it is empty' }] }
  return { root: placed(tree, lineAt, faults), faults }
}

function placed(node: Node, lineAt: (offset: number) => number, faults: SyntaxFault[]): Placed {
  const line = lineAt(node.offset)
  if (node.type === 'array') {
    const items = (node.children ?? []).map(child => placed(child, lineAt, faults))
    return { line, items, value: items.map(({ value }) => value) }
  }
  if (node.type !== 'object') return { line, value: node.value }
  const members = new Map<string, Placed>()
  for (const { children = [], offset } of node.children ?? []) {
    const [key, value] = children
    if (typeof key?.value !== 'string' || value === undefined) continue
    if (members.has(key.value))
      faults.push({ line: lineAt(offset), message: `the name ${JSON.stringify(key.value)} stands twice` })
    members.set(key.value, placed(value, lineAt, faults))
  }
  // As own members, whatever they are called.
  return { line, members, value: Object.fromEntries([...members].map(([name, { value }]) => [name, value])) }
}

/** `CommaExpected` → `comma expected`. */
function words(code: string): string {
  return code.replaceAll(/(?<=[a-z])(?=[A-Z])/g, ' ').toLowerCase()
}

/** Finds the line of an offset. */
function lines(text: string): (offset: number) => number {
  const starts = [0]
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) starts.push(at + 1)
  return offset => {
    let [low, high] = [0, starts.length - 1]
    while (low < high) {
      const middle = Math.ceil((low + high) / 2)
      if ((starts[middle] ?? 0) <= offset) low = middle
      else high = middle - 1
    }
    return low + 1
  }
}
