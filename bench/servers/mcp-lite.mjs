/** mcp-lite over HTTP with its in-memory sessions, on @hono/node-server as its examples do, without the Hono router. */
import { serve } from '@hono/node-server'
import { InMemorySessionAdapter, McpServer, StreamableHttpTransport } from 'mcp-lite'
import { announce } from './ready.mjs'
import { echo, form20, listedDescription, listedNames } from './tools.mjs'
import { echoInput, form20Input, listedInput, toJsonSchema } from './zod-tools.mjs'

const mode = process.argv[3]
const textResult = text => ({ content: [{ type: 'text', text }] })

const mcp = new McpServer({ name: 'bench', version: '1.0.0', schemaAdapter: toJsonSchema })
if (mode === 'list') {
  for (const name of listedNames) {
    const description = listedDescription(name)
    mcp.tool(name, { description, inputSchema: listedInput, handler: () => textResult(name) })
  }
} else {
  mcp.tool('echo', {
    description: 'Echoes the text',
    inputSchema: echoInput,
    handler: args => textResult(echo(args)),
  })
  mcp.tool('form20', {
    description: 'Takes a form of 20 properties',
    inputSchema: form20Input,
    handler: args => textResult(form20(args)),
  })
}

const transport = new StreamableHttpTransport({
  sessionAdapter: new InMemorySessionAdapter({ maxEventBufferSize: 1024 }),
})
const handler = transport.bind(mcp)
serve({ fetch: request => handler(request), port: 0, hostname: '127.0.0.1' }, ({ port }) => announce(port))
