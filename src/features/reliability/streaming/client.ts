/** Client side of streaming: reads additional progress, and resumes a call after its last chunk. */
import type { Progress } from '../../../engine/calls.ts'
import { defineClientFeature, extend } from '../../../engine/client-feature.ts'
import { extensionCapability } from '../../../engine/extensions.ts'
import { given, isRecord, type Params } from '../../../jsonrpc/message.ts'
import { type CallDirectives, type ToolCallOptions, toolCalls } from '../../mcp/tools/messages.ts'
import { streamingExtension, type WireChunk } from './messages.ts'

/** The client feature: declares the extension, and converts progress. */
export const streamingClient = defineClientFeature({
  name: 'streaming',
  options: {},
  setup: () => ({
    // On stateless wires only requests with progress declare the extension.
    side: { capabilities: revision => (revision.era === 'session' ? extensionCapability(revision, streamingExtension) : {}) },
    extensions: [
      extend(toolCalls, {
        name: 'streaming',
        declares: { extension: streamingExtension, withProgress: true },
        around: next => (name, args, options, manner) => next(name, args, inWords(options, manner), manner),
      }),
    ],
  }),
})

/** Converts progress, unless the wire form is wanted. */
function inWords(options: ToolCallOptions, manner: CallDirectives | undefined): ToolCallOptions {
  const { onProgress } = options
  if (onProgress === undefined || manner?.rawProgress === true) return options
  return { ...options, onProgress: step => onProgress(toldProgress(step)) }
}

/** Where a streaming call can be resumed. JSON, so that it can be stored and used by another client of the same user. */
export interface Checkpoint {
  /** The id of the operation at the server. */
  readonly operationId: string
  /** The token that proves the right to resume it. Keep it secret. */
  readonly token: string
  /** The chunks received before it. */
  readonly chunks: number
}

/** The `_meta` of a resuming call. */
export function resumeMeta({ operationId, token }: Checkpoint): Params {
  return { [streamingExtension]: { resume: { operation_id: operationId, checkpoint_token: token } } }
}

/** Progress with the additional members. */
export interface ToldProgress extends Progress {
  /** Estimated remaining time in milliseconds. */
  readonly remainingMs?: number
  /** The partial result so far. */
  readonly partial?: Readonly<Record<string, unknown>>
}

/** Converts progress from the wire. */
export function toldProgress(step: Progress): ToldProgress {
  if (!isRecord(step) || step['_meta'] === undefined) return step
  const said = saidIn(step)
  const { estimated_remaining_seconds: seconds, partial_result } = said?.['type'] === 'progress' ? said : {}
  const remainingMs = typeof seconds === 'number' && seconds >= 0 ? seconds * 1000 : undefined
  const partial = isRecord(partial_result) ? partial_result : undefined
  const { progress, total, message } = step
  return { progress, ...given({ total, message, remainingMs, partial }) }
}

/** The chunk that a notification of progress brings; undefined where it brings none. */
export function chunkIn(step: Progress): WireChunk | undefined {
  const said = saidIn(step)
  if (said?.['type'] !== 'stream_chunk' || typeof said['operation_id'] !== 'string') return undefined
  const { operation_id, sequence, checkpoint_token: token, is_final } = said
  if (typeof sequence !== 'number' || !Number.isSafeInteger(sequence) || sequence < 0) return undefined
  return {
    type: 'stream_chunk',
    operation_id,
    sequence,
    ...('data' in said ? { data: said['data'] } : {}),
    ...(is_final === true ? { is_final } : {}),
    ...(typeof token === 'string' ? { checkpoint_token: token } : {}),
  }
}

/** The extension's member in the `_meta` of a notification of progress. */
function saidIn(step: Progress): Params | undefined {
  const meta = isRecord(step) ? step['_meta'] : undefined
  const said = isRecord(meta) ? meta[streamingExtension] : undefined
  return isRecord(said) ? said : undefined
}
