/** Commands that are suggested, so that they can be typed as they stand. */

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
