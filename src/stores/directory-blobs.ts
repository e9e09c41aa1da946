/** Blobs as files of one folder: written aside, synced, then renamed, so a name stands for whole contents or for none. */
import { mkdir, open, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { type Blobs, blobLimits, type Drafts, isDigest } from './blobs.ts'
import { DirectoryDraft } from './directory-draft.ts'
import { fileStream } from './file-stream.ts'

export interface DirectoryBlobsOptions {
  readonly path: string
  /** The most that one blob may have. */
  readonly bytes?: number
  /** Milliseconds since the epoch, by the clock of the folder. */
  readonly now?: () => number
}

/** Nobody has written to it for so long: a crash has left it. Others may share the folder, so what is younger may be theirs. */
const forgottenMs = 2 * 3_600_000
const lookMs = 600_000
const draftName = /^[0-9a-f-]{36}$/

/** Resolves when the folder is there; what crashes have left half written is removed, now and from time to time. */
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
