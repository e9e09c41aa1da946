/** A right value made nearly right: some member of it is gone, other, elsewhere or one too many. */
import { isRecord } from '../../src/jsonrpc/message.ts'
import { object, scalar, value, word } from './json.ts'
import type { Source } from './source.ts'

/** A copy with up to `most` changes. */
export function mutated(source: Source, right: unknown, most = 3): unknown {
  let result = right
  for (let changes = source.int(most + 1); changes > 0; changes--) result = changed(source, result, 6)
  return result
}

function changed(source: Source, at: unknown, depth: number): unknown {
  const goesOn = depth > 0 && source.int(4) > 0
  if (Array.isArray(at) && goesOn && at.length > 0) {
    const index = source.int(at.length)
    const bend = source.int(4)
    if (bend === 1) return at.toSpliced(index, 1)
    if (bend === 2) return [...at, at[index]]
    return at.with(index, changed(source, at[index], depth - 1))
  }
  if (isRecord(at) && goesOn) return changedRecord(source, at, depth)
  return replaced(source, at)
}

function changedRecord(source: Source, at: Readonly<Record<string, unknown>>, depth: number): unknown {
  const entries = Object.entries(at)
  const bend = source.int(8)
  if (entries.length === 0 || bend === 1) return object([...entries, [word(source), value(source, 2)]])
  const index = source.int(entries.length)
  const [name, inner] = entries[index] as [string, unknown]
  if (bend === 2) return object(entries.toSpliced(index, 1))
  if (bend === 3) return object(entries.with(index, [word(source), inner]))
  if (bend === 4) return object([...entries, [source.pick(entries)[0], inner]])
  return object(entries.with(index, [name, changed(source, inner, depth - 1)]))
}

function replaced(source: Source, at: unknown): unknown {
  const way = source.int(7)
  if (way === 6)
    return object([
      ['toString', 1],
      ['valueOf', at],
    ])
  if (way === 0) return scalar(source)
  if (way === 1) return value(source, 2)
  if (way === 2) return [at]
  if (way === 3) return object([[word(source), at]])
  if (typeof at === 'number') return source.pick([at + 1, -at, at + 0.5, String(at)])
  if (typeof at === 'string') return source.pick([at.slice(1), `${at}${at}`, at.toUpperCase(), `${at}\u0000`, word(source)])
  return null
}
