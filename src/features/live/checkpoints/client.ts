/** State of a server as its host hears of it and goes back in it (MCP Live 0.2 §8). */
import { McpError } from '../../../jsonrpc/error.ts'
import type { Params } from '../../../jsonrpc/message.ts'
import type { Answerer, LiveGate } from '../answers/messages.ts'
import { readRollback, refusedRollback, type ServerRollback, stateOf } from '../dialects/messages.ts'
import { type FeatureSetFacts, liveErrorTexts } from '../feature-sets/messages.ts'
import { getState, type StateReport, updateState } from './messages.ts'

interface StateHandlers {
  readonly onState?: ((report: StateReport) => Promise<void>) | undefined
  /** What is known of a set's state at a checkpoint, or now. */
  readonly stateOf?: ((featureSet: string, checkpoint: string | undefined) => Promise<StateReport | undefined>) | undefined
}

/** Sets of which the last report is kept, for hosts that keep none themselves. */
const mostKept = 256

/** Servers of other dialects report state outside of calls, for sets that keep state, and may ask for it. */
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
        if (last.size > mostKept) last.delete(last.keys().next().value as string)
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
        const kept = last.get(featureSet)
        const known =
          (await handlers.stateOf?.(featureSet, at)) ?? (at === undefined || kept?.checkpoint === at ? kept : undefined)
        if (known !== undefined) return { ...known, featureSet }
        if (at === undefined) return { featureSet, checkpoint: null }
        throw new McpError('checkpoint-unknown', liveErrorTexts['checkpoint-unknown'], { data: { checkpoint: at } })
      },
    },
  ]
}

/** Asks a server to go back. Only sets that know how, and may, are asked; the many forms of a no are one. */
export async function rollBack(
  facts: FeatureSetFacts | undefined,
  admitted: boolean,
  checkpoint: string,
  ask: () => Promise<unknown>,
): Promise<ServerRollback> {
  const refused = (reason: string): ServerRollback => ({ success: false, checkpoint, reason })
  if (facts === undefined) return refused('The server declares no such feature set')
  if (facts.rollback !== true && !admitted) return refused('The feature set is not declared with rollback')
  if (!admitted) return refused('The feature set is not enabled')
  try {
    return readRollback(await ask(), checkpoint)
  } catch (error) {
    const said = refusedRollback(error, checkpoint)
    if (said === undefined) throw error
    return said
  }
}
