/**
 * One tool call of a turn: policy, scope and state of its feature set, confirmation, cost and retries of the client, a transaction where
 * the tool supports it, and a deadline. `resumeCall` settles calls that a stop of the host interrupted.
 */
import type { CallToolOptions } from '../../client/api.ts'
import type { Client } from '../../client/client.ts'
import { problem } from '../../core/problem.ts'
import { type Why, why } from '../../core/suggestion.ts'
import type { StateReport } from '../../features/live/checkpoints/messages.ts'
import { classify } from '../../features/reliability/problem/classify.ts'
import { clip } from '../../jsonrpc/limits.ts'
import type { Op } from '../../stores/store.ts'
import { hostText, resultBlocks, textBlock } from '../models/quoted.ts'
import type { Sent } from '../state/book.ts'
import type { CallOutcome, PlannedCall } from './conversation-log.ts'
import { hostTools, shortenResult } from './host-tools.ts'
import { DeadlineExceeded, withDeadline } from './limits.ts'
import type { StateSet } from './loop.ts'
import { askPermission, whyOf } from './permission.ts'
import type { LoopParts, LoopServer } from './ports.ts'
import { type CallingTurn, isToolDisabled, type Toolbox, type ToolboxEntry, toolChangedSince, toolRequest } from './toolbox.ts'
import { CallRolledBack, callInTransaction, isUndoable, type MadeCall, transactionIdOf } from './undo.ts'

/** The rule name for failures that the tool itself reports. */
const toolRule = 'tool'

/** What a tool call needs from its turn and its host. */
export interface CallParts extends Omit<LoopParts, 'servers'>, CallingTurn {
  /** The connected servers, as they were when the turn began. */
  readonly servers: readonly LoopServer[]
  readonly toolbox: Toolbox
  readonly inferenceId: string
  readonly onProgress: (n: number, progress: { readonly progress: number; readonly message?: string }) => void
}

interface Called {
  readonly outcome: CallOutcome
  /** Operations to commit with the outcome. */
  readonly ops: readonly Op[]
}

