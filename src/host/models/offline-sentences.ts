/** Finding the sentences of a text that speak of a question, by the words that both have. */

const common = new Set(
  'a an and are about as at be but by can did do does for from had has have how i in is it its me my of on or our please tell that the their them there they this to was we were what when where which who why will with would you your'.split(
    ' ',
  ),
)

/** At most three, the most fitting first. */
export function bestSentences(question: string, texts: readonly string[]): readonly string[] {
  const wanted = new Set(words(question))
  if (wanted.size === 0) return []
  const rated = texts
    .flatMap(text => sentences(text))
    .map((sentence, order) => ({ sentence, order, score: scoreOf(sentence, wanted) }))
  return rated
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score || a.order - b.order)
    .slice(0, 3)
    .map(({ sentence }) => sentence)
}

/** The first sentences, up to about 400 characters. */
export function summary(text: string): string {
  let short = ''
  for (const sentence of sentences(text)) {
    if (short !== '' && short.length + sentence.length > 400) break
    short += `${short === '' ? '' : ' '}${sentence}`
  }
  return short === '' ? 'There is nothing to sum up.' : short.slice(0, 1_000)
}

function scoreOf(sentence: string, wanted: ReadonlySet<string>): number {
  return new Set(words(sentence).filter(word => wanted.has(word))).size
}

function sentences(text: string): readonly string[] {
  return text
    .split(/(?<=[.!?])\s+|\n+/)
    .map(sentence => sentence.trim())
    .filter(sentence => sentence !== '')
}

/** Without endings that say only how many or when. */
function words(text: string): readonly string[] {
  const all = text.toLowerCase().match(/[\p{L}\p{N}]{2,}/gu) ?? []
  return all.filter(word => !common.has(word)).map(word => (word.length > 4 ? word.replace(/(?:ing|ed|es|s)$/, '') : word))
}
