/** Members of public options that an editor shows without a word when somebody points at them: those without a doc comment. */
import { dirname, join } from 'node:path/posix'
import { lineAt } from './source.ts'

/** Gives the text of a file; undefined where there is none. */
export type ReadSource = (file: string) => string | undefined

const INTERFACE = /^(?:export )?interface (\w+)(?:<[^{]*?>)?( extends [^{]*)? \{\n([\s\S]*?)^\}/gm
/** A member of the interface itself, not of an object within it. */
const MEMBER = /^ {2}(?:readonly )?(\w+)\??\s*[:(<]/
/** A type within others. */
const NAME = /\b[A-Z]\w+/g
const NAMED = /^(?:import|export) (?:type )?\{([^}]*)\} from '(\.[^']*)'/gm

/**
 * Follows a type from a module to the interface that it is, through re-exports and what it extends, and gives a line for each member
 * without a comment. Reads the text as the formatter leaves it: members begin after two spaces.
 */
export function findUndocumented(name: string, file: string, read: ReadSource, seen = new Set<string>()): readonly string[] {
  if (seen.has(`${file} ${name}`)) return []
  seen.add(`${file} ${name}`)
  const source = read(file)
  if (source === undefined) return []
  const found = [...source.matchAll(INTERFACE)].find(([, each]) => each === name)
  const alias = new RegExp(`^(?:export )?type ${name}(?:<.*?>)? = (.+)$`, 'm').exec(source)?.[1]
  if (alias !== undefined) return [...alias.matchAll(NAME)].flatMap(([other]) => findUndocumented(other, file, read, seen))
  if (found === undefined) {
    const there = origin(name, file, source)
    return there === undefined ? [] : findUndocumented(there.name, there.file, read, seen)
  }
  const { 0: whole, 2: bases = '', 3: body = '', index } = found
  const inherited = [...bases.matchAll(NAME)].flatMap(([base]) => findUndocumented(base, file, read, seen))
  const start = lineAt(source, index + whole.indexOf(`{\n${body}`) + 2)
  const lines = body.split('\n')
  const silent = lines.flatMap((line, at) => {
    const member = MEMBER.exec(line)?.[1]
    // Overloads share the comment of the first.
    const isOverload = MEMBER.exec(lines[at - 1] ?? '')?.[1] === member
    if (member === undefined || isOverload || lines[at - 1]?.trim().endsWith('*/') === true) return []
    return [`${file}:${start + at}: ${name}.${member} has no doc comment, so editors show nothing about it`]
  })
  return [...inherited, ...silent]
}

/** Names that a module exports whose declaration has no doc comment, so that editors show nothing about them. */
export function findUndocumentedExports(names: readonly string[], file: string, read: ReadSource): readonly string[] {
  return names.flatMap(name => {
    const found = declarationOf(name, file, read)
    return found === undefined || found.documented
      ? []
      : [`${found.file}:${found.line}: ${name} has no doc comment, and is public`]
  })
}

interface Declaration {
  readonly name: string
  readonly file: string
  /** From its first word to its end. */
  readonly text: string
  readonly line: number
  readonly documented: boolean
}

function declarationOf(name: string, file: string, read: ReadSource): Declaration | undefined {
  const source = read(file)
  if (source === undefined) return undefined
  const declared = new RegExp(
    `^(?:export )?(?:abstract )?(?:async )?(?:function\\*?|const|let|class|interface|type) ${name}\\b`,
    'm',
  ).exec(source)
  if (declared !== null) {
    const documented = source.slice(0, declared.index).endsWith('*/\n')
    const text = source.slice(declared.index)
    return { name, file, text: text.slice(0, text.search(/\n\}|\n\n(?! )/)), line: lineAt(source, declared.index), documented }
  }
  const there = origin(name, file, source)
  return there === undefined ? undefined : declarationOf(there.name, there.file, read)
}

/**
 * The types with such names that a public one mentions, in itself and in what it extends: an author writes those by hand too, whether
 * or not they are exported by name.
 */
export function findMentioned(
  name: string,
  file: string,
  read: ReadSource,
  fits: RegExp,
  seen = new Set<string>(),
): readonly Mentioned[] {
  const found = declarationOf(name, file, read)
  if (found === undefined || seen.has(`${found.file} ${found.name}`)) return []
  seen.add(`${found.file} ${found.name}`)
  const bases = / extends [^{]*(?=\{)/.exec(found.text)?.[0] ?? ''
  const written = [...new Set(found.text.match(NAME))].filter(other => fits.test(other) && other !== found.name)
  const followed = [...new Set([...written, ...(bases.match(NAME) ?? [])])]
  return [
    ...written.map(other => ({ name: other, file: found.file })),
    ...followed.flatMap(other => findMentioned(other, found.file, read, fits, seen)),
  ]
}

interface Mentioned {
  readonly name: string
  readonly file: string
}

/** Where a module has a name from. */
function origin(name: string, file: string, source: string): { readonly name: string; readonly file: string } | undefined {
  for (const [, list = '', path = ''] of source.matchAll(NAMED))
    for (const item of list.split(',')) {
      const [, original = '', alias = original] = /^\s*(?:type )?(\w+)(?: as (\w+))?\s*$/.exec(item) ?? []
      if (alias === name) return { name: original, file: join(dirname(file), path) }
    }
  return undefined
}
