/**
 * One unit of work over several servers, whether they know transactions or not. What takes each step back is written into a store
 * before the step is made, so that any process can end what another one left.
 */

import { type Clock, type Duration, realClock, toMilliseconds } from '../core/clock.ts'
import { abandon, isIdle, listedUnits, type RollbackOptions, rollback, stuck as stuckUnits } from '../core/journal/rollback.ts'
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
import type { Store } from '../stores/store.ts'
import { storeWithin } from '../stores/store.ts'
import type { CallToolOptions, ToolOutcome } from './api.ts'
import type { Client } from './client.ts'

/** How a step is taken back: by a call on the same server. */
export interface SagaUndo {
  readonly tool: string
  /**
   * The arguments of that call, or what makes them of the step's result; `result` is undefined before the step has ended, and
   * stays so where its end is unknown. Default: those of the step itself.
   */
  readonly arguments?: Params | ((call: { readonly result: unknown; readonly key: string }) => Params | undefined)
  readonly description?: string
}

/** How a step of a saga is made: as a call of `callTool`, and how it is taken back. */
export interface SagaStepOptions extends CallToolOptions {
  /** Absent: it cannot be taken back, and a rollback reports that. */
  readonly undo?: SagaUndo
  /** Names the step in reports. Default: its number. */
  readonly step?: string
}

/** How a saga is begun. */
export interface SagaOptions extends SagasOptions {
  /** Names it, so that it can be found again after a restart. Default: random. */
  readonly id?: string
  /** What it is for, in reports. */
  readonly description?: string
}

/** One unit of work over several servers; made by `saga`. */
export class Saga {
  readonly id: string
  readonly #sagas: Sagas
  #report: SagaReport | undefined = undefined

  constructor(id: string, sagas: Sagas) {
    this.id = id
    this.#sagas = sagas
  }

  /** How it ended; undefined while it has not. */
  get report(): SagaReport | undefined {
    return this.#report
  }

  /** Calls a tool of one of the servers, given as itself or by its name. */
  async step(on: Client | string, tool: string, args: Params = {}, options: SagaStepOptions = {}): Promise<ToolOutcome> {
    const { undo, step, ...rest } = options
    const { units } = this.#sagas
    const [server, client] = this.#sagas.find(on)
    const key = options.idempotencyKey ?? crypto.randomUUID()
    const enrolment = await units.enrol(owner, this.id, {
      ...(step === undefined ? {} : { id: step }),
      target: tool,
      key,
      inverse: undo === undefined ? undefined : inverseOf(undo, args, key),
      authority: { server },
    })
    let outcome: ToolOutcome
    try {
      outcome = await client.callTool(tool, args, { ...rest, idempotencyKey: key })
    } catch (error) {
      const why = classify(error)
      // Where the line broke nobody knows whether it was done.
      await (why.category === 'transient' ? enrolment.lost() : enrolment.failed({ code: why.code, message: why.message }))
      throw error
    }
    if (outcome.isError) {
      const why = outcome.problem
      if (why?.code === 'OUTCOME_UNKNOWN' || why?.code === 'OPERATION_TIMEOUT') await enrolment.lost()
      else await enrolment.failed({ code: why?.code ?? 'SERVER_ERROR', message: why?.message ?? clip(outcome.text, 200) })
    } else {
      const parameters = undo === undefined ? undefined : parametersOf(undo, args, key, outcome.structured ?? outcome.text)
      if (!(await enrolment.done(parameters))) await this.#sagas.late(this.id, enrolment.step, parameters)
    }
    return outcome
  }

  /** Ends it well: what was done stays. Refused where a step runs, or has an unknown end. */
  async commit(): Promise<SagaReport> {
    return this.#ended(await this.#sagas.units.commit(owner, this.id))
  }

  /** Takes back what was done, the last step first, on whichever server it was, and reports on each. */
  async rollback(reason = 'It was asked for'): Promise<SagaReport> {
    return this.#ended(await this.#sagas.rollBack(this.id, reason))
  }

  /** Without a commit it is rolled back. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#report === undefined) await this.rollback('It was left without a commit')
  }

  #ended(report: UnitReport): SagaReport {
    this.#sagas.close()
    this.#report = sagaReport(report)
    return this.#report
  }
}

function inverseOf(undo: SagaUndo, args: Params, key: string) {
  const { tool, description } = undo
  let parameters: Params | undefined
  try {
    parameters = parametersOf(undo, args, key, undefined)
  } catch {
    // Written for the result, which is not there yet.
  }
  return { target: tool, ...(parameters && { parameters }), ...(description === undefined ? {} : { description }) }
}

function parametersOf(undo: SagaUndo, args: Params, key: string, result: unknown): Params | undefined {
  return typeof undo.arguments === 'function' ? undo.arguments({ result, key }) : (undo.arguments ?? args)
}

async function begin(options: SagaOptions): Promise<Saga> {
  const { id = crypto.randomUUID(), description } = options
  const sagas = new Sagas(options)
  await sagas.begin(id, description)
  return new Saga(id, sagas)
}

async function resume(options: SagasOptions): Promise<readonly SagaReport[]> {
  const sagas = new Sagas(options)
  return (await sagas.resume()).map(sagaReport)
}

async function stuck(options: Pick<SagasOptions, 'store' | 'clock'>): Promise<readonly SagaReport[]> {
  const sagas = new Sagas({ ...options, clients: {} })
  return (await sagas.stuck()).map(sagaReport)
}

/**
 * Begins a saga. `saga.resume` takes back what sagas of processes that are gone have left, and reports on those that it ended;
 * call it at start, and now and then. `saga.stuck` reports on those of which something could not be taken back, for a day, and on
 * those whose rollback has not ended.
 * @example
 * await using trip = await saga({ store, clients: { flights, hotels } })
 * await trip.step(flights, 'book', { to: 'OSL' }, { undo: { tool: 'cancel', arguments: ({ result }) => ({ id: result }) } })
 * await trip.commit()
 */
export const saga: typeof begin & { readonly resume: typeof resume; readonly stuck: typeof stuck } = Object.assign(begin, {
  resume,
  stuck,
})

// The sagas of one store, as one process works on them: their log, who is alive, and how they are taken back.

/** The store and the servers of sagas. */
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
    const found = await stuckUnits(this.units)
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

/** How one step of a saga stands or ended. */
export interface SagaStepReport {
  readonly id: string
  readonly server: string
  readonly tool: string
  /** `indeterminate`: begun, and nobody knows how it ended. `irreversible`: done, and nothing can take it back. */
  readonly status: StepStatus
  readonly error: StepFailure | undefined
}

/** How a saga stands or ended, step by step. */
export interface SagaReport {
  readonly id: string
  /** `partially_rolled_back`: some steps could not be taken back; they say why. */
  readonly status: UnitStatus
  readonly reason: string | undefined
  /** In the order in which they began. */
  readonly steps: readonly SagaStepReport[]
}

/** The report of a saga, from its record. */
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
