/** A server of the official SDK v2: `stdio`, `http` (its handler for both eras), or `sessions` (the older era with sessions). */
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import { NodeStreamableHTTPServerTransport, toNodeHandler } from '@modelcontextprotocol/node'
import { completable, createMcpHandler, inputRequired, McpServer, ResourceTemplate } from '@modelcontextprotocol/server'
import { serveStdio } from '@modelcontextprotocol/server/stdio'
import { z } from 'zod'
import { offer } from './offers.mjs'

const questions = {
  'elicitation/create': inputRequired.elicit,
  'sampling/createMessage': inputRequired.createMessage,
  'roots/list': () => inputRequired.listRoots(),
}

let published = server => server.sendToolListChanged()

const kit = {
  z,
  completable,
  ResourceTemplate,
  shape: fields => z.object(fields),
  signal: ctx => ctx.mcpReq.signal,
  log: (ctx, level, data) => ctx.mcpReq.log(level, data),
  progress: async ({ mcpReq }, step) => {
    const progressToken = mcpReq._meta?.progressToken
    if (progressToken !== undefined) await mcpReq.notify({ method: 'notifications/progress', params: { progressToken, ...step } })
  },
  ask: async (ctx, method, params, then) => {
    const answer = ctx.mcpReq.inputResponses?.answer
    return answer === undefined ? inputRequired({ inputRequests: { answer: questions[method](params) } }) : then(answer)
  },
  changed: (_ctx, server) => published(server),
}

function build() {
  const server = new McpServer({ name: 'sdk-v2', version: '1.0.0' }, { capabilities: { logging: {} } })
  offer(server, kit)
  return server
}

const sessions = new Map()

async function withSessions(request, response) {
  let transport = sessions.get(request.headers['mcp-session-id'])
  if (transport === undefined) {
    transport = new NodeStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: id => void sessions.set(id, transport),
    })
    await build().connect(transport)
  }
  await transport.handleRequest(request, response)
}

function bothEras() {
  const handler = createMcpHandler(build)
  published = () => handler.notify.toolsChanged()
  return toNodeHandler(handler)
}

const [carrier] = process.argv.slice(2)
if (carrier === 'stdio') serveStdio(build)
else {
  const server = createServer(carrier === 'sessions' ? withSessions : bothEras())
  server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}/mcp`))
}
