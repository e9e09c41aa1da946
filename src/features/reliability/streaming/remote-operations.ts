/**
 * Streaming operations of other processes: a reader follows them through the store, and reports its position there, so that the process
 * that runs them continues.
 */
import type { Clock } from '../../../core/clock.ts'
import { Feed, type FeedPage } from '../../../core/feed/feed.ts'
import type { Journal } from '../../../core/journal/journal.ts'
import { isSettled, type Operation as Recorded } from '../../../core/journal/operation.ts'
import { problem } from '../../../core/problem.ts'
import { type Exchange, onCallerGone } from '../../../engine/exchange.ts'
import { given } from '../../../jsonrpc/message.ts'
import { put } from '../../../stores/store.ts'
import { checkpointNotFound, type EndedOperation, waitForReaders } from './chunk-store.ts'
import { streamingExtension, type WireChunk } from './messages.ts'
import type { Chunk, StreamOperation } from './operation.ts'
import type { StreamingParts } from './server.ts'

/** More than the largest frame needs. */
const chunkBytes = 4 * 1024 * 1024

const lookEveryMs = 1_000

/** The feed of an operation. */
export function feedOf({ store }: Journal, clock: Clock, id: string): Feed {
  // The operation itself decides what is kept.
  return new Feed({ store, clock, id: () => '', name: nameOf(id), keep: Number.MAX_SAFE_INTEGER, bytes: chunkBytes })
}

/** The log of that feed. */
export function logOf(id: string): string {
  return `feed/${nameOf(id)}`
}

function nameOf(id: string): string {
  return `stream/${id}`
}

function leaseOf(id: string): string {
  return `streamed/${id}`
}

/** Listens for readers of an operation in other processes, until it ends. */
export async function listenForRemote({ store }: Journal, clock: Clock, operation: StreamOperation): Promise<void> {
  const { ending: signal } = operation
  const lease = leaseOf(operation.id)
  const hints = store.watch([lease], signal)[Symbol.asyncIterator]()
  let hint = hints.next()
  let version: number | undefined
  while (!signal.aborted) {
    const found = await soon(clock, hint, lookEveryMs)
    if (found?.done === true || signal.aborted) return
    if (found !== undefined) hint = hints.next()
    // Without a reader it looks unasked, because notifications may be lost or unsupported.
    else if (!operation.isUnread) continue
    const entry = await store.get(lease)
    if (signal.aborted || entry === undefined || entry.version === version) continue
    version = entry.version
    operation.readElsewhere(entry.value === 'cancelled' ? 'cancelled' : Number(entry.value))
  }
}

interface RemoteOperationParts extends Pick<StreamingParts, 'clock' | 'trace' | 'graceMs' | 'tell'> {
  readonly journal: Journal
  readonly exchange: Exchange
  readonly id: string
  /** The sequence of the first chunk that is wanted. */
  readonly next: number
  readonly find: () => Promise<Recorded | undefined>
  readonly tokens: (next: number) => Promise<string>
}

/** Delivers the missing chunks, and returns the outcome. */
export async function followRemote(parts: RemoteOperationParts): Promise<EndedOperation> {
  const { journal, clock, exchange, id, graceMs, next } = parts
  const ending = new AbortController()
  const { signal } = exchange
  const cancelled = (): void => {
    ending.abort()
    say(parts, 'cancelled')
  }
  // The operation continues in its own process.
  exchange.set(onCallerGone, () => ending.abort())
  if (signal.aborted) cancelled()
  else signal.addEventListener('abort', cancelled, { once: true })
  let at = next
  const pages = feedOf(journal, clock, id).follow(at, ending.signal)
  try {
    const first = await ended(parts)
    if ((await feedOf(journal, clock, id).end()) < at) throw checkpointNotFound()
    if (first === undefined) say(parts, at)
    let [said, sayAt] = [at, clock.now() + Math.min(lookEveryMs, graceMs / 3)]
    let page: Promise<IteratorResult<FeedPage, void>> | undefined
    for (;;) {
      page ??= pages.next()
      const found = await soon(clock, page, Math.min(lookEveryMs, graceMs / 3))
      if (found?.done === true) throw signal.aborted ? signal.reason : checkpointNotFound()
      if (found !== undefined) {
        page = undefined
        const over = await deliver(parts, found.value, at, ending.signal)
        at = over.at
        if (over.last) {
          const outcome = await ended(parts)
          if (outcome !== undefined) return outcome
          throw checkpointNotFound()
        }
      }
      if (said !== at || clock.now() >= sayAt) {
        if ((await ended(parts)) === undefined) say(parts, at)
        said = at
        sayAt = clock.now() + graceMs / 3
      }
    }
  } finally {
    signal.removeEventListener('abort', cancelled)
    ending.abort()
  }
}

async function deliver(
  { exchange, id, tokens, tell }: RemoteOperationParts,
  { occurrences, truncated }: FeedPage,
  from: number,
  signal: AbortSignal,
): Promise<{ readonly at: number; readonly last: boolean }> {
  if (truncated) throw checkpointNotFound()
  let at = from
  for (const { name, data } of occurrences) {
    if (name === 'end') return { at, last: true }
    const { final, lost, ...chunk } = data as Chunk
    if (lost === true) throw checkpointNotFound()
    const place = { type: 'stream_chunk', operation_id: id, sequence: at++ } as const
    const wire: WireChunk = { ...place, ...chunk, ...given({ is_final: final }), checkpoint_token: await tokens(at) }
    tell.along(exchange, { _meta: { [streamingExtension]: wire } })
    await waitForReaders(exchange, signal)
  }
  return { at, last: false }
}

/** The outcome; undefined while it runs. Throws if it is unknown. */
async function ended({ find, journal }: RemoteOperationParts): Promise<EndedOperation | undefined> {
  const record = await find()
  if (record === undefined) throw checkpointNotFound()
  if (isSettled(record)) return record.outcome as EndedOperation
  if (record.status === 'waiting') throw checkpointNotFound()
  if (record.status === 'running' && (await journal.runners.isAlive(record.runner))) return undefined
  throw problem('OUTCOME_UNKNOWN', 'The process that ran this operation has ended, and its progress is unknown', {
    suggestion: 'Check what the operation has done before you repeat the call',
    details: { operation_id: record.id },
  })
}

function say({ journal, id, graceMs, trace, exchange }: RemoteOperationParts, at: number | 'cancelled'): void {
  // A cancellation is final.
  if (at !== 'cancelled' && exchange.cancelled) return
  journal.store.commit([put(leaseOf(id), String(at), { ttl: graceMs })]).catch(error => trace('reader-not-told', error))
}

/** What was waited for, or undefined when it is time to look. */
async function soon<T>(clock: Clock, awaited: Promise<T>, ms: number): Promise<T | undefined> {
  const { promise, resolve } = Promise.withResolvers<undefined>()
  const cancel = clock.setTimeout(() => resolve(undefined), ms, true)
  try {
    return await Promise.race([awaited, promise])
  } finally {
    cancel()
  }
}
