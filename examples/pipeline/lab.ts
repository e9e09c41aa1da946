/**
 * Takes over what the warehouse gives away: `node lab.ts FOLDER ORIGIN [BYTES]`. What must survive a crash is kept in the folder. For the
 * sake of the example it can get stuck when so much has come.
 */
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { createServer } from 'vivarium/server'
import { type BlobDraft, type Blobs, directoryBlobs } from 'vivarium/stores'

const [folder = '.', origin = '', stuckAt] = process.argv.slice(2)
const blobs = await directoryBlobs({ path: join(folder, 'blobs') })

const server = createServer({
  name: 'lab',
  version: '1.0.0',
  store: `sqlite:${join(folder, 'store.db')}`,
  references: { from: [origin], blobs: stuckAt === undefined ? blobs : gettingStuck(blobs, Number(stuckAt)) },
})

// Called again it does the same again, so whoever has lost its answer may do that.
server.importer({ idempotent: true }, async data => {
  const hash = createHash('sha256')
  let rows = 0
  for await (const chunk of await data.open()) {
    hash.update(chunk)
    for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, at + 1)) rows++
  }
  return { resourceId: `sha256:${hash.digest('hex')}`, rows }
})

const { url } = await server.listen()
console.log(url)

/** Says that it is stuck, and stays so until somebody kills it. */
function gettingStuck(blobs: Blobs, bytes: number): Blobs {
  const { drafts } = blobs
  if (drafts === undefined) return blobs
  const stuck = (draft: BlobDraft): BlobDraft => ({
    id: draft.id,
    size: draft.size,
    append: (stream, options) => draft.append(stream.pipeThrough(stopping(bytes)), options),
    publish: () => draft.publish(),
    discard: () => draft.discard(),
  })
  return { ...blobs, drafts: { ...drafts, begin: async from => stuck(await drafts.begin(from)) } }
}

function stopping(bytes: number): TransformStream<Uint8Array, Uint8Array> {
  let come = 0
  return new TransformStream({
    transform: (chunk, controller) => {
      come += chunk.length
      if (come < bytes) return controller.enqueue(chunk)
      console.log('stuck')
      return new Promise(() => {})
    },
  })
}
