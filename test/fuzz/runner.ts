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

/** The time on the clock and on the processor, in milliseconds. */
export interface Times {
  readonly now: () => number
  readonly cpu: () => number
}

const realTimes: Times = {
  now: () => performance.now(),
  cpu: () => {
    const { user, system } = process.threadCpuUsage()
    return (user + system) / 1_000
  },
}

export interface RunnerOptions {
  readonly times?: Times
  /** Where several share the inputs: this one's first, and how far it is to its next. */
  readonly first?: number
  readonly stride?: number
}

export class Runner {
  readonly seed: number
  readonly #first: number
  readonly #stride: number
  readonly #times: Times
  readonly findings: Finding[] = []
  readonly #inputs = new Map<string, number>()

  constructor(seed: number, { times = realTimes, first = 0, stride = 1 }: RunnerOptions = {}) {
    this.seed = seed
    this.#first = first
    this.#stride = stride
    this.#times = times
    watchLoose()
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
    const before = this.findings.length
    let count = from
    for (; count - from < most && this.findings.length === before; count++) {
      if (this.#times.now() >= until) break
      await this.#quickly(target, this.#indexOf(count))
    }
    this.#inputs.set(target.name, count)
    await turn()
    if (loose.length === 0) return
    // Whose it was shows when each runs alone.
    const [reason] = loose.splice(0)
    for (let suspect = from; suspect < count && this.findings.length === before; suspect++)
      await this.one(target, this.#indexOf(suspect))
    if (this.findings.length > before) return
    const [first, last] = [this.#indexOf(from), this.#indexOf(count - 1)]
    this.#found('crash', target, first, `between ${first} and ${last}: ${told(reason)}`, [])
  }

  #indexOf(count: number): number {
    return this.#first + count * this.#stride
  }

  /** An input of which nothing is kept unless it fails. */
  async #quickly(target: Target, index: number): Promise<void> {
    const input = target.make(Source.random(this.seed, target.name, index))
    const started = this.#times.now()
    try {
      const done = target.check(input)
      if (done !== undefined) await done
      checkPrototypes()
    } catch (error) {
      const before = this.findings.length
      await this.one(target, index)
      if (this.findings.length === before) this.#found('crash', target, index, `only after others: ${told(error)}`, [])
      return
    }
    // Time on the clock is never less than time on the processor, and cheaper to ask for.
    if (this.#times.now() - started > slowMs) await this.#timed(target, index)
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
      const before = this.#times.cpu()
      await target.check(input)
      least = Math.min(least, this.#times.cpu() - before)
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
