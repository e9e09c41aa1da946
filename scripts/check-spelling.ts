/**
 * Holds what people read against a British dictionary. Words of the trade and of this project are in scripts/words.txt, sorted, one a line;
 * words of the protocol keep the protocol's spelling there (`authorization`, `initialize`). `--words` prints the unknown ones alone.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import british from 'dictionary-en-gb'
import nspell from 'nspell'
import { root } from './lib/files.ts'
import { commentPassages, messagePassages, pagePassages } from './lib/passages.ts'
import type { Passage } from './lib/prose.ts'
import { runCheck } from './lib/report.ts'
import { lineAt } from './lib/source.ts'

const WORDS = 'scripts/words.txt'

/** Whether a word is known, and what it may have meant to be. */
export interface Speller {
  correct(word: string): boolean
  suggest(word: string): string[]
}

export function createSpeller(words: readonly string[]): Speller {
  const dictionary = nspell({ aff: Buffer.from(british.aff), dic: Buffer.from(british.dic) })
  for (const word of words) dictionary.add(word)
  return dictionary
}

/** A token between spaces; names of code, paths, addresses and numbers have characters that words lack. */
const TOKEN = /[^\s¤]+/g
const WORD = /^\p{L}+(?:['’]\p{L}+)*(?:-\p{L}+(?:['’]\p{L}+)*)*$/u
/** An upper-case letter behind the first: an abbreviation, or a name of code. */
const NAME = /^.+\p{Lu}/u

/** Unknown words of a passage, each with its line. */
export function findUnknown({ path, text }: Passage, speller: Speller): { readonly word: string; readonly at: string }[] {
  return [...text.matchAll(TOKEN)].flatMap(({ 0: token, index }) => {
    // A word beside a gap is a part of something else: `¤s`.
    if (text[index - 1] === '¤' && !/^[.,;:!?)"'’]/.test(token)) return []
    const bare = token.replace(/^[("'“‘[{*_…|<>]+|[)"'”’\]}*_…|<>.,;:!?²³]+$/gu, '')
    if (!WORD.test(bare)) return []
    const words = bare.split('-').map(each => each.replace(/['’]s?$/, ''))
    const unknown = words.filter(word => word.length > 1 && !NAME.test(word) && !speller.correct(word.replace('’', "'")))
    return unknown.map(word => ({ word, at: `${path}:${lineAt(text, index)}` }))
  })
}

/** Words that the list has for nothing: out of order, twice, or in the dictionary. */
export function findListProblems(words: readonly string[]): string[] {
  const dictionary = createSpeller([])
  return words.flatMap((word, at) => {
    const before = words[at - 1] ?? ''
    if (before >= word) return [`${WORDS}:${at + 1}: "${word}" is not in order after "${before}"; sort the file by code points`]
    return dictionary.correct(word) ? [`${WORDS}:${at + 1}: "${word}" is in the dictionary; remove it`] : []
  })
}

if (import.meta.main) {
  const words = readFileSync(join(root, WORDS), 'utf8').trimEnd().split('\n')
  const speller = createSpeller(words)
  const passages = [...pagePassages(), ...commentPassages(), ...messagePassages()]
  const unknown = passages.flatMap(passage => findUnknown(passage, speller))
  if (process.argv.includes('--words')) {
    const places = new Map<string, string[]>()
    for (const { word, at } of unknown) places.set(word, [...(places.get(word) ?? []), at])
    for (const [word, found] of [...places].sort()) console.log(`${word}  ${found.length}  ${found.slice(0, 3).join(' ')}`)
  } else {
    const remedy = (word: string) => speller.suggest(word).slice(0, 3).join(', ') || 'no suggestion'
    runCheck('spelling', () => [
      ...findListProblems(words),
      ...unknown.map(({ word, at }) => `${at}: "${word}" is no known word (${remedy(word)}); mend it, or add it to ${WORDS}`),
    ])
  }
}
