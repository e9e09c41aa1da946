/**
 * A tool call whose result arrives in chunks, each once and in order, followed by the complete result. If the connection
 * breaks, the call is resumed after the last chunk received; nothing runs twice.
 */
import type { Clock } from '../core/clock.ts'
import type { InferOutput, Schema } from '../core/schema/index.ts'
import { backoffMs, pause } from '../engine/backoff.ts'
import type { Progress } from '../engine/calls.ts'
import { type Checkpoint, chunkIn, resumeMeta, toldProgress } from '../features/reliability/streaming/client.ts'
import { ConnectionError } from '../jsonrpc/connection.ts'
import { McpError } from '../jsonrpc/error.ts'
import type { CallToolOptions, ToolOutcome } from './api.ts'

export type { Checkpoint }

/** The options of `streamTool`: those of `callTool`, and the type of its chunks. */
export interface StreamToolOptions<S extends Schema = Schema, C extends Schema = Schema> extends CallToolOptions<S> {
  /** The schema of a chunk, which validates and types it. Default: chunks are not validated. */
  readonly chunk?: C
  /** Resumes a call at the `checkpoint` of an earlier stream. The arguments must be the same. Default: a new call. */
  readonly resume?: Checkpoint
}

/** What a stream needs of its client. */
interface StreamCaller {
  readonly clock: Clock
  readonly tool: string
  /** Starts or resumes the call. `mayRepeat`: whether it may be started again after a temporary failure. */
  readonly call: (options: CallToolOptions, again: boolean, mayRepeat: () => boolean) => Promise<ToolOutcome>
  /** Whether the connection is still open. */
  readonly open: () => boolean
  /** Checks a chunk against its schema. */
  readonly read: (schema: Schema, data: unknown) => Promise<unknown>
  /** Whether the failure is temporary. */
  readonly mayPass: (error: unknown) => boolean
}

/** The type of a schema's values; unknown without a schema. */
export type ChunkOf<S extends Schema> = Schema extends S ? unknown : InferOutput<S>

/** The most characters of unread chunks. */
const mostWaiting = 16 * 1024 * 1024
/** Attempts in a row without a chunk, after which the call fails. */
const mostFailures = 6

/** A tool call that is read in chunks; made by `mcp.streamTool`. */
export class ToolStream<C = unknown, T = unknown> implements AsyncIterable<C> {
  /** The complete result. */
  readonly result: Promise<ToolOutcome<T>>
  readonly #caller: StreamCaller
  readonly #options: StreamToolOptions
  readonly #ending = new AbortController()
  readonly #signal: AbortSignal
  readonly #chunks: { readonly data: unknown; readonly length: number }[] = []
  #waiting = 0
  #next = 0
  #checkpoint: Checkpoint | undefined
  /** The current attempt; rejected if a chunk was lost, so that another attempt resumes the call. */
  #attempt = Promise.withResolvers<never>()
  #settled: { readonly error?: unknown } | undefined = undefined
  #wake: (() => void) | undefined = undefined
  #taken = false

  constructor(caller: StreamCaller, options: StreamToolOptions) {
    this.#caller = caller
    this.#options = options
    const { signal } = options
    this.#signal = signal === undefined ? this.#ending.signal : AbortSignal.any([signal, this.#ending.signal])
    this.#checkpoint = options.resume
    this.#next = options.resume?.chunks ?? 0
    this.result = this.#run() as Promise<ToolOutcome<T>>
    this.result.then(
      () => this.#settle({}),
      error => this.#settle({ error }),
    )
  }

  /**
   * Where the call can be resumed by this or another client: after the chunks that were received so far. Undefined if the server
   * cannot resume it.
   */
  get checkpoint(): Checkpoint | undefined {
    return this.#checkpoint
  }

