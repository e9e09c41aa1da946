/** Names in src/ are made of words that a reader can guess: the words inside identifiers and file names are held against a list. */
import { readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { listFiles, root } from './lib/files.ts'
import { ALLOWED, METAPHORS, NOUNS, PARTICIPLES } from './lib/name-words.ts'
import { runCheck } from './lib/report.ts'
import { lineAt, maskLiterals } from './lib/source.ts'

/** A lookbehind, not a boundary: `#` begins private names. */
const IDENTIFIER = /(?<![\w$])[A-Za-z_$][\w$]*/g

/** The words of a name: `HttpDoor`, `http_door` and `http-door` are `http` and `door`. */
export function wordsOf(name: string): string[] {
  return name
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .replace(/([A-Z])([A-Z][a-z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z]+/)
    .filter(Boolean)
}

/** The listed word that a word is a form of, if any: `seats`, `seated` and `seating` are forms of `seat`. */
function listed(word: string): string | undefined {
  const forms = [word, word.replace(/(?:e?s|ed|ing)$/, ''), word.replace(/(?:s|d)$/, ''), word.replace(/(?:ed|ing)$/, 'e')]
  return forms.find(form => METAPHORS.has(form))
}

/** The declaration of a type whose name is one word, and what it extends. */
const ONE_WORD_TYPE = /\b(?:interface|type|class|enum)\s+([A-Z][a-z]+)(?:<[^>\n]*>)?\s*(?:[={]|(?:extends|implements)\s+(\w+))/g

/** Types that are named by a bare participle. Errors may be: they are what happened. The page of the console has its own names. */
export function findParticiples(path: string, source: string): string[] {
  if (path.startsWith('src/console/')) return []
  return [...maskLiterals(source).matchAll(ONE_WORD_TYPE)].flatMap(({ 1: name = '', 2: base = '', index }) => {
    const word = name.toLowerCase()
    const isParticiple = PARTICIPLES.has(word) || (/ed$/.test(word) && !NOUNS.has(word))
    if (!isParticiple || base.endsWith('Error') || ALLOWED.get(path)?.includes(name) === true) return []
    return [
      `${path}:${lineAt(source, index)}: the type "${name}" is a bare participle; name the thing with a noun, such as ${name}Entry`,
    ]
  })
}

/** Identifiers and file names with a listed word, each name once for each file. */
export function findNameProblems(path: string, source: string): string[] {
  const seen = new Set<string>()
  const names = [...maskLiterals(source).matchAll(IDENTIFIER)].map(({ 0: name, index }) => ({
    name,
    line: lineAt(source, index),
  }))
  return [{ name: basename(path).replace(/\.ts$/, ''), line: 1 }, ...names].flatMap(({ name, line }) => {
    const word = wordsOf(name)
      .map(listed)
      .find(each => each !== undefined)
    if (word === undefined || ALLOWED.get(path)?.includes(name) === true || seen.has(name)) return []
    seen.add(name)
    return [`${path}:${line}: "${name}" has the word "${word}"; say what it is: ${METAPHORS.get(word)}`]
  })
}

if (import.meta.main) {
  const paths = listFiles(['src'], /\.ts$/).filter(path => !path.endsWith('.test.ts'))
  runCheck('names', () =>
    paths.flatMap(path => {
      const source = readFileSync(join(root, path), 'utf8')
      return [...findNameProblems(path, source), ...findParticiples(path, source)]
    }),
  )
}
