/** The sagas of one store, as one process works on them: their log, who is alive, and how they are taken back. */
import { type Clock, type Duration, realClock, toMilliseconds } from '../core/clock.ts'
import { abandon, isIdle, listedUnits, type RollbackOptions, rollback, stuck } from '../core/journal/rollback.ts'
import { Runners } from '../core/journal/runners.ts'
import {
  compensationKey,
  isEnded,
  type Step,
  type StepFailure,
  type StepStatus,
  type Undone,
  type UnitStatus,
  unfinishedKey,
} from '../core/journal/unit.ts'
import { type UnitReport, Units } from '../core/journal/units.ts'
import { type Problem, problem } from '../core/problem.ts'
import { classify } from '../features/reliability/problem/classify.ts'
import { clip } from '../jsonrpc/limits.ts'
import { isRecord, type Params } from '../jsonrpc/message.ts'
import { type Store, storeWithin } from '../stores/store.ts'
import type { Client } from './client.ts'

export interface SagasOptions {
  /** Where the log is kept; what a crash must not lose belongs into one that lasts. */
  readonly store: Store
  /** The servers, each under the name by which the log knows it: the same in every process that may take over. */
  readonly clients: Readonly<Record<string, Client>>
  /** How long a silent process is waited for before another takes over. Default 6 s. */
  readonly lease?: Duration
  /** For tests: the time, and timers. Default: the real one. */
  readonly clock?: Clock
}

/** All sagas of a store have one owner: whoever has the store has them. */
export const owner = 'all'
/** Apart from what a server keeps in the same store. */
const part = 'saga/'
const joinMs = 60_000
/** One without a step has nothing to take back, and nobody who could be asked whether it lives. */
const emptyMs = 3_600_000

/** Sagas of one store, as one process works on them. */
export class Sagas {
  readonly units: Units
  readonly #runners: Runners
  readonly #clients: ReadonlyMap<string, Client>
  readonly #clock: Clock
  readonly #leaseMs: number
  #held = false

