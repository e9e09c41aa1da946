/** Ours over stdio, from the build given as the first argument; `beside` as the second adds tools that use every reliability feature. */
import { echo, echoSchema } from './tools.mjs'

const [address, beside] = process.argv.slice(2)
const { createServer } = await import(address)

const server = createServer({
  name: 'bench',
  version: '1.0.0',
  limits: { rates: { calls: { perSecond: 1_000_000, burst: 1_000_000 } } },
  ...(beside === 'beside' ? { store: 'memory:' } : {}),
})
server.tool('echo', { description: 'Echoes the text', input: echoSchema }, async args => echo(args))

if (beside === 'beside') {
  const input = { type: 'object', properties: { id: { type: 'string' } }, required: ['id'] }
  server.tool('open', { input, scopes: ['write'], state: 'conflict', undo: { tool: 'close' } }, ({ id }) => id)
  server.tool('close', { input, scopes: ['write'], idempotent: true, confirm: { message: 'Close {id}?' } }, ({ id }) => id)
}

await server.stdio()
