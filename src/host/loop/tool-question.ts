/** What the policy is asked about a call of a tool, and whether the tool is still the one that was approved when the answer is there. */
import { digest } from '../../core/digest.ts'
import { type Why, why } from '../../core/why.ts'
import type { Tool } from '../../features/mcp/tools/messages.ts'
import { clip } from '../../jsonrpc/limits.ts'
import type { BegunBy } from '../../policy/rules/begun-by.ts'
import type { LoopAsked, LoopServer } from './ports.ts'
import type { PlannedCall } from './records.ts'

/** The turn that a call belongs to. */
export interface CallingTurn {
  readonly conversation: string
  readonly inferenceId?: string
  readonly begunBy: BegunBy
}

/**
 * Whether a tool says of itself that it changes nothing. It is its server's word, and one that stays the same: a definition that says
 * otherwise later is held until somebody approves it.
 */
export function isReadOnly({ annotations }: Tool): boolean {
  return annotations?.readOnlyHint === true && annotations.destructiveHint !== true
}

export async function toolAsked(call: PlannedCall, server: string, tool: Tool, turn: CallingTurn): Promise<LoopAsked> {
  const { featureSet, arguments: payload } = call
  return {
    kind: 'tool',
    server,
    tool: call.tool,
    ...(featureSet !== undefined && { featureSet }),
    payload,
    definition: await definitionOf(tool),
    readOnly: isReadOnly(tool),
    begunBy: turn.begunBy,
    conversation: turn.conversation,
    ...(turn.inferenceId !== undefined && { inferenceId: turn.inferenceId }),
  }
}

/** Definitions do not change, and the same ones come back with every call. */
const digests = new WeakMap<Tool, Promise<string>>()

function definitionOf(tool: Tool): Promise<string> {
  const known = digests.get(tool) ?? digest(tool)
  digests.set(tool, known)
  return known
}

/** Why a call that was approved is not made after all: while the question was open the tool became another one, or went away. */
export async function changedSince(server: LoopServer, { tool, definition }: LoopAsked): Promise<Why | undefined> {
  const listed = await server.tools().catch(() => [])
  const now = listed.find(each => each.tool.name === tool)?.tool
  if (now !== undefined && (await definitionOf(now)) === definition) return undefined
  return why(
    'TOOL_CHANGED',
    'approval',
    `The definition of the tool ${clip(tool ?? '')} of ${clip(server.name)} changed while the question was open. The call was not made`,
    'Call it again: it is then asked about as it is now',
  )
}
