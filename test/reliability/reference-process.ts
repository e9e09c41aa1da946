/** A server on standard input and output that imports: `node reference-process.ts STORE FOLDER ORIGIN PENDING_AFTER_MS`. */
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { createServer } from '../../src/server/index.ts'

const [store = 'memory:', folder = '.', origin = '', pendingAfter = '20000'] = process.argv.slice(2)
const server = createServer({
  name: 'importer',
  version: '1.0.0',
  log: 'silent',
  store,
  references: { from: [origin], blobs: join(folder, 'blobs') },
})
server.tool('pid', {}, () => `${process.pid}`)
server.importer({ pendingAfter: Number(pendingAfter) }, async data => {
  const hash = createHash('sha256')
  for await (const chunk of await data.open()) hash.update(chunk)
  return { resourceId: hash.digest('hex') }
})
await server.stdio()
process.exit()
