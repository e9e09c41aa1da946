/**
 * What happened in the world, whoever died over it: each effect is a line of a file that only grows. A line that was written
 * survives the end of its process by a signal; nothing here is kept in its memory.
 */
import { closeSync, openSync, readFileSync, writeSync } from 'node:fs'

/** `unaimed`: a write of the store that no failpoint names. */
export type Effect = 'unaimed' | 'act' | 'set' | 'make' | 'forge' | 'unmake'

export interface Witness {
  saw(effect: Effect, id: string): void
  close(): void
}

export function openWitness(file: string): Witness {
  const handle = openSync(file, 'a')
  return {
    saw: (effect, id) => void writeSync(handle, `${effect} ${id}\n`),
    close: () => closeSync(handle),
  }
}

export interface Seen {
  /** How often. */
  times(effect: Effect, id: string): number
  /** The line of the first one, from 0; undefined where there is none. */
  first(effect: Effect, id: string): number | undefined
  /** All to which it happened. */
  all(effect: Effect): readonly string[]
}

export function readWitness(file: string): Seen {
  const lines = readFileSync(file, 'utf8').split('\n')
  const found = new Map<string, { first: number; times: number }>()
  for (const [at, line] of lines.entries()) {
    const known = found.get(line)
    if (known === undefined) found.set(line, { first: at, times: 1 })
    else known.times++
  }
  return {
    times: (effect, id) => found.get(`${effect} ${id}`)?.times ?? 0,
    all: effect => [...found.keys()].filter(line => line.startsWith(`${effect} `)).map(line => line.slice(effect.length + 1)),
    first: (effect, id) => found.get(`${effect} ${id}`)?.first,
  }
}
