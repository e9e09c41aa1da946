/**
 * OAuth scopes as names (RFC 6749 §3.3): printable, without blanks, quotes and backslashes, so that they stand in headers as
 * they are. And the patterns of actions and resources by which grants and rules name several at once.
 */
import { clip } from '../jsonrpc/limits.ts'

const scopeToken = /^[\x21\x23-\x5b\x5d-\x7e]{1,255}$/

/** Of one tool, prompt, resource, event or negotiation. */
export const mostScopes = 64

/** Whether a value is a scope as RFC 6749 writes one. */
export function isScope(scope: unknown): scope is string {
  return typeof scope === 'string' && scopeToken.test(scope)
}

/** For what authors write: throws at the first that is none. */
export function checkScopes(scopes: readonly string[], where: string): void {
  const bad = Array.isArray(scopes) ? scopes.find(scope => !isScope(scope)) : scopes
  if (bad !== undefined)
    throw new TypeError(
      `${where}: "${clip(String(bad))}" is not a scope. Give a list of names without spaces, such as ['tickets:write']`,
    )
}

/** And of one thing, at its registration: how many a call may need is bounded. */
export function checkNeeds(scopes: readonly string[], where: string): void {
  checkScopes(scopes, where)
  if (scopes.length > mostScopes)
    throw new TypeError(`${where}: there are ${scopes.length} scopes; the limit is ${mostScopes}. Use fewer, broader scopes`)
}

/** Whether everything that is needed was granted. */
export function covers(granted: readonly string[] | undefined, needed: readonly string[]): boolean {
  return needed.every(scope => granted?.includes(scope) === true)
}

// Patterns of actions and resources: a `*` stands for any characters, also none; everything else for itself.

/** Longer ones are refused when a grant is issued: matching takes at most pattern × text steps, never more. */
export const patternLength = 256

/** Whether a text fits a pattern in which `*` stands for any characters. Takes linear space and no recursion. */
export function matches(pattern: string, text: string): boolean {
  let at = 0
  let star = -1
  let resume = 0
  for (let i = 0; i < text.length; ) {
    if (pattern[at] === '*') {
      star = at++
      resume = i
    } else if (pattern[at] === text[i]) {
      at++
      i++
    } else if (star >= 0) {
      // The last star takes one character more. Earlier ones need no second look: what fits behind them fits still.
      at = star + 1
      i = ++resume
    } else return false
  }
  while (pattern[at] === '*') at++
  return at === pattern.length
}
