/** Hostile servers over HTTP: speak the stateless wire well enough to be talked to, and misbehave where a script says so. */
import http from 'node:http'
import net from 'node:net'
import type { Peer } from './attack.ts'

export interface Call {
  readonly id: number
  readonly params: Readonly<Record<string, unknown>>
  readonly request: http.IncomingMessage
  readonly response: http.ServerResponse
  /** Answers as an honest server would, with whatever result. */
  answer(result: unknown): void
}

export type Script = Readonly<Record<string, (call: Call) => void>>

export interface HttpPeer extends Peer {
  /** Methods asked for, in order; GET and DELETE by their names. */
  readonly asked: string[]
}

export function said(text: string, more: object = {}): object {
  return { resultType: 'complete', content: [{ type: 'text', text }], ...more }
}

export function tool(name: string, more: object = {}): object {
  return { name, inputSchema: { type: 'object' }, ...more }
}

export function tools(...entries: readonly object[]): object {
  return { resultType: 'complete', ttlMs: 0, cacheScope: 'private', tools: entries }
}

export function json(response: http.ServerResponse, status: number, body: string): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(body)
}

export function events(response: http.ServerResponse): http.ServerResponse {
  return response.writeHead(200, { 'content-type': 'text/event-stream' })
}

const discovery = {
  resultType: 'complete',
  supportedVersions: ['2026-07-28'],
  capabilities: { tools: { listChanged: true }, resources: { subscribe: true, listChanged: true }, prompts: {}, logging: {} },
  ttlMs: 0,
  cacheScope: 'private',
}

/** Without a script of its own for it, each method is answered honestly; the tool `fine` always is. */
export async function httpPeer(script: Script, complaint?: (peer: HttpPeer) => string | undefined): Promise<HttpPeer> {
  const asked: string[] = []
  const honest: Script = {
    'server/discover': ({ answer }) => answer(discovery),
    'tools/list': ({ answer }) => answer(tools(tool('fine'))),
    'tools/call': ({ answer }) => answer(said('fine')),
  }
  const server = http.createServer((request, response) => {
    response.on('error', () => {})
    let body = ''
    request.on('data', chunk => {
      body += chunk
    })
    request.on('end', () => {
      const { id, method = request.method ?? '', params = {} } = body === '' ? {} : JSON.parse(body)
      asked.push(method)
      const answer = (result: unknown): void =>
        json(response, 200, `{"jsonrpc":"2.0","id":${id},"result":${JSON.stringify(result)}}`)
      const step = params.name === 'fine' ? honest[method] : (script[method] ?? honest[method])
      if (step === undefined) response.writeHead(405).end()
      else step({ id, params, request, response, answer })
    })
  })
  const bare: HttpPeer = { ...(await listening(server)), asked }
  return complaint === undefined ? bare : { ...bare, complaint: () => complaint(bare) }
}

/** A server that answers each connection by itself, below HTTP. */
export async function socketPeer(answer: (socket: net.Socket, request: string) => void): Promise<Peer> {
  const server = net.createServer(socket => {
    socket.on('error', () => {})
    socket.on('data', data => answer(socket, String(data)))
  })
  return listening(server)
}

/** Counts who comes: nobody should. */
export async function decoy(): Promise<{ readonly url: string; readonly hits: () => number; close(): Promise<void> }> {
  let hits = 0
  const peer = await listening(
    net.createServer(socket => {
      hits++
      socket.destroy()
    }),
  )
  return { ...peer, hits: () => hits }
}

async function listening(server: net.Server): Promise<Peer> {
  const sockets = new Set<net.Socket>()
  server.on('connection', (socket: net.Socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
  return {
    url: `http://127.0.0.1:${(server.address() as net.AddressInfo).port}/mcp`,
    close: () => {
      for (const socket of sockets) socket.destroy()
      return new Promise(done => server.close(() => done()))
    },
  }
}

/** Writes the same piece for as long as somebody reads, up to so many bytes. */
export function pour(response: http.ServerResponse, piece: string | Buffer, most: number, end = ''): void {
  let written = 0
  const more = (): void => {
    while (!response.destroyed && written < most) {
      written += piece.length
      if (!response.write(piece)) return void response.once('drain', more)
    }
    if (!response.destroyed) response.end(end)
  }
  more()
}
