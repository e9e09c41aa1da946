/**
 * Runs a call as a step of a transaction: recorded with its compensation before it runs, and again when it has ended. If the record
 * cannot be written, nothing is executed.
 */

import type { CompensationCall, Step, StepFailure, UnitGrant } from '../../../core/journal/unit.ts'
import { type Enrolment, unknownUnit } from '../../../core/journal/units.ts'
import { type Problem, problem, problemOf } from '../../../core/problem.ts'
import { addRetryState, type Exchange, retryState } from '../../../engine/exchange.ts'
import { declaredSettings } from '../../../engine/extensions.ts'
import { ownerOf } from '../../../engine/owner.ts'
import type { Next } from '../../../engine/stages.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { isRecord, type Params } from '../../../jsonrpc/message.ts'
import { StoreError } from '../../../stores/store.ts'
import { admission } from '../../mcp/authorization/messages.ts'
import { isInputRequired } from '../../mcp/input-required/messages.ts'
import { workAfterAnswer } from '../../mcp/tasks/messages.ts'
import { type CallToolResult, type FailedResult, failureProblem, toolsPort } from '../../mcp/tools/messages.ts'
import { idempotencyExtension, keyPattern, keyRule } from '../idempotency/messages.ts'
import { problemPort } from '../problem/messages.ts'
import { capturedRights } from './compensate.ts'
import { stepName, transactionsExtension, unitStep } from './messages.ts'
import type { TransactionsRuntime } from './runtime.ts'
import type { UndoFacts } from './server.ts'
import { wireCompensation } from './wire.ts'

/** Runs a call as a step. */
export async function runStep(runtime: TransactionsRuntime, exchange: Exchange, next: Next): Promise<unknown> {
  const wish = transactionOf(exchange)
  const owner = await ownerOf(exchange)
  try {
    const { undo, annotations } = (exchange.target as UndoableTool).facts
    if (undo !== undefined || annotations?.readOnlyHint !== true) return await enrolled(runtime, owner, wish, exchange, next)
    await checkOpen(runtime, owner, wish)
    return await next()
  } catch (error) {
    // Without a record nothing is executed.
    throw error instanceof StoreError ? problemOf(error) : error
  }
}

/** A read-only call needs no compensation; it must only not run in an ended transaction. */
async function checkOpen({ units }: TransactionsRuntime, owner: string, { transaction }: TransactionOfCall): Promise<void> {
  const found = await units.get(owner, transaction)
  if (found === undefined) throw unknownUnit()
  if (found.unit.status !== 'open') throw over()
}

/** A recorded step. */
interface EnrolledStep {
  readonly runtime: TransactionsRuntime
  readonly owner: string
  readonly transaction: string
  readonly enrolment: Enrolment
  readonly exchange: Exchange
  /** Call it when the step is settled; `workAfterAnswer`: what the handler still does. */
  readonly ended: (workAfterAnswer?: PromiseLike<unknown>) => void
}

/** Steps whose handler has not ended. */
const entered = new WeakMap<Exchange, EnrolledStep>()

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
    addRetryState(exchange, transactionsExtension, stepName(order, transaction))
    const unit = `${owner}/${transaction}/${enrolment.begunAt}`
    exchange.set(unitStep, { unit, place: `${unit}/${order}`, wrote: what => enrolment.wrote(what) })
    const ended = runtime.begun(owner, transaction, order, exchange)
    const run: EnrolledStep = { runtime, owner, transaction, enrolment, exchange, ended }
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
  if (undo !== undefined && exchange.engine.ports.get(toolsPort).catalog.get(undo.tool) === undefined)
    throw problem('SERVER_ERROR', `${name} is undone by ${undo.tool}, but the server has no such tool`, { actor: 'operator' })
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
async function settled(run: EnrolledStep, next: Next): Promise<unknown> {
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
    run.ended(result[failureProblem]?.code === 'OPERATION_TIMEOUT' ? work : undefined)
  }
}

/** The step became a task; recorded, so that others do not compensate it before its end. */
async function detached(run: EnrolledStep): Promise<void> {
  const { exchange, enrolment, runtime } = run
  await enrolment.wrote({ task: true }).catch(error => runtime.trace('step-failed', { step: enrolment.step.id, error }))
  // If it was stopped before the handler started, nothing was done.
  const unentered = async (): Promise<void> => {
    if (!entered.delete(exchange)) return
    await enrolment.failed({ code: 'OPERATION_CANCELLED', message: 'The step was stopped before it started' })
    run.ended()
  }
  const over = (): Promise<void> => unentered().catch(error => runtime.trace('step-failed', { step: enrolment.step.id, error }))
  exchange.get(workAfterAnswer)?.then(over, over)
}

/** It failed, either before its handler did anything or after it had finished. */
async function broken(run: EnrolledStep, error: unknown): Promise<void> {
  const { exchange, enrolment } = run
  // The handler has finished; only what it wrote beside its effect is missing.
  if (exchange.given !== undefined) await done(run, exchange.given as CallToolResult)
  else await enrolment.failed(failureOf(exchange.engine.ports.get(problemPort).of(error)))
}

