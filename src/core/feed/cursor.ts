/**
 * The cursor of a feed as others carry it: its position, and which feed it is a position in. A feed that was lost and begun anew
 * counts from 1 again, and a bare number of the old one would pass for a place in the new one. Permits nothing.
 */
import type { Position } from '../../stores/store.ts'

const form = /^([A-Za-z0-9_-]{1,40})\.(0|[1-9a-z][0-9a-z]{0,10})$/

export function cursorText(era: string, position: Position): string {
  return `${era}.${position.toString(36)}`
}

/** The position. 'lost': of another feed, so that whatever there is now is new to its holder. Undefined: no cursor at all. */
export function readCursor(era: string, text: string): Position | 'lost' | undefined {
  const [, found, digits = ''] = form.exec(text) ?? []
  const position = Number.parseInt(digits, 36)
  if (found === undefined || !Number.isSafeInteger(position)) return undefined
  return found === era ? position : 'lost'
}
