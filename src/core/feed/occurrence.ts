/** Something that happened, as it lies in a feed. */
import { isRecord } from '../../jsonrpc/message.ts'
import type { LogEntry, Position } from '../../stores/store.ts'

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
  readonly cursor: Position
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
