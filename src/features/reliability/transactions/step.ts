/**
 * A call that takes part in a transaction: written down with its inverse before it is made, and again when its end is known.
 * What it takes to do so is refused before anything happens.
 */
import type { Enrolment } from '../../../core/journal/enrolment.ts'
import type { Step, UnitGrant } from '../../../core/journal/unit.ts'
import { unknownUnit } from '../../../core/journal/units.ts'
import { type Problem, problem } from '../../../core/problem.ts'
import { problemOf } from '../../../core/problem-facts.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import { declared } from '../../../engine/extensions.ts'
import { ownerOf } from '../../../engine/owner.ts'
import type { Next } from '../../../engine/stages.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { isRecord, type Params } from '../../../jsonrpc/message.ts'
import { StoreError } from '../../../stores/store.ts'
import { isInputRequired } from '../../mcp/input-required/messages.ts'
import { because, type CallToolResult, type FailedResult } from '../../mcp/tools/messages.ts'
import { idempotencyExtension } from '../idempotency/messages.ts'
import { captured } from './authority.ts'
import { idPattern, idRule, stepName, transactionsExtension, type WireStepResult } from './messages.ts'
import { wireCompensation } from './report.ts'
import { givenIn, inverseOf, parametersOf, type UndoableTool } from './undo.ts'
import type { Works } from './works.ts'

interface Wish {
  readonly transaction: string
  readonly step: string | undefined
  /** The order of a step that was put off, and goes on now. */
  readonly order: number | undefined
}

export async function runStep(works: Works, exchange: Exchange, next: Next): Promise<unknown> {
  const wish = wishOf(exchange)
  const owner = await ownerOf(exchange)
  try {
    const { facts } = exchange.target as UndoableTool
    if (facts.undo === undefined && facts.annotations?.readOnlyHint === true) return await look(works, owner, wish, next)
    return await enrolled(works, owner, wish, exchange, next)
  } catch (error) {
    // Nothing is done without its record.
    throw error instanceof StoreError ? problemOf(error) : error
  }
}

/** What changes nothing leaves nothing to take back: it only must not read in a transaction that is over. */
async function look({ units }: Works, owner: string, { transaction }: Wish, next: Next): Promise<unknown> {
  const found = await units.get(owner, transaction)
  if (found === undefined) throw unknownUnit()
  if (found.unit.status !== 'open') throw over()
  return next()
}

async function enrolled(works: Works, owner: string, wish: Wish, exchange: Exchange, next: Next): Promise<unknown> {
  const { runners } = works.units
  const held = runners.hold()
  try {
    if (held !== undefined) await held
    const enrolment = await enrol(works, owner, wish, exchange)
    const { id, order } = enrolment.step
    // One that goes on has the id with which it began.
    exchange.correlation = enrolment.step.correlation ?? exchange.correlation
    exchange.carried = { ...exchange.carried, [transactionsExtension]: stepName(order, wish.transaction) }
    exchange.step = { unit: `${owner}/${wish.transaction}/${enrolment.begunAt}`, wrote: what => enrolment.wrote(what) }
    const ended = works.begun(owner, wish.transaction, order, exchange)
    try {
      return await settled(works, owner, wish.transaction, enrolment, exchange, next)
    } catch (error) {
      works.trace('step-failed', { transaction: wish.transaction, step: id, error, correlationId: exchange.correlation })
      throw error
    } finally {
      ended()
    }
  } finally {
    runners.release()
  }
}

async function enrol(works: Works, owner: string, wish: Wish, exchange: Exchange): Promise<Enrolment> {
  const { units } = works
  if (wish.order !== undefined) return units.resume(owner, wish.transaction, wish.order)
  const { name, facts } = exchange.target as UndoableTool
  const { undo } = facts
  if (undo !== undefined && !works.offers(undo.tool))
    throw problem('SERVER_ERROR', `${name} is undone by ${undo.tool}, which is not offered here`, { actor: 'operator' })
  const key = keyOf(exchange)
  return units.enrol(owner, wish.transaction, {
    ...(wish.step === undefined ? {} : { id: wish.step }),
    target: name,
    key: key ?? '',
    inverse: undo === undefined ? undefined : inverseOf(undo, argumentsOf(exchange), key),
    authority: captured(exchange.caller, await exchange.admission?.scopes()),
    grant: grantOf(exchange),
    correlation: exchange.correlation,
  })
}

