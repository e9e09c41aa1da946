/**
 * A protected MCP server and its authorization server, both real and on this machine. By itself the world behaves; a test
 * says where it does not.
 */
import { once } from 'node:events'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { onTestFinished } from 'vitest'
import type { Browser } from 'vivarium/client'
import { createServer } from 'vivarium/server'

export interface Seen {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: http.IncomingHttpHeaders
  readonly body: string
  /** The body, where it is a form. */
  readonly form: URLSearchParams
}

export interface Said {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  /** Text goes out as it is, everything else as JSON. */
  readonly body?: unknown
}

export type Route = (seen: Seen) => Said | Promise<Said> | undefined
type Json = Record<string, unknown>

export interface Ways {
  /** Changes the metadata of the resource. */
  readonly resource?: (metadata: Json, world: World) => Json
  /** Changes the metadata of the authorization server. */
  readonly metadata?: (metadata: Json, world: World) => Json
  /** Changes the parameters with which the user comes back. */
  readonly back?: (back: URLSearchParams, seen: Seen) => void
  /** Changes what the token endpoint says. */
  readonly token?: (said: Json, seen: Seen) => Json | Said
  /** Answers a path by other means, at either server. */
  readonly routes?: Readonly<Record<string, Route>>
  /** Says of a token whether it is good. Default: those that this authorization server gave. */
  readonly verify?: (token: string) => Promise<Token | undefined>
  /** Refuses a request to the MCP server although its token is known. */
  readonly refuse?: (seen: Seen, token: Token, world: World) => Said | undefined
  /** Parameters of the challenge beside the metadata's address. */
  readonly challenge?: string
  /** Leaves the address of the metadata out of the challenge. */
  readonly unnamed?: boolean
}

export interface Token {
  readonly value: string
  readonly scope: string
}

export interface World {
  /** Of the MCP server. */
  readonly url: string
  readonly origin: string
  readonly issuer: string
  /** Requests to the authorization server. */
  readonly seen: Seen[]
  /** Requests to the MCP server. */
  readonly heard: Seen[]
  /** Tokens that the MCP server takes. */
  readonly tokens: Map<string, Token>
  readonly browser: Browser
  at(path: string): Seen[]
}

export const redirectUri = 'http://127.0.0.1:9/callback'
/** Marks whatever must never be seen in an error. */
export const secret = 'CANARY'

/** Follows the authorization server's answer as a browser would, but to nowhere. */
export const browser: Browser = {
  redirectUri,
  async authorize(url, { signal }) {
    const response = await fetch(url, { redirect: 'manual', signal })
    const location = response.headers.get('location')
    if (location === null) throw new Error(`no redirect but HTTP ${response.status}`)
    return location
  },
}

export async function startWorld(ways: Ways = {}): Promise<World> {
  const mcp = createServer({ name: 'protected', version: '1.0.0' })
  mcp.tool('echo', { description: 'Says hello' }, () => 'hello')
  mcp.tool('write', { description: 'Says done' }, () => 'done')
  const inner = await mcp.listen({ port: 0, ssePath: '/sse', wsPath: '/ws' })
  onTestFinished(() => mcp.close())
  const seen: Seen[] = []
  const heard: Seen[] = []
  const tokens = new Map<string, Token>()
  const issuer = await listen((request, response) =>
    answer(request, response, seen, item => authorizationRoute(item, ways, world)),
  )
  const origin = await listen(async (request, response) => {
    const item = await read(request)
    const routed = await (ways.routes?.[item.path]?.(item) ?? resourceRoute(item, ways, world))
    if (routed !== undefined) return say(response, routed)
    heard.push(item)
    const refused = await guard(item, ways, world)
    return refused === undefined ? forward(item, inner.port, response) : say(response, refused)
  }, upgrade)
  /** A WebSocket is let through, or not, as any request is. */
  async function upgrade(request: http.IncomingMessage, socket: Duplex): Promise<void> {
    const item = asSeen(request, '')
    heard.push(item)
    const refused = await guard(item, ways, world)
    if (refused === undefined) return forwardUpgrade(item, inner.port, socket)
    const headers = Object.entries(refused.headers ?? {}).map(([name, value]) => `${name}: ${value}\r\n`)
    socket.end(`HTTP/1.1 ${refused.status} No\r\n${headers.join('')}content-length: 0\r\nconnection: close\r\n\r\n`)
  }
  const at = (path: string): Seen[] => seen.filter(item => item.path === path)
  const world: World = { url: `${origin}/mcp`, origin, issuer, seen, heard, tokens, browser, at }
  return world
}

/** A server on this machine that only counts who comes by. */
export async function startDecoy(): Promise<{ readonly origin: string; readonly hits: () => number }> {
  let hits = 0
  const origin = await listen((_request, response) => {
    hits++
    response.end('{}')
  })
  return { origin, hits: () => hits }
}

