/** Using streams: what progress says beyond the core, and going on with a call after the last chunk that came. */
import type { Progress } from '../../../engine/calls.ts'
import { defineClientFeature, extend } from '../../../engine/client-feature.ts'
import { declaration } from '../../../engine/extensions.ts'
import { isRecord, type Params } from '../../../jsonrpc/message.ts'
import { type CallManner, type ToolCallOptions, toolCalls } from '../../mcp/tools/messages.ts'
import { progressIn, streamingExtension } from './messages.ts'

export { chunkIn } from './messages.ts'

/** Reads what progress says beyond the core. */
export const streamingClient = defineClientFeature({
  name: 'streaming',
  options: {},
  setup: () => ({
    // Where each request declares for itself, those that want to hear of progress do: the others have no use for it.
    side: { capabilities: revision => (revision.era === 'session' ? declaration(revision, streamingExtension) : {}) },
    extensions: [
      extend(toolCalls, {
        name: 'streaming',
        declares: { extension: streamingExtension, withProgress: true },
        around: next => (name, args, options, manner) => next(name, args, inWords(options, manner), manner),
      }),
    ],
  }),
})

/** Progress is told in the words of this library, unless it is wanted as the wire has it. */
function inWords(options: ToolCallOptions, manner: CallManner | undefined): ToolCallOptions {
  const { onProgress } = options
  if (onProgress === undefined || manner?.rawProgress === true) return options
  return { ...options, onProgress: step => onProgress(toldProgress(step)) }
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
