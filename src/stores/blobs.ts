/** Where contents too large for a value are kept: by their digest, so the same bytes are kept once. */

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

export interface PutBlobOptions {
  /** Refuse more than this, as soon as it is more. Default: the limit of the store. */
  readonly bytes?: number
}

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
export function giveBack({ buffer, byteLength }: Uint8Array): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) buffer.transfer(0)
}
