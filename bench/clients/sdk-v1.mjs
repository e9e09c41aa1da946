/** Official SDK v1 as a client. */
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { floorCommand, serveRounds } from './rounds.mjs'

await serveRounds(async ({ carrier, url }) => {
  const client = new Client({ name: 'bench-sdk-v1', version: '1.0.0' })
  const http = carrier === 'http'
  await client.connect(http ? new StreamableHTTPClientTransport(new URL(url)) : new StdioClientTransport(floorCommand))
  return {
    call: async text => (await client.callTool({ name: 'echo', arguments: { text } })).content[0].text,
    close: () => client.close(),
  }
})
