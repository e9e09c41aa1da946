/**
 * Keeps the chunks of streaming operations for clients that reconnect, within limits per account and in total; also their checkpoints
 * and outcomes. Over the limit, ended operations are removed first. What a dead process left is removed by others.
 */
import type { Cancel } from '../../../core/clock.ts'
import { lastPosition } from '../../../core/feed/feed.ts'
import { HandleError } from '../../../core/handle.ts'
import type { Journal } from '../../../core/journal/journal.ts'
import { Shares } from '../../../core/occupancy.ts'
import { type Problem, problem } from '../../../core/problem.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import type { ServerKit } from '../../../engine/server-feature.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { given, isRecord, picked } from '../../../jsonrpc/message.ts'
import { type Op, put, remove, trim } from '../../../stores/store.ts'
import { type CallToolResult, wrappedOutput } from '../../mcp/tools/messages.ts'
import { logOf } from './remote-operations.ts'
import type { StreamingParts } from './server.ts'

interface ChunkStoreParts extends Omit<StreamingParts, 'journal'> {
  readonly journal: Journal
}

const prefix = 'stream/'
/** Total limit in characters. */
const most = 64 * 1024 * 1024
const standardOperations = 1_000

/** Keeps chunks for clients that reconnect. */
export class ChunkStore {
  readonly #parts: ChunkStoreParts
  #timer: Cancel | undefined = undefined
  /** Running operations and stored chunks per account. */
  readonly #shares: Shares
  /** Ended operations, oldest first. */
  readonly #ended = new Map<string, { readonly account: string; readonly length: number; readonly cancel: Cancel }>()

  constructor(parts: ChunkStoreParts) {
    this.#parts = parts
    const { capacity = Number.POSITIVE_INFINITY } = parts.journal.store
    const length = Math.min(most, Math.floor(capacity / 8))
    this.#shares = new Shares({ records: parts.operations ?? standardOperations, length })
    this.#sweep()
  }

