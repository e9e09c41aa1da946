/** What is asked of the server: by the seed, a mixture of everything that must last, several things at once, the undecided first. */
import { Source } from '../fuzz/source.ts'
import { KeyedCall } from './calls.ts'
import { Later, type Line, wires } from './line.ts'
import { broken, type Finding, type Operation } from './operation.ts'
import { Trip } from './sagas.ts'
import { CarriedNotes, KeptNotes } from './states.ts'
import { WholeTransaction } from './transactions.ts'
import { Visit } from './visits.ts'

/** Asked for at once. */
const slots = 14
/** Of these so many at most go on with what earlier lives left. */
const slotsForOld = 8
/** A server that is overtaxed is not asked for more and more. */
const mostUndecided = 60
const laterMs = 40
/** How long everything may take to be decided when nobody is killed any more. */
const settleMs = 45_000

export interface WorkloadOptions {
  /** Calls are repeated under other keys. */
  readonly careless?: boolean
  /** Nothing but calls that must not happen twice. */
  readonly onlyCalls?: boolean
}

export class Workload {
  readonly findings: Finding[] = []
  readonly #source: Source
  readonly #seeded: (index: number) => Source
  readonly #careless: boolean
  readonly #onlyCalls: boolean
  readonly #undecided = new Set<Operation>()
  readonly #running = new Set<Operation>()
  readonly decided: Operation[] = []
  #count = 0

  constructor(seed: number, store: string, { careless = false, onlyCalls = false }: WorkloadOptions = {}) {
    this.#source = Source.random(seed, `turns ${store}`, 0)
    this.#seeded = index => Source.random(seed, `work ${store}`, index)
    this.#careless = careless
    this.#onlyCalls = onlyCalls
  }

  get all(): readonly Operation[] {
    return [...this.decided, ...this.#undecided]
  }

  /** Keeps the server busy as long as it lives. */
  async keepBusy(line: Line): Promise<void> {
    await Promise.all(Array.from({ length: slots }, (_, slot) => this.#work(line, slot < slotsForOld)))
  }

  /** Until nothing is undecided and everything that was answered is answered again. */
  async settle(line: Line): Promise<void> {
    const until = performance.now() + settleMs
    const left = new Set(this.#undecided)
    await inTurns([...left], async operation => this.#until(line, until, operation, () => this.#try(line, operation)))
    await inTurns(this.decided, async operation =>
      this.#until(line, until, operation, async () => {
        this.findings.push(...(await operation.check(line)))
        return true
      }),
    )
  }

  async #until(line: Line, until: number, operation: Operation, attempt: () => Promise<boolean>): Promise<void> {
    while (line.live) {
      try {
        if (await attempt()) return
      } catch (error) {
        if (!(error instanceof Later)) return void this.findings.push(broken(`${operation.id}: ${messageOf(error)}`))
        if (performance.now() > until)
          return void this.findings.push(broken(`${operation.id} is never decided: ${error.message}`))
      }
      if (performance.now() > until) return void this.findings.push(broken(`${operation.id} is never decided`))
      await pause(laterMs)
    }
  }

  async #work(line: Line, old: boolean): Promise<void> {
    while (line.live) {
      if (this.#source.int(6) === 0) await this.#checkOne(line)
      const operation = this.#choose(old)
      if (operation === undefined) await pause(laterMs)
      else if (!(await this.#try(line, operation))) await pause(laterMs)
    }
  }

  /** Whether it is decided. */
  async #try(line: Line, operation: Operation): Promise<boolean> {
    this.#running.add(operation)
    try {
      await operation.run(line)
    } catch (error) {
      if (error instanceof Later || (await line.isDeath())) return false
      this.findings.push(broken(`${operation.id}: ${messageOf(error)}`))
    } finally {
      this.#running.delete(operation)
    }
    this.#undecided.delete(operation)
    this.decided.push(operation)
    return true
  }

  /** What was acknowledged in an earlier life is still there in this one. */
  async #checkOne(line: Line): Promise<void> {
    if (this.decided.length === 0) return
    // Mostly a late one: those are the ones that a crash could have lost.
    const back = Math.min(this.decided.length, 1 + this.#source.int(30))
    const operation = this.decided.at(-back)
    try {
      this.findings.push(...((await operation?.check(line)) ?? []))
    } catch (error) {
      if (error instanceof Later || (await line.isDeath())) return
      this.findings.push(broken(`${operation?.id}: ${messageOf(error)}`))
    }
  }

  #choose(old: boolean): Operation | undefined {
    if (old) for (const operation of this.#undecided) if (!this.#running.has(operation)) return this.#again(operation)
    return this.#undecided.size < mostUndecided ? this.#new() : undefined
  }

  /** The next time it is another's turn first. */
  #again(operation: Operation): Operation {
    this.#undecided.delete(operation)
    this.#undecided.add(operation)
    return operation
  }

  #new(): Operation {
    const operation = this.#make(++this.#count)
    this.#undecided.add(operation)
    return operation
  }

  /** The same under the same number, whatever the lives before it came to. */
  #make(number: number): Operation {
    const source = this.#seeded(number)
    const revision = source.pick(wires)
    const kind = this.#onlyCalls ? 0 : source.int(11)
    if (kind < 3) return new KeyedCall({ id: `act-${number}`, tool: 'act', revision, careless: this.#careless })
    if (kind < 4) return new KeyedCall({ id: `set-${number}`, tool: 'set', revision, careless: this.#careless })
    if (kind < 6) {
      const steps = Array.from({ length: 2 + source.int(2) }, () => source.pick(['make', 'make', 'mint', 'forge'] as const))
      const named = source.int(2) === 0
      return new WholeTransaction({ id: `tx-${number}`, revision, steps, named, commit: source.int(2) === 0 })
    }
    if (kind < 8) return new Trip({ id: `trip-${number}`, revision, commit: source.int(2) === 0 })
    if (kind < 9) return new KeptNotes(`notes-${number}`, 1 + source.int(4))
    return kind < 10 ? new CarriedNotes(`carried-${number}`, source.once(3)) : new Visit(`visit-${number}`)
  }
}

/** Some at once, all in the end. */
async function inTurns<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const waiting = [...items]
  const take = async (): Promise<void> => {
    for (let item = waiting.shift(); item !== undefined; item = waiting.shift()) await work(item)
  }
  await Promise.all(Array.from({ length: slots }, take))
}

function pause(ms: number): Promise<void> {
  return new Promise(resolve => void setTimeout(resolve, ms))
}

function messageOf(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error)
}
