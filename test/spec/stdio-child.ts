/** A server in a process of its own, for what only a process can show. */
import { createServer, jsonSchema } from '../../src/server/index.ts'
import { everyRevision } from './wire.ts'

const server = createServer({ name: 'child', version: '1.0.0', revisions: everyRevision, limits: { frameBytes: 100_000 } })
server.tool('echo', { input: jsonSchema<{ text?: string }>({ type: 'object' }) }, ({ text = '' }) => text)
server.tool('loose', {}, (_, ctx) => {
  // On purpose not awaited: the client may go away first.
  ctx.confirm('Sure?')
  return 'gone on'
})
server.tool('broken', {}, () => Promise.reject(new Error('broken')))
await server.stdio()