/** What let it in, as it is kept with its unit. */
export function grantOf({ admission }: Exchange): UnitGrant | undefined {
  return admission && { id: admission.id, expires: admission.expires }
}

async function settled(
  works: Works,
  owner: string,
  transaction: string,
  enrolment: Enrolment,
  exchange: Exchange,
  next: Next,
): Promise<unknown> {
  let result: FailedResult
  try {
    result = (await next()) as FailedResult
  } catch (error) {
    // It goes on when its caller comes back with the answer.
    if (exchange.asking?.pending === true) throw error
    // Where its handler has done its work, only what it wrote beside that is missing.
    if (exchange.given !== undefined) await done(works, owner, transaction, enrolment, exchange, exchange.given as CallToolResult)
    else await enrolment.failed(failureOf(works.problemOf(error)))
    throw error
  }
  if (exchange.asking?.pending === true || isInputRequired(result)) return result
  const status = endOf(exchange, result)
  if (status === 'indeterminate') await enrolment.lost()
  else if (status === 'failed') await enrolment.failed(failureOf(result[because] ?? problem('SERVER_ERROR', 'The tool failed')))
  if (status !== 'ok') return stamped(exchange, transaction, enrolment.step, result, status)
  const step = await done(works, owner, transaction, enrolment, exchange, result)
  return stamped(exchange, transaction, step, result, status)
}

/** It was done; gives the step with what its result gave for its inverse. */
async function done(
  works: Works,
  owner: string,
  transaction: string,
  enrolment: Enrolment,
  exchange: Exchange,
  result: CallToolResult,
): Promise<Step> {
  const parameters = inverseParameters(works, exchange, result)
  const step = completed(enrolment.step, parameters)
  if (!(await enrolment.done(parameters))) await late(works, owner, transaction, step)
  return step
}

/** With what the result gave for its inverse. */
function completed(step: Step, parameters: Params | undefined): Step {
  const { inverse } = step
  return inverse === undefined || parameters === undefined ? step : { ...step, inverse: { ...inverse, parameters } }
}

function endOf(exchange: Exchange, result: FailedResult): WireStepResult['status'] {
  // Its work goes on as a task, whose end is not seen here.
  if (exchange.outlet !== undefined) return 'indeterminate'
  if (result.isError !== true) return 'ok'
  const why = result[because]
  // Whatever the handler did until then, it was stopped in the midst of it.
  return why?.code === 'OPERATION_TIMEOUT' || (exchange.cancelled && why?.code === 'SERVER_ERROR') ? 'indeterminate' : 'failed'
}

/** An author's mistake here must not hide that the call was made: then it is undone as if its result were unknown. */
function inverseParameters({ trace }: Works, exchange: Exchange, result: CallToolResult): Params | undefined {
  const { undo } = (exchange.target as UndoableTool).facts
  if (undo === undefined) return undefined
  try {
    return parametersOf(undo, { args: argumentsOf(exchange), result: givenIn(result), key: keyOf(exchange) })
  } catch (error) {
    trace('undo-failed', error, exchange.caller)
    return undefined
  }
}

/** The transaction could not wait for this step and was rolled back without it: its effect, which came later, is taken back now. */
async function late(works: Works, owner: string, transaction: string, step: Step): Promise<never> {
  await works.compensateLate(owner, transaction, step)
  throw over()
}

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

function wishOf({ meta, carried }: Exchange): Wish {
  const [order, ...rest] = carried?.[transactionsExtension]?.split(' ') ?? []
  const said = meta !== undefined && Object.hasOwn(meta, transactionsExtension) ? meta[transactionsExtension] : undefined
  if (said === undefined) return { transaction: rest.join(' '), step: undefined, order: Number(order) }
  if (!isRecord(said)) throw invalid(`params._meta["${transactionsExtension}"] must be an object with transaction_id`)
  const { transaction_id: transaction, step_id: step } = said
  if (typeof transaction !== 'string' || !idPattern.test(transaction)) throw invalid(`transaction_id must be ${idRule}`)
  if (step !== undefined && !(typeof step === 'string' && idPattern.test(step))) throw invalid(`step_id must be ${idRule}`)
  if (order !== undefined && rest.join(' ') !== transaction)
    throw invalid('transaction_id is another one than where the call began')
  return { transaction, step, order: order === undefined ? undefined : Number(order) }
}

function keyOf({ carried }: Exchange): string | undefined {
  return carried?.[idempotencyExtension]
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

function invalid(message: string): McpError {
  return new McpError('invalid-params', message)
}
