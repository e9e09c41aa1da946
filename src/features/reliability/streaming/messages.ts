/**
 * Streaming on the wire: what a progress notification says beyond the core, in its `_meta`, for peers that know it; and the same
 * call made again with a checkpoint, to go on with an operation whose answer got lost. No methods of its own.
 */
import { NS } from '../../../engine/method.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { isRecord, type Params } from '../../../jsonrpc/message.ts'

/** The name of the extension. */
export const streamingExtension = `${NS}/streaming`

/** Additional progress on the wire. */
export interface WireProgress {
  readonly type: 'progress'
  readonly operation_id: string
  /** From 0 to 1; only where the total is known. */
  readonly progress?: number
  readonly message?: string
  readonly estimated_remaining_seconds?: number
  readonly partial_result?: Readonly<Record<string, unknown>>
}

/** A chunk on the wire. */
export interface WireChunk {
  readonly type: 'stream_chunk'
  readonly operation_id: string
  readonly sequence: number
  readonly data?: unknown
  readonly is_final?: boolean
  readonly checkpoint_token?: string
}

interface WireResume {
  readonly operation_id: string
  readonly checkpoint_token: string
}

/** What a call asks to go on with; undefined where it begins anew. */
export function resumeIn(meta: Params | undefined): WireResume | undefined {
  const said = meta?.[streamingExtension]
  if (!isRecord(said) || said['resume'] === undefined) return undefined
  const { resume } = said
  if (isRecord(resume) && typeof resume['operation_id'] === 'string' && typeof resume['checkpoint_token'] === 'string')
    return { operation_id: resume['operation_id'], checkpoint_token: resume['checkpoint_token'] }
  throw new McpError('invalid-params', `${streamingExtension}: resume must have operation_id and checkpoint_token`)
}

/** In the `_meta` of the call that is made again. */
export interface WireResuming {
  readonly resume: WireResume
}
