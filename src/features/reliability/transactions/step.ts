/**
 * Runs a call as a step of a transaction: recorded with its compensation before it runs, and again when it has ended. If the record
 * cannot be written, nothing is executed. Also writes transactions for the wire.
 */

import type { Inverse, Step, UnitGrant, UnitStatus } from '../../../core/journal/unit.ts'
import { type Enrolment, type UnitReport, unknownUnit } from '../../../core/journal/units.ts'
import { type Problem, problem, problemOf } from '../../../core/problem.ts'
import { carried, carry, type Exchange } from '../../../engine/exchange.ts'
import { declared } from '../../../engine/extensions.ts'
import { ownerOf } from '../../../engine/owner.ts'
import type { Next } from '../../../engine/stages.ts'
import type { Params } from '../../../jsonrpc/message.ts'
import { StoreError } from '../../../stores/store.ts'
import { admission } from '../../mcp/authorization/messages.ts'
import { isInputRequired } from '../../mcp/input-required/messages.ts'
import { workAfterAnswer } from '../../mcp/tasks/messages.ts'
import { because, type CallToolResult, type FailedResult } from '../../mcp/tools/messages.ts'
import { idempotencyExtension } from '../idempotency/messages.ts'
import { capturedRights, type TransactionOfCall, transactionOf } from './compensate.ts'
import {
  stepName,
  transactionsExtension,
  unitStep,
  type WireCommitted,
  type WireCompensation,
  type WireRolledBack,
  type WireStepReport,
  type WireStepResult,
  type WireTransaction,
  type WireTransactionStatus,
} from './messages.ts'
import type { TransactionsRuntime } from './runtime.ts'
import { givenIn, inverseOf, parametersOf, type UndoableTool } from './server.ts'

/** Runs a call as a step. */
export async function runStep(runtime: TransactionsRuntime, exchange: Exchange, next: Next): Promise<unknown> {
  const wish = transactionOf(exchange)
  const owner = await ownerOf(exchange)
  try {
    const { facts } = exchange.target as UndoableTool
    if (facts.undo === undefined && facts.annotations?.readOnlyHint === true) return await look(runtime, owner, wish, next)
    return await enrolled(runtime, owner, wish, exchange, next)
  } catch (error) {
    // Without a record nothing is executed.
    throw error instanceof StoreError ? problemOf(error) : error
  }
}

/** A read-only call needs no compensation; it must only not run in an ended transaction. */
async function look(
  { units }: TransactionsRuntime,
  owner: string,
  { transaction }: TransactionOfCall,
  next: Next,
): Promise<unknown> {
  const found = await units.get(owner, transaction)
  if (found === undefined) throw unknownUnit()
  if (found.unit.status !== 'open') throw over()
  return next()
}

/** A recorded step. */
interface Enrolled {
  readonly runtime: TransactionsRuntime
  readonly owner: string
  readonly transaction: string
  readonly enrolment: Enrolment
  readonly exchange: Exchange
  /** Call it when the step is settled; `workAfterAnswer`: what the handler still does. */
  readonly ended: (workAfterAnswer?: PromiseLike<unknown>) => void
}

/** Steps whose handler has not ended. */
const entered = new WeakMap<Exchange, Enrolled>()

// Keeps this process marked as alive while the step runs.
async function enrolled(
  runtime: TransactionsRuntime,
  owner: string,
  wish: TransactionOfCall,
  exchange: Exchange,
  next: Next,
): Promise<unknown> {
  const { runners } = runtime.units
  const held = runners.hold()
  try {
    if (held !== undefined) await held
    const enrolment = await enrol(runtime, owner, wish, exchange)
    const { id, order } = enrolment.step
    const { transaction } = wish
    // A continued call keeps its correlation id.
    exchange.correlation = enrolment.step.correlation ?? exchange.correlation
    carry(exchange, transactionsExtension, stepName(order, transaction))
    const unit = `${owner}/${transaction}/${enrolment.begunAt}`
    exchange.set(unitStep, { unit, place: `${unit}/${order}`, wrote: what => enrolment.wrote(what) })
    const ended = runtime.begun(owner, transaction, order, exchange)
    const run: Enrolled = { runtime, owner, transaction, enrolment, exchange, ended }
    entered.set(exchange, run)
    try {
      return await settled(run, next)
    } catch (error) {
      runtime.trace('step-failed', { transaction, step: id, error, correlationId: exchange.correlation })
      throw error
    } finally {
      if (!exchange.detached) ended(exchange.get(workAfterAnswer))
    }
  } finally {
    // A task keeps running in this process.
    const work = exchange.get(workAfterAnswer)
    const release = (): void => runners.release()
    if (exchange.detached && work !== undefined) work.then(release, release)
    else release()
  }
}

