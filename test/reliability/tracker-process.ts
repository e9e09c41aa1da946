/** A server in a process of its own, for tests of what survives it: `node tracker-process.ts STORE FILE [ID]`. Effects are lines of
 * the file; taking back the thing of that id never ends here. */
import { appendFileSync } from 'node:fs'
import { z } from 'zod'
import { createServer } from '../../src/server/index.ts'

const [store = '', file = '', stubborn] = process.argv.slice(2)
const server = createServer({ name: 'process', version: '1.0.0', store })
const input = z.object({ id: z.string() })
const effect = (what: string, id: string): void => appendFileSync(file, `${what} ${id} ${process.pid}\n`)

server.tool('make', { input, undo: { tool: 'unmake' } }, ({ id }) => {
  effect('make', id)
  return 'made'
})
server.tool('unmake', { input, idempotent: true }, ({ id }) => {
  effect(id === stubborn ? 'hang' : 'unmake', id)
  return id === stubborn ? new Promise<string>(() => {}) : 'unmade'
})
await server.stdio()
await server.close()
