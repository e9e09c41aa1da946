/**
 * Calls of tools that say how they are undone. Each is a transaction of its own, committed at once: so the server tells what would
 * take it back, which is kept with the turn for later, and a call whose end nobody knows is taken back by the server itself.
 */

import type { CallToolOptions, ToolOutcome } from '../../client/api.ts'
import type { Client } from '../../client/client.ts'
import type { Problem } from '../../core/problem.ts'
import type { Tool } from '../../features/mcp/tools/messages.ts'
import { classify } from '../../features/reliability/problem/classify.ts'
import { transactionsExtension } from '../../features/reliability/transactions/messages.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import type { Compensation, PlannedCall } from './records.ts'

export function isUndoable({ _meta }: Tool): boolean {
  const said = _meta?.[transactionsExtension]
  return isRecord(said) && isRecord(said['compensation'])
}

/** The name of the transaction of a call: known before it begins, so that another process can ask how it ended. */
export function transactionIdOf(call: PlannedCall): string {
  return `turn-${call.key}`
}

export async function callInTransaction(client: Client, call: PlannedCall, options: CallToolOptions): Promise<MadeCall> {
  const tx = await client.transaction({ id: transactionIdOf(call), description: `Turn of a conversation: ${call.tool}` })
  let result: ToolOutcome
  try {
    result = await tx.callTool(call.tool, call.arguments, options)
  } catch (error) {
    const report = await tx.rollback('The call did not end well').catch(() => undefined)
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

function compensationIn({ meta }: ToolOutcome): Compensation | undefined {
  const step = meta?.[transactionsExtension]
  const said = isRecord(step) ? step['compensation'] : undefined
  if (!isRecord(said) || typeof said['tool'] !== 'string') return undefined
  return { tool: said['tool'], ...(isRecord(said['parameters']) && { parameters: said['parameters'] }) }
}

export interface MadeCall {
  readonly result: ToolOutcome
  readonly compensation?: Compensation | undefined
}

/** The server has taken a call back whose end was not known. */
export class CallRolledBack extends Error {
  override readonly name = 'TakenBack'
  readonly problem: Problem

  constructor(problem: Problem) {
    super(problem.message, { cause: problem })
    this.problem = problem
  }
}
