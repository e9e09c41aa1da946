/** What is fuzzed: how an input is made, and what must hold for it. */
import type { FakeClock } from '../../src/testing/index.ts'
import type { Source } from './source.ts'

export interface Target<Input = unknown> {
  readonly name: string
  make(source: Source): Input
  /** Throws when something that must hold does not. Whatever the code under test throws beyond what it documents is a crash too. */
  check(input: Input): void | Promise<void>
  /** Ends what the target keeps between inputs. */
  close?(): Promise<void>
}

/** Keeps the type of the input between `make` and `check`. */
export function target<Input>(parts: Target<Input>): Target {
  return parts as Target
}

export class Broken extends Error {
  override readonly name = 'Broken'
}

export function demand(holds: boolean, what: () => string): asserts holds {
  if (!holds) throw new Broken(what())
}

/** Both as JSON: for values that came from JSON. */
export function demandSame(got: unknown, want: unknown, what: string): void {
  const one = JSON.stringify(got)
  const other = JSON.stringify(want)
  demand(one === other, () => `${what}: got ${one}, want ${other}`)
}

/** Runs what may throw, but only errors that are documented. */
export function attempt<T>(run: () => T, documented: (error: unknown) => boolean): T | undefined {
  try {
    return run()
  } catch (error) {
    if (documented(error)) return undefined
    throw error
  }
}

export function turn(): Promise<void> {
  return new Promise(resolve => setImmediate(resolve))
}

/** So long what must come may take: much longer than it does, for other processes want the machine too. */
const waitMs = 10_000

/** Turn by turn, until it is so or patience is at its end. */
export async function withRetries(isOver: () => boolean, each: (waited: number) => void): Promise<void> {
  let end = Number.POSITIVE_INFINITY
  for (let waited = 0; !isOver(); waited++) {
    await turn()
    each(waited)
    if (waited < 300) continue
    if (waited === 300) end = performance.now() + waitMs
    if (performance.now() > end) return
    await new Promise(resolve => setTimeout(resolve, 1))
  }
}

/** Waits for what must end by itself, with time moved on by hand: whoever waits for a peer gives up in the end. */
export async function outlasted<T>(work: Promise<T>, clock: FakeClock): Promise<T> {
  let over = false
  const noted = work.finally(() => {
    over = true
  })
  noted.catch(() => {})
  await withRetries(
    () => over,
    waited => {
      if (waited > 2) clock.advance(waited % 8 === 0 ? 700_000 : 10_000)
    },
  )
  demand(over, () => 'something never ended')
  return noted
}