  /** Yields the chunks, once. Leaving the loop early cancels the call. */
  async *[Symbol.asyncIterator](): AsyncGenerator<C, void, undefined> {
    if (this.#taken) throw new TypeError('The chunks of a call can be read only once')
    this.#taken = true
    try {
      for (;;) {
        const chunk = this.#chunks.shift()
        if (chunk !== undefined) {
          this.#waiting -= chunk.length
          yield await this.#read(chunk.data)
        } else if (this.#settled !== undefined) break
        else await this.#news()
      }
      if ('error' in this.#settled) throw this.#settled.error
      const { isError, structured, text } = await this.result
      if (this.#next === 0 && !isError) yield await this.#read(structured ?? text)
    } finally {
      this.#ending.abort(new DOMException('The caller stopped reading the chunks of this call', 'AbortError'))
    }
  }

  #news(): Promise<void> {
    return new Promise(resolve => {
      this.#wake = resolve
    })
  }

  async #read(data: unknown): Promise<C> {
    const { chunk } = this.#options
    return (chunk === undefined ? data : await this.#caller.read(chunk, data)) as C
  }

  async #run(): Promise<ToolOutcome> {
    const { clock, call, open, mayPass } = this.#caller
    for (let failures = 0; ; ) {
      const before = this.#next
      try {
        return await Promise.race([
          call(this.#attemptOptions(), this.#checkpoint !== undefined, this.#mayRepeat),
          this.#attempt.promise,
        ])
      } catch (error) {
        failures = this.#next > before ? 0 : failures + 1
        if (this.#checkpoint === undefined || this.#signal.aborted || !open()) throw error
        if (failures > mostFailures || !isCutOff(error, mayPass)) throw error
        await pause(clock, failures === 0 ? 0 : backoffMs(failures), this.#signal)
        this.#signal.throwIfAborted()
      }
    }
  }

  readonly #mayRepeat = (): boolean => this.#checkpoint === undefined

  #attemptOptions(): CallToolOptions {
    const { chunk, resume, onProgress, meta, ...options } = this.#options
    const attempt = Promise.withResolvers<never>()
    attempt.promise.catch(() => undefined)
    this.#attempt = attempt
    const again = this.#checkpoint === undefined ? undefined : resumeMeta(this.#checkpoint)
    return {
      ...options,
      ...(meta === undefined && again === undefined ? {} : { meta: { ...meta, ...again } }),
      signal: this.#signal,
      onProgress: step => {
        if (attempt === this.#attempt) this.#told(step, onProgress)
      },
    }
  }

  #told(step: Progress, onProgress: CallToolOptions['onProgress']): void {
    const chunk = chunkIn(step)
    if (chunk === undefined) return onProgress?.(toldProgress(step))
    const { sequence, operation_id: operationId, checkpoint_token: token } = chunk
    // Already received before the connection broke.
    if (sequence < this.#next) return
    if (sequence > this.#next) return this.#attempt.reject(new ConnectionError('lost', `Chunk ${this.#next} was lost in transit`))
    this.#next++
    this.#checkpoint = token === undefined ? undefined : { operationId, token, chunks: this.#next }
    if ('data' in chunk) this.#add(chunk.data)
  }

  #add(data: unknown): void {
    const length = typeof data === 'string' ? data.length : JSON.stringify(data).length
    this.#chunks.push({ data, length })
    this.#waiting += length
    if (this.#waiting > mostWaiting) this.#ending.abort(tooSlow(this.#caller.tool))
    this.#wake?.()
  }

  #settle(settled: { readonly error?: unknown }): void {
    this.#settled = settled
    this.#wake?.()
  }
}

/** True if the connection or an intermediary failed, and not the server itself. */
function isCutOff(error: unknown, mayPass: StreamCaller['mayPass']): boolean {
  if (error instanceof McpError && error.kind === 'timeout') return false
  return error instanceof ConnectionError || mayPass(error)
}

function tooSlow(tool: string): McpError {
  return new McpError(
    'too-much',
    `More than ${mostWaiting} characters of chunks of ${tool} are unread (the limit). Read the chunks faster, or use callTool`,
  )
}
