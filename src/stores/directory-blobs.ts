/** Blobs as files of one folder: written aside, synced, then renamed, so a name stands for whole contents or for none. */
import { createHash, randomUUID } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { type Blob, type Blobs, blobLimits, isDigest } from './blobs.ts'
import { StoreError } from './store.ts'

export interface DirectoryBlobsOptions {
  readonly path: string
  /** The most that one blob may have. */
  readonly bytes?: number
}

/** Resolves when the folder is there; what a crash left half written is removed. */
export async function directoryBlobs(options: DirectoryBlobsOptions): Promise<Blobs> {
  const { path, bytes: most = blobLimits.directoryBytes } = options
  await mkdir(join(path, 'incoming'), { recursive: true })
  for (const name of await readdir(join(path, 'incoming'))) await rm(join(path, 'incoming', name), { force: true })
  const fileOf = (digest: string): string => join(path, digest.slice('sha256:'.length))
  return {
    async put(stream, { bytes = most } = {}) {
      const aside = join(path, 'incoming', randomUUID())
      try {
        const blob = await write(aside, stream, Math.min(bytes, most))
        await rename(aside, fileOf(blob.digest))
        await syncFolder(path)
        return blob
      } catch (error) {
        await rm(aside, { force: true })
        throw error
      }
    },
    async get(digest, range = {}) {
      if (!isDigest(digest)) return undefined
      const found = await stat(fileOf(digest)).catch(() => undefined)
      if (found === undefined) return undefined
      const start = Math.min(range.start ?? 0, found.size)
      const end = Math.min(range.end ?? found.size, found.size)
      // The last byte that createReadStream gives is `end`; an empty part has none.
      const file = end <= start ? Readable.from([]) : createReadStream(fileOf(digest), { start, end: end - 1 })
      return { size: found.size, stream: Readable.toWeb(file) as ReadableStream<Uint8Array> }
    },
    async delete(digest) {
      if (isDigest(digest)) await rm(fileOf(digest), { force: true })
    },
  }
}

async function write(file: string, stream: ReadableStream<Uint8Array>, most: number): Promise<Blob> {
  const hash = createHash('sha256')
  let size = 0
  const handle = await open(file, 'wx', 0o600)
  try {
    for await (const chunk of stream) {
      size += chunk.length
      if (size > most) throw new StoreError('full', `The blob is larger than ${most} bytes`)
      hash.update(chunk)
      await handle.writeFile(chunk)
    }
    await handle.sync()
  } finally {
    await handle.close()
  }
  return { digest: `sha256:${hash.digest('hex')}`, size }
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
