/** Where contents too large for a value are kept: by their digest, so the same bytes are kept once. */
import { StoreError } from './store.ts'

/** A blob by its digest. */
export interface Blob {
  /** `sha256:` and 64 hexadecimal digits. */
  readonly digest: string
  readonly size: number
}

/** From `start` up to, not including, `end`. */
export interface BlobRange {
  readonly start?: number
  readonly end?: number
}

/** Options of storing a blob. */
export interface PutBlobOptions {
  /** Refuse more than this, as soon as it is more. Default: the limit of the store. */
  readonly bytes?: number
}

/** Stores contents of any size by their digest. */
export interface Blobs {
  /** Bytes that it holds, where it holds no more than so many. */
  readonly capacity?: number
  /** Reads the stream to its end. What broke off or was refused leaves nothing. */
  put(stream: ReadableStream<Uint8Array>, options?: PutBlobOptions): Promise<Blob>
  /** Undefined where there is none. */
  get(
    digest: string,
    range?: BlobRange,
  ): Promise<{ readonly size: number; readonly stream: ReadableStream<Uint8Array> } | undefined>
  delete(digest: string): Promise<void>
  /** Contents that come in several sittings. Absent where nothing half can be kept: then what breaks off begins anew. */
  readonly drafts?: Drafts
}

/** Blobs that are written over several requests, which may break off and go on. */
export interface Drafts {
  /** A new one. It begins with that much of another one, or empty where that one has less. */
  begin(from?: DraftPart): Promise<BlobDraft>
  /** Removes one. Whoever still adds to it may do so, for nothing. */
  discard(id: string): Promise<void>
}

/** The beginning of a draft. */
export interface DraftPart {
  readonly id: string
  readonly size: number
}

/** A content on its way, which nobody finds before it is published. What is forgotten half written goes after two hours. */
export interface BlobDraft {
  /** By which another draft can begin with what this one has, also after a restart. */
  readonly id: string
  readonly size: number
  /** Adds the stream, to its end. What was added stays where it breaks off. */
  append(stream: ReadableStream<Uint8Array>, options?: AppendOptions): Promise<Blob>
  /** From here on it is found by its digest. */
  publish(): Promise<void>
  discard(): Promise<void>
}

/** Options of writing on to a draft. */
export interface AppendOptions extends PutBlobOptions {
  /** Told how much would survive a crash, every few megabytes and where the stream breaks off. Waited for. */
  readonly kept?: (size: number) => Promise<void>
  /** Nobody else has the memory of the chunks: it may be given back as soon as they are written, instead of some time later. */
  readonly owned?: boolean
}

/** Default for one blob: 1 GiB on disk, 64 MiB in memory. */
export const blobLimits = { directoryBytes: 1024 ** 3, memoryBytes: 64 * 1024 ** 2 } as const

/** A digest becomes a file name, so nothing else may pass for one. */
export function isDigest(text: string): boolean {
  return /^sha256:[0-9a-f]{64}$/.test(text)
}

// Memory that comes back at once, instead of when the collector finds it: large chunks are so many that it would come late.

/** For whoever alone has a chunk, and is through with it. What shares its memory with others is left to the collector. */
export function releaseBuffer({ buffer, byteLength }: Uint8Array): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) buffer.transfer(0)
}

// Blobs in memory: for tests, and where nothing needs to last.

/** Blobs in the memory of this process, bounded in bytes. */
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