// Writes the record, with the rights that the compensation will need.
async function enrol(
  runtime: TransactionsRuntime,
  owner: string,
  wish: TransactionOfCall,
  exchange: Exchange,
): Promise<Enrolment> {
  const { units } = runtime
  if (wish.order !== undefined) return units.resume(owner, wish.transaction, wish.order)
  const { name, facts } = exchange.target as UndoableTool
  const { undo } = facts
  if (undo !== undefined && !runtime.offers(undo.tool))
    throw problem('SERVER_ERROR', `${name} is undone by ${undo.tool}, which is not offered here`, { actor: 'operator' })
  const key = keyOf(exchange)
  return units.enrol(owner, wish.transaction, {
    ...(wish.step === undefined ? {} : { id: wish.step }),
    target: name,
    key: key ?? '',
    inverse: undo === undefined ? undefined : inverseOf(undo, argumentsOf(exchange), key),
    authority: capturedRights(exchange.caller, await exchange.get(admission)?.scopes()),
    grant: grantOf(exchange),
    correlation: exchange.correlation,
  })
}

/** The grant of a call, as stored with the transaction. */
export function grantOf(exchange: Exchange): UnitGrant | undefined {
  const admitted = exchange.get(admission)
  return admitted && { id: admitted.id, expires: admitted.expires }
}

// Settles the step, unless it continues later.
async function settled(run: Enrolled, next: Next): Promise<unknown> {
  const { exchange, transaction, enrolment } = run
  let result: FailedResult
  try {
    result = (await next()) as FailedResult
  } catch (error) {
    // It continues when its caller has answered.
    if (exchange.asking?.pending === true) throw error
    await broken(run, error)
    throw error
  }
  if (exchange.asking?.pending === true || isInputRequired(result)) return result
  if (!exchange.detached) return concluded(run, result)
  await detached(run)
  return stamped(exchange, transaction, enrolment.step, result, 'indeterminate')
}

/** The end of a step that became a task; its call was answered before. */
export async function finishStep(exchange: Exchange, next: Next): Promise<unknown> {
  let result: FailedResult
  const run = entered.get(exchange)
  try {
    result = (await next()) as FailedResult
  } catch (error) {
    if (run !== undefined && exchange.detached && entered.delete(exchange)) {
      await broken(run, error)
      run.ended()
    }
    throw error
  }
  if (run === undefined || !exchange.detached || !entered.delete(exchange)) return result
  const work = exchange.get(workAfterAnswer)
  try {
    return await concluded(run, result)
  } finally {
    // After a timeout the handler may still be running.
    run.ended(result[because]?.code === 'OPERATION_TIMEOUT' ? work : undefined)
  }
}

/** The step became a task; recorded, so that others do not compensate it before its end. */
async function detached(run: Enrolled): Promise<void> {
  const { exchange, enrolment, runtime } = run
  await enrolment.wrote({ task: true }).catch(error => runtime.trace('step-failed', { step: enrolment.step.id, error }))
  // If it was stopped before the handler started, nothing was done.
  const unentered = async (): Promise<void> => {
    if (!entered.delete(exchange)) return
    await enrolment.failed({ code: 'OPERATION_CANCELLED', message: 'It was stopped before it began' })
    run.ended()
  }
  const over = (): Promise<void> => unentered().catch(error => runtime.trace('step-failed', { step: enrolment.step.id, error }))
  exchange.get(workAfterAnswer)?.then(over, over)
}

/** It failed, either before its handler did anything or after it had finished. */
async function broken(run: Enrolled, error: unknown): Promise<void> {
  const { exchange, enrolment, runtime } = run
  // The handler has finished; only what it wrote beside its effect is missing.
  if (exchange.given !== undefined) await done(run, exchange.given as CallToolResult)
  else await enrolment.failed(failureOf(runtime.problemOf(error)))
}

// Decides the step's status by its result.
async function concluded(run: Enrolled, result: FailedResult): Promise<unknown> {
  const { exchange, transaction, enrolment } = run
  const status = endOf(exchange, result)
  if (status === 'indeterminate') await enrolment.lost()
  else if (status === 'failed') await enrolment.failed(failureOf(result[because] ?? problem('SERVER_ERROR', 'The tool failed')))
  if (status !== 'ok') return stamped(exchange, transaction, enrolment.step, result, status)
  const step = await done(run, result)
  return stamped(exchange, transaction, step, result, status)
}

/** Records success; returns the step with its final compensation. */
async function done(run: Enrolled, result: CallToolResult): Promise<Step> {
  const { runtime, owner, transaction, enrolment, exchange } = run
  const parameters = inverseParameters(runtime, exchange, result)
  const step = completed(enrolment.step, parameters)
  if (await enrolment.done(parameters)) return step
  // The rollback waits for this.
  run.ended()
  return late(runtime, owner, transaction, step)
}

