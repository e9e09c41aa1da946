/** A server of the official SDK v1: `stdio`, `http` (sessions), or `sse` (the old pair). Over HTTP it prints its address. */
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import { InMemoryTaskStore } from '@modelcontextprotocol/sdk/experimental/tasks/stores/in-memory.js'
import { completable } from '@modelcontextprotocol/sdk/server/completable.js'
import { McpServer, ResourceTemplate } from '@modelcontextprotocol/sdk/server/mcp.js'
import { SSEServerTransport } from '@modelcontextprotocol/sdk/server/sse.js'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import { CreateMessageResultSchema, ElicitResultSchema, ListRootsResultSchema } from '@modelcontextprotocol/sdk/types.js'
import { z } from 'zod'
import { offer } from './offers.mjs'

const results = {
  'elicitation/create': ElicitResultSchema,
  'sampling/createMessage': CreateMessageResultSchema,
  'roots/list': ListRootsResultSchema,
}

const kit = {
  z,
  completable,
  ResourceTemplate,
  shape: fields => fields,
  signal: ctx => ctx.signal,
  log: (ctx, level, data) => ctx.sendNotification({ method: 'notifications/message', params: { level, data } }),
  progress: async ({ _meta, sendNotification }, step) => {
    const progressToken = _meta?.progressToken
    if (progressToken !== undefined)
      await sendNotification({ method: 'notifications/progress', params: { progressToken, ...step } })
  },
  ask: async (ctx, method, params, then) => then(await ctx.sendRequest({ method, params }, results[method])),
  changed: (_ctx, server) => server.sendToolListChanged(),
}

const taskStore = new InMemoryTaskStore()
const tasks = { cancel: {}, requests: { tools: { call: {} } } }

/** A tool that runs as a task only. */
const brew = {
  createTask: async extra => {
    const task = await extra.taskStore.createTask({ ttl: 60_000, pollInterval: 50 })
    setImmediate(() => extra.taskStore.storeTaskResult(task.taskId, 'completed', { content: [{ type: 'text', text: 'Coffee' }] }))
    return { task }
  },
  getTask: extra => extra.taskStore.getTask(extra.taskId),
  getTaskResult: extra => extra.taskStore.getTaskResult(extra.taskId),
}

function build() {
  const server = new McpServer({ name: 'sdk-v1', version: '1.0.0' }, { capabilities: { logging: {}, tasks }, taskStore })
  offer(server, kit)
  server.experimental.tasks.registerToolTask('brew', { description: 'Brews coffee' }, brew)
  return server
}

const sessions = new Map()

async function streamable(request, response) {
  let transport = sessions.get(request.headers['mcp-session-id'])
  if (transport === undefined) {
    transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: id => sessions.set(id, transport),
    })
    await build().connect(transport)
  }
  await transport.handleRequest(request, response)
}

async function pair(request, response) {
  const { pathname, searchParams } = new URL(request.url, 'http://localhost')
  if (request.method === 'GET' && pathname === '/mcp') {
    const transport = new SSEServerTransport('/messages', response)
    sessions.set(transport.sessionId, transport)
    await build().connect(transport)
  } else if (request.method === 'POST' && pathname === '/messages') {
    const transport = sessions.get(searchParams.get('sessionId'))
    if (transport === undefined) response.writeHead(404).end()
    else await transport.handlePostMessage(request, response)
  } else response.writeHead(405).end()
}

const [carrier] = process.argv.slice(2)
if (carrier === 'stdio') await build().connect(new StdioServerTransport())
else {
  const server = createServer(carrier === 'sse' ? pair : streamable)
  server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}/mcp`))
}
