/** Calls that were begun by a process that is gone: made again where that does no harm, else told as what they are, unknown. */
import { why } from '../../core/why.ts'
import { own } from './blocks.ts'
import { type Called, type CallParts, makeCall } from './calls.ts'
import type { CallOutcome, PlannedCall } from './records.ts'
import { isUndoable, transactionOf } from './undoable-calls.ts'

export async function resumeCall(parts: CallParts, call: PlannedCall, signal: AbortSignal): Promise<Called> {
  const entry = call.server === undefined ? undefined : parts.toolbox.of(call.server, call.tool)
  const client = parts.servers.find(({ name }) => name === call.server)?.client
  if (call.server === undefined || call.readOnly) return makeCall(parts, call, signal)
  if (entry === undefined || client === undefined) return { outcome: unknown(call), ops: [] }
  if (isUndoable(entry.definition)) {
    // Asked first: a transaction of that name can be begun only once.
    const report = await client.transactionStatus(transactionOf(call), { signal }).catch(() => undefined)
    if (report?.status === 'committed') return { outcome: lostResult(call), ops: [] }
    return { outcome: report?.status === 'rolled_back' ? takenBack(call) : unknown(call), ops: [] }
  }
  if (entry.definition.annotations?.idempotentHint === true) return makeCall(parts, call, signal)
  // A server that can tell how a call under a key stands also does it only once.
  const known = await client.callStatus(call.key, { signal }).catch(() => undefined)
  return known === undefined ? { outcome: unknown(call), ops: [] } : makeCall(parts, call, signal)
}

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
    content: [own(`Nobody knows whether this was done. ${said.message}. ${said.fix}`)],
    why: said,
    ms: 0,
  }
}

function lostResult({ n, tool }: PlannedCall): CallOutcome {
  return { n, status: 'done', content: [own(`${tool} was done; what it answered was lost when the host was stopped`)], ms: 0 }
}

function takenBack({ n, tool }: PlannedCall): CallOutcome {
  const said = why(
    'TAKEN_BACK',
    'interrupted',
    `${tool} was taken back by its server, because the host was stopped amid it`,
    'Call it again',
  )
  return { n, status: 'failed', content: [own(`${said.message}. ${said.fix}`)], why: said, ms: 0, rolledBack: true }
}
