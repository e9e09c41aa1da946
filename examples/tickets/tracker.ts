/** The tracker's own data: one JSON file, always written whole. */
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'

export interface Tracker {
  /** The number of the next ticket. */
  next: number
  readonly tickets: Record<string, { readonly board: string; title: string }>
  links: string[]
}

export function read(file: string): Tracker {
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Tracker) : { next: 1, tickets: {}, links: [] }
}

/** Reads it, changes it, writes it. Nothing is awaited in between, so no other call sees half of it. */
export function change<T>(file: string, fn: (tracker: Tracker) => T): T {
  const tracker = read(file)
  const result = fn(tracker)
  writeFileSync(`${file}.new`, JSON.stringify(tracker))
  renameSync(`${file}.new`, file)
  return result
}
