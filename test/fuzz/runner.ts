/** Runs inputs, one after the other, and says of each whether it crashed or was slow. */

import { shrink } from './shrink.ts'
import { Source } from './source.ts'
import { Broken, type Target, turn } from './target.ts'

export const slowMs = 50

export interface Finding {
  readonly kind: 'crash' | 'slow'
  readonly target: string
  /** Which input; undefined for one that was given by its choices. */
  readonly input: number | undefined
  readonly why: string
  readonly choices: readonly number[]
}

/** Rejections that nobody handled and errors that nobody caught, from anywhere. */
const loose: unknown[] = []
let watched = false

export function watchLoose(): void {
  if (watched) return
  watched = true
  process.on('unhandledRejection', reason => loose.push(reason))
  process.on('uncaughtException', error => loose.push(error))
}

const prototypes = [Object.prototype, Array.prototype, Function.prototype, String.prototype, Promise.prototype]
const membersBefore = prototypes.map(each => Reflect.ownKeys(each).length)

function checkPrototypes(): void {
  for (let at = 0; at < prototypes.length; at++) {
    const added = Reflect.ownKeys(prototypes[at] as object).slice(membersBefore[at])
    for (const name of added) Reflect.deleteProperty(prototypes[at] as object, name)
    if (added.length > 0) throw new Broken(`a prototype was given ${added.map(String).join(', ')}`)
  }
}

/** One input: undefined if all held, else why not. */
async function attemptOnce(target: Target, source: Source, patient: boolean): Promise<string | undefined> {
  try {
    const input = target.make(source)
    const done = target.check(input)
    if (done !== undefined) await done
    checkPrototypes()
    if (patient) {
      await turn()
      if (loose.length > 0) throw loose[0]
    }
    return undefined
  } catch (error) {
    return told(error)
  } finally {
    if (patient) loose.length = 0
  }
}

function told(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}

export class Runner {
  readonly seed: number
  readonly findings: Finding[] = []
  readonly #inputs = new Map<string, number>()

  constructor(seed: number) {
    this.seed = seed
    watchLoose()
  }

  get inputs(): number {
    let sum = 0
    for (const count of this.#inputs.values()) sum += count
    return sum
  }

  countOf(target: Target): number {
    return this.#inputs.get(target.name) ?? 0
  }

  findingsOf({ name }: Target): number {
    return this.findings.filter(finding => finding.target === name).length
  }

  /** Runs inputs of one target until the time is over or so many have run. */
  async slice(target: Target, until: number, most = Number.POSITIVE_INFINITY): Promise<void> {
    const from = this.countOf(target)
    let at = from
    for (const before = this.findings.length; at - from < most && this.findings.length === before; at++) {
      const begun = performance.now()
      if (begun >= until) break
      const input = target.make(Source.random(this.seed, target.name, at))
      const started = performance.now()
      try {
        const done = target.check(input)
        if (done !== undefined) await done
        checkPrototypes()
      } catch (error) {
        await this.one(target, at)
        if (this.findings.length === before) this.#found('crash', target, at, `only after others: ${told(error)}`, [])
        continue
      }
      // Time on the clock is never less than time on the processor, and cheaper to ask for.
      if (performance.now() - started > slowMs) await this.#timed(target, at)
    }
    this.#inputs.set(target.name, at)
    await turn()
    if (loose.length === 0) return
    // Whose it was shows when each runs alone.
    const before = this.findings.length
    const [reason] = loose.splice(0)
    for (let suspect = from; suspect < at && this.findings.length === before; suspect++) await this.one(target, suspect)
    if (this.findings.length === before) this.#found('crash', target, from, `between ${from} and ${at}: ${told(reason)}`, [])
  }

  /** One input by its number, with all that is to be known of it if it fails. */
  async one(target: Target, index: number): Promise<void> {
    const choices: number[] = []
    const why = await attemptOnce(target, Source.random(this.seed, target.name, index, choices), true)
    if (why === undefined) return this.#timed(target, index)
    const small = await shrink(choices, async fewer => (await attemptOnce(target, Source.replay(fewer), true)) !== undefined)
    this.#found('crash', target, index, (await attemptOnce(target, Source.replay(small), true)) ?? why, small)
  }

  /** One input by its choices. */
  async replay(target: Target, choices: readonly number[]): Promise<void> {
    const why = await attemptOnce(target, Source.replay(choices), true)
    if (why !== undefined) this.#found('crash', target, undefined, why, choices)
  }

  /** Slow once may be the collector or the compiler; three times of three it is the input. */
  async #timed(target: Target, index: number): Promise<void> {
    let least = Number.POSITIVE_INFINITY
    for (let run = 0; run < 3 && least > slowMs; run++) {
      const input = target.make(Source.random(this.seed, target.name, index))
      const before = process.threadCpuUsage()
      await target.check(input)
      const { user, system } = process.threadCpuUsage(before)
      least = Math.min(least, (user + system) / 1_000)
    }
    if (least <= slowMs) return
    const choices: number[] = []
    target.make(Source.random(this.seed, target.name, index, choices))
    this.#found('slow', target, index, `${least.toFixed(1)} ms of processor time at the least, three times of three`, choices)
  }

  #found(kind: Finding['kind'], { name }: Target, input: number | undefined, why: string, choices: readonly number[]): void {
    this.findings.push({ kind, target: name, input, why, choices })
  }
}
