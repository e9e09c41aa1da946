/** Blobs as files of one folder: written aside, synced, then renamed, so a name stands for whole contents or for none. */

import { createHash, randomUUID } from 'node:crypto'
import { type FileHandle, mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import {
  type AppendOptions,
  type Blob,
  type BlobDraft,
  type Blobs,
  blobLimits,
  type DraftPart,
  type Drafts,
  isDigest,
  releaseBuffer,
} from './blobs.ts'
import { StoreError } from './store.ts'

/** Options of `directoryBlobs`. */
export interface DirectoryBlobsOptions {
  /** The path of the directory. It is created if it does not exist. */
  readonly path: string
  /** The most bytes of one blob. Default 1 GiB. */
  readonly bytes?: number
  /** For tests: milliseconds since the epoch. Default: the clock of this machine. */
  readonly now?: () => number
}

/** Nobody has written to it for so long: a crash has left it. Others may share the folder, so what is younger may be theirs. */
const forgottenMs = 2 * 3_600_000
const lookMs = 600_000
const draftName = /^[0-9a-f-]{36}$/

/** Opens a store of blobs in a directory. Unfinished files of crashed processes are removed now and at intervals. */
export async function directoryBlobs(options: DirectoryBlobsOptions): Promise<Blobs> {
  const { path, bytes: most = blobLimits.directoryBytes, now = Date.now } = options
  const incoming = join(path, 'incoming')
  await mkdir(incoming, { recursive: true })
  await sweep(incoming, now())
  let swept = now()
  const fileOf = (digest: string): string => join(path, digest.slice('sha256:'.length))
  const drafts: Drafts = {
    async begin(from) {
      if (now() - swept > lookMs) {
        swept = now()
        await sweep(incoming, swept)
      }
      const known = from !== undefined && draftName.test(from.id) ? from : undefined
      return DirectoryDraft.begin({ path, incoming, fileOf, most }, known)
    },
    async discard(id) {
      if (draftName.test(id)) await rm(join(incoming, id), { force: true })
    },
  }
  return {
    drafts,
    async put(stream, { bytes = most } = {}) {
      const draft = await drafts.begin()
      try {
        const blob = await draft.append(stream, { bytes })
        await draft.publish()
        return blob
      } catch (error) {
        await draft.discard()
        throw error
      }
    },
    async get(digest, { start = 0, end = Number.POSITIVE_INFINITY } = {}) {
      if (!isDigest(digest)) return undefined
      // Open from here on: whoever reads it comes to its end, also when it is deleted meanwhile.
      const handle = await open(fileOf(digest)).catch(() => undefined)
      if (handle === undefined) return undefined
      const { size } = await handle.stat()
      return { size, stream: await fileStream(handle, Math.min(start, size), Math.min(end, size)) }
    },
    async delete(digest) {
      if (isDigest(digest)) await rm(fileOf(digest), { force: true })
    },
  }
}

async function sweep(incoming: string, now: number): Promise<void> {
  for (const name of await readdir(incoming)) {
    const file = join(incoming, name)
    const found = await stat(file).catch(() => undefined)
    if (found !== undefined && now - found.mtimeMs > forgottenMs) await rm(file, { force: true })
  }
}

/** A file on its way into a folder of blobs: whatever is added goes through its digest, and what was synced is still there after a crash. */
interface DraftPlace {
  readonly path: string
  readonly incoming: string
  readonly fileOf: (digest: string) => string
  /** The most that one blob may have. */
  readonly most: number
}

/** After so much, whoever adds is told that it is kept. */
const keepBytes = 8 * 1024 ** 2
const copyBytes = 1024 ** 2

class DirectoryDraft implements BlobDraft {
  readonly id = randomUUID()
  readonly #place: DraftPlace
  readonly #file: string
  readonly #hash = createHash('sha256')
  #size = 0

  private constructor(place: DraftPlace) {
    this.#place = place
    this.#file = join(place.incoming, this.id)
  }

  static async begin(place: DraftPlace, from: DraftPart | undefined): Promise<DirectoryDraft> {
    const draft = new DirectoryDraft(place)
    const handle = await open(draft.#file, 'wx', 0o600)
    try {
      if (from !== undefined && from.size > 0) await draft.#copy(handle, from)
    } finally {
      await handle.close()
    }
    return draft
  }

  get size(): number {
    return this.#size
  }

  async append(stream: ReadableStream<Uint8Array>, options: AppendOptions = {}): Promise<Blob> {
    const handle = await open(this.#file, 'a')
    try {
      await this.#take(handle, stream, options)
      await handle.sync()
    } finally {
      await handle.close()
    }
    return { digest: this.#digest(), size: this.#size }
  }

  async publish(): Promise<void> {
    const { path, fileOf } = this.#place
    const file = fileOf(this.#digest())
    await rename(this.#file, file).catch(async error => {
      // Another began with what this one had, and has removed it as soon as the same content was there.
      if ((await stat(file).catch(() => undefined)) === undefined) throw error
      await this.discard()
    })
    await syncFolder(path)
  }

  async discard(): Promise<void> {
    await rm(this.#file, { force: true })
  }

  async #take(handle: FileHandle, stream: ReadableStream<Uint8Array>, { bytes, onStored, owned }: AppendOptions): Promise<void> {
    const most = Math.min(bytes ?? Number.POSITIVE_INFINITY, this.#place.most)
    let synced = this.#size
    const keep = async (): Promise<void> => {
      await handle.datasync()
      synced = this.#size
      await onStored?.(synced)
    }
    try {
      for await (const chunk of stream) {
        if (this.#size + chunk.length > most) throw new StoreError('full', `The blob is larger than ${most} bytes`)
        await this.#write(handle, chunk)
        if (owned === true) releaseBuffer(chunk)
        if (onStored !== undefined && this.#size - synced >= keepBytes) await keep()
      }
    } catch (error) {
      // Why it broke off is what matters.
      if (onStored !== undefined && this.#size > synced) await keep().catch(() => undefined)
      throw error
    }
  }

  async #write(handle: FileHandle, chunk: Uint8Array): Promise<void> {
    for (let at = 0; at < chunk.length; ) at += (await handle.write(chunk, at, chunk.length - at)).bytesWritten
    this.#hash.update(chunk)
    this.#size += chunk.length
  }

  /** A copy, because somebody may still be adding to the other one: what was checked here nobody else can change. */
  async #copy(handle: FileHandle, { id, size }: DraftPart): Promise<void> {
    const from = await open(join(this.#place.incoming, id)).catch(() => undefined)
    if (from === undefined) return
    try {
      if ((await from.stat()).size < size) return
      const buffer = new Uint8Array(Math.min(copyBytes, size))
      while (this.#size < size) {
        const { bytesRead } = await from.read(buffer, 0, Math.min(buffer.length, size - this.#size), this.#size)
        if (bytesRead === 0) throw new StoreError('failed', 'The file of the partial blob was truncated while it was copied')
        await this.#write(handle, buffer.subarray(0, bytesRead))
      }
      await handle.datasync()
    } finally {
      await from.close()
    }
  }

  #digest(): string {
    return `sha256:${this.#hash.copy().digest('hex')}`
  }
}

/** A new name lasts only when its folder is on disk too. */
async function syncFolder(path: string): Promise<void> {
  const handle = await open(path, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

// A part of an open file as a stream of bytes. Reads into what its reader brings along, so that long contents leave no garbage behind.

const chunkBytes = 65_536

/** Closes the file when it is read, cancelled or broken. */
async function fileStream(handle: FileHandle, start: number, end: number): Promise<ReadableStream<Uint8Array>> {
  if (end <= start) await handle.close()
  let at = start
  return new ReadableStream({
    type: 'bytes',
    start(controller) {
      if (end <= start) controller.close()
    },
    async pull(controller) {
      const request = controller.byobRequest
      const into = target(request, Math.min(chunkBytes, end - at))
      const bytesRead = await handle.read(into, 0, into.length, at).then(
        done => done.bytesRead,
        error => closing(handle, error),
      )
      if (bytesRead === 0) await closing(handle, new Error('The file of the blob was truncated while it was read'))
      at += bytesRead
      if (at === end) await handle.close()
      if (request === null) controller.enqueue(into.subarray(0, bytesRead))
      else request.respond(bytesRead)
      if (at === end) controller.close()
    },
    cancel: () => handle.close(),
  })
}

function target(request: ReadableStreamBYOBRequest | null, bytes: number): Uint8Array<ArrayBuffer> {
  const view = request?.view ?? undefined
  if (view === undefined) return new Uint8Array(bytes)
  return new Uint8Array(view.buffer as ArrayBuffer, view.byteOffset, Math.min(view.byteLength, bytes))
}

async function closing(handle: FileHandle, error: unknown): Promise<never> {
  await handle.close()
  throw error
}
