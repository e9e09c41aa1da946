/**
 * One tool call of a turn: policy, scope and state of its feature set, confirmation, cost and retries of the client, a transaction where
 * the tool supports it, and a deadline. `resumeCall` settles calls that a stop of the host interrupted.
 */
import type { CallToolOptions, ToolOutcome } from '../../client/api.ts'
import type { Client } from '../../client/client.ts'
import { type Problem, problem } from '../../core/problem.ts'
import { type Why, why } from '../../core/suggestion.ts'
import type { StateReport } from '../../features/live/checkpoints/messages.ts'
import type { Tool } from '../../features/mcp/tools/messages.ts'
import { classify } from '../../features/reliability/problem/classify.ts'
import { transactionsExtension } from '../../features/reliability/transactions/messages.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import type { BegunBy } from '../../policy/rules/rule.ts'
import type { Op } from '../../stores/store.ts'
import { hostText, resultBlocks, textBlock } from '../models/quoted.ts'
import type { CallOutcome, Compensation, PlannedCall } from './conversation-log.ts'
import { hostTools, shortenResult } from './host-tools.ts'
import { DeadlineExceeded, withDeadline } from './limits.ts'
import type { StateSet } from './loop.ts'
import { askPermission, isAbort, whyOf } from './permission.ts'
import type { LoopParts, LoopServer } from './ports.ts'
import { isToolDisabled, type Toolbox, type ToolboxEntry, toolChangedSince, toolRequest } from './toolbox.ts'

/** The rule name for failures that the tool itself reports. */
const toolRule = 'tool'

/** What a tool call needs from its turn and its host. */
export interface CallParts extends Omit<LoopParts, 'servers'> {
  /** The connected servers, as they were when the turn began. */
  readonly servers: readonly LoopServer[]
  readonly toolbox: Toolbox
  readonly conversation: string
  readonly begunBy: BegunBy
  readonly inferenceId: string
  readonly onProgress: (n: number, progress: { readonly progress: number; readonly message?: string }) => void
}

interface CompletedCall {
  readonly outcome: CallOutcome
  /** Operations to commit with the outcome. */
  readonly ops: readonly Op[]
}

/** Makes a call. Throws only when the signal aborts; every other failure becomes an outcome for the model. */
export async function makeCall(parts: CallParts, call: PlannedCall, signal: AbortSignal): Promise<CompletedCall> {
  const began = parts.clock.now()
  const ended = (outcome: Omit<CallOutcome, 'n' | 'ms'>): CompletedCall =>
    finish(parts, call, { ...outcome, n: call.n, began, ms: parts.clock.now() - began })
  try {
    if (call.server !== undefined) return ended(await onServer(parts, call, call.server, signal))
    const ours = hostTools.find(({ tool }) => tool.name === call.tool)
    if (ours === undefined) return ended(failed('failed', unknownTool(parts, call)))
    let rule = 'a tool of the host itself'
    const permitted = (by: string | undefined): void => {
      rule = by ?? rule
    }
    const content = await withDeadline(parts.clock, parts.limits.callMs, signal, inner =>
      ours.run(call.arguments, { ...parts, permitted, signal: inner }),
    )
    return ended({ status: 'done', content, rule })
  } catch (error) {
    return ended(failureOutcome(parts, call, error))
  }
}

/** A call to a server's tool. */
async function onServer(
  parts: CallParts,
  call: PlannedCall,
  name: string,
  signal: AbortSignal,
): Promise<Omit<CallOutcome, 'n' | 'ms'>> {
  const entry = parts.toolbox.of(name, call.tool)
  const server = parts.servers.find(one => one.name === name)
  if (entry === undefined || server?.client === undefined) return failed('failed', down(name))
  if (isToolDisabled(server, entry)) return failed('refused', switchedOff(name, call))
  const { client } = server
  const asked = await toolRequest(call, name, entry.definition, parts)
  const began = parts.clock.now()
  const given = await askPermission(parts.policy, asked)
  const question = given.asked && {
    asked: {
      began,
      ms: parts.clock.now() - began,
      yes: given.why === undefined,
      ...(given.by !== undefined && { by: given.by }),
    },
  }
  const said = given.why ?? (given.asked ? await toolChangedSince(server, asked) : undefined)
  if (said !== undefined) return { ...failed('refused', said), ...question }
  // The feature set may have been disabled while the question was open.
  if (given.asked && isToolDisabled(server, entry)) return { ...failed('refused', switchedOff(name, call)), ...question }
  const leaves = [parts.policy.enter?.(asked), parts.onVisit?.(name, parts.inferenceId)]
  const options = optionsFor(parts, server, call, signal)
  const send = async (sent: CallToolOptions): Promise<MadeCall> =>
    isUndoable(entry.definition)
      ? callInTransaction(client, call, sent)
      : { result: await client.callTool(call.tool, call.arguments, sent) }
  const refused = parts.refusals.begin(name)
  const reported = server.live === undefined ? undefined : parts.stateUpdates.begin(name, parts.inferenceId)
  const set = parts.stateSets.of(server, entry)
  const sending = set === undefined ? send(options).then(told) : onState(parts, server, entry, call, set, options, send)
  const ruled = given.rule === undefined ? {} : { rule: given.rule }
  const outcome = await sending.then(
    made => ({ ...made, ...ruled }),
    error => failureOutcome(parts, call, error),
  )
  const declined = refused()
  for (const leave of leaves) leave?.()
  // State reports during the call belong to it, whatever its outcome.
  const updates = (await reported?.()) ?? []
  return {
    ...outcome,
    ...question,
    ...(declined !== undefined && outcome.status === 'done' && { declined }),
    ...(updates.length > 0 && { updates }),
  }
}

