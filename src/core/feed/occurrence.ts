/** An entry of a feed, the cursor that names its position, and how the last position of a log is found. */
import { isRecord } from '../../jsonrpc/message.ts'
import type { LogEntry, LogPosition, Store } from '../../stores/store.ts'

export interface Occurrence {
  /** Unlike any other's: who gets it twice knows it by this. */
  readonly id: string
  readonly name: string
  /** Milliseconds since the epoch. */
  readonly at: number
  readonly data?: unknown
  /** Who says so. */
  readonly origin?: string
  /** Where it lies: reading goes on after it. */
  readonly cursor: LogPosition
}

export function writeOccurrence(occurrence: Omit<Occurrence, 'cursor'>): string {
  return JSON.stringify(occurrence)
}

const lengths = new WeakMap<Occurrence, number>()

/** Of the text that it was read from: what it takes to hold it, roughly. */
export function lengthOf(occurrence: Occurrence): number {
  return lengths.get(occurrence) ?? 0
}

export function readOccurrence({ value, position }: LogEntry): Occurrence {
  const found: unknown = JSON.parse(value)
  if (isRecord(found) && typeof found.id === 'string' && typeof found.name === 'string' && typeof found.at === 'number') {
    const occurrence = { ...(found as unknown as Omit<Occurrence, 'cursor'>), cursor: position }
    lengths.set(occurrence, value.length)
    return occurrence
  }
  throw new Error('An occurrence cannot be read: was it written by another program?')
}

// The cursor of a feed as others carry it: its position, and which feed it is a position in. A feed that was lost and begun anew
// counts from 1 again, and a bare number of the old one would pass for a place in the new one. Permits nothing.

const form = /^([A-Za-z0-9_-]{1,40})\.(0|[1-9a-z][0-9a-z]{0,10})$/

export function cursorText(era: string, position: LogPosition): string {
  return `${era}.${position.toString(36)}`
}

/** The position. 'lost': of another feed, so that whatever there is now is new to its holder. Undefined: no cursor at all. */
export function readCursor(era: string, text: string): LogPosition | 'lost' | undefined {
  const [, found, digits = ''] = form.exec(text) ?? []
  const position = Number.parseInt(digits, 36)
  if (found === undefined || !Number.isSafeInteger(position)) return undefined
  return found === era ? position : 'lost'
}

// The last position of a log, which a store does not tell: found by doubling steps and then halving them.

/** `known` is a position that was there once, to begin from. 0: the log is empty. */
export async function lastPosition(store: Store, log: string, known: LogPosition): Promise<LogPosition> {
  const from = async (position: LogPosition): Promise<LogPosition | undefined> =>
    (await store.read(log, { after: position - 1, limit: 1 }))[0]?.position
  let last = (known > 0 ? await from(known) : undefined) ?? (await from(1)) ?? 0
  if (last === 0) return 0
  let step = 1
  for (let found = await from(last + step); found !== undefined; found = await from(last + step)) {
    last = found
    step *= 2
  }
  for (step /= 2; step >= 1; step /= 2) last = (await from(last + step)) ?? last
  return last
}
