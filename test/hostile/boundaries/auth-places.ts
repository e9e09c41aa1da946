/** Places on loopback for attacks on secrets: a protected MCP server, an authorization server, and whoever wants what they are shown. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Heard {
  readonly method: string
  readonly path: string
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

export interface Said {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
}

export interface Place {
  readonly origin: string
  /** Whether a text came here, as it is, in Basic credentials, or in a form. */
  heard(text: string): boolean
}

/** Ends everything that was opened within it. */
export async function inPlaces<T>(work: (open: (answer: (heard: Heard) => Said) => Promise<Place>) => Promise<T>): Promise<T> {
  const closing: (() => void)[] = []
  const open = async (answer: (heard: Heard) => Said): Promise<Place> => {
    const came: string[] = []
    const take = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
      const body = Buffer.concat(await request.toArray()).toString()
      const { method = '', url: path = '/', headers } = request
      const basic = Buffer.from(headers.authorization?.replace('Basic ', '') ?? '', 'base64').toString()
      came.push(`${path} ${JSON.stringify(headers)} ${basic} ${decodeURIComponent(body)}`)
      const { status = 200, headers: more, body: said = {} } = answer({ method, path, headers, body })
      response.writeHead(status, { 'content-type': 'application/json', ...more }).end(JSON.stringify(said))
    }
    const server = createServer((request, response) => void take(request, response))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    closing.push(() => {
      server.closeAllConnections()
      server.close()
    })
    const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    return { origin, heard: text => came.some(each => each.includes(text)) }
  }
  try {
    return await work(open)
  } finally {
    for (const close of closing) close()
  }
}

/** An authorization server that gives `token` to whoever asks; its token endpoint may lie elsewhere. */
export function authority(own: () => string, token: string, endpoint = (): string => `${own()}/token`): (heard: Heard) => Said {
  return ({ path }) => {
    if (path === '/token') return { body: { access_token: token, token_type: 'Bearer' } }
    if (!path.startsWith('/.well-known/oauth-authorization-server')) return { status: 404 }
    const methods = { token_endpoint_auth_methods_supported: ['client_secret_basic'] }
    return { body: { issuer: own(), token_endpoint: endpoint(), ...methods } }
  }
}

/** An MCP server of 2026-07-28 that takes the tokens of `good`, and names `issuer` to all others; undefined: it names nobody. */
export function guarded(own: () => string, good: ReadonlySet<string>, issuer: () => string | undefined): (heard: Heard) => Said {
  return ({ path, headers, body }) => {
    const named = issuer()
    if (path === '/token') return { body: { access_token: 'stolen', token_type: 'Bearer' } }
    if (path.startsWith('/.well-known/oauth-protected-resource'))
      return named === undefined ? { status: 404 } : { body: { resource: `${own()}/mcp`, authorization_servers: [named] } }
    if (path !== '/mcp') return { status: 404 }
    if (!good.has(headers.authorization?.replace('Bearer ', '') ?? ''))
      return { status: 401, headers: { 'www-authenticate': 'Bearer' } }
    const { id, method } = JSON.parse(body)
    return { body: { jsonrpc: '2.0', id, result: method === 'server/discover' ? discovered : empty } }
  }
}

const empty = { resultType: 'complete', tools: [], content: [] }

export const discovered = {
  resultType: 'complete',
  supportedVersions: ['2026-07-28'],
  capabilities: { tools: {} },
  serverInfo: { name: 'guarded', version: '1' },
}
