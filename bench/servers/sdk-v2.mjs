/**
 * Official SDK v2. Over HTTP each era runs the way its documentation shows, and alone: sessions on the node
 * transport for 2025-11-25, `createMcpHandler` for 2026-07-28. Serving both at one address would add its
 * `isLegacyRequest` pass to every request, so this is the kinder arrangement.
 */
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import { NodeStreamableHTTPServerTransport, toNodeHandler } from '@modelcontextprotocol/node'
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server'
import { serveStdio } from '@modelcontextprotocol/server/stdio'
import { announce } from './ready.mjs'
import { registerAll } from './sdk-tools.mjs'

const [carrier, mode, revision] = process.argv.slice(2)

if (carrier === 'stdio') serveStdio(build)
else if (revision === '2025-11-25') listen(sessionHandler())
else listen(toNodeHandler(createMcpHandler(build, { legacy: 'reject' })))

function build() {
  const server = new McpServer({ name: 'bench', version: '1.0.0' }, { capabilities: { tools: {} } })
  registerAll(server, mode)
  return server
}

function sessionHandler() {
  const sessions = new Map()
  return async (request, response) => {
    const known = sessions.get(request.headers['mcp-session-id'])
    const transport = known ?? (await openSession(sessions))
    await transport.handleRequest(request, response)
  }
}

async function openSession(sessions) {
  const transport = new NodeStreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    enableJsonResponse: true,
    onsessioninitialized: id => {
      sessions.set(id, transport)
    },
  })
  await build().connect(transport)
  return transport
}

function listen(handler) {
  const server = createServer(handler)
  server.listen(0, '127.0.0.1', () => announce(server.address().port))
}
