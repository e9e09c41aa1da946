/** Using streams: what progress says beyond the core, and going on with a call after the last chunk that came. */
import type { Progress } from '../../../engine/calls.ts'
import { declaration } from '../../../engine/extensions.ts'
import type { Side } from '../../../engine/plan.ts'
import { isRecord, type Params } from '../../../jsonrpc/message.ts'
import { progressIn, streamingExtension } from './messages.ts'

export { chunkIn } from './messages.ts'

/** Where each request declares for itself, those that want to hear of progress do: the others have no use for it. */
export function streamingClient(): Side {
  return { capabilities: revision => (revision.era === 'session' ? declaration(revision, streamingExtension) : {}) }
}

/** Where a call that streams can be gone on with. JSON: it may be kept, and used by another client of the same user. */
export interface Checkpoint {
  readonly operationId: string
  readonly token: string
  /** The chunks that came before it. */
  readonly chunks: number
}

/** In the `_meta` of a call that goes on. */
export function resumeMeta({ operationId, token }: Checkpoint): Params {
  return { [streamingExtension]: { resume: { operation_id: operationId, checkpoint_token: token } } }
}

/** How far a call has come, and what the server says beyond that. */
export interface ToldProgress extends Progress {
  /** How long it will still take, in milliseconds. */
  readonly remainingMs?: number
  /** What there is of the result already. */
  readonly partial?: Readonly<Record<string, unknown>>
}

/** What a server told of progress, without what is not for its reader. */
export function toldProgress(step: Progress): ToldProgress {
  const meta = metaIn(step)
  if (meta === undefined) return step
  const { estimated_remaining_seconds: seconds, partial_result: partial } = progressIn(meta)
  const { progress, total, message } = step
  return {
    progress,
    ...(total === undefined ? {} : { total }),
    ...(message === undefined ? {} : { message }),
    ...(seconds === undefined ? {} : { remainingMs: seconds * 1000 }),
    ...(partial === undefined ? {} : { partial }),
  }
}

/** The `_meta` of the notification that brought it. */
export function metaIn(step: Progress): unknown {
  return isRecord(step) ? step['_meta'] : undefined
}