export async function listen(
  handler: (request: http.IncomingMessage, response: http.ServerResponse) => unknown,
  upgrade?: (request: http.IncomingMessage, socket: Duplex) => unknown,
): Promise<string> {
  const server = http.createServer((request, response) => void handler(request, response))
  if (upgrade !== undefined) server.on('upgrade', (request, socket) => void upgrade(request, socket))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

async function read(request: http.IncomingMessage): Promise<Seen> {
  const parts: Buffer[] = []
  for await (const part of request) parts.push(part)
  return asSeen(request, Buffer.concat(parts).toString())
}

function asSeen({ url: address = '/', method = '', headers }: http.IncomingMessage, body: string): Seen {
  const url = new URL(address, 'http://127.0.0.1')
  return { method, path: url.pathname, query: url.searchParams, headers, body, form: new URLSearchParams(body) }
}

async function answer(request: http.IncomingMessage, response: http.ServerResponse, seen: Seen[], route: Route): Promise<void> {
  const item = await read(request)
  seen.push(item)
  say(response, (await route(item)) ?? { status: 404, body: 'nothing here' })
}

function say(response: http.ServerResponse, { status = 200, headers = {}, body = '' }: Said): void {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  const type = typeof body === 'string' ? 'text/html' : 'application/json'
  response.writeHead(status, { 'content-type': type, ...headers }).end(text)
}

// ── the MCP server ──────────────────────────────────────────────────────────────────────────────────────────────────

const wellKnown = '/.well-known/oauth-protected-resource'

function resourceRoute({ path }: Seen, ways: Ways, world: World): Said | undefined {
  if (['/mcp', '/sse', '/sse/message'].includes(path)) return undefined
  if (!/^\/(mcp|sse|ws)$/.test(path.replace(wellKnown, '')) || !path.startsWith(wellKnown)) return { status: 404 }
  const metadata = { resource: world.origin + path.replace(wellKnown, ''), authorization_servers: [world.issuer] }
  return { body: ways.resource?.(metadata, world) ?? metadata }
}

async function guard(item: Seen, ways: Ways, world: World): Promise<Said | undefined> {
  const value = item.headers.authorization?.replace(/^(Bearer|DPoP) /, '') ?? ''
  const token = ways.verify === undefined ? world.tokens.get(value) : await ways.verify(value)
  if (token !== undefined) return ways.refuse?.(item, token, world)
  const named = `resource_metadata="${world.origin}${wellKnown}${item.path.replace('/message', '')}"`
  const parameters = [...(ways.unnamed ? [] : [named]), ...(ways.challenge === undefined ? [] : [ways.challenge])].join(', ')
  return { status: 401, headers: { 'www-authenticate': `Bearer ${parameters}` }, body: { error: 'invalid_token' } }
}

function inward({ method, path, query, headers }: Seen, port: number): http.RequestOptions {
  return { host: '127.0.0.1', port, path: `${path}?${query}`, method, headers: { ...headers, host: `127.0.0.1:${port}` } }
}

function forwardUpgrade(item: Seen, port: number, socket: Duplex): void {
  const request = http.request(inward(item, port))
  request.on('upgrade', (answered, inner) => {
    const headers = Object.entries(answered.headers).map(([name, value]) => `${name}: ${value}\r\n`)
    socket.write(`HTTP/1.1 101 Switching Protocols\r\n${headers.join('')}\r\n`)
    socket.pipe(inner).pipe(socket)
    const cut = (): void => {
      socket.destroy()
      inner.destroy()
    }
    for (const end of [socket, inner]) end.on('error', cut)
  })
  request.on('error', () => socket.destroy())
  request.end()
}

function forward(item: Seen, port: number, response: http.ServerResponse): void {
  const { body } = item
  const request = http.request(inward(item, port), answered => {
    response.writeHead(answered.statusCode ?? 500, answered.headers)
    answered.pipe(response)
  })
  request.on('error', () => response.destroy())
  response.on('close', () => request.destroy())
  request.end(body)
}

// ── the authorization server ────────────────────────────────────────────────────────────────────────────────────────

let count = 0

function authorizationRoute(item: Seen, ways: Ways, world: World): Said | Promise<Said> | undefined {
  const other = ways.routes?.[item.path]?.(item)
  if (other !== undefined) return other
  if (item.path === '/.well-known/oauth-authorization-server') return { body: metadataOf(ways, world) }
  if (item.path === '/register') return { status: 201, body: { ...JSON.parse(item.body), client_id: `client-${++count}` } }
  if (item.path === '/authorize') return sendBack(item, ways, world)
  return item.path === '/token' ? giveToken(item, ways, world) : undefined
}

function metadataOf(ways: Ways, world: World): Json {
  const { issuer } = world
  const metadata = {
    issuer,
    authorization_endpoint: `${issuer}/authorize`,
    token_endpoint: `${issuer}/token`,
    registration_endpoint: `${issuer}/register`,
    response_types_supported: ['code'],
    code_challenge_methods_supported: ['S256'],
    token_endpoint_auth_methods_supported: ['none'],
    authorization_response_iss_parameter_supported: true,
  }
  return ways.metadata?.(metadata, world) ?? metadata
}

function sendBack(item: Seen, ways: Ways, world: World): Said {
  const back = new URL(item.query.get('redirect_uri') ?? redirectUri)
  back.searchParams.set('code', `code-${++count}`)
  back.searchParams.set('state', item.query.get('state') ?? '')
  back.searchParams.set('iss', world.issuer)
  ways.back?.(back.searchParams, item)
  return { status: 302, headers: { location: back.href } }
}

function giveToken(item: Seen, ways: Ways, world: World): Said {
  const value = `${secret}-token-${++count}`
  const scope = world.at('/authorize').at(-1)?.query.get('scope') ?? ''
  world.tokens.set(value, { value, scope })
  const standard = { access_token: value, token_type: 'Bearer', expires_in: 3600 }
  const said = ways.token?.(standard, item) ?? standard
  return 'access_token' in said || 'error' in said || 'token_type' in said
    ? { body: said, status: 'error' in said ? 400 : 200 }
    : said
}
