/** Official SDK v2 as a client, pinned to the revision of the row. */
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { floorCommand, serveRounds } from './rounds.mjs'

await serveRounds(async ({ carrier, revision, url }) => {
  const mode = revision === '2026-07-28' ? { pin: revision } : 'legacy'
  const client = new Client({ name: 'bench-sdk-v2', version: '1.0.0' }, { versionNegotiation: { mode } })
  const http = carrier === 'http'
  await client.connect(http ? new StreamableHTTPClientTransport(new URL(url)) : new StdioClientTransport(floorCommand))
  return {
    call: async text => (await client.callTool({ name: 'echo', arguments: { text } })).content[0].text,
    close: () => client.close(),
  }
})
