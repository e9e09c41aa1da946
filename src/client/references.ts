/**
 * `mcp.readReference`: downloads the content of a data reference from where it is stored, and checks its size and digest.
 * Loaded on first use.
 */
import { contentMismatch } from '../core/artifact.ts'
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

/** The options of `readReference`. */
export interface ReadReferenceOptions {
  /**
   * Starts at this byte, to continue an earlier read. The digest is then not checked: it covers the whole content. Default 0.
   */
  readonly start?: number
  /** The largest content to accept. Default 1 GiB. */
  readonly maxBytes?: number
  /** Called with the bytes read so far, and the total. Default: not called. */
  readonly progress?: (bytes: number, total: number) => void
  /** Cancels the download. */
  readonly signal?: AbortSignal
}

/** What a download needs of its client. */
interface ReadParts {
  /** The address of the server; undefined if it runs as a local process. */
  readonly server: URL | undefined
  readonly clock: Clock
  /** Reads through the connection, for content without an address of its own. */
  readonly read: (uri: string) => Promise<ReadResourceResult>
}

/** The content as a stream. It fails at its end if the content is not what was announced. */
export function referenceStream(given: unknown, parts: ReadParts, options: ReadReferenceOptions): ReadableStream<Uint8Array> {
  const reference = readReference(given)
  const { start = 0, maxBytes = 1024 ** 3, progress, signal } = options
  if (reference.size > maxBytes)
    throw problem('PAYLOAD_TOO_LARGE', `The content has ${reference.size} bytes. The limit is ${maxBytes} bytes (maxBytes)`)
  if (!(Number.isSafeInteger(start) && start >= 0 && start <= reference.size))
    throw new RangeError(`start is ${start}. It must be a whole number from 0 to the size of the content (${reference.size})`)
  const stream = reference.uri.startsWith(referenceScheme)
    ? wholeOf(reference, parts, start)
    : transfer(reference, {
        reach: reachOf(parts.server),
        clock: parts.clock,
        signal,
        start,
        progress,
      })
  return start === 0 ? stream.pipeThrough(checking(reference)) : stream
}

/** Checks size and digest while the content passes. */
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
      if (size !== reference.size || `sha256:${hash.digest()}` !== reference.digest) throw contentMismatch(reference)
    },
  })
}

/** Loopback addresses are allowed only if the server itself runs on this machine. */
function reachOf(server: URL | undefined): Outbound {
  const loopback = server === undefined || isLoopbackServer(server)
  return createOutbound({ loopback, stream: true, timeout: '30s', maxBytes: Number.POSITIVE_INFINITY, maxRedirects: 0 })
}

/** Reads content that only the server itself can deliver, as a resource. */
function wholeOf({ uri, size }: Fetchable, { read }: ReadParts, start: number): ReadableStream<Uint8Array> {
  return new ReadableStream({
    async start(controller) {
      const [found] = (await read(uri)).contents
      if (found === undefined) throw problem('RESOURCE_NOT_FOUND', 'The data reference is not valid or has expired')
      const bytes = 'blob' in found ? fromBase64(String(found.blob)) : new TextEncoder().encode(String(found.text))
      if (bytes === undefined)
        throw problem('SERVER_ERROR', 'The server sent the content of the data reference as invalid base64')
      if (start < Math.min(size, bytes.length)) controller.enqueue(bytes.subarray(start))
      controller.close()
    },
  })
}
