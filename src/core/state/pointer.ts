/** JSON pointers, followed over own properties only: what an object inherits is not part of a document. */
import { clip } from '../../jsonrpc/limits.ts'
import { problem } from '../problem.ts'

/** Names that libraries and engines treat as something else than data. */
const REFUSED = new Set(['__proto__', 'constructor', 'prototype'])

/** The tokens of a pointer. Throws where it is none, or names what no document may. */
export function readPointer(pointer: string): readonly string[] {
  if (pointer === '') return []
  if (!pointer.startsWith('/') || /~(?![01])/.test(pointer)) throw invalid(`${clip(pointer)} is no JSON pointer`)
  const tokens = pointer
    .slice(1)
    .split('/')
    .map(token => token.replaceAll('~1', '/').replaceAll('~0', '~'))
  const refused = tokens.find(token => REFUSED.has(token))
  if (refused !== undefined) throw invalid(`The name ${refused} cannot be used in a patch`)
  return tokens
}

/** What is there; undefined where nothing is. */
export function follow(document: unknown, tokens: readonly string[]): unknown {
  let value = document
  for (const token of tokens) {
    if (typeof value !== 'object' || value === null) return undefined
    if (Array.isArray(value) && !isIndex(token)) return undefined
    if (!Object.hasOwn(value, token)) return undefined
    value = (value as Record<string, unknown>)[token]
  }
  return value
}

/** As the standard has it: digits without a leading zero. */
export function isIndex(token: string): boolean {
  return /^(0|[1-9]\d{0,9})$/.test(token)
}

/** Whether a value can be put at a pointer: its parent is there and takes that name. */
export function takes(document: unknown, tokens: readonly string[]): boolean {
  const name = tokens.at(-1)
  if (name === undefined) return true
  const parent = follow(document, tokens.slice(0, -1))
  if (typeof parent !== 'object' || parent === null) return false
  return !Array.isArray(parent) || name === '-' || (isIndex(name) && Number(name) <= parent.length)
}

export function invalid(message: string): Error {
  return problem('STATE_INVALID', message, { suggestion: 'Send a patch as RFC 6902 describes it' })
}
