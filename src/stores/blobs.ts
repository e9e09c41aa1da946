/** Where contents too large for a value are kept: by their digest, so the same bytes are kept once. */
import { StoreError } from './store.ts'

/** A blob. */
export interface Blob {
  /** The digest: `sha256:` and 64 hexadecimal digits. */
  readonly digest: string
  /** The size in bytes. */
  readonly size: number
}

/** A range of bytes: from `start` to before `end`. */
export interface BlobRange {
  /** The first byte. Default 0. */
  readonly start?: number
  /** The byte after the last one. Default: the size of the blob. */
  readonly end?: number
}

/** Options of `put`. */
export interface PutBlobOptions {
  /** The most bytes; more are refused as soon as they arrive. Default: the limit of the store. */
  readonly bytes?: number
}

/** A store of contents of any size, by digest. */
export interface Blobs {
  /** The most bytes, if the store is limited. */
  readonly capacity?: number
  /** Stores the content of a stream. If the stream fails or is too large, nothing is stored. */
  put(stream: ReadableStream<Uint8Array>, options?: PutBlobOptions): Promise<Blob>
  /** Returns a blob, or a range of it. Undefined if there is none. */
  get(
    digest: string,
    range?: BlobRange,
  ): Promise<
    | {
        /** The size of the whole blob in bytes. */
        readonly size: number
        /** The bytes of the range. */
        readonly stream: ReadableStream<Uint8Array>
      }
    | undefined
  >
  /** Removes a blob. Nothing happens if there is none. */
  delete(digest: string): Promise<void>
  /** Contents that arrive in several parts. Absent if the store cannot keep partial contents. */
  readonly drafts?: Drafts
}

/** Blobs that are written in several requests and can be resumed. */
export interface Drafts {
  /** Begins a draft. With `from` it takes over the beginning of another draft, or begins empty if that one has fewer bytes. */
  begin(from?: DraftPart): Promise<BlobDraft>
  /** Removes a draft. Writes that are still running have no effect. */
  discard(id: string): Promise<void>
}

/** The beginning of another draft. */
export interface DraftPart {
  /** The id of the other draft. */
  readonly id: string
  /** How many of its bytes to take over. */
  readonly size: number
}

/** A content that is being written and cannot be found before it is published. An abandoned draft is removed after two hours. */
export interface BlobDraft {
  /** The id by which another draft can take over its bytes, also after a restart. */
  readonly id: string
  /** The bytes that it has so far. */
  readonly size: number
  /** Adds the content of a stream. If the stream fails, the bytes that were added stay. */
  append(stream: ReadableStream<Uint8Array>, options?: AppendOptions): Promise<Blob>
  /** Publishes the content under its digest. */
  publish(): Promise<void>
  /** Removes the draft and its bytes. */
  discard(): Promise<void>
}

/** Options of `append`. */
export interface AppendOptions extends PutBlobOptions {
  /** Called with the number of bytes that would survive a crash, every few megabytes and when the stream fails. Awaited. */
  readonly onStored?: (size: number) => Promise<void>
  /** Whether the memory of the chunks may be reused as soon as they are written. Default false. */
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

/** Creates a store of blobs in the memory of this process. */
export function memoryBlobs(
  options: {
    /** The most bytes in total. Default 64 MiB. */
    readonly bytes?: number
  } = {},
): Blobs {
  const blobs = new Map<string, Uint8Array<ArrayBuffer>>()
  const most = options.bytes ?? blobLimits.memoryBytes
  let held = 0
  return {
    capacity: most,
    async put(stream, { bytes = most } = {}) {
      const content = await gather(stream, Math.min(bytes, most))
      const digest = `sha256:${hex(await crypto.subtle.digest('SHA-256', content))}`
      if (!blobs.has(digest)) {
        if (held + content.length > most)
          throw new StoreError(
            'full',
            `The blob does not fit: ${held} of ${most} bytes are in use. Delete other blobs, or raise the limit`,
          )
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