// Decides the step's status by its result.
async function concluded(run: EnrolledStep, result: FailedResult): Promise<unknown> {
  const { exchange, transaction, enrolment } = run
  const status = endOf(exchange, result)
  if (status === 'ok') return stamped(exchange, transaction, await done(run, result), result, status)
  if (status === 'indeterminate') await enrolment.lost()
  else await enrolment.failed(failureOf(result[failureProblem] ?? problem('SERVER_ERROR', 'The tool failed')))
  return stamped(exchange, transaction, enrolment.step, result, status)
}

/** Records success; returns the step with its final compensation. */
async function done(run: EnrolledStep, result: CallToolResult): Promise<Step> {
  const { runtime, owner, transaction, enrolment, exchange } = run
  const parameters = inverseParameters(runtime, exchange, result)
  const { inverse } = enrolment.step
  const step = inverse && parameters ? { ...enrolment.step, inverse: { ...inverse, parameters } } : enrolment.step
  if (await enrolment.done(parameters)) return step
  // The rollback waits for this.
  run.ended()
  // It went on without this step: its late effect is compensated now.
  await runtime.compensateLate(owner, transaction, step)
  throw over()
}

type StepEnd = 'ok' | 'failed' | 'indeterminate'

function endOf(exchange: Exchange, result: FailedResult): StepEnd {
  if (result.isError !== true) return 'ok'
  const why = result[failureProblem]
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

// Adds the step to the result, for clients that declared the extension.
function stamped(
  { peer }: Exchange,
  transaction: string,
  { id, inverse }: Step,
  result: CallToolResult,
  status: StepEnd,
): CallToolResult {
  if (declaredSettings(peer, transactionsExtension) === undefined) return result
  const compensation = inverse && status !== 'failed' ? { compensation: wireCompensation(inverse) } : {}
  const stamp = { transaction_id: transaction, step_id: id, status, ...compensation }
  return { ...result, _meta: { ...result._meta, [transactionsExtension]: stamp } }
}

function keyOf(exchange: Exchange): string | undefined {
  return exchange.get(retryState)?.[idempotencyExtension]
}

function argumentsOf({ params }: Exchange): Params {
  return (params['arguments'] ?? {}) as Params
}

function failureOf({ code, message }: Problem): StepFailure {
  return { code, message }
}

function over(): Problem {
  return problem('TRANSACTION_CONFLICT', 'The transaction has ended, so this step was or will be undone', {
    suggestion: 'Begin a new transaction',
  })
}

/** Which transaction and step a call names. */
interface TransactionOfCall {
  readonly transaction: string
  readonly step: string | undefined
  /** The order of a step that continues. */
  readonly order: number | undefined
}

/** Reads the transaction of a call. Throws if it is malformed or contradictory. */
export function transactionOf(exchange: Exchange): TransactionOfCall {
  const [order, ...rest] = exchange.get(retryState)?.[transactionsExtension]?.split(' ') ?? []
  const said = exchange.meta?.[transactionsExtension]
  if (said === undefined) return { transaction: rest.join(' '), step: undefined, order: Number(order) }
  if (!isRecord(said)) throw invalid(`params._meta["${transactionsExtension}"] must be an object with transaction_id`)
  const { transaction_id: transaction, step_id: step } = said
  if (typeof transaction !== 'string' || !keyPattern.test(transaction)) throw invalid(`transaction_id must be ${keyRule}`)
  if (step !== undefined && !(typeof step === 'string' && keyPattern.test(step))) throw invalid(`step_id must be ${keyRule}`)
  if (order !== undefined && rest.join(' ') !== transaction)
    throw invalid('transaction_id differs from the one that the call started with')
  return { transaction, step, order: order === undefined ? undefined : Number(order) }
}

function invalid(message: string): McpError {
  return new McpError('invalid-params', message)
}

/** The part of a tool's definition that matters here. */
interface UndoableTool {
  readonly name: string
  readonly facts: { readonly undo?: UndoFacts; readonly annotations?: { readonly readOnlyHint?: boolean } }
}

/** The compensation, as far as it is known before the call. */
function inverseOf(undo: UndoFacts, args: Params, key: string | undefined): CompensationCall {
  const { tool, description } = undo
  let parameters: Params | undefined
  try {
    parameters = parametersOf(undo, { args, key, result: undefined })
  } catch {
    // Before the call there is no result, so an error here is expected.
  }
  return { target: tool, ...(parameters && { parameters }), ...(description === undefined ? {} : { description }) }
}

/** The compensation's arguments, from the result. Throws what the author's code throws. */
function parametersOf(undo: UndoFacts, call: Parameters<NonNullable<UndoFacts['arguments']>>[0]): Params | undefined {
  const given = undo.arguments === undefined ? call.args : undo.arguments(call)
  if (given === undefined) return undefined
  if (!isRecord(given)) throw new TypeError(`The arguments of ${undo.tool} must be an object`)
  return JSON.parse(JSON.stringify(given))
}

/** What the handler returned, as far as the result shows it. */
function givenIn({ structuredContent, content }: CallToolResult): unknown {
  if (structuredContent !== undefined) return structuredContent
  return content.flatMap(block => (block.type === 'text' ? [block.text] : [])).join('\n')
}
