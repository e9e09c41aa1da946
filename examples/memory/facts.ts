/**
 * What a user says of themselves, found by plain rules: no model is asked, and nothing is learned from what a model, a tool or an
 * event says. What looks like a secret is not kept.
 */

/** Facts in the third person, as they will be read later. */
export function factsIn(message: string): readonly string[] {
  // Hosts tell of events between marks: those are words of servers.
  if (message.trimStart().startsWith('<')) return []
  const facts = message
    .slice(0, 10_000)
    .split(/(?<=[.!?])\s+|\n+/)
    .map(sentence => sentence.trim())
    .filter(sentence => sentence.length <= 300 && !sentence.endsWith('?') && !secret.test(sentence))
    .map(factIn)
  return [...new Set(facts.filter(fact => fact !== undefined))].slice(0, 10)
}

const secret = /\b(pass(word|phrase|code)|secret|token|api[ _-]?key|private key|pin|cvc|card number)\b/i

const verbs = new Map(
  Object.entries({
    like: 'likes',
    love: 'loves',
    prefer: 'prefers',
    hate: 'hates',
    dislike: 'dislikes',
    use: 'uses',
    speak: 'speaks',
    live: 'lives',
    work: 'works',
    study: 'studies',
    own: 'owns',
    need: 'needs',
  }),
)

function factIn(sentence: string): string | undefined {
  const text = sentence.replace(/[.!\s]+$/, '')
  const [, told] = /^(?:please[, ]+)?remember(?: that| this)?[:,]? (.+)$/i.exec(text) ?? []
  if (told !== undefined) return factIn(told) ?? told
  const [, name] = /^(?:hi[,!]? |hello[,!]? )?(?:my name is|i am called|call me) (.+)$/i.exec(text) ?? []
  if (name !== undefined) return `The user's name is ${name}`
  const [, adverb = '', verb = '', rest] = /^i (really |always |usually |never )?([a-z]+) (.+)$/i.exec(text) ?? []
  const third = verbs.get(verb.toLowerCase())
  if (third !== undefined) return `The user ${adverb.toLowerCase()}${third} ${mine(rest ?? '')}`
  const [, thing, be, what] = /^my ([\p{L} -]{2,40}?) (is|are) (.+)$/iu.exec(text) ?? []
  return thing === undefined ? undefined : `The user's ${thing} ${be} ${mine(what ?? '')}`
}

const mine = (text: string): string => text.replace(/\bmy\b/gi, 'their').replace(/\bmyself\b/gi, 'themselves')
