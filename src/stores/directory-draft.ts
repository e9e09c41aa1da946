/** A file on its way into a folder of blobs: whatever is added goes through its digest, and what was synced is still there after a crash. */
import { createHash, randomUUID } from 'node:crypto'
import { type FileHandle, open, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { AppendOptions, Blob, BlobDraft, DraftPart } from './blobs.ts'
import { giveBack } from './give-back.ts'
import { StoreError } from './store.ts'

export interface DraftPlace {
  readonly path: string
  readonly incoming: string
  readonly fileOf: (digest: string) => string
  /** The most that one blob may have. */
  readonly most: number
}

/** After so much, whoever adds is told that it is kept. */
const keepBytes = 8 * 1024 ** 2
const copyBytes = 1024 ** 2

export class DirectoryDraft implements BlobDraft {
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

  async #take(handle: FileHandle, stream: ReadableStream<Uint8Array>, { bytes, kept, owned }: AppendOptions): Promise<void> {
    const most = Math.min(bytes ?? Number.POSITIVE_INFINITY, this.#place.most)
    let synced = this.#size
    const keep = async (): Promise<void> => {
      await handle.datasync()
      synced = this.#size
      await kept?.(synced)
    }
    try {
      for await (const chunk of stream) {
        if (this.#size + chunk.length > most) throw new StoreError('full', `The blob is larger than ${most} bytes`)
        await this.#write(handle, chunk)
        if (owned === true) giveBack(chunk)
        if (kept !== undefined && this.#size - synced >= keepBytes) await keep()
      }
    } catch (error) {
      // Why it broke off is what matters.
      if (kept !== undefined && this.#size > synced) await keep().catch(() => undefined)
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
        if (bytesRead === 0) throw new StoreError('failed', 'What there was of the blob is shorter than it was')
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
