/**
 * Whose answer a line is that is not read as a whole: what its first bytes say, else its last ones. Most servers write the id of an
 * answer before its result, some behind it. Bounded, whatever the line holds.
 */
import { type Id, idLength } from '../../jsonrpc/message.ts'

/** So much of either end of a line is looked at. */
export const lookBytes = 2 * idLength

/** `none`: it is no answer; `any`: an answer to something, or nobody knows what. */
export type Whose = { readonly id: Id } | 'none' | 'any'

const member = /\s*"(\w{1,64})"\s*:\s*("(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*(?=[\s,}])|true|false|null|[[{])\s*,?/y
const last = /[,{]\s*"id"\s*:\s*("(?:[^"\\]|\\.)*"|-?\d{1,17})\s*(?:,\s*"\w{1,64}"\s*:\s*(?:"[^"\\]*"|\d{1,17})\s*){0,4}\}\s*$/

/** The id of a request whose line is not read as a whole, where its first bytes tell it. */
export function requestIn(bytes: Buffer): Id | undefined {
  const text = bytes.subarray(0, lookBytes).toString('utf8')
  let at = /^\s*\{/.exec(text)?.[0].length
  while (at !== undefined) {
    member.lastIndex = at
    const [all, name, value = ''] = member.exec(text) ?? ['']
    if (name === 'id') return idIn(value)?.id
    at = all === '' || value === '{' || value === '[' ? undefined : at + all.length
  }
  return undefined
}

/** By the first bytes of a line: `any` where they do not tell. */
export function whoseByHead(bytes: Buffer): Whose {
  const text = bytes.subarray(0, lookBytes).toString('utf8')
  const open = /^\s*\{/.exec(text)
  // Noise is nobody's answer; a batch may hold any.
  if (open === null) return /^\s*(\[|$)/.test(text) ? 'any' : 'none'
  let id: Whose = 'any'
  let at = open[0].length
  while (true) {
    member.lastIndex = at
    const found = member.exec(text)
    if (found === null) return id
    const [all, name, value = ''] = found
    if (name === 'method' || name === 'params') return 'none'
    if (name === 'id') id = idIn(value) ?? 'any'
    if (value === '{' || value === '[') return id
    at += all.length
  }
}

/** By the last bytes of a line whose first ones did not tell. */
export function whoseByTail(bytes: Buffer): Whose {
  const text = bytes.subarray(-lookBytes).toString('utf8')
  const found = last.exec(text)
  return (found?.[1] === undefined ? undefined : idIn(found[1])) ?? 'any'
}

function idIn(json: string): { readonly id: Id } | undefined {
  try {
    const id: unknown = JSON.parse(json)
    return typeof id === 'string' || typeof id === 'number' ? { id } : undefined
  } catch {
    return undefined
  }
}
