/** Which parts of a revision's schema a message is held against. */
import { isRecord } from '../../src/jsonrpc/message.ts'
import { extensionFaults } from './extensions.ts'
import type { Rules } from './rules.ts'
import type { Judged } from './schemas.ts'

/** The request that an answer answers. */
export interface Asked {
  readonly method: string
  readonly params: Readonly<Record<string, unknown>>
  /** Where it fetches the result of a task: the method that the task was made of. */
  readonly work?: string | undefined
}

type Frame = Readonly<Record<string, unknown>>

/** What the tasks extension brings; its shapes are in no core schema. */
const taskExtension = new Set(['tasks/get', 'tasks/update', 'tasks/cancel', 'notifications/tasks'])

/** What our own extensions bring, on every wire. */
const ours = /^(notifications\/(event|permissions\/)|(idempotency|transaction|permissions|manifest|servers|event)\/)/

/** What MCP Live brings, on every wire, and what stands for it where servers send no requests. */
const live =
  /^((live|context|channels|mcpl|featureSets)\/|(push\/event|inference\/(request|chunk|lifecycle)|model\/info|scope\/elevate|state\/(rollback|update|get))$)/

export function faultsOf(rules: Rules, revision: Judged, frame: Frame, asked: Asked | undefined): string[] {
  return [...officialFaults(rules, revision, frame, asked), ...extensionFaults(frame, asked?.method)]
}

function officialFaults(rules: Rules, revision: Judged, frame: Frame, asked: Asked | undefined): string[] {
  if (typeof frame['method'] === 'string') return callFaults(rules, revision, frame, frame['method'])
  if (frame['error'] !== undefined) return errorFaults(rules, frame)
  return [...envelope(rules, frame), ...resultFaults(rules, revision, frame['result'], asked)]
}

function callFaults(rules: Rules, revision: Judged, frame: Frame, method: string): string[] {
  const outer = rules.faults(frame['id'] === undefined ? 'JSONRPCNotification' : 'JSONRPCRequest', frame)
  const definition = rules.ofMethod(method)
  if (definition === undefined) {
    const extension = (revision === '2026-07-28' && taskExtension.has(method)) || ours.test(method) || live.test(method)
    return extension ? outer : [...outer, `${revision} has no method ${method}`]
  }
  return [...outer, ...rules.faults(definition, rules.hasEnvelope(definition) ? frame : bare(frame))]
}

function bare({ method, params }: Frame): Frame {
  return params === undefined ? { method } : { method, params }
}

function envelope(rules: Rules, frame: Frame): string[] {
  return rules.faults(rules.has('JSONRPCResultResponse') ? 'JSONRPCResultResponse' : 'JSONRPCResponse', frame)
}

/** What answers no request in particular belongs to no wire in particular: whether it has no id or a null one is not judged here. */
function errorFaults(rules: Rules, frame: Frame): string[] {
  const error = frame['error']
  const code = isRecord(error) && typeof error['code'] === 'number' ? error['code'] : 0
  // The draft's number for a version that is not spoken is that of bad parameters in general.
  const definition = code === -32602 ? rules.ofError(0) : rules.ofError(code)
  return rules.faults(definition, { ...frame, id: frame['id'] ?? 0 })
}

function resultFaults(rules: Rules, revision: Judged, result: unknown, asked: Asked | undefined): string[] {
  if (asked === undefined) return ['an answer to nothing that was asked']
  const definition = resultOf(rules, revision, result, asked)
  return rules.faults(definition, result)
}

function resultOf(rules: Rules, revision: Judged, result: unknown, { method, params, work = 'tools/call' }: Asked): string {
  const kind = isRecord(result) ? result['resultType'] : undefined
  if (kind === 'input_required') return 'InputRequiredResult'
  if (revision === '2026-07-28' && (kind === 'task' || taskExtension.has(method))) return 'Result'
  if (ours.test(method) || live.test(method)) return 'Result'
  if (params['task'] !== undefined && isRecord(result) && result['task'] !== undefined) return 'CreateTaskResult'
  if (method === 'tasks/result') return rules.ofResult(work)
  return rules.ofResult(method)
}
