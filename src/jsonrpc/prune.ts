/** Reads a message that is too deep without what makes it so: for answers of which a part may be missing, if it is known which. */
import type { FrameLimits } from './limits.ts'
import { isRecord } from './message.ts'
import { readJson } from './parse.ts'
import { scan } from './scan.ts'

/** On the entry of a list from which something was cut. No text can bring it. */
export const pruned: unique symbol = Symbol('pruned')

/** Stands where something was cut. A peer that writes it itself only makes its own entry count as cut. */
const hole = '\u0000too deep\u0000'

/**
 * The message without what is too deep, where all of that is in entries of the list `member` of its result; those entries are marked.
 * Undefined where something else is too deep. All other limits hold as for any message.
 */
export function parsePruned(text: string, limits: FrameLimits, member: string): Record<string, unknown> | undefined {
  const parts: string[] = []
  let cuts = 0
  let kept = 0
  scan(text, limits, (from, to) => {
    parts.push(text.slice(kept, from), JSON.stringify(hole))
    kept = to
    cuts++
  })
  parts.push(text.slice(kept))
  const message = readJson(parts.join(''))
  const result = isRecord(message) ? message['result'] : undefined
  const list = isRecord(result) ? result[member] : undefined
  if (!isRecord(message) || !Array.isArray(list)) return undefined
  for (const entry of list) {
    const found = holesIn(entry)
    if (found > 0) Object.assign(entry, { [pruned]: true })
    cuts -= found
  }
  return cuts === 0 ? message : undefined
}

function holesIn(entry: unknown): number {
  if (!isRecord(entry)) return 0
  let count = 0
  const todo: unknown[] = [entry]
  for (let next = todo.pop(); next !== undefined; next = todo.pop()) {
    for (const member of Object.values(next as object)) {
      if (member === hole) count++
      else if (typeof member === 'object' && member !== null) todo.push(member)
    }
  }
  return count
}
