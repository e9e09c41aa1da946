/** What references are made of, kept in and imported from: opens sources, blob stores and connections to other servers. */
import type { Outbound } from '../../../core/outbound.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import type { Blobs } from '../../../stores/blobs.ts'
import type { ReferenceSource } from './server.ts'

/** Opens the configured blob store; in memory by default. */
export async function blobsOf(blobs: string | Blobs | undefined): Promise<Blobs> {
  if (typeof blobs === 'object') return blobs
  if (blobs === undefined) return (await import('../../../stores/blobs.ts')).memoryBlobs()
  return (await import('../../../stores/directory-blobs.ts')).directoryBlobs({ path: blobs })
}

/** Creates the guarded fetch for an origin. Loopback is allowed only if the operator listed it by name. */
export async function reachOf({ hostname }: URL, allow: readonly string[] = []): Promise<Outbound> {
  const { createOutbound } = await import('../../../transports/outbound/outbound.ts')
  const loopback = hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d{1,3}){3}$/.test(hostname)
  return createOutbound({ loopback, allow, stream: true, timeout: '30s', maxBytes: Number.POSITIVE_INFINITY, maxRedirects: 0 })
}

/** Returns a function that opens the source as a stream. */
export async function streamOf(source: ReferenceSource): Promise<() => ReadableStream<Uint8Array>> {
  if (source instanceof ReadableStream) return () => source
  if (source instanceof Blob) return () => source.stream()
  if (typeof source === 'string' || source instanceof Uint8Array) return () => new Blob([source as BlobPart]).stream()
  if (Symbol.asyncIterator in source) return () => iterated(source)
  if (!isRecord(source) || typeof source.file !== 'string')
    throw new TypeError('The source of a reference must be text, bytes, a stream, an async iterable, a Blob or { file: path }')
  const files = globalThis.process?.getBuiltinModule?.('node:fs')
  if (files === undefined)
    throw new TypeError('This platform has no file system. Create the reference from text, bytes, a stream or a Blob')
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
