/** Official SDK v1. Over HTTP: one server and transport per session, on plain node:http (no Express, in its favour), JSON answers. */
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import { announce } from './ready.mjs'
import { registerAll } from './sdk-tools.mjs'

const [carrier, mode] = process.argv.slice(2)

if (carrier === 'stdio') await build().connect(new StdioServerTransport())
else serveHttp()

function build() {
  const server = new McpServer({ name: 'bench', version: '1.0.0' })
  // v1 documents raw shapes where v2 takes the object.
  registerAll(server, mode, schema => schema.shape)
  return server
}

function serveHttp() {
  const sessions = new Map()
  const server = createServer(async (request, response) => {
    const known = sessions.get(request.headers['mcp-session-id'])
    const transport = known ?? (await openSession(sessions))
    await transport.handleRequest(request, response)
  })
  server.listen(0, '127.0.0.1', () => announce(server.address().port))
}

async function openSession(sessions) {
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    enableJsonResponse: true,
    onsessioninitialized: id => sessions.set(id, transport),
  })
  await build().connect(transport)
  return transport
}