  constructor({ store: whole, clients, lease = '6s', clock = realClock }: SagasOptions) {
    const store = storeWithin(whole, part)
    this.#leaseMs = toMilliseconds(lease, 'lease')
    this.#runners = new Runners({ store, clock, id: crypto.randomUUID(), leaseMs: this.#leaseMs })
    this.units = new Units({ store, clock, runners: this.#runners, perOwner: 1000 })
    this.#clients = new Map(Object.entries(clients))
    this.#clock = clock
  }

  async begin(id: string, description: string | undefined): Promise<void> {
    // Held to the end, so that others see that somebody is at it.
    await this.#runners.hold()
    this.#held = true
    const said = description === undefined ? {} : { description }
    await this.units.begin(owner, id, { timeoutMs: emptyMs, irreversible: true, ...said })
  }

  close(): void {
    if (this.#held) this.#runners.release()
    this.#held = false
    this.#runners.close()
  }

  find(on: Client | string): readonly [name: string, client: Client] {
    for (const [name, client] of this.#clients) if (name === on || client === on) return [name, client]
    throw new TypeError(`A saga calls only the clients that it was given: ${[...this.#clients.keys()].join(', ')}`)
  }

  async rollBack(id: string, reason: string): Promise<UnitReport> {
    const until = this.#clock.now() + joinMs
    while (this.#clock.now() < until) {
      const report = await rollback(this.#options(), owner, id, reason)
      if (report !== undefined) return report
      await this.#pause(250)
    }
    throw problem('SERVER_UNAVAILABLE', 'Another process is still rolling the saga back', { retryAfter: 1000 })
  }

  /** Others took this process for dead and rolled the saga back; the effect of a step that came later is taken back now. */
  async late(id: string, step: Step, parameters: Params | undefined): Promise<never> {
    const inverse = step.inverse !== undefined && parameters !== undefined ? { inverse: { ...step.inverse, parameters } } : {}
    const undone = await this.#compensate(id, { ...step, ...inverse, id: `${step.id}/late` })
    const left = undone.status === 'failed' ? `, and could not be: ${undone.message}` : ''
    throw problem('TRANSACTION_CONFLICT', `The saga is over: what this step did was to be taken back${left}`)
  }

  /** Ends what others left: whose process has gone, or whose rollback nobody is at. */
  async resume(): Promise<readonly UnitReport[]> {
    const reports: UnitReport[] = []
    for await (const { unit } of listedUnits(this.units, unfinishedKey(owner, ''))) {
      if (isEnded(unit) || !(await this.#isOurs(unit.id))) continue
      if (unit.status === 'open' && (await this.#lives(unit.id))) continue
      const report = await rollback(this.#options(), owner, unit.id, unit.reason ?? 'The process that was at it has gone')
      if (report !== undefined) reports.push(report)
    }
    return reports
  }

  /** Those that somebody has to look at. */
  async stuck(): Promise<readonly UnitReport[]> {
    const found = await stuck(this.units)
    return Promise.all(found.map(async ({ unit }) => ({ unit, steps: await this.units.stepsOf(owner, unit.id) })))
  }

  /** Whoever does not know its servers leaves it to others. */
  async #isOurs(id: string): Promise<boolean> {
    return (await this.units.stepsOf(owner, id)).every(step => this.#clients.has(stepServer(step)))
  }

  /** Steps run where their saga was begun, so that the last one tells whether somebody is still at it. */
  async #lives(id: string): Promise<boolean> {
    const found = await this.units.get(owner, id)
    const last = found?.steps.at(-1)
    if (found === undefined) return true
    return last === undefined ? !isIdle(found.unit, this.#clock.now()) : this.#runners.isAlive(last.runner)
  }

  #options(): RollbackOptions {
    return {
      units: this.units,
      leaseMs: this.#leaseMs,
      compensate: (_, unit, step) => this.#compensate(unit.id, step),
      settled: (_, unit, step) => abandon(this.units, owner, unit, step),
    }
  }

  async #compensate(saga: string, step: Step): Promise<Undone> {
    const client = this.#clients.get(stepServer(step))
    const { inverse } = step
    if (client === undefined) return failed(problem('UNSUPPORTED', `No client was given for ${clip(stepServer(step))}`))
    if (inverse?.parameters === undefined)
      return failed(problem('OUTCOME_UNKNOWN', 'Nobody knows how it ended, and it is undone by its result'))
    try {
      const done = await client.callTool(inverse.target, inverse.parameters, {
        idempotencyKey: await compensationKey(saga, step.id),
      })
      return done.isError ? failed(done.problem ?? problem('SERVER_ERROR', clip(done.text, 200))) : { status: 'undone' }
    } catch (error) {
      return failed(classify(error))
    }
  }

  #pause(ms: number): Promise<void> {
    return new Promise(resolve => void this.#clock.setTimeout(resolve, ms))
  }
}

function failed({ code, message, category }: Problem): Undone {
  return { status: 'failed', code, message, category }
}

// How a saga ended, step by step, with the server of each.

export interface SagaStepReport {
  readonly id: string
  readonly server: string
  readonly tool: string
  /** `indeterminate`: begun, and nobody knows how it ended. `irreversible`: done, and nothing can take it back. */
  readonly status: StepStatus
  readonly error: StepFailure | undefined
}

export interface SagaReport {
  readonly id: string
  /** `partially_rolled_back`: some steps could not be taken back; they say why. */
  readonly status: UnitStatus
  readonly reason: string | undefined
  /** In the order in which they began. */
  readonly steps: readonly SagaStepReport[]
}

export function sagaReport({ unit, steps }: UnitReport): SagaReport {
  return {
    id: unit.id,
    status: unit.status,
    reason: unit.reason,
    steps: steps.map(step => ({
      id: step.id,
      server: stepServer(step),
      tool: step.target,
      status: step.status,
      error: step.failure,
    })),
  }
}

/** Where a step was made, and is taken back. */
function stepServer({ authority }: Step): string {
  return isRecord(authority) ? String(authority['server']) : ''
}