/** The client options of a call: idempotency key, timeout, progress, feature set and scope. */
function optionsFor(parts: CallParts, server: LoopServer, call: PlannedCall, signal: AbortSignal): CallToolOptions {
  const scoped = server.live?.featureSets.get(call.featureSet ?? '')?.scoped === true
  const scope = scoped ? parts.policy.scopesOf?.(server.name, call.tool, call.arguments)?.[0] : undefined
  return {
    idempotencyKey: call.key,
    conversation: parts.conversation,
    timeout: parts.limits.callMs,
    signal,
    onProgress: step => parts.onProgress(call.n, { progress: step.progress, ...(step.message && { message: step.message }) }),
    ...(call.featureSet !== undefined && { live: { featureSet: call.featureSet, ...(scope !== undefined && { scope }) } }),
  }
}

/** Calls on one state run one after the other, because each builds on the state that the previous one left. */
function onState(
  parts: CallParts,
  server: LoopServer,
  entry: ToolboxEntry,
  call: PlannedCall,
  set: StateSet,
  options: CallToolOptions,
  send: (options: CallToolOptions) => Promise<MadeCall>,
): Promise<Omit<CallOutcome, 'n' | 'ms'>> {
  const { lines, state, stateSets, audit, inferenceId, conversation } = parts
  return lines.inLine(`${server.name}\u0000${set.name}`, async () => {
    const sent = await state.before(server.name, set.name)
    const { state: carried, checkpoint, head } = sent
    // The state of a result that arrives after its call was abandoned, unless a later call was sent since.
    const onLate = (report: StateReport): void => {
      const name = stateSets.placed(server, entry, set, report)
      const detail = clip(entry.tool)
      const about = { server: server.name, featureSet: name, inferenceId, conversation, kind: 'state', detail }
      state.record(server.name, name, report, name === set.name ? sent : undefined).then(
        () => audit.note({ ...about, outcome: 'success', rule: 'the result came after its call was given up' }),
        error => audit.note({ ...about, outcome: 'failure', why: whyOf(classify(error), 'state') }),
      )
    }
    const live = {
      ...options.live,
      ...(set.declared && { featureSet: set.name }),
      ...(carried !== undefined && { state: carried, ...(head !== undefined && { parent: head }) }),
      // For an undeclared set only the server knows where its state is.
      ...(checkpoint !== undefined && set.declared && { checkpoint }),
      // A call in a transaction is rolled back when its end is unknown, so a late result leaves no state.
      ...(!isUndoable(entry.definition) && { onLate }),
    }
    const made = await send({ ...options, live })
    const report = made.result.live
    if (report === undefined) return told(made)
    const name = stateSets.placed(server, entry, set, report)
    const grown = name === set.name
    await state.record(server.name, name, report, grown ? sent : undefined)
    const before = grown ? (head ?? checkpoint) : undefined
    const whose = name === call.featureSet ? {} : { featureSet: name }
    return { ...told(made), state: { ...(before !== undefined && { before }), after: report.checkpoint, ...whose } }
  })
}

/** A result as an outcome. */
function told({ result, compensation }: MadeCall): Omit<CallOutcome, 'n' | 'ms'> {
  const content = resultBlocks(result.content, result.structured)
  const spent = result.cost?.units
  const common = { content, ...(spent !== undefined && { units: spent }) }
  if (!result.isError) return { ...common, status: 'done', ...(compensation && { compensation }) }
  const { problem: cause } = result
  const unknown = cause?.code === 'OUTCOME_UNKNOWN' || cause?.code === 'OPERATION_TIMEOUT'
  const said = cause === undefined ? undefined : whyOf(cause, toolRule)
  return { ...common, status: unknown ? 'unknown' : 'failed', ...(said && { why: said }) }
}

