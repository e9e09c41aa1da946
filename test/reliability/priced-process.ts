/** A server in a process of its own, for tests of what is left of a quota when it dies: `node priced-process.ts STORE FILE`. */
import { appendFileSync } from 'node:fs'
import { createServer } from '../../src/server/index.ts'

const [store = '', file = ''] = process.argv.slice(2)
const server = createServer({ name: 'process', version: '1.0.0', store, cost: { quota: { units: 10, per: '1d' } } })

server.tool('small', { cost: { category: 'metered', estimatedUnits: 2 } }, () => `by ${process.pid}`)
// Never ends by itself: its process is killed in the midst of it.
server.tool('hang', { cost: { category: 'metered', estimatedUnits: 8 } }, () => {
  appendFileSync(file, `${process.pid}\n`)
  return new Promise<string>(() => {})
})
server.tool('large', { cost: { category: 'metered', estimatedUnits: 6 } }, () => `by ${process.pid}`)
await server.stdio()
await server.close()
