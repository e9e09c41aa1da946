/** State that tools leave with a host (MCP Live 0.2 §8): what a call came with, what its result reports, and going back. */
import { digest } from '../../../core/digest.ts'
import type { Trace } from '../../../core/log-trace.ts'
import { Problem, problemText } from '../../../core/problem.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import type { Side } from '../../../engine/plan.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { type Awaitable, isRecord } from '../../../jsonrpc/message.ts'
import { type FeatureSetFacts, liveErrorTexts, liveExtension } from '../feature-sets/messages.ts'
import type { LiveCaller } from '../hosts/messages.ts'
import type { CheckpointIds } from './ids.ts'
import { type RollbackResult, rollbackState, type StateReport } from './messages.ts'

/** Goes back to a checkpoint. False: there is none such, or none any more. What it throws is why it could not be done. */
export type RollbackHandler = (checkpoint: string) => Awaitable<undefined | boolean>

export interface StatefulSet {
  readonly facts: FeatureSetFacts
  readonly rollback: RollbackHandler | undefined
}

export interface CheckpointsParts {
  readonly set: (name: string) => StatefulSet | undefined
  readonly caller: (exchange: Exchange) => LiveCaller | undefined
  readonly ids: CheckpointIds
  readonly trace: Trace
}

export interface Checkpoints {
  readonly side: Side
  /** What a result says of the state that its call has made, where the host keeps it. */
  report(exchange: Exchange, featureSet: string, made: MadeState): Promise<StateReport>
}

export interface MadeState {
  readonly value: unknown
  /** How it came of what was given, if it did. */
  readonly steps: readonly unknown[] | undefined
}

/** What a call came with: members of its params, or their copies in `_meta`, which survive where others are dropped. */
export function givenWith({ params, meta }: Pick<Exchange, 'params' | 'meta'>): {
  readonly state: unknown
  readonly checkpoint: string | undefined
  readonly parent: string | undefined
} {
  const live = meta?.[liveExtension]
  const copy = isRecord(live) ? live : {}
  const checkpoint = params['checkpoint'] ?? copy['checkpoint']
  return {
    state: params['state'] ?? copy['state'],
    checkpoint: typeof checkpoint === 'string' ? checkpoint : undefined,
    parent: typeof copy['parent'] === 'string' ? copy['parent'] : undefined,
  }
}

/** A result with its report, and the copy of it. */
export function reported<R extends object>(result: R, state: StateReport): R {
  const meta = '_meta' in result && isRecord(result._meta) ? result._meta : {}
  const live = isRecord(meta[liveExtension]) ? meta[liveExtension] : {}
  return { ...result, state, _meta: { ...meta, [liveExtension]: { ...live, state } } }
}

/** So many states are known by their content, for hosts that do not say at which checkpoint theirs was. */
const remembered = 1_000

export function checkpointsServer(parts: CheckpointsParts): Checkpoints {
  const byContent = new Map<string, string>()
  const contentKey = async (featureSet: string, state: unknown): Promise<string> => digest([featureSet, state])
  return {
    side: { handlers: [[rollbackState, exchange => rollback(parts, exchange)]] },
    report: async (exchange, featureSet, { value, steps }) => {
      const given = givenWith(exchange)
      const checkpoint = await parts.ids.issue(featureSet)
      const parent = given.state === undefined ? null : (given.parent ?? byContent.get(await contentKey(featureSet, given.state)))
      if (!isRecord(exchange.meta?.[liveExtension])) {
        byContent.set(await contentKey(featureSet, value), checkpoint)
        const [oldest] = byContent.keys()
        if (byContent.size > remembered && oldest !== undefined) byContent.delete(oldest)
      }
      // A patch is good only for whoever knows what it is on.
      const patches = steps !== undefined && steps.length > 0 && given.state !== undefined && parent !== undefined
      const body = patches ? { patch: steps } : { data: value ?? null }
      return { checkpoint, ...(parent === undefined ? {} : { parent }), ...body }
    },
  }
}

async function rollback({ set, caller, ids, trace }: CheckpointsParts, exchange: Exchange): Promise<RollbackResult> {
  const { featureSet, checkpoint } = exchange.params as { featureSet: string; checkpoint: string }
  if (caller(exchange) === undefined)
    throw new McpError('method-not-found', `${rollbackState.name} is for hosts that declared MCP Live`)
  const found = set(featureSet)
  if (found === undefined)
    throw new McpError('feature-set-unknown', liveErrorTexts['feature-set-unknown'], { data: { featureSet: clip(featureSet) } })
  const failed = (reason: string): RollbackResult => ({ checkpoint, success: false, reason })
  if (found.facts.rollback !== true) return failed(`"${featureSet}" does not go back to checkpoints`)
  const { rollback: handler, facts } = found
  if (handler === undefined && facts.hostState !== true)
    return failed(`"${featureSet}" has no way back: its onRollback is missing`)
  // Whose state travels with each call has nothing to do here: the next one brings the older one along.
  const known = facts.hostState !== true || (await ids.issued(featureSet, checkpoint))
  try {
    if (known && (handler === undefined || (await handler(checkpoint)) !== false)) return { checkpoint, success: true }
  } catch (error) {
    trace('rollback-failed', { featureSet, error }, exchange.caller)
    return failed(error instanceof Problem ? problemText(error) : 'The server could not take it back')
  }
  throw new McpError('checkpoint-unknown', liveErrorTexts['checkpoint-unknown'], { data: { checkpoint: clip(checkpoint, 200) } })
}
