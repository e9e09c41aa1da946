/** One end of a data reference, from the built package: `exporter FOLDER` or `importer FOLDER ORIGIN`. Its memory is what is measured. */
import { randomBytes } from 'node:crypto'
import { createServer, jsonSchema } from 'vivarium/server'
import { announce } from './ready.mjs'

const [role, folder, origin] = process.argv.slice(2)
const references = { blobs: folder, maxBytes: 4 * 1024 ** 3, ...(role === 'importer' ? { from: [origin] } : {}) }
const server = createServer({ name: role, version: '1.0.0', store: `sqlite:${folder}.db`, references })

if (role === 'exporter') {
  const input = jsonSchema({ type: 'object', properties: { bytes: { type: 'integer' } }, required: ['bytes'] })
  // One piece of memory, again and again: what making the data costs is not the question.
  const piece = randomBytes(65_536)
  server.tool('export', { input }, ({ bytes }, ctx) => ctx.reference(pieces(bytes), { ttl: '1h' }))
  async function* pieces(bytes) {
    for (let left = bytes; left > 0; left -= piece.length) yield piece.subarray(0, Math.min(left, piece.length))
  }
} else {
  server.importer({ pendingAfter: '10m', idempotent: true }, () => ({ resourceId: 'here' }))
}
const { url } = await server.listen({ port: 0, host: '127.0.0.1' })
announce(Number(new URL(url).port))
