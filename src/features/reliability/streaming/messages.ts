/**
 * Streaming on the wire: what a progress notification says beyond the core, in its `_meta`, for peers that know it; and the same
 * call made again with a checkpoint, to go on with an operation whose answer got lost. No methods of its own.
 */
import type { Duration } from '../../../core/clock.ts'
import type { Progress } from '../../../engine/calls.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import { NS } from '../../../engine/method.ts'
import { port } from '../../../engine/ports.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { isRecord, type Params } from '../../../jsonrpc/message.ts'

/** How far a call has come, and what can be said beyond that to callers that know streaming. */
export interface ProgressStep extends Progress {
  /** How long it will still take. Default: judged by how fast it went, where the total is known. */
  readonly remaining?: Duration
  /** What there is of the result already. */
  readonly partial?: Readonly<Record<string, unknown>>
}

/** What the context of a call uses of streaming. */
interface StreamingPort {
  /** Tells how far a call has come. */
  progress(exchange: Exchange, step: ProgressStep): void
}

/** What the context of a call uses of streaming. */
export const streamingPort = port<StreamingPort>('streaming')

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
  throw new McpError('invalid-params', `${streamingExtension}: resume must name an operation_id and a checkpoint_token`)
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

/** What a notification says of progress beyond the core. */
export function progressIn(step: Progress): Pick<WireProgress, 'estimated_remaining_seconds' | 'partial_result'> {
  const said = saidIn(step)
  if (said?.['type'] !== 'progress') return {}
  const { estimated_remaining_seconds: seconds, partial_result: partial } = said
  return {
    ...(typeof seconds === 'number' && seconds >= 0 ? { estimated_remaining_seconds: seconds } : {}),
    ...(isRecord(partial) ? { partial_result: partial } : {}),
  }
}

/** The extension's member in the `_meta` of a notification of progress. */
function saidIn(step: Progress): Params | undefined {
  const meta = isRecord(step) ? step['_meta'] : undefined
  const said = isRecord(meta) ? meta[streamingExtension] : undefined
  return isRecord(said) ? said : undefined
}

/** In the `_meta` of the call that is made again. */
export interface WireResuming {
  readonly resume: WireResume
}