/** Makes a call. Throws only when the signal aborts; every other failure becomes an outcome for the model. */
export async function makeCall(parts: CallParts, call: PlannedCall, signal: AbortSignal): Promise<Called> {
  const began = parts.clock.now()
  const ended = (outcome: Omit<CallOutcome, 'n' | 'ms'>): Called =>
    finish(parts, call, { ...outcome, n: call.n, ms: parts.clock.now() - began })
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
    return ended(fate(parts, call, error))
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
  const given = await askPermission(parts, asked)
  const said = given.why ?? (given.asked ? await toolChangedSince(server, asked) : undefined)
  if (said !== undefined) return failed('refused', said)
  // The feature set may have been disabled while the question was open.
  if (given.asked && isToolDisabled(server, entry)) return failed('refused', switchedOff(name, call))
  const leaves = [parts.policy.enter?.(asked), parts.onVisit?.(name, parts.inferenceId)]
  const options = optionsFor(parts, server, call, signal)
  const send = (sent: CallToolOptions): Promise<MadeCall> =>
    isUndoable(entry.definition) ? callInTransaction(client, call, sent) : plainly(client, call, sent)
  const refused = parts.refusals.begin(name)
  const reported = server.live === undefined ? undefined : parts.stateUpdates.begin(name, parts.inferenceId)
  const set = parts.stateSets.of(server, entry)
  const sending = set === undefined ? send(options).then(told) : onState(parts, server, entry, call, set, options, send)
  const ruled = given.rule === undefined ? {} : { rule: given.rule }
  const outcome = await sending.then(
    made => ({ ...made, ...ruled }),
    error => fate(parts, call, error),
  )
  const declined = refused()
  for (const leave of leaves) leave?.()
  // State reports during the call belong to it, whatever its outcome.
  const updates = (await reported?.()) ?? []
  return {
    ...outcome,
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
  const { lines, state, stateSets } = parts
  return lines.inLine(`${server.name}\u0000${set.name}`, async () => {
    const sent = await state.before(server.name, set.name)
    const { state: carried, checkpoint, head } = sent
    const onLate = lateState(parts, server, entry, set, sent)
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

/** A call without a transaction. */
async function plainly(client: Client, call: PlannedCall, options: CallToolOptions): Promise<MadeCall> {
  return { result: await client.callTool(call.tool, call.arguments, options) }
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
function fate(parts: CallParts, call: PlannedCall, error: unknown): Omit<CallOutcome, 'n' | 'ms'> {
  const back = error instanceof CallRolledBack
  const cause = back
    ? error.problem
    : error instanceof DeadlineExceeded
      ? problem('OPERATION_TIMEOUT', 'It took too long')
      : classify(error)
  const declined =
    cause.code === 'CONFIRMATION_DECLINED' || cause.code === 'CONFIRMATION_REQUIRED' || cause.code === 'PERMISSION_DENIED'
  if (declined) return failed('refused', whyOf(cause, 'confirmation'), textBlock)
  if (back) return { ...failed('failed', whyOf(cause, toolRule), textBlock), rolledBack: true }
  const doubtful = call.server !== undefined && !call.readOnly && (isAborted(error) || cause.category === 'transient')
  const said = whyOf(cause, cause.code === 'OPERATION_TIMEOUT' ? `limits.callMs ${parts.limits.callMs}` : toolRule)
  return failed(doubtful ? 'unknown' : 'failed', said, textBlock)
}

function isAborted(error: unknown): boolean {
  return error instanceof Error && (error.name === 'AbortError' || error.name === 'TimeoutError')
}

/** An outcome without success. `words`: marks the text as the host's or as the server's. */
function failed(status: 'failed' | 'refused' | 'unknown', said: Why, words = hostText): Omit<CallOutcome, 'n' | 'ms'> {
  const lead = status === 'unknown' ? 'Nobody knows whether this was done.' : status === 'refused' ? 'This was not done.' : ''
  const content = [...(lead === '' ? [] : [hostText(lead)]), words(`${said.message}. ${said.fix}`)]
  return { status, content, why: said }
}

/** Shortens the content and adds the audit entry. */
function finish(parts: CallParts, call: PlannedCall, outcome: CallOutcome): Called {
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
  return why(said.code, said.rule, `The tool ${clip(tool)} failed`, 'Look at the turn: it holds what the tool said')
}

/** The reason for an unknown tool, with similar names. */
function unknownTool({ toolbox }: CallParts, { name }: PlannedCall): Why {
  const near = toolbox.tools.map(tool => tool.name).filter(other => other.endsWith(name) || name.endsWith(other))
  return why(
    'UNKNOWN_TOOL',
    'toolbox',
    `There is no tool ${clip(name)}`,
    near.length > 0 ? `Use ${near.join(' or ')}` : 'Use one of the tools that are listed',
  )
}

/** The reason for a disabled feature set. */
function switchedOff(server: string, { tool, featureSet = '' }: PlannedCall): Why {
  return why(
    'FEATURE_DISABLED',
    'feature-sets',
    `The tool ${clip(tool)} belongs to ${clip(featureSet)} of ${clip(server)}, which is not enabled`,
    `Enable ${clip(featureSet)} for server ${clip(server)}`,
  )
}

/** The reason for a server that is down. */
function down(server: string): Why {
  return why('SERVER_UNAVAILABLE', 'servers', `The server ${clip(server)} is down`, 'Try again later, or go on without it')
}

/** Records the state of a result that arrived after its call was abandoned, unless a later call was sent since. */
function lateState(
  { state, stateSets, audit, inferenceId, conversation }: CallParts,
  server: LoopServer,
  entry: ToolboxEntry,
  set: StateSet,
  sent: Sent,
): (report: StateReport) => void {
  return report => {
    const name = stateSets.placed(server, entry, set, report)
    const detail = clip(entry.tool)
    const about = { server: server.name, featureSet: name, inferenceId, conversation, kind: 'state', detail }
    state.record(server.name, name, report, name === set.name ? sent : undefined).then(
      () => audit.note({ ...about, outcome: 'success', rule: 'the result came after its call was given up' }),
      error => audit.note({ ...about, outcome: 'failure', why: whyOf(classify(error), 'state') }),
    )
  }
}

/** Settles an interrupted call. It is repeated only where that cannot execute it twice. */
export async function resumeCall(parts: CallParts, call: PlannedCall, signal: AbortSignal): Promise<Called> {
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
  const said = why(
    'OUTCOME_UNKNOWN',
    'interrupted',
    `The host was stopped while ${tool} ran, and ${server} cannot tell whether it was done`,
    'Look at what is there before you try again',
  )
  return {
    n,
    status: 'unknown',
    content: [hostText(`Nobody knows whether this was done. ${said.message}. ${said.fix}`)],
    why: said,
    ms: 0,
  }
}

/** The call was executed, but its result is lost. */
function lostResult({ n, tool }: PlannedCall): CallOutcome {
  return {
    n,
    status: 'done',
    content: [hostText(`${tool} was done; what it answered was lost when the host was stopped`)],
    ms: 0,
  }
}

/** The server rolled the call back. */
function takenBack({ n, tool }: PlannedCall): CallOutcome {
  const said = why(
    'TAKEN_BACK',
    'interrupted',
    `${tool} was taken back by its server, because the host was stopped amid it`,
    'Call it again',
  )
  return { n, status: 'failed', content: [hostText(`${said.message}. ${said.fix}`)], why: said, ms: 0, rolledBack: true }
}
