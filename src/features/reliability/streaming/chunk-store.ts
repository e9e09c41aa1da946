/**
 * Which operations have chunks in the store, and until when. All that this process keeps there is bounded, per account and in all:
 * of whoever has more than a share, what has ended first gives way, then what the streams that grow have kept. What a process left behind when it died is forgotten by others.
 */
import type { Cancel, Clock } from '../../../core/clock.ts'
import { lastPosition } from '../../../core/feed/feed.ts'
import { HandleError, type Seal } from '../../../core/handle.ts'
import type { Journal } from '../../../core/journal/journal.ts'
import type { Trace } from '../../../core/log.ts'
import { Shares } from '../../../core/occupancy.ts'
import { type Problem, problem } from '../../../core/problem.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import { type Op, put, remove, trim } from '../../../stores/store.ts'
import { type CallToolResult, wraps } from '../../mcp/tools/messages.ts'
import { logOf } from './remote-operations.ts'

interface ChunkStoreParts {
  readonly journal: Journal
  readonly clock: Clock
  readonly trace: Trace
  readonly keepMs: number
  /** Operations that run here at once. Default 1,000. */
  readonly operations?: number
}

interface Ended {
  readonly account: string
  readonly length: number
  readonly cancel: Cancel
}

const prefix = 'stream/'
/** Characters of all chunks that this process keeps. */
const most = 64 * 1024 * 1024
const mostOperations = 1_000

/** Keeps chunks for clients that come back. */
export class ChunkStore {
  readonly #parts: ChunkStoreParts
  #timer: Cancel | undefined = undefined
  /** Of operations that run, and of the chunks of all that are kept. */
  readonly #shares: Shares
  /** What has ended, oldest first. */
  readonly #ended = new Map<string, Ended>()

  constructor(parts: ChunkStoreParts) {
    this.#parts = parts
    const { capacity = Number.POSITIVE_INFINITY } = parts.journal.store
    const length = Math.min(most, Math.floor(capacity / 8))
    this.#shares = new Shares({ records: parts.operations ?? mostOperations, length })
    this.#sweep()
  }

  /** Takes a place for another one; false where its account has no room for it. */
  begin(account: string): boolean {
    if (!this.#shares.fits(account, { records: 1, length: 1 })) return false
    this.#shares.add(account, 1, 0)
    return true
  }

  /** It does not run here any more. */
  end(account: string): void {
    this.#shares.add(account, -1, 0)
  }

  /** So much more is kept, or less. False where its account has used up its share, and nothing of it is left that has ended. */
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

  /** It has ended, and is kept for those who come back. */
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

  /** The step that notes it: it may be forgotten after that time, once the process that runs it is gone or it has ended. */
  put(id: string, ms: number): Op {
    const { journal, clock } = this.#parts
    return put(prefix + id, JSON.stringify({ runner: journal.runners.id, until: clock.now() + ms }))
  }

  /** The steps that forget it. */
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
  throw new Error('A note of a stream cannot be read: was it written by another program?')
}

/** Whose call it is, and what was called. */
export interface CheckpointBinding {
  /** The key of the principal; undefined where nobody is known: then whoever has the token is its owner. */
  readonly owner: string | undefined
  readonly fingerprint: string
}

interface Checkpoint {
  readonly id: string
  /** The sequence of the chunk that comes next. */
  readonly next: number
}

/** No operation lasts longer. */
const lifeMs = 86_400_000

export function createCheckpoints(seal: Seal, audience: string, now: () => number) {
  const purpose = ({ owner, fingerprint }: CheckpointBinding) => ({
    kind: 'checkpoint',
    principal: owner,
    audience,
    bound: fingerprint,
  })
  return {
    seal: (bound: CheckpointBinding, { id, next }: Checkpoint): Promise<string> =>
      seal.seal({ ...purpose(bound), expiresAt: now() + lifeMs, data: [id, next] }),
    /** Refuses with one and the same problem, whatever is wrong. */
    open: async (bound: CheckpointBinding, token: string): Promise<Checkpoint> => {
      try {
        const data = await seal.open(token, purpose(bound))
        if (!Array.isArray(data) || typeof data[0] !== 'string' || typeof data[1] !== 'number') throw checkpointNotFound()
        return { id: data[0], next: data[1] }
      } catch (error) {
        throw error instanceof HandleError ? checkpointNotFound() : error
      }
    },
  }
}

export type StreamCheckpoints = ReturnType<typeof createCheckpoints>

export function checkpointNotFound(): Problem {
  return problem('CHECKPOINT_NOT_FOUND', 'There is no such checkpoint, or no longer; nothing was done', {
    suggestion: 'Find out what the call has done before making it again',
  })
}

export interface EndedOperation {
  readonly status: 'done' | 'failed'
  readonly result?: CallToolResult
  /** The value is of a schema that older wires wrap. */
  readonly wraps?: true
  readonly failure?: { readonly kind: string; readonly message: string; readonly code?: number }
}

type Marked = CallToolResult & { readonly [wraps]?: boolean }

export function endedWith(result: Marked): EndedOperation {
  const status = result.isError === true ? 'failed' : 'done'
  // Not what writes itself: only what can be read again.
  const { content, structuredContent, isError, _meta } = result
  const plain: CallToolResult = {
    content,
    ...(structuredContent === undefined ? {} : { structuredContent }),
    ...(isError === undefined ? {} : { isError }),
    ...(_meta === undefined ? {} : { _meta }),
  }
  return { status, result: plain, ...(result[wraps] === true ? { wraps: true } : {}) }
}

export function failedWith(error: unknown): EndedOperation {
  const { kind, message, code } = error instanceof McpError ? error : new McpError('internal', 'It failed')
  return { status: 'failed', failure: { kind, message, ...(code === undefined ? {} : { code }) } }
}

export function give(ended: EndedOperation): CallToolResult {
  const { result, failure } = ended
  if (result !== undefined) return ended.wraps === true ? Object.assign({ ...result }, { [wraps]: true }) : result
  throw new McpError(failure?.kind ?? 'internal', failure?.message ?? 'It failed', failure ?? {})
}

/** Undefined where its caller takes what is told. Else resolves when it may have changed; whoever waits looks again. */
export function hasBackpressureRoom({ aside }: Exchange): Promise<void> | undefined {
  if (aside?.onFree === undefined || aside.closed || (aside.blocked !== true && aside.attached !== false)) return undefined
  return new Promise(resolve => aside.onFree?.(resolve))
}

/** Resolves when there is room, or the signal ends it. */
export async function waitForReaders(exchange: Exchange, signal: AbortSignal): Promise<void> {
  for (
    let waiting = hasBackpressureRoom(exchange);
    waiting !== undefined && !signal.aborted;
    waiting = hasBackpressureRoom(exchange)
  )
    await Promise.race([waiting, ended(signal)])
}

function ended(signal: AbortSignal): Promise<void> {
  return new Promise(resolve => signal.addEventListener('abort', () => resolve(), { once: true }))
}
