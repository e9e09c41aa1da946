/** What the server says at start: how to connect, ready to be copied. */

export interface Addresses {
  readonly url: string
  readonly sse: string
  readonly webSocket: string
}

/** The addresses of all carriers beside the main one. */
export function addressesOf(url: string, ssePath: string, wsPath: string): Addresses {
  const webSocket = new URL(wsPath, url)
  webSocket.protocol = 'ws:'
  return { url, sse: new URL(ssePath, url).href, webSocket: webSocket.href }
}

export function welcome({ url, sse, webSocket }: Addresses, program: string): string {
  const overHttp = { mcpServers: { everything: { type: 'http', url } } }
  const overStdio = { mcpServers: { everything: { command: 'node', args: [program, '--stdio'] } } }
  return `The everything server is listening.

  Streamable HTTP   ${url}
  HTTP+SSE (old)    ${sse}
  WebSocket         ${webSocket}

For an MCP client's configuration:

  ${JSON.stringify(overHttp)}

or, to let the client start it:

  ${JSON.stringify(overStdio)}

See what it offers:

  npm run everything-client -- ${url}

Call a tool by hand:

${curl(url)}

Press Ctrl-C to end.`
}

function curl(url: string): string {
  const meta = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': {} }
  const body = {
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: { name: 'greet', arguments: { name: 'World' }, _meta: meta },
  }
  const headers = [
    'content-type: application/json',
    'accept: application/json, text/event-stream',
    'mcp-protocol-version: 2026-07-28',
    'mcp-method: tools/call',
    'mcp-name: greet',
  ]
  return [`  curl -s ${url}`, ...headers.map(header => `    -H '${header}'`), `    -d '${JSON.stringify(body)}'`].join(' \\\n')
}
