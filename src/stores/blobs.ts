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
  /** Reads the stream to its end. What broke off or was refused leaves nothing. */
  put(stream: ReadableStream<Uint8Array>, options?: PutBlobOptions): Promise<Blob>
  /** Undefined where there is none. */
  get(
    digest: string,
    range?: BlobRange,
  ): Promise<{ readonly size: number; readonly stream: ReadableStream<Uint8Array> } | undefined>
  delete(digest: string): Promise<void>
}

/** Default for one blob: 1 GiB on disk, 64 MiB in memory. */
export const blobLimits = { directoryBytes: 1024 ** 3, memoryBytes: 64 * 1024 ** 2 } as const

/** A digest becomes a file name, so nothing else may pass for one. */
export function isDigest(text: string): boolean {
  return /^sha256:[0-9a-f]{64}$/.test(text)
}
