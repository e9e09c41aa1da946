/**
 * One unit of work over several servers, whether they support transactions or not. The undo call of each step is stored before
 * the step runs, so that any process can finish what another one left.
 */

import { type Clock, type Duration, pauseFor, realClock, toMilliseconds } from '../core/clock.ts'
import { ProcessLeases } from '../core/journal/process-leases.ts'
import { abandon, findStuckUnits, isIdle, listedUnits, type RollbackOptions, rollback } from '../core/journal/rollback.ts'
import {
  compensationKey,
  isEnded,
  type Step,
  type StepFailure,
  type StepStatus,
  type UndoOutcome,
  type UnitStatus,
  unfinishedKey,
} from '../core/journal/unit.ts'
import { type UnitReport, Units } from '../core/journal/units.ts'
import { type Problem, problem } from '../core/problem.ts'
import { classify } from '../features/reliability/problem/classify.ts'
import { clip } from '../jsonrpc/limits.ts'
import { isRecord, type Params } from '../jsonrpc/message.ts'
import { prefixedStore, type Store } from '../stores/store.ts'
import type { CallToolOptions, ToolOutcome } from './api.ts'
import type { Client } from './client.ts'

/** How a step is undone: by a call on the same server. */
interface SagaUndo {
  /** The tool that undoes the step. */
  readonly tool: string
  /**
   * The arguments of that call, or a function of the step's result; `result` is undefined before the step has ended, and if its
   * outcome is unknown. Default: the arguments of the step.
   */
  readonly arguments?:
    | Params
    | ((call: {
        /** The structured content or text that the step returned. */
        readonly result: unknown
        /** The idempotency key of the step. */
        readonly key: string
      }) => Params | undefined)
  /** What the undo does, for reports. Default: the name of the tool. */
  readonly description?: string
}

/** The options of a step: those of `callTool`, and how it is undone. */
export interface SagaStepOptions extends CallToolOptions {
  /** How the step is undone. Default: it cannot be undone, and a rollback reports that. */
  readonly undo?: SagaUndo
  /** Names the step in reports. Default: its number. */
  readonly step?: string
}

/** Options of `saga`. */
export interface SagaOptions extends SagasOptions {
  /** The id by which the saga can be found after a restart. Default: random. */
  readonly id?: string
  /** What it is for, in reports. Default: none. */
  readonly description?: string
}

/** Work across several servers that is committed or undone as a whole; made by `saga`. */
export class Saga {
  /** The id of the saga, in the store and in reports. */
  readonly id: string
  readonly #sagas: Sagas
  #report: SagaReport | undefined = undefined

  constructor(id: string, sagas: Sagas) {
    this.id = id
    this.#sagas = sagas
  }

  /** The final report; undefined while it is open. */
  get report(): SagaReport | undefined {
    return this.#report
  }

  /** Calls a tool of one of the servers, given as client or by name. */
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
      // After a connection failure nobody knows whether the step ran.
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

  /** Keeps what was done. Refused while a step runs, or if the outcome of one is unknown. */
  async commit(): Promise<SagaReport> {
    return this.#ended(await this.#sagas.units.commit(owner, this.id))
  }

  /** Undoes what was done on all servers, the last step first, and reports on each. */
  async rollback(reason = 'The rollback was requested'): Promise<SagaReport> {
    return this.#ended(await this.#sagas.rollBack(this.id, reason))
  }

  /** Rolls back, unless it was committed. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#report === undefined) await this.rollback('The saga was disposed without a commit')
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
    // The function needs the result, which is not available yet.
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
  return (await new Sagas(options).resume()).map(sagaReport)
}

async function stuck(options: Pick<SagasOptions, 'store' | 'clock'>): Promise<readonly SagaReport[]> {
  return (await new Sagas({ ...options, clients: {} }).stuck()).map(sagaReport)
}

/**
 * Begins a saga: steps on several servers that are undone together if one fails. The log in `store` makes sure that a crash in
 * between is undone by the next process that calls `saga.resume`.
 * @example
 * await using trip = await saga({ store, clients: { flights, hotels } })
 * await trip.step(flights, 'book', { to: 'OSL' }, { undo: { tool: 'cancel', arguments: ({ result }) => ({ id: result }) } })
 * await trip.commit()
 */
export const saga: typeof begin & {
  /** Rolls back sagas of processes that have ended, and returns their reports. Call it at startup and at intervals. */
  readonly resume: typeof resume
  /** Returns reports on sagas that could not be rolled back completely, or whose rollback is still running. */
  readonly stuck: typeof stuck
} = Object.assign(begin, {
  resume,
  stuck,
})

// The sagas of one store, as one process works on them: their log, which processes are alive, and the rollback.

/** The store and the servers of a saga. */
export interface SagasOptions {
  /** Where the log of the saga is kept. Use a durable store if it must survive a crash. */
  readonly store: Store
  /** The servers, by the names that the log uses. Every process that may resume the saga must use the same names. */
  readonly clients: Readonly<Record<string, Client>>
  /** How long a process may be silent before another one takes over. Default 6 s. */
  readonly lease?: Duration
  /** For tests: the time, and timers. Default: the real one. */
  readonly clock?: Clock
}

/** All sagas of a store have the same owner: access to the store is access to all of them. */
const owner = 'all'
/** Key prefix that separates sagas from the data of a server in the same store. */
const part = 'saga/'
const joinMs = 60_000
/** A saga without steps has nothing to undo; it expires after this time. */
const emptyMs = 3_600_000

/** Sagas of one store, as one process works on them. */
class Sagas {
  readonly units: Units
  readonly #runners: ProcessLeases
  readonly #clients: ReadonlyMap<string, Client>
  readonly #clock: Clock
  readonly #leaseMs: number
  #held = false

