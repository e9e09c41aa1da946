/**
 * Checks what an author gave as options, for those whom no compiler helps: what is misspelt or of another type is told where it is
 * written, not found missing when a client asks.
 */
import { clip } from '../jsonrpc/limits.ts'
import { isRecord } from '../jsonrpc/message.ts'
import { nearest } from './suggestion.ts'

/** What an option may hold; `any` is checked by whoever reads it. */
export type OptionKind = 'string' | 'number' | 'boolean' | 'function' | 'list' | 'object' | 'any'

/** One kind for each option, no option forgotten. */
export type KindsOf<Options> = Readonly<Record<keyof Options, OptionKind>>

const wanted: Readonly<Record<Exclude<OptionKind, 'any'>, string>> = {
  string: 'a string',
  number: 'a number of at least 0',
  boolean: 'true or false',
  function: 'a function',
  list: 'a list',
  object: 'an object',
}

/**
 * Throws a TypeError that names the option and what it may be. `where` begins the message.
 *
 * @example
 * checkOptions('Resource "note://1"', { mimetype: 'text/plain' }, { name: 'string', mimeType: 'string' })
 * // TypeError: Resource "note://1" has no option "mimetype". There are name, mimeType. Did you mean mimeType?
 */
export function checkOptions(where: string, options: unknown, kinds: Readonly<Record<string, OptionKind>>): void {
  if (!isRecord(options)) throw new TypeError(`${where}: the options must be an object, not ${shown(options)}`)
  for (const [name, value] of Object.entries(options)) {
    const kind = Object.hasOwn(kinds, name) ? kinds[name] : undefined
    if (kind === undefined) throw new TypeError(`${where} has no option "${clip(name)}"${meant(name, Object.keys(kinds))}`)
    if (value !== undefined && kind !== 'any' && !fits(value, kind))
      throw new TypeError(`${where}: ${name} is ${shown(value)}; give ${wanted[kind]}`)
  }
}

function meant(name: string, names: readonly string[]): string {
  const [likely] = nearest(name, names)
  return `. The options are ${names.join(', ')}${likely === undefined ? '' : `. Did you mean ${likely}?`}`
}

/** Throws unless what shall answer can be called. `example` shows how it is given. */
export function checkHandler(where: string, handler: unknown, example: string): void {
  if (typeof handler !== 'function') throw new TypeError(`${where} has no handler; write ${example}`)
}

function fits(value: unknown, kind: Exclude<OptionKind, 'any'>): boolean {
  if (kind === 'number') return typeof value === 'number' && value >= 0
  if (kind === 'list') return Array.isArray(value)
  return kind === 'object' ? isRecord(value) : typeof value === kind
}

function shown(value: unknown): string {
  if (typeof value === 'function') return 'a function'
  if (Array.isArray(value)) return 'a list'
  return typeof value === 'string' ? `"${clip(value)}"` : isRecord(value) ? 'an object' : clip(String(value))
}
