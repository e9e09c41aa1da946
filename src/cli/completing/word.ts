/** Words that a shell may put into a command line: none that the shell itself would obey, whoever made it up. */
import { brief } from '../terminal/paint.ts'
import { escaped } from '../terminal/text.ts'

export interface Word {
  readonly word: string
  readonly about?: string | undefined
}

/** Nothing that is expanded, quoted, or ends a command. */
const harmless = /^[\w.@:/=,+%~-]+$/

export function harmlessWords(words: readonly Word[], current: string): readonly Word[] {
  const seen = new Set<string>()
  return words.filter(({ word }) => {
    if (!word.startsWith(current) || !harmless.test(word) || seen.has(word)) return false
    seen.add(word)
    return true
  })
}

/** One line each: the word, and behind a tab what it is. */
export function lineOf({ word, about = '' }: Word): string {
  const text = escaped(brief(about, 80))
  return text === '' ? `${word}\n` : `${word}\t${text}\n`
}
