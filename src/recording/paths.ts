/** Members of a frame, named as people write them: `result.content[0].text`, `params.arguments.*`, `**.duration_ms`, `_meta["a.b/c"]`. */
import { clip } from '../jsonrpc/limits.ts'

/** The members that lead to a value, from the outside in. */
export type Path = readonly string[]

/** Whether a path is one of those that are meant. */
export type PathPattern = (path: Path) => boolean

/** The most members that one pattern names: what is longer is a mistake. */
const mostParts = 64

/** `*` is any one member, `**` any number of them; a pattern without a leading `**` begins at the frame itself. */
export function pathPattern(text: string): PathPattern {
  const parts = partsOf(text)
  return path => meets(parts, 0, path, 0)
}

/** As it is written: names that hold a dot or a bracket in quotes. */
export function pathText(path: Path): string {
  let text = ''
  for (const name of path) {
    if (/^\d+$/.test(name)) text += `[${name}]`
    else if (/^[^.[\]"*]+$/.test(name)) text += text === '' ? name : `.${name}`
    else text += `[${JSON.stringify(name)}]`
  }
  return text
}

type Part = { readonly name: string } | 'one' | 'many'

const part = /\[(\d+|\*)\]|\["((?:[^"\\]|\\.)*)"\]|\.?([^.[\]"]+)/y

function partsOf(text: string): readonly Part[] {
  const parts: Part[] = []
  let at = 0
  while (at < text.length) {
    part.lastIndex = at
    const found = part.exec(text)
    if (found === null || parts.length >= mostParts)
      throw new TypeError(
        `The path "${clip(text)}" cannot be read: write names with dots between them, as in result.content[0].text`,
      )
    at = part.lastIndex
    const [, index, quoted, name] = found
    // A name in quotes is itself, even if it is an asterisk.
    parts.push(quoted === undefined ? partOf(index ?? name ?? '') : { name: unquoted(quoted) })
  }
  if (parts.length === 0) throw new TypeError('A path is empty: name a member, as in result.content')
  return parts
}

function partOf(word: string): Part {
  return word === '**' ? 'many' : word === '*' ? 'one' : { name: word }
}

function unquoted(inner: string): string {
  try {
    return String(JSON.parse(`"${inner}"`))
  } catch {
    throw new TypeError(`"${clip(inner)}" in a path is no name in JSON: write ["name"]`)
  }
}

function meets(parts: readonly Part[], from: number, path: Path, at: number): boolean {
  const wanted = parts[from]
  if (wanted === undefined) return at === path.length
  if (wanted === 'many') {
    for (let next = at; next <= path.length; next++) if (meets(parts, from + 1, path, next)) return true
    return false
  }
  const name = path[at]
  if (name === undefined) return false
  return (wanted === 'one' || wanted.name === name) && meets(parts, from + 1, path, at + 1)
}
