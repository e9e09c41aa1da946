/** State as servers report it beside results, and the many ways in which they answer a rollback. */
import { McpError } from '../../../jsonrpc/error.ts'
import { isRecord, type Params } from '../../../jsonrpc/message.ts'
import type { StateReport, WireCallState } from '../checkpoints/messages.ts'
import { type FeatureSetFacts, liveErrors, liveExtension } from '../feature-sets/messages.ts'

/** The state in a result: its own member first, then the copy that libraries leave alone. */
export function readLiveState(result: Params): StateReport | undefined {
  const said = isRecord(result['_meta']) ? result['_meta'][liveExtension] : undefined
  const meta = isRecord(said) ? said : {}
  const state = stateOf(result['state']) ?? stateOf(meta['state'])
  const { featureSet } = meta
  return state === undefined || state.featureSet !== undefined || typeof featureSet !== 'string'
    ? state
    : { ...state, featureSet }
}

/** A report without a checkpoint is none. Where both are there, the whole state beats the change. */
export function stateOf(wire: unknown): StateReport | undefined {
  if (!isRecord(wire) || typeof wire['checkpoint'] !== 'string') return undefined
  const { checkpoint, parent, data, patch, featureSet } = wire
  return {
    checkpoint,
    ...(parent === null || typeof parent === 'string' ? { parent } : {}),
    ...('data' in wire ? { data } : {}),
    ...(Array.isArray(patch) ? { patch } : {}),
    ...(typeof featureSet === 'string' ? { featureSet } : {}),
  }
}

/** Members for a call's params, and their copy for `_meta`. Host state and a checkpoint never go together: the state says it all. */
export function writeCallState({ state, checkpoint, scope }: WireCallState): WireCallState {
  const at = state !== undefined ? { state } : checkpoint !== undefined ? { checkpoint } : {}
  return scope === undefined ? at : { ...at, scope }
}

/** The set a tool belongs to: as it says itself, else the only one that keeps state. Among several nobody guesses. */
export function toolSetOf(tool: Params | undefined, sets: ReadonlyMap<string, FeatureSetFacts>): string | undefined {
  const meta = isRecord(tool?.['_meta']) ? tool['_meta'] : {}
  const own = meta[liveExtension]
  for (const said of [isRecord(own) ? own['featureSet'] : own, tool?.['featureSet'], meta['featureSet']]) {
    if (typeof said === 'string') return said
  }
  const stateful = [...sets].filter(([, { rollback, hostState }]) => rollback === true || hostState === true)
  return stateful.length === 1 ? stateful[0]?.[0] : undefined
}

export interface ServerRollback {
  readonly success: boolean
  /** Where the server now stands: the target, or a new checkpoint that equals it. */
  readonly checkpoint: string
  readonly reason?: string
  /** The server no longer has the checkpoint. */
  readonly missing?: boolean
  /** The server knows no rollback: where its state travels with the calls, the host can go back by itself. */
  readonly unsupported?: boolean
}

export function readRollback(wire: unknown, target: string): ServerRollback {
  const { success, checkpoint, reason } = isRecord(wire) ? wire : {}
  const at = typeof checkpoint === 'string' ? checkpoint : target
  if (success === true) return { success, checkpoint: at }
  const why = typeof reason === 'string' ? reason : 'The server does not say why'
  return { success: false, checkpoint: at, reason: why, ...(notFound.test(why) ? { missing: true } : {}) }
}

const notFound = /checkpoint.*(not found|unknown|pruned)|(not found|unknown|pruned).*checkpoint/i

const missingCodes: ReadonlySet<number | undefined> = new Set(Object.values(liveErrors['checkpoint-unknown']))

/** A refusal that says where the server stands; undefined: the failure is nothing of the kind. */
export function refusedRollback(error: unknown, target: string): ServerRollback | undefined {
  if (!(error instanceof McpError) || error.kind !== 'remote') return undefined
  const { code, message, data } = error
  if (code === -32601) return { success: false, checkpoint: target, reason: message, unsupported: true }
  const named = isRecord(data) && 'checkpoint' in data
  if ((missingCodes.has(code) && (named || notFound.test(message))) || notFound.test(message))
    return { success: false, checkpoint: target, reason: message, missing: true }
  return undefined
}
