/** Ours with one event, on the store of the first argument. A line on stdin is how many to emit; `emitted` says that they are. */
import { createInterface } from 'node:readline'
import { createServer } from 'vivarium/server'
import { announce } from './ready.mjs'

const [store] = process.argv.slice(2)

// All readers are one caller to it.
const limits = { rates: false, listenersPerCaller: 5_000 }
const server = createServer({ name: 'bench', version: '1.0.0', store, limits })
const happened = server.event('happened', { payload: { type: 'object' } })
const { url } = await server.listen({ port: 0, host: '127.0.0.1' })

createInterface({ input: process.stdin }).on('line', async line => {
  const at = () => performance.timeOrigin + performance.now()
  await Promise.all(Array.from({ length: Number(line) }, () => happened.emit({ title: 'A ticket', at: at() })))
  process.stdout.write('emitted\n')
})
process.stdin.on('end', () => process.exit(0))
announce(Number(new URL(url).port))