/** The step with the arguments of its compensation. */
function completed(step: Step, parameters: Params | undefined): Step {
  const { inverse } = step
  return inverse === undefined || parameters === undefined ? step : { ...step, inverse: { ...inverse, parameters } }
}

function endOf(exchange: Exchange, result: FailedResult): WireStepResult['status'] {
  if (result.isError !== true) return 'ok'
  const why = result[because]
  // The handler was stopped midway, so the outcome is unknown.
  return why?.code === 'OPERATION_TIMEOUT' || (exchange.cancelled && why?.code === 'SERVER_ERROR') ? 'indeterminate' : 'failed'
}

/** An error in the author's `undo` must not hide that the call was made; its result is then treated as unknown. */
function inverseParameters({ trace }: TransactionsRuntime, exchange: Exchange, result: CallToolResult): Params | undefined {
  const { undo } = (exchange.target as UndoableTool).facts
  if (undo === undefined) return undefined
  try {
    return parametersOf(undo, { args: argumentsOf(exchange), result: givenIn(result), key: keyOf(exchange) })
  } catch (error) {
    trace('undo-failed', error, exchange.caller)
    return undefined
  }
}

/** The transaction was rolled back without this step: its late effect is compensated now. */
async function late(runtime: TransactionsRuntime, owner: string, transaction: string, step: Step): Promise<never> {
  await runtime.compensateLate(owner, transaction, step)
  throw over()
}

// Adds the step to the result, for clients that declared the extension.
function stamped(
  { peer }: Exchange,
  transaction: string,
  { id, inverse }: Step,
  result: CallToolResult,
  status: WireStepResult['status'],
): CallToolResult {
  if (declared(peer, transactionsExtension) === undefined) return result
  const stamp: WireStepResult = {
    transaction_id: transaction,
    step_id: id,
    status,
    ...(inverse === undefined || status === 'failed' ? {} : { compensation: wireCompensation(inverse) }),
  }
  return { ...result, _meta: { ...result._meta, [transactionsExtension]: stamp } }
}

function keyOf(exchange: Exchange): string | undefined {
  return exchange.get(carried)?.[idempotencyExtension]
}

function argumentsOf({ params }: Exchange): Params {
  return (params['arguments'] ?? {}) as Params
}

function failureOf({ code, message }: Problem): { readonly code: string; readonly message: string } {
  return { code, message }
}

function over(): Problem {
  return problem('TRANSACTION_CONFLICT', 'The transaction is over: what this step did was or is taken back', {
    suggestion: 'Begin a new one',
  })
}

// Transactions on the wire.

/** Writes a transaction. */
export function wireTransaction({ unit, steps }: UnitReport): WireTransaction {
  const { id, status, description, begunAt, timeoutMs, reason } = unit
  return {
    transaction_id: id,
    status: wireStatus(status),
    ...(description === undefined ? {} : { description }),
    begun_at: new Date(begunAt).toISOString(),
    timeout_seconds: timeoutMs / 1000,
    ...(reason === undefined ? {} : { reason }),
    steps: steps.map(wireStep),
  }
}

/** Writes the answer to a commit. */
export function wireCommitted(report: UnitReport): WireCommitted {
  return { ...wireTransaction(report), steps_completed: report.steps.filter(({ status }) => status !== 'failed').length }
}

/** Writes the answer to a rollback. */
export function wireRolledBack(report: UnitReport): WireRolledBack {
  return { ...wireTransaction(report), steps_compensated: report.steps.toReversed().flatMap(compensated) }
}

// Only steps that a rollback has handled.
function compensated({ id, status, failure }: Step): WireRolledBack['steps_compensated'] {
  if (status !== 'compensated' && status !== 'compensation_failed') return []
  return [{ step_id: id, status, ...(failure === undefined ? {} : { error: failure }) }]
}

function wireCompensation({ target, parameters, description }: Inverse): WireCompensation {
  return {
    tool: target,
    ...(parameters === undefined ? {} : { parameters }),
    ...(description === undefined ? {} : { description }),
  }
}

function wireStep({ id, target, status, inverse, failure }: Step): WireStepReport {
  return {
    step_id: id,
    tool: target,
    status: status === 'irreversible' ? 'no_compensation' : status,
    ...(inverse === undefined ? {} : { compensation: wireCompensation(inverse) }),
    ...(failure === undefined ? {} : { error: failure }),
  }
}

function wireStatus(status: UnitStatus): WireTransactionStatus {
  return status === 'open' ? 'begun' : status
}
