/** One of several servers on one store, as a process: says its address on standard output, ends with its standard input. */
import { createServer } from '../src/server/index.ts'

const server = createServer({
  name: 'replica',
  version: '1.0.0',
  store: process.env['STORE'] ?? 'memory:',
  secret: process.env['SECRET'],
})
server.tool('who', {}, (_, { client, revision }) => `${process.pid} ${client.info?.name} ${revision}`)
server.tool('count', {}, async (_, { state }) => {
  const { count = 0 } = (await state.get<{ count: number }>()) ?? {}
  await state.set({ count: count + 1 })
  return `${count + 1}`
})
server.tool('where', {}, async (_, ctx) => `${process.pid} ${(await ctx.roots())[0]?.uri}`)
server.tool('slow', { task: 'optional' }, () => `done by ${process.pid}`)
const { url } = await server.listen()
console.log(url)
process.stdin.resume()
process.stdin.on('end', () => void server.close().then(() => process.exit()))
