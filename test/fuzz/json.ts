/** JSON values and their texts: plain ones, strange ones, and such as nobody should send. */
import type { Source } from './source.ts'

export const strangeWords: readonly string[] = [
  'x',
  '',
  ' ',
  '__proto__',
  'constructor',
  'prototype',
  'toString',
  'hasOwnProperty',
  'then',
  'x'.repeat(300),
  '\u0000\u001b[31m',
  '\ud800',
  '雪😀',
  '=?base64?YQ==?=',
  '2026-07-28',
  '../../etc/passwd',
  '{id}',
  '%',
  '-1',
]

const strangeNumbers = [0, 1, -1, 1.5, -0, 2 ** 31, 2 ** 53, 1e300, 1e-300, 64, 1_000_000]

export function word(source: Source): string {
  if (source.once(3)) return source.pick(strangeWords)
  return source.list(6, () => String.fromCharCode(97 + source.int(26))).join('')
}

export function scalar(source: Source): unknown {
  const kind = source.int(8)
  if (kind < 3) return word(source)
  if (kind < 5) return source.pick(strangeNumbers)
  return [null, true, false][kind - 5]
}

export function value(source: Source, depth = 3): unknown {
  const kind = depth === 0 ? 0 : source.int(6)
  if (kind === 4) return source.list(3, () => value(source, depth - 1))
  if (kind === 5) return object(source.list(3, () => [word(source), value(source, depth - 1)] as const))
  return scalar(source)
}

/** With every name an own member, `__proto__` too, as a parser makes them. */
export function object(members: Iterable<readonly [string, unknown]>): Record<string, unknown> {
  return Object.fromEntries(members)
}

/** A text bent after it was written: cut, doubled, with something put in or changed. */
export function bentText(source: Source, text: string): string {
  const at = source.int(text.length + 1)
  const bend = source.int(7)
  if (bend === 0) return text.slice(0, at)
  if (bend === 1) return text + text.slice(at)
  if (bend === 2) return `${text.slice(0, at)}${String.fromCharCode(source.int(0x100))}${text.slice(at + 1)}`
  if (bend === 3)
    return `${text.slice(0, at)}${source.pick(['{', '[', '"', ',', ':', '\\', '\u0000', '\ufeff', '1e999', '-'])}${text.slice(at)}`
  if (bend === 4) return text.slice(0, at) + text.slice(at + 1 + source.int(8))
  if (bend === 5) return text.replace('{', () => `{${JSON.stringify(word(source))}:${JSON.stringify(scalar(source))},`)
  return text.replace('"id":', '"id":"first","id":')
}

/** Deep or long: as much as a peer may try. */
export function excessive(source: Source): string {
  const depth = 1 + source.int(source.pick([140, 5_000, 50_000]))
  const kind = source.int(5)
  if (kind === 0) return '['.repeat(depth) + ']'.repeat(depth)
  if (kind === 1) return `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`
  if (kind === 2) return `[${'0,'.repeat(depth)}0]`
  if (kind === 3) return `"${'[{\\"'.repeat(depth)}"`
  return '['.repeat(depth)
}
