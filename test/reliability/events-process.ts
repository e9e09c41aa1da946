/** A server with events in a process of its own: `node events-process.ts STORE`. */
import { z } from 'zod'
import { createServer } from '../../src/server/index.ts'

const [store = ''] = process.argv.slice(2)
const server = createServer({ name: 'process', version: '1.0.0', store })
const counted = server.event('counted', { payload: z.object({ n: z.number(), by: z.number() }) })

server.tool('emit', { input: z.object({ from: z.number(), count: z.number() }) }, async ({ from, count }) => {
  for (let n = from; n < from + count; n++) await counted.emit({ n, by: process.pid })
  return String(process.pid)
})
await server.stdio()
await server.close()
