/** Starts a server, and a gateway in front of it at PORT: `node behind-gateway.ts PORT UPSTREAM-REVISION COMMAND`. */
import { createGateway } from '../../src/gateway/index.ts'
import type { RevisionId } from '../../src/server/index.ts'
import { answers, freePort, start } from './processes.ts'

const [port = '', revision = '', command = ''] = process.argv.slice(2)
const behind = await freePort()
const server = start(command.replaceAll('{behind}', String(behind)), [], {
  shell: true,
  env: { ...process.env, PORT: String(behind) },
})
process.on('SIGTERM', () => void server.stop().then(() => process.exit(0)))
while (!(await answers(behind))) {
  if (server.ended() !== undefined) {
    console.error(server.output())
    process.exit(1)
  }
  await new Promise(resolve => setTimeout(resolve, 50))
}
const gateway = await createGateway({
  servers: {
    everything: {
      target: `http://127.0.0.1:${behind}/mcp`,
      connect: revision === 'newest' ? {} : { revisions: [revision as RevisionId] },
    },
  },
  pins: 'off',
})
await gateway.ready()
await gateway.listen({ port: Number(port) })