/** An error as an outcome. After a lost connection or a timeout it is unknown whether the call was executed. */
function failureOutcome(parts: CallParts, call: PlannedCall, error: unknown): Omit<CallOutcome, 'n' | 'ms'> {
  const back = error instanceof CallRolledBack
  const cause = back
    ? error.problem
    : error instanceof DeadlineExceeded
      ? problem('OPERATION_TIMEOUT', `The call took longer than ${parts.limits.callMs} ms (the limit)`)
      : classify(error)
  const declined =
    cause.code === 'CONFIRMATION_DECLINED' || cause.code === 'CONFIRMATION_REQUIRED' || cause.code === 'PERMISSION_DENIED'
  if (declined) return failed('refused', whyOf(cause, 'confirmation'), textBlock)
  if (back) return { ...failed('failed', whyOf(cause, toolRule), textBlock), rolledBack: true }
  const doubtful = call.server !== undefined && !call.readOnly && (isAbort(error) || cause.category === 'transient')
  const said = whyOf(cause, cause.code === 'OPERATION_TIMEOUT' ? `limits.callMs ${parts.limits.callMs}` : toolRule)
  return failed(doubtful ? 'unknown' : 'failed', said, textBlock)
}

/** An outcome without success. `words`: marks the text as the host's or as the server's. */
function failed(status: 'failed' | 'refused' | 'unknown', said: Why, words = hostText): Omit<CallOutcome, 'n' | 'ms'> {
  const lead =
    status === 'unknown' ? 'The outcome of this call is unknown.' : status === 'refused' ? 'This call was not executed.' : ''
  const content = [...(lead === '' ? [] : [hostText(lead)]), words(`${said.message}. ${said.fix}`)]
  return { status, content, why: said }
}

/** Shortens the content and adds the audit entry. */
function finish(parts: CallParts, call: PlannedCall, outcome: CallOutcome): CompletedCall {
  const short = shortenResult(outcome.content, parts.conversation, call.key, parts.limits)
  const { status, ms } = outcome
  const note = parts.audit.ops({
    server: call.server ?? '',
    ...(call.featureSet !== undefined && { featureSet: call.featureSet }),
    inferenceId: parts.inferenceId,
    conversation: parts.conversation,
    ...(parts.begunBy.kind === 'event' && { cause: parts.begunBy.eventId }),
    kind: 'tool',
    outcome: status === 'done' ? 'success' : status === 'refused' ? 'refused' : 'failure',
    detail: clip(call.tool),
    ms,
    ...(outcome.why ? { why: ofNote(outcome.why, call) } : outcome.rule !== undefined && { rule: outcome.rule }),
  })
  const { reference } = short
  return { outcome: { ...outcome, content: short.content, ...(reference && { reference }) }, ops: [...short.ops, ...note] }
}

/** The reason for the audit log. What a tool says of its failure is part of its result, and results are not audited. */
function ofNote(said: Why, { tool }: PlannedCall): Why {
  if (said.rule !== toolRule) return said
  return why(said.code, said.rule, `The tool ${clip(tool)} failed`, 'Read the error of the tool in the turn')
}

/** The reason for an unknown tool, with similar names. */
function unknownTool({ toolbox }: CallParts, { name }: PlannedCall): Why {
  const near = toolbox.tools.map(tool => tool.name).filter(other => other.endsWith(name) || name.endsWith(other))
  const fix = near.length > 0 ? `Use ${near.join(' or ')}` : 'Use one of the listed tools'
  return why('UNKNOWN_TOOL', 'toolbox', `There is no tool ${clip(name)}`, fix)
}

/** The reason for a disabled feature set. */
function switchedOff(server: string, { tool, featureSet = '' }: PlannedCall): Why {
  const message = `The tool ${clip(tool)} belongs to ${clip(featureSet)} of ${clip(server)}, which is not enabled`
  return why('FEATURE_DISABLED', 'feature-sets', message, `Enable ${clip(featureSet)} for server ${clip(server)}`)
}

/** The reason for a server that is down. */
function down(server: string): Why {
  return why('SERVER_UNAVAILABLE', 'servers', `The server ${clip(server)} is down`, 'Retry later, or continue without it')
}

