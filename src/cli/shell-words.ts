/** Commands that are suggested, so that they can be typed as they stand. */
import { brief, escaped } from './terminal/text.ts'

/** A word as a shell takes it: in quotes where it would be read as something else. */
export function shellWord(word: string): string {
  // A tilde is a home wherever a shell finds it, and zsh reads an equals sign in front as the path of a program.
  return /^(?!=)[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`
}

export function shellWords(words: readonly string[]): string {
  return words.map(shellWord).join(' ')
}

/** What lists one kind of a target's. A program stands last. */
export function listCommand(again: string, kind: string): string {
  return again.startsWith('-- ') ? `vivarium list ${kind} ${again}` : `vivarium list ${again} ${kind}`
}

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
