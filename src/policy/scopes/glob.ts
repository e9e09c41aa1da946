/**
 * Globs of scopes: one star stands for any characters within a segment, two for any across segments, and where they are a whole
 * segment with others behind it also for none at all. Everything else stands for itself. Takes pattern × text steps at most.
 */

const star = -1
const across = -2
const segments = -3
const slash = 47

/** Operators write these; longer ones are a mistake. */
export const globLength = 1024

/**
 * @example
 * const inside = glob('/project/**')
 * inside('/project/src/main.ts') // true
 */
export function glob(pattern: string): (text: string) => boolean {
  const tokens = read(pattern)
  const end = tokens.length
  return text => {
    let at = begin(tokens)
    for (let i = 0; i < text.length; i++) {
      const next = new Uint8Array(end + 1)
      const code = text.charCodeAt(i)
      for (let state = 0; state < end; state++) if (at[state] === 1) step(tokens, next, state, code)
      at = next
    }
    return at[end] === 1
  }
}

function read(pattern: string): readonly number[] {
  const tokens: number[] = []
  for (let i = 0; i < pattern.length; i++) {
    if (pattern[i] !== '*') tokens.push(pattern.charCodeAt(i))
    else if (pattern[i + 1] !== '*') tokens.push(star)
    else {
      const whole = pattern[i + 2] === '/' && (i === 0 || pattern[i - 1] === '/')
      tokens.push(whole ? segments : across)
      i += whole ? 2 : 1
    }
  }
  return tokens
}

function begin(tokens: readonly number[]): Uint8Array {
  const states = new Uint8Array(tokens.length + 1)
  reach(tokens, states, 0)
  return states
}

/** Stars may also stand for nothing. */
function reach(tokens: readonly number[], states: Uint8Array, state: number): void {
  let at = state
  states[at] = 1
  while (at < tokens.length && (tokens[at] as number) < 0) states[++at] = 1
}

function step(tokens: readonly number[], next: Uint8Array, state: number, code: number): void {
  const token = tokens[state] as number
  if (token >= 0) {
    if (token === code) reach(tokens, next, state + 1)
    return
  }
  const stays = token === across || (token === star) === (code !== slash)
  if (stays) reach(tokens, next, state)
  // Amid a segment: what follows begins only after its slash.
  else if (token === segments) next[state] = 1
}
