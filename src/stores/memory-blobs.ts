/** Blobs in memory: for tests, and where nothing needs to last. */
import { type BlobRange, type Blobs, blobLimits } from './blobs.ts'
import { StoreError } from './store.ts'

export function memoryBlobs(options: { readonly bytes?: number } = {}): Blobs {
  const blobs = new Map<string, Uint8Array<ArrayBuffer>>()
  const most = options.bytes ?? blobLimits.memoryBytes
  let held = 0
  return {
    capacity: most,
    async put(stream, { bytes = most } = {}) {
      const content = await gather(stream, Math.min(bytes, most))
      const digest = `sha256:${hex(await crypto.subtle.digest('SHA-256', content))}`
      if (!blobs.has(digest)) {
        if (held + content.length > most) throw new StoreError('full', `${held} of ${most} bytes of blobs are held: delete some`)
        held += content.length
        blobs.set(digest, content)
      }
      return { digest, size: content.length }
    },
    async get(digest, range: BlobRange = {}) {
      const content = blobs.get(digest)
      if (content === undefined) return undefined
      const part = content.subarray(range.start ?? 0, range.end ?? content.length)
      return { size: content.length, stream: new Response(part).body ?? new ReadableStream() }
    },
    async delete(digest) {
      held -= blobs.get(digest)?.length ?? 0
      blobs.delete(digest)
    },
  }
}

async function gather(stream: ReadableStream<Uint8Array>, most: number): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of stream) {
    size += chunk.length
    if (size > most) throw new StoreError('full', `The blob is larger than ${most} bytes`)
    chunks.push(chunk)
  }
  const content = new Uint8Array(size)
  let at = 0
  for (const chunk of chunks) {
    content.set(chunk, at)
    at += chunk.length
  }
  return content
}

function hex(digest: ArrayBuffer): string {
  return Array.from(new Uint8Array(digest), byte => byte.toString(16).padStart(2, '0')).join('')
}