  /** Reserves a place; false if the account has none left. */
  begin(account: string): boolean {
    if (!this.#shares.fits(account, { records: 1, length: 1 })) return false
    this.#shares.add(account, 1, 0)
    return true
  }

  /** Releases the place. */
  end(account: string): void {
    this.#shares.add(account, -1, 0)
  }

  /** Counts stored characters; false if the account's share is used up and nothing ended can be removed. */
  weigh(account: string, length: number): boolean {
    this.#shares.add(account, 0, length)
    if (this.#shares.left(account).length > 0) return true
    for (const [id, ended] of this.#ended) {
      if (ended.account !== account) continue
      this.#expire(id)
      if (this.#shares.left(account).length > 0) return true
    }
    return false
  }

  /** Keeps an ended operation for a while. */
  keep(account: string, id: string, length: number): void {
    const { clock, keepMs } = this.#parts
    this.#ended.set(id, { account, length, cancel: clock.setTimeout(() => this.#expire(id), keepMs, true) })
  }

  #expire(id: string): void {
    const ended = this.#ended.get(id)
    ended?.cancel()
    this.#ended.delete(id)
    if (ended !== undefined) this.#shares.add(ended.account, 0, -ended.length)
    this.forget(id).catch(error => this.#parts.trace('chunks-not-forgotten', error))
  }

  /** The operation that records a stream; after this time it may be removed if its process is gone or it has ended. */
  put(id: string, ms: number): Op {
    const { journal, clock } = this.#parts
    return put(prefix + id, JSON.stringify({ runner: journal.runners.id, until: clock.now() + ms }))
  }

  /** Store operations that remove a stream. */
  async forgetting(id: string): Promise<readonly Op[]> {
    const end = await lastPosition(this.#parts.journal.store, logOf(id), 0)
    return [trim(logOf(id), end + 1), remove(prefix + id)]
  }

  async forget(id: string): Promise<void> {
    await this.#parts.journal.store.commit(await this.forgetting(id))
  }

  close(): void {
    this.#timer?.()
    for (const { cancel } of this.#ended.values()) cancel()
  }

  #sweep(): void {
    const { clock, trace, keepMs } = this.#parts
    this.#timer = clock.setTimeout(() => this.#sweep(), keepMs, true)
    this.#look().catch(error => trace('streams-not-swept', error))
  }

  async #look(): Promise<void> {
    const { journal, clock } = this.#parts
    for (let after: string | undefined; ; ) {
      const page = await journal.store.scan(prefix, after === undefined ? {} : { after })
      for (const { key, value } of page) {
        const { runner, until } = readNote(value)
        if (until > clock.now() || runner === journal.runners.id || (await journal.runners.isAlive(runner))) continue
        await this.forget(key.slice(prefix.length))
      }
      after = page.at(-1)?.key
      if (after === undefined) return
    }
  }
}

function readNote(text: string): { readonly runner: string; readonly until: number } {
  const note: unknown = JSON.parse(text)
  if (isRecord(note) && typeof note['runner'] === 'string' && typeof note['until'] === 'number')
    return { runner: note['runner'], until: note['until'] }
  throw new Error('The entry of a stream in the store is not valid. Was it written by another program?')
}

/** What a checkpoint is bound to. */
interface CheckpointBinding {
  /** The owner key; undefined if anonymous, and then the token alone grants access. */
  readonly owner: string | undefined
  readonly fingerprint: string
}

interface Checkpoint {
  readonly id: string
  /** The sequence of the next chunk. */
  readonly next: number
}

/** The longest lifetime of an operation. */
const lifeMs = 86_400_000

/** The checkpoints of one server; one is good for no other. */
export class Checkpoints {
  readonly #server: Pick<ServerKit, 'seal' | 'name' | 'clock'>

  constructor(server: Pick<ServerKit, 'seal' | 'name' | 'clock'>) {
    this.#server = server
  }

  seal(bound: CheckpointBinding, { id, next }: Checkpoint): Promise<string> {
    const { seal, clock } = this.#server
    return seal.seal({ ...this.#purpose(bound), expiresAt: clock.now() + lifeMs, data: [id, next] })
  }

  /** Every failure gives the same problem. */
  async open(bound: CheckpointBinding, token: string): Promise<Checkpoint> {
    try {
      const data = await this.#server.seal.open(token, this.#purpose(bound))
      if (!Array.isArray(data) || typeof data[0] !== 'string' || typeof data[1] !== 'number') throw checkpointNotFound()
      return { id: data[0], next: data[1] }
    } catch (error) {
      throw error instanceof HandleError ? checkpointNotFound() : error
    }
  }

  #purpose({ owner, fingerprint }: CheckpointBinding) {
    return { kind: 'checkpoint', principal: owner, audience: this.#server.name, bound: fingerprint }
  }
}

/** The problem for an unknown or expired checkpoint. */
export function checkpointNotFound(): Problem {
  return problem('CHECKPOINT_NOT_FOUND', 'There is no such checkpoint, or it has expired. This request executed nothing', {
    suggestion: 'Check what the original call has done before you repeat it',
  })
}

/** The stored outcome of an operation. */
export interface EndedOperation {
  readonly status: 'done' | 'failed'
  readonly result?: CallToolResult
  /** The value's schema must be wrapped on older wires. */
  readonly wraps?: true
  readonly failure?: { readonly kind: string; readonly message: string; readonly code?: number }
}

type MarkedResult = CallToolResult & { readonly [wrappedOutput]?: boolean }

/** The outcome of a result, or of an error. */
export function endedWith(result: MarkedResult | undefined, error: unknown): EndedOperation {
  if (result === undefined) {
    const { kind, message, code } = error instanceof McpError ? error : new McpError('internal', 'The operation failed')
    return { status: 'failed', failure: { kind, message, ...given({ code }) } }
  }
  // Only plain members, because the result object may carry its own serialisation.
  const plain: CallToolResult = picked(result, 'content', 'structuredContent', 'isError', '_meta')
  const status = result.isError === true ? 'failed' : 'done'
  return { status, result: plain, ...(result[wrappedOutput] === true ? { wraps: true } : {}) }
}

/** Returns the result of an outcome, or throws its error. */
export function give(ended: EndedOperation): CallToolResult {
  const { result, failure } = ended
  if (result !== undefined) return ended.wraps === true ? Object.assign({ ...result }, { [wrappedOutput]: true }) : result
  throw new McpError(failure?.kind ?? 'internal', failure?.message ?? 'The operation failed', failure ?? {})
}

/** Undefined if the reader is ready; otherwise resolves when that may have changed. */
export function waitForFreeSpace({ aside }: Exchange): Promise<void> | undefined {
  if (aside?.onFree === undefined || aside.closed || (aside.blocked !== true && aside.attached !== false)) return undefined
  return new Promise(resolve => aside.onFree?.(resolve))
}

/** Resolves when the reader is ready, or the signal aborts. */
export async function waitForReaders(exchange: Exchange, signal: AbortSignal): Promise<void> {
  for (;;) {
    const waiting = waitForFreeSpace(exchange)
    if (waiting === undefined || signal.aborted) return
    await Promise.race([waiting, ended(signal)])
  }
}

function ended(signal: AbortSignal): Promise<void> {
  return new Promise(resolve => signal.addEventListener('abort', () => resolve(), { once: true }))
}
