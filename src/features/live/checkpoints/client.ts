/**
 * Host side of state and checkpoints (MCP Live 0.2 §8): answers state reports and queries of servers, and asks a server to roll back.
 */
import { McpError } from '../../../jsonrpc/error.ts'
import type { Params } from '../../../jsonrpc/message.ts'
import type { Answerer, LiveGate } from '../answers/messages.ts'
import { readRollback, refusedRollback, type ServerRollback, stateOf } from '../dialects/messages.ts'
import { type FeatureSetFacts, liveError } from '../feature-sets/messages.ts'
import { getState, type StateReport, updateState } from './messages.ts'

interface StateHandlers {
  /** Told of each reported state. */
  onState?(report: StateReport): Promise<void>
  /** The state of a set at a checkpoint, or the current one. */
  stateOf?(featureSet: string, checkpoint: string | undefined): Promise<StateReport | undefined>
}

/** Number of sets whose last report is kept for hosts without their own state store. */
const mostStored = 256

/** Answers `state/update` and `state/get`, which servers of later dialects send outside of calls. */
export function stateAnswerers(gate: LiveGate, handlers: StateHandlers): readonly Answerer[] {
  const last = new Map<string, StateReport>()
  return [
    {
      method: updateState,
      waits: true,
      answer: async params => {
        gate.admit(params['featureSet'] as string, 'state')
        const report = stateOf(params) as StateReport
        last.set(params['featureSet'] as string, report)
        if (last.size > mostStored) last.delete(last.keys().next().value as string)
        await handlers.onState?.(report)
        return { accepted: true }
      },
    },
    {
      method: getState,
      waits: true,
      answer: async ({ featureSet, checkpoint }: Params) => {
        if (typeof featureSet !== 'string') throw new McpError('invalid-params', 'params.featureSet must be a string')
        gate.admit(featureSet, 'state')
        const at = typeof checkpoint === 'string' ? checkpoint : undefined
        const stored = last.get(featureSet)
        const known =
          (await handlers.stateOf?.(featureSet, at)) ?? (at === undefined || stored?.checkpoint === at ? stored : undefined)
        if (known !== undefined) return { ...known, featureSet }
        if (at === undefined) return { featureSet, checkpoint: null }
        throw liveError('checkpoint-unknown', { checkpoint: at })
      },
    },
  ]
}

/** Asks a server to roll a set back to a checkpoint. Refusals, in any of their wire forms, become a result with a reason. */
export async function rollBack(
  facts: FeatureSetFacts | undefined,
  admitted: boolean,
  checkpoint: string,
  ask: () => Promise<unknown>,
): Promise<ServerRollback> {
  const refused = (reason: string): ServerRollback => ({ success: false, checkpoint, reason })
  if (facts === undefined) return refused('The server declares no feature set of this name')
  if (facts.rollback !== true && !admitted) return refused('The feature set is not declared with rollback: true')
  if (!admitted) return refused('The feature set is not enabled')
  try {
    return readRollback(await ask(), checkpoint)
  } catch (error) {
    const said = refusedRollback(error, checkpoint)
    if (said === undefined) throw error
    return said
  }
}
