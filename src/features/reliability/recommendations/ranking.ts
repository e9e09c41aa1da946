/** Ranks servers by how well they match a request, best first, each server once. */
import { type Confidence, confidences, type WireRecommendation } from './messages.ts'

/** How well a text matches: all words `high`, half of them `medium`, some `low`, none undefined. */
export function fit(wish: string, text: string): Confidence | undefined {
  const wanted = wordsOf(wish)
  const had = new Set(wordsOf(text))
  const found = wanted.filter(word => had.has(word)).length
  if (found === 0) return undefined
  return found === wanted.length ? 'high' : found * 2 >= wanted.length ? 'medium' : 'low'
}

/** Words of letters and digits in any script. */
function wordsOf(text: string): readonly string[] {
  return [...new Set(text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [])]
}

/** The lower of two confidences. */
function weaker(one: Confidence, other: Confidence): Confidence {
  return confidences.indexOf(one) > confidences.indexOf(other) ? one : other
}

/** Sorts by confidence, stable; of several with the same name only the first remains. */
export function surestFirst<T>(entries: readonly T[], confidence: (entry: T) => Confidence, name: (entry: T) => string): T[] {
  const order = (entry: T): number => confidences.indexOf(confidence(entry))
  const seen = new Set<string>()
  return [...entries]
    .sort((one, other) => order(one) - order(other))
    .filter(entry => {
      const key = name(entry)
      if (seen.has(key)) return false
      seen.add(key)
      return true
    })
}

/** Matching entries; the confidence is at most that of the match. */
export function fitting(wish: string, entries: readonly WireRecommendation[]): readonly WireRecommendation[] {
  return surest(
    entries.flatMap(entry => {
      const found = fit(wish, entry.capability)
      return found === undefined ? [] : [{ ...entry, match_confidence: weaker(found, entry.match_confidence ?? 'medium') }]
    }),
  )
}

/** Sorts wire recommendations. */
export function surest(entries: readonly WireRecommendation[]): readonly WireRecommendation[] {
  return surestFirst(
    entries,
    entry => entry.match_confidence ?? 'medium',
    entry => entry.server_name,
  )
}
