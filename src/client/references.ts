/** `mcp.readReference`: what a reference stands for, straight from where it lies. Loaded when first used. */
import { announcedOtherwise } from '../core/artifact.ts'
import { fromBase64 } from '../core/base64.ts'
import type { Clock } from '../core/clock.ts'
import type { Outbound } from '../core/outbound.ts'
import { problem } from '../core/problem.ts'
import { sha256 } from '../core/sha256.ts'
import type { ReadResourceResult } from '../features/mcp/resources/messages.ts'
import { type Fetchable, readReference, referenceScheme } from '../features/reliability/data-references/messages.ts'
import { transfer } from '../features/reliability/data-references/transfer.ts'
import { createOutbound } from '../transports/outbound/outbound.ts'
import { isLoopbackServer } from './outbound.ts'

/** How the content of a reference is read. */
export interface ReadReferenceOptions {
  /** Begins there, to go on with what was read before. Only the content as a whole has a digest that can be checked. Default 0. */
  readonly start?: number
  /** The largest content that is taken. Default 1 GiB. */
  readonly maxBytes?: number
  /** Told how much has come, and of how much. */
  readonly progress?: (bytes: number, total: number) => void
  /** Ends the reading. */
  readonly signal?: AbortSignal
}

interface ReadParts {
  /** The address of the server; undefined where it runs here. */
  readonly server: URL | undefined
  readonly clock: Clock
  /** For servers that nobody can reach but over the connection. */
  readonly read: (uri: string) => Promise<ReadResourceResult>
}

/** Errors at its end where what came is not what was announced. */
export function referenceStream(given: unknown, parts: ReadParts, options: ReadReferenceOptions): ReadableStream<Uint8Array> {
  const reference = readReference(given)
  const { start = 0, maxBytes = 1024 ** 3, progress, signal } = options
  if (reference.size > maxBytes)
    throw problem('PAYLOAD_TOO_LARGE', `The content has ${reference.size} bytes; at most ${maxBytes} are taken (maxBytes)`)
  if (!(Number.isSafeInteger(start) && start >= 0 && start <= reference.size))
    throw new RangeError(`start is ${start}: give a whole number up to the size, ${reference.size}`)
  const stream = reference.uri.startsWith(referenceScheme)
    ? wholeOf(reference, parts, start)
    : transfer(reference, {
        reach: reachOf(parts.server),
        clock: parts.clock,
        signal,
        start,
        progress: progress && (bytes => progress(bytes, reference.size)),
      })
  return start === 0 ? stream.pipeThrough(checking(reference)) : stream
}

function checking(reference: Fetchable): TransformStream<Uint8Array, Uint8Array> {
  const hash = sha256()
  let size = 0
  return new TransformStream({
    transform(chunk, controller) {
      hash.update(chunk)
      size += chunk.length
      controller.enqueue(chunk)
    },
    flush() {
      if (size !== reference.size || `sha256:${hash.digest()}` !== reference.digest) throw announcedOtherwise(reference)
    },
  })
}

/** This machine itself is meant only by servers that run on it. */
function reachOf(server: URL | undefined): Outbound {
  const loopback = server === undefined || isLoopbackServer(server)
  return createOutbound({ loopback, stream: true, timeout: '30s', maxBytes: Number.POSITIVE_INFINITY, maxRedirects: 0 })
}

function wholeOf({ uri, size }: Fetchable, { read }: ReadParts, start: number): ReadableStream<Uint8Array> {
  return new ReadableStream({
    async start(controller) {
      const [found] = (await read(uri)).contents
      if (found === undefined) throw problem('RESOURCE_NOT_FOUND', 'The data reference is not valid, or no longer')
      const bytes = 'blob' in found ? fromBase64(String(found.blob)) : new TextEncoder().encode(String(found.text))
      if (bytes === undefined) throw problem('SERVER_ERROR', 'The content of the data reference is not base64')
      if (start < Math.min(size, bytes.length)) controller.enqueue(bytes.subarray(start))
      controller.close()
    },
  })
}
