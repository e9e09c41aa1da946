/**
 * One unit of work over several servers, whether they know transactions or not. What takes each step back is written into a store
 * before the step is made, so that any process can end what another one left.
 */
import type { UnitReport } from '../core/journal/units.ts'
import { classify } from '../features/reliability/problem/classify.ts'
import { clip } from '../jsonrpc/limits.ts'
import type { Params } from '../jsonrpc/message.ts'
import type { CallToolOptions, ToolOutcome } from './api.ts'
import type { Client } from './client.ts'
import { owner, type SagaReport, Sagas, type SagasOptions, sagaReport } from './sagas.ts'

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

export interface SagaStepOptions extends CallToolOptions {
  /** Absent: it cannot be taken back, and a rollback reports that. */
  readonly undo?: SagaUndo
  /** Names the step in reports. Default: its number. */
  readonly step?: string
}

export interface SagaOptions extends SagasOptions {
  /** Names it, so that it can be found again after a restart. Default: random. */
  readonly id?: string
  /** What it is for, in reports. */
  readonly description?: string
}

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
