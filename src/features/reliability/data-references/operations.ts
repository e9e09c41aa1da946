/**
 * Imports that take longer than an answer may: they go on, and are asked about by their id. Whoever asks about one whose process has
 * ended makes it go on. Loaded with the first import by a tool.
 */
import type { Clock } from '../../../core/clock.ts'
import type { Runners } from '../../../core/journal/runners.ts'
import type { Outbound } from '../../../core/outbound.ts'
import { problem, problemOf } from '../../../core/problem.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import type { Blobs } from '../../../stores/blobs.ts'
import { type Entry, put, type Store } from '../../../stores/store.ts'
import { toWire } from '../problem/messages.ts'
import type { DataReference, WireImport } from './messages.ts'
import type { ReferenceSource } from './server.ts'

interface OperationsParts {
  readonly store: Store
  readonly clock: Clock
  /** Which processes are alive. */
  readonly runners: Runners
  /** After so long the caller is told that it is pending. */
  readonly pendingMs: number
}

/** What is to be imported. */
export interface ImportWish {
  readonly reference: DataReference
  readonly target_format?: string
}

type ImportWork = (wish: ImportWish) => Promise<WireImport>

/** What is written down of one. */
interface Operation {
  readonly result: WireImport
  /** Of one that is under way: what it imports, and the process that does. */
  readonly wish?: ImportWish
  readonly runner?: string
}

const keepMs = 86_400_000

export class Operations {
  readonly #parts: OperationsParts

  constructor(parts: OperationsParts) {
    this.#parts = parts
  }

  /** How it ended; or that it goes on, and under which id. */
  async run(owner: string, wish: ImportWish, work: ImportWork): Promise<WireImport> {
    const ended = outcome(work, wish)
    const done = await this.#soon(ended)
    if (done !== undefined) return done
    const { runners } = this.#parts
    const id = crypto.randomUUID()
    const result: WireImport = { status: 'pending', operation_id: id }
    await runners.hold()
    const key = operationKey(owner, id)
    const version = await this.#write(key, { result, wish, runner: runners.id }).catch(error => {
      runners.release()
      throw error
    })
    this.#follow(key, id, version, ended)
    return result
  }

  /** `work` is for one that nobody is at any more. */
  async status(owner: string, id: string, work: ImportWork): Promise<WireImport> {
    const { runners, store } = this.#parts
    const entry = await store.get(operationKey(owner, id))
    const found = entry === undefined ? undefined : readOperation(entry)
    if (entry === undefined || found === undefined)
      throw problem('RESOURCE_NOT_FOUND', 'There is no such import of yours, or no longer', {
        suggestion: 'Import the reference again',
      })
    const { result, wish, runner } = found
    if (wish === undefined || runner === undefined || (await runners.isAlive(runner))) return result
    await runners.hold()
    const version = await this.#write(entry.key, { result, wish, runner: runners.id }, entry.version).catch(() => undefined)
    if (version === undefined) runners.release()
    // Another was faster.
    if (version === undefined) return result
    const ended = outcome(work, wish)
    this.#follow(entry.key, id, version, ended)
    const done = await this.#soon(ended)
    return done === undefined ? result : { ...done, operation_id: id }
  }

  /** How it ended, if it does before its caller has to be told something. */
  async #soon(ended: Promise<WireImport>): Promise<WireImport | undefined> {
    const { clock, pendingMs } = this.#parts
    const { promise: late, resolve } = Promise.withResolvers<undefined>()
    const cancel = clock.setTimeout(() => resolve(undefined), pendingMs)
    const done = await Promise.race([ended, late])
    cancel()
    return done
  }

  /** Where its end cannot be written it stays pending, and goes on with whoever asks when this process has ended. */
  #follow(key: string, id: string, version: number | undefined, ended: Promise<WireImport>): void {
    const { runners } = this.#parts
    const keep = async (result: WireImport): Promise<void> => {
      await this.#write(key, { result: { ...result, operation_id: id } }, version)
    }
    ended
      .then(keep)
      .catch(() => undefined)
      .finally(() => runners.release())
  }

  /** Undefined where another has taken it over. */
  async #write(key: string, operation: Operation, version?: number): Promise<number | undefined> {
    const condition = version === undefined ? { ifAbsent: true } : { ifVersion: version }
    const done = await this.#parts.store.commit([put(key, JSON.stringify(operation), { ...condition, ttl: keepMs })])
    return done.ok ? done.results[0]?.version : undefined
  }
}

function outcome(work: ImportWork, wish: ImportWish): Promise<WireImport> {
  return work(wish).catch((error: unknown): WireImport => ({ status: 'failed', error: toWire(problemOf(error)) }))
}

function readOperation({ value }: Entry): Operation | undefined {
  const found: unknown = JSON.parse(value)
  return isRecord(found) && isRecord(found['result']) ? (found as unknown as Operation) : undefined
}

/** Owners contain no slash, and ids that do are nobody's. */
function operationKey(owner: string, id: string): string {
  return `reference-import/${owner}/${encodeURIComponent(id.toWellFormed())}`
}

/** Opens the blob store that the author names; in memory where there is none. */
export async function blobsOf(blobs: string | Blobs | undefined): Promise<Blobs> {
  if (typeof blobs === 'object') return blobs
  if (blobs === undefined) return (await import('../../../stores/blobs.ts')).memoryBlobs()
  return (await import('../../../stores/directory-blobs.ts')).directoryBlobs({ path: blobs })
}

/** Each origin was named by the operator; this machine itself is meant only where it was named so. */
export async function reachOf({ hostname }: URL, allow: readonly string[] = []): Promise<Outbound> {
  const { createOutbound } = await import('../../../transports/outbound/outbound.ts')
  const loopback = hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d{1,3}){3}$/.test(hostname)
  return createOutbound({ loopback, allow, stream: true, timeout: '30s', maxBytes: Number.POSITIVE_INFINITY, maxRedirects: 0 })
}

/** Gives what opens a source as a stream. */
export async function streamOf(source: ReferenceSource): Promise<() => ReadableStream<Uint8Array>> {
  if (source instanceof ReadableStream) return () => source
  if (source instanceof Blob) return () => source.stream()
  if (typeof source === 'string' || source instanceof Uint8Array) return () => new Blob([source as BlobPart]).stream()
  if (Symbol.asyncIterator in source) return () => iterated(source)
  if (!isRecord(source) || typeof source.file !== 'string')
    throw new TypeError('A reference is made of text, bytes, a stream, an async iterable, a Blob or { file: path }')
  const files = globalThis.process?.getBuiltinModule?.('node:fs')
  if (files === undefined)
    throw new TypeError('This platform has no files: make the reference of text, bytes, a stream or a Blob')
  const file = await files.openAsBlob(source.file)
  return () => file.stream()
}

function iterated(source: AsyncIterable<Uint8Array>): ReadableStream<Uint8Array> {
  const iterator = source[Symbol.asyncIterator]()
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await iterator.next()
        if (done === true) controller.close()
        else controller.enqueue(value)
      },
      async cancel() {
        await iterator.return?.()
      },
    },
    { highWaterMark: 0 },
  )
}