  constructor({ store: whole, clients, lease = '6s', clock = realClock }: SagasOptions) {
    const store = prefixedStore(whole, part)
    this.#leaseMs = toMilliseconds(lease, 'lease')
    this.#runners = new ProcessLeases({ store, clock, id: crypto.randomUUID(), leaseMs: this.#leaseMs })
    this.units = new Units({ store, clock, runners: this.#runners, perOwner: 1000 })
    this.#clients = new Map(Object.entries(clients))
    this.#clock = clock
  }

  async begin(id: string, description: string | undefined): Promise<void> {
    // Held until the end, so that other processes see that this one is alive.
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
    throw new TypeError(`This client is not part of the saga. Its clients are ${[...this.#clients.keys()].join(', ')}`)
  }

  async rollBack(id: string, reason: string): Promise<UnitReport> {
    const until = this.#clock.now() + joinMs
    while (this.#clock.now() < until) {
      const report = await rollback(this.#options(), owner, id, reason)
      if (report !== undefined) return report
      await pauseFor(this.#clock, 250)
    }
    throw problem('SERVER_UNAVAILABLE', 'Another process is still rolling back the saga', { retryAfter: 1000 })
  }

  /** Another process considered this one dead and rolled the saga back. A step that ended later is undone now. */
  async late(id: string, step: Step, parameters: Params | undefined): Promise<never> {
    const inverse = step.inverse !== undefined && parameters !== undefined ? { inverse: { ...step.inverse, parameters } } : {}
    const undone = await this.#compensate(id, { ...step, ...inverse, id: `${step.id}/late` })
    const outcome = undone.status === 'failed' ? `could not be undone: ${undone.message}` : 'was undone'
    throw problem('TRANSACTION_CONFLICT', `The saga has already ended, so this late step ${outcome}`)
  }

  /** Finishes sagas whose process is gone, and rollbacks that nobody runs. */
  async resume(): Promise<readonly UnitReport[]> {
    const reports: UnitReport[] = []
    for await (const { unit } of listedUnits(this.units, unfinishedKey(owner, ''))) {
      if (isEnded(unit) || !(await this.#isOurs(unit.id))) continue
      if (unit.status === 'open' && (await this.#lives(unit.id))) continue
      const report = await rollback(this.#options(), owner, unit.id, unit.reason ?? 'The process that ran the saga has ended')
      if (report !== undefined) reports.push(report)
    }
    return reports
  }

  /** Sagas that need attention. */
  async stuck(): Promise<readonly UnitReport[]> {
    const found = await findStuckUnits(this.units)
    return Promise.all(found.map(async ({ unit }) => ({ unit, steps: await this.units.stepsOf(owner, unit.id) })))
  }

  /** A process that does not know all servers of a saga leaves it to others. */
  async #isOurs(id: string): Promise<boolean> {
    return (await this.units.stepsOf(owner, id)).every(step => this.#clients.has(stepServer(step)))
  }

  /** Steps run in the process that began the saga, so the last one shows whether it is alive. */
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

  async #compensate(saga: string, step: Step): Promise<UndoOutcome> {
    const client = this.#clients.get(stepServer(step))
    const { inverse } = step
    if (client === undefined)
      return failed(problem('UNSUPPORTED', `The saga has no client for the server ${clip(stepServer(step))}`))
    if (inverse?.parameters === undefined)
      return failed(problem('OUTCOME_UNKNOWN', 'The outcome of this step is unknown, and its compensation needs the result'))
    try {
      const done = await client.callTool(inverse.target, inverse.parameters, {
        idempotencyKey: await compensationKey(saga, step.id),
      })
      return done.isError ? failed(done.problem ?? problem('SERVER_ERROR', clip(done.text, 200))) : { status: 'undone' }
    } catch (error) {
      return failed(classify(error))
    }
  }
}

function failed({ code, message, category }: Problem): UndoOutcome {
  return { status: 'failed', code, message, category }
}

/** The state of one step of a saga. */
interface SagaStepReport {
  /** The name of the step: the option `step`, or its number. */
  readonly id: string
  /** The name of the server, as in `clients`. */
  readonly server: string
  /** The tool that was called. */
  readonly tool: string
  /** `indeterminate`: the step began, and its outcome is unknown. `irreversible`: it was done and cannot be undone. */
  readonly status: StepStatus
  /** Why the step failed, or could not be undone. */
  readonly error: StepFailure | undefined
}

/** The state of a saga and of each of its steps. */
export interface SagaReport {
  /** The id of the saga. */
  readonly id: string
  /** `partially_rolled_back`: some steps could not be undone; their reports say why. */
  readonly status: UnitStatus
  /** Why it was rolled back. Undefined if it was not. */
  readonly reason: string | undefined
  /** The steps, in the order in which they began. */
  readonly steps: readonly SagaStepReport[]
}

/** The report of a saga, from its record. */
function sagaReport({ unit, steps }: UnitReport): SagaReport {
  return {
    id: unit.id,
    status: unit.status,
    reason: unit.reason,
    steps: steps.map(step => {
      const { id, target: tool, status, failure: error } = step
      return { id, server: stepServer(step), tool, status, error }
    }),
  }
}

/** Where a step was made, and is taken back. */
function stepServer({ authority }: Step): string {
  return isRecord(authority) ? String(authority['server']) : ''
}
