/**
 * The suite's own client always offers 2025-11-25 in `initialize`, whatever revision it is told to test. For an older one this
 * proxy stands in front of the server, rewrites the offer, and counts whether the server really settled on it.
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface PinProxy {
  readonly url: string
  /** What is wrong with the versions settled on, if anything. */
  complaint(): string | undefined
  close(): void
}

/** Opens a proxy to `http://localhost:<port>/mcp` that makes every session ask for `revision`. */
export async function openPinProxy(port: number, revision: string): Promise<PinProxy> {
  const answers: string[] = []
  let asked = 0
  const server = createServer((incoming, outgoing) => {
    void forward(incoming, outgoing).catch(() => outgoing.destroy())
  })

  async function forward(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const { body, pinned } = pin(Buffer.concat(await incoming.toArray()), revision)
    if (pinned) asked++
    const headers = forwardedHeaders(incoming, body, pinned ? revision : undefined)
    const upstream = request({ host: 'localhost', port, path: incoming.url, method: incoming.method, headers }, response => {
      outgoing.writeHead(response.statusCode ?? 502, response.rawHeaders)
      if (pinned) collect(response, text => answers.push(/"protocolVersion"\s*:\s*"([^"]*)"/.exec(text)?.[1] ?? 'none'))
      response.pipe(outgoing)
    })
    upstream.on('error', () => outgoing.destroy())
    outgoing.on('close', () => upstream.destroy())
    upstream.end(body)
  }

  /** Host and Origin name the server instead of this proxy: the server's own guard is under test. */
  function forwardedHeaders({ rawHeaders }: IncomingMessage, body: Buffer, version: string | undefined): string[] {
    const own = String((server.address() as AddressInfo).port)
    const headers: string[] = []
    for (let i = 0; i < rawHeaders.length; i += 2) {
      const [name = '', value = ''] = [rawHeaders[i]?.toLowerCase(), rawHeaders[i + 1]]
      if (['connection', 'keep-alive', 'transfer-encoding', 'content-length'].includes(name)) continue
      const local = name === 'host' || name === 'origin' ? value.replace(`:${own}`, `:${port}`) : value
      headers.push(name, version && name === 'mcp-protocol-version' ? version : local)
    }
    return body.length > 0 ? [...headers, 'content-length', String(body.length)] : headers
  }

  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://localhost:${(server.address() as AddressInfo).port}/mcp`,
    complaint() {
      const others = [...new Set(answers.filter(answer => answer !== revision))]
      if (asked > 0 && others.length === 0 && answers.length === asked) return undefined
      return `asked for ${revision} ${asked} times, the server answered ${answers.length} times${others.map(other => `, also ${other}`).join('')}`
    },
    close() {
      server.closeAllConnections()
      server.close()
    },
  }
}

function pin(body: Buffer, revision: string): { body: Buffer; pinned: boolean } {
  try {
    const message = JSON.parse(body.toString()) as { method?: string; params?: { protocolVersion?: string } }
    if (message.method !== 'initialize' || message.params?.protocolVersion === undefined) return { body, pinned: false }
    message.params.protocolVersion = revision
    return { body: Buffer.from(JSON.stringify(message)), pinned: true }
  } catch {
    // Not JSON: some scenarios send that on purpose.
    return { body, pinned: false }
  }
}

function collect(response: IncomingMessage, done: (text: string) => void): void {
  const parts: Buffer[] = []
  response.on('data', part => parts.push(part))
  response.on('close', () => done(Buffer.concat(parts).toString()))
}
