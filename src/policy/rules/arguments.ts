/**
 * Whether the arguments of a call are those that a rule is about. A rule that allows must fit everything that lies at its path, one
 * that refuses or asks only one thing of it: whatever a caller wraps a value in, nobody gets round a rule by it.
 */
import { isRecord } from '../../jsonrpc/message.ts'
import { fitsAll, fitsAny } from './path-patterns.ts'

/** Patterns of what lies at a path. */
export type ArgumentRule = readonly [path: readonly string[], patterns: readonly string[]]

export function fitsArguments(rules: readonly ArgumentRule[], given: unknown, allows: boolean): boolean {
  return rules.every(([path, patterns]) => {
    const found: string[] = []
    collect(given, path, 0, found)
    if (found.length === 0) return false
    return allows ? found.every(text => fitsAll(patterns, text)) : found.some(text => fitsAny(patterns, text))
  })
}

/**
 * All texts at a path and below it, names of members too: where an object is a map, they are the caller's words. A list on the way
 * stands for each of its members.
 */
function collect(value: unknown, path: readonly string[], at: number, found: string[]): void {
  const name = path[at]
  if (Array.isArray(value)) {
    if (value.length === 0 && name === undefined) found.push('')
    for (const member of value) collect(member, path, at, found)
  } else if (name !== undefined) {
    if (isRecord(value) && Object.hasOwn(value, name)) collect(value[name], path, at + 1, found)
  } else if (isRecord(value)) {
    const members = Object.entries(value)
    // Nothing within it, but it is there.
    if (members.length === 0) found.push('')
    for (const [key, member] of members) {
      found.push(key)
      collect(member, path, at, found)
    }
  } else if (value !== undefined) found.push(String(value))
}
