/** A server in a process of its own, for tests of what survives it: `node keyed-process.ts STORE FILE`. Effects are lines of the file. */
import { appendFileSync } from 'node:fs'
import { createServer } from '../../src/server/index.ts'

const [store = '', file = ''] = process.argv.slice(2)
const server = createServer({ name: 'process', version: '1.0.0', store })
const effect = (): void => appendFileSync(file, `${process.pid}\n`)

server.tool('once', {}, () => {
  effect()
  return `by ${process.pid}`
})
// Never ends by itself: its process is killed in the midst of it.
server.tool('hang', {}, () => {
  effect()
  return new Promise<string>(() => {})
})
server.tool('again', { idempotent: true }, (_, ctx) => {
  effect()
  return ctx.meta['example.com/hang'] === true ? new Promise<string>(() => {}) : `by ${process.pid}`
})
await server.stdio()
await server.close()