/** Settles an interrupted call. It is repeated only where that cannot execute it twice. */
export async function resumeCall(parts: CallParts, call: PlannedCall, signal: AbortSignal): Promise<CompletedCall> {
  const entry = call.server === undefined ? undefined : parts.toolbox.of(call.server, call.tool)
  const client = parts.servers.find(({ name }) => name === call.server)?.client
  if (call.server === undefined || call.readOnly) return makeCall(parts, call, signal)
  if (entry === undefined || client === undefined) return { outcome: unknown(call), ops: [] }
  if (isUndoable(entry.definition)) {
    // Asked first, because a transaction id can be used only once.
    const report = await client.transactionStatus(transactionIdOf(call), { signal }).catch(() => undefined)
    if (report?.status === 'committed') return { outcome: lostResult(call), ops: [] }
    return { outcome: report?.status === 'rolled_back' ? takenBack(call) : unknown(call), ops: [] }
  }
  if (entry.definition.annotations?.idempotentHint === true) return makeCall(parts, call, signal)
  // A server that knows the status of a key also executes it only once.
  const known = await client.callStatus(call.key, { signal }).catch(() => undefined)
  return known === undefined ? { outcome: unknown(call), ops: [] } : makeCall(parts, call, signal)
}

/** The outcome where nobody can tell. */
function unknown({ n, tool, server = '' }: PlannedCall): CallOutcome {
  const message = `The host was stopped while ${tool} ran, and ${server} cannot say whether it was executed`
  const said = why('OUTCOME_UNKNOWN', 'interrupted', message, 'Check whether it was executed before you repeat it')
  const content = [hostText(`The outcome of this call is unknown. ${said.message}. ${said.fix}`)]
  return { n, status: 'unknown', content, why: said, ms: 0 }
}

/** The call was executed, but its result is lost. */
function lostResult({ n, tool }: PlannedCall): CallOutcome {
  const content = [hostText(`${tool} was executed, but its result was lost because the host was stopped`)]
  return { n, status: 'done', content, ms: 0 }
}

/** The server rolled the call back. */
function takenBack({ n, tool }: PlannedCall): CallOutcome {
  const message = `${tool} was rolled back by its server, because the host was stopped during the call`
  const said = why('TAKEN_BACK', 'interrupted', message, 'Repeat the call')
  return { n, status: 'failed', content: [hostText(`${said.message}. ${said.fix}`)], why: said, ms: 0, rolledBack: true }
}

// Calls with a compensation. Each runs in its own transaction that is committed at once, so that the server names the compensation, and
// rolls back a call whose end is unknown.

/** Whether a tool declares a compensation. */
function isUndoable({ _meta }: Tool): boolean {
  const said = _meta?.[transactionsExtension]
  return isRecord(said) && isRecord(said['compensation'])
}

/** The transaction id of a call; known in advance, so that another process can ask how it ended. */
function transactionIdOf(call: PlannedCall): string {
  return `turn-${call.key}`
}

/** Makes a call in its own transaction: committed at once, or rolled back where the call fails. */
async function callInTransaction(client: Client, call: PlannedCall, options: CallToolOptions): Promise<MadeCall> {
  const tx = await client.transaction({ id: transactionIdOf(call), description: `Turn of a conversation: ${call.tool}` })
  let result: ToolOutcome
  try {
    result = await tx.callTool(call.tool, call.arguments, options)
  } catch (error) {
    const report = await tx.rollback('The call failed').catch(() => undefined)
    if (report?.status === 'rolled_back') throw new CallRolledBack(classify(error))
    throw error
  }
  if (result.isError) {
    await tx.rollback('The tool failed').catch(() => undefined)
    return { result }
  }
  await tx.commit()
  return { result, compensation: compensationIn(result) }
}

/** The compensation that a result names. */
function compensationIn({ meta }: ToolOutcome): Compensation | undefined {
  const step = meta?.[transactionsExtension]
  const said = isRecord(step) ? step['compensation'] : undefined
  if (!isRecord(said) || typeof said['tool'] !== 'string') return undefined
  return { tool: said['tool'], ...(isRecord(said['parameters']) && { parameters: said['parameters'] }) }
}

/** The result of a call, with its compensation where the server named one. */
interface MadeCall {
  readonly result: ToolOutcome
  readonly compensation?: Compensation | undefined
}

/** The server has rolled back a call whose end was unknown. */
class CallRolledBack extends Error {
  override readonly name = 'TakenBack'
  readonly problem: Problem

  constructor(problem: Problem) {
    super(problem.message, { cause: problem })
    this.problem = problem
  }
}
