/** Many small servers in one process: `stubs.mjs SERVERS TOOLS`. Says their ports in one line. */
import { createServer } from 'vivarium/server'
import { listedDescription, listedSchema } from './tools.mjs'

const [servers, tools] = process.argv.slice(2).map(Number)
const ports = []
for (let i = 0; i < servers; i++) {
  const server = createServer({ name: `stub${i}`, version: '1.0.0' })
  for (let j = 0; j < tools; j++) {
    const name = `s${i}_tool_${j}`
    server.tool(name, { description: listedDescription(name), input: listedSchema }, async () => name)
  }
  const { url } = await server.listen({ port: 0, host: '127.0.0.1' })
  ports.push(new URL(url).port)
}
process.stdout.write(`ready ${ports.join(',')}\n`)
