/**
 * Plain technical English in what people read: pages, doc comments of public names and messages. Phrases that paraphrase are listed in
 * scripts/lib/phrases.ts, each with what to write instead.
 */
import { commentPassages, messagePassages, pagePassages } from './lib/passages.ts'
import { PHRASES } from './lib/phrases.ts'
import type { Passage } from './lib/prose.ts'
import { runCheck } from './lib/report.ts'
import { lineAt } from './lib/source.ts'

/** Listed phrases of a passage, each with its line and what to write instead. */
export function findPhrases({ path, text }: Passage): string[] {
  const found = PHRASES.flatMap(({ pattern, instead }) =>
    [...text.matchAll(pattern)].map(({ 0: phrase, index }) => ({ index, phrase: phrase.replace(/\s+/g, ' ').trim(), instead })),
  )
  return found
    .sort((a, b) => a.index - b.index)
    .map(({ index, phrase, instead }) => `${path}:${lineAt(text, index)}: "${phrase}"; write ${instead}`)
}

if (import.meta.main) {
  // The pages of errors repeat messages, which are checked where they are made.
  const pages = pagePassages().filter(({ path }) => !path.startsWith('docs/reference/errors/'))
  runCheck('prose', () => [...pages, ...commentPassages(), ...messagePassages()].flatMap(findPhrases))
}
