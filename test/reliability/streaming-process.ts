/** A server on standard input and output whose tool counts, and floods. */
import { z } from 'zod'
import { createServer } from '../../src/server/index.ts'

const server = createServer({ name: 'counting', version: '1.0.0', log: 'silent' })
server.tool('count', { input: z.object({ to: z.number(), size: z.number() }) }, async function* ({ to, size }) {
  for (let at = 0; at < to; at++) {
    // Read by the test, to see how far ahead of its reader the tool has come.
    process.stderr.write(`${at}\n`)
    yield `${at}`.padEnd(size, '.')
  }
  return `counted to ${to}`
})
await server.stdio()
process.exit()
