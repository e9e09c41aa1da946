/**
 * A node:http server for the MCP endpoint: routing by exact path, timeouts against slow clients, WebSocket upgrades, order of
 * pipelined requests, and graceful shutdown. Loaded only when a server listens, so that `fetch` alone needs nothing of it.
 */

import { createServer, type IncomingMessage, type Server, type ServerOptions } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { callerAccount } from '../../core/accounts.ts'
import { Occupancy } from '../../core/occupancy.ts'
import type { Acceptor, Principal } from '../../jsonrpc/connection.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { ssePair } from '../sse/server.ts'
import { downloadName, pathOf, refuseUnlessGet } from './document.ts'
import { checkBody, createEndpoint, type Endpoint, isRefusal } from './endpoint.ts'
import type { HttpLimits } from './limits.ts'
import type { Listening, ListenOptions, OpenPage } from './listening.ts'
import { NodeExchange, type NodeHttpHandler } from './node.ts'
import { failed, type Refusal, refuseUpgrade } from './refusal.ts'

export { httpLimits, renamedHttpLimits } from './limits.ts'

/** Takes over a socket that asks for a WebSocket upgrade. Path, Host and Origin are already checked. */
export type UpgradeHandler = (req: IncomingMessage, socket: Duplex, head: Buffer) => void

/** The options of a listener, with the handler for WebSockets. */
export interface ListenerOptions extends ListenOptions {
  /** Handles upgrade requests to `wsPath`. */
  readonly onUpgrade?: UpgradeHandler
}

/** Opens a listener; resolves when its port is bound. */
export async function listenHttp(acceptor: Acceptor, options: ListenerOptions = {}): Promise<Listening> {
  const { port = 0, host = '127.0.0.1', path = '/mcp', closeMs = 5_000, onError = () => undefined } = options
  checkListenPaths(path, options)
  const endpoint = createEndpoint(acceptor, { ...options, host })
  const handle = inOrder(endpoint, route(endpoint, routes(endpoint, path, options), path))
  const server = createServer(serverOptions(endpoint.limits), handle)
  server.on('checkContinue', answerExpect(endpoint, handle))
  server.maxConnections = endpoint.limits.connections
  server.on('connection', shareSockets(endpoint.limits.connections))
  const upgraded = new Set<Duplex>()
  const { wsPath, onUpgrade } = options
  if (wsPath !== undefined && onUpgrade !== undefined) server.on('upgrade', upgrade(endpoint, wsPath, onUpgrade, upgraded))
  await bind(server, port, host)
  server.on('error', onError)
  const address = server.address() as AddressInfo
  let closing: Promise<void> | undefined
  return {
    url: `http://${urlHost(host)}:${address.port}${path}`,
    port: address.port,
    close() {
      closing ??= shut(server, endpoint, upgraded, closeMs)
      return closing
    },
  }
}

/** Limits the share of sockets that one network can hold, whatever they are used for. */
function shareSockets(connections: number): (socket: Socket) => void {
  const places = new Occupancy(connections)
  return socket => {
    const account = callerAccount({ carrier: 'http', connection: socket })
    if (places.refusal(account) === 'share') return void socket.destroy()
    places.enter(account)
    socket.once('close', () => places.leave(account))
  }
}

/** Throws if a path has no leading slash, or two paths are the same. */
export function checkListenPaths(path: string, { ssePath, wsPath }: Pick<ListenOptions, 'ssePath' | 'wsPath'>): void {
  const paths = [path, ssePath, wsPath].filter(each => each !== undefined)
  for (const each of paths)
    if (!each.startsWith('/')) throw new TypeError(`The path "${clip(each)}" must begin with a slash: "/${clip(each)}"`)
  if (new Set(paths).size < paths.length) throw new TypeError('path, ssePath and wsPath must be three different paths')
}

/** Timeouts against slow clients, checked every second. Missing Host headers are refused by the guard, with a message. */
function serverOptions({ headersMs, requestMs }: HttpLimits): ServerOptions {
  return {
    headersTimeout: headersMs,
    requestTimeout: requestMs,
    connectionsCheckingInterval: 1_000,
    keepAliveTimeout: 30_000,
    maxHeaderSize: 16 * 1024,
    requireHostHeader: false,
  }
}

/** The handlers by exact path. */
function routes(
  endpoint: Endpoint,
  path: string,
  { ssePath, pages = new Map() }: ListenOptions,
): ReadonlyMap<string, NodeHttpHandler> {
  const table = new Map<string, NodeHttpHandler>()
  for (const [beside, page] of pages) table.set(beside, pageHandler(endpoint, page))
  table.set(path, (req, res) => new NodeExchange(endpoint, req, res).begin())
  const { document } = endpoint
  if (document !== undefined)
    table.set(`${path}${document.path}`, (req, res) => new NodeExchange(endpoint, req, res).own(document))
  if (ssePath === undefined) return table
  const messagePath = `${ssePath}/message`
  const pair = ssePair(endpoint, messagePath)
  return table.set(ssePath, pair.open).set(messagePath, pair.post)
}

/** Finds the handler of a request; else a download, a metadata document or 404. */
function route(endpoint: Endpoint, table: ReadonlyMap<string, NodeHttpHandler>, path: string): NodeHttpHandler {
  const main = table.get(path)
  return (req, res) => {
    const handler = req.url === path ? main : table.get(pathOf(req.url))
    if (handler !== undefined) return handler(req, res)
    const exchange = new NodeExchange(endpoint, req, res)
    const name = downloadName(endpoint.downloads, pathOf(req.url))
    if (name !== undefined && pathOf(req.url) === `${path}${endpoint.downloads?.path}${name}`) return exchange.download(name)
    const document = endpoint.authorizer?.document(pathOf(req.url))
    if (document === undefined) exchange.refuse(endpoint.guard.checkRequest(req) ?? notFound(req, path))
    else exchange.document(document)
  }
}

function notFound(req: IncomingMessage, path: string): Refusal {
  return { status: 404, message: `No endpoint at ${clip(pathOf(req.url))}. The MCP endpoint is ${path}` }
}

/** Checks an upgrade request. The set holds upgraded sockets, which the server no longer tracks but must close at shutdown. */
function upgrade(endpoint: Endpoint, path: string, take: UpgradeHandler, upgraded: Set<Duplex>): UpgradeHandler {
  return (req, socket, head) => {
    upgraded.add(socket)
    socket.once('close', () => upgraded.delete(socket))
    socket.on('error', () => socket.destroy())
    const refusal = endpoint.guard.checkRequest(req) ?? (pathOf(req.url) === path ? undefined : notFound(req, path))
    if (refusal === undefined) take(req, socket, head)
    else refuseUpgrade(socket, refusal, 'Refused')
  }
}

/** Resolves when the port is bound; the error says what to do. */
function bind(server: Server, port: number, host: string): Promise<void> {
  return new Promise((done, fail) => {
    const refused = (error: NodeJS.ErrnoException) => fail(new Error(why(error, port, host), { cause: error }))
    server.once('error', refused)
    server.listen(port, host, () => {
      server.off('error', refused)
      done()
    })
  })
}

function why(error: NodeJS.ErrnoException, port: number, host: string): string {
  switch (error.code) {
    case 'EADDRINUSE':
      return `Port ${port} on ${host} is already in use. Stop the process that listens there, or choose another port (0 takes any free port)`
    case 'EACCES':
      return `This process has no permission to listen on port ${port}. Choose a port from 1024 up`
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return `${clip(host)} is not an address of this machine. Choose 127.0.0.1, or 0.0.0.0 for all addresses`
    default:
      return `Cannot listen on ${clip(host)}:${port}: ${error.message}`
  }
}

/** The host for the URL of a listener: a wildcard address becomes `localhost`. */
function urlHost(host: string): string {
  if (host === '0.0.0.0' || host === '::' || host === '') return 'localhost'
  return host.includes(':') ? `[${host}]` : host
}

/**
 * Closes the server. Connections with an answer in progress become idle only later, so idle ones are closed repeatedly until
 * the deadline.
 */
function shut(server: Server, endpoint: Endpoint, upgraded: ReadonlySet<Duplex>, closeMs: number): Promise<void> {
  return new Promise(done => {
    const deadline = setTimeout(() => {
      server.closeAllConnections()
      for (const socket of upgraded) socket.destroy()
    }, closeMs)
    const looking = setInterval(() => server.closeIdleConnections(), 50)
    server.close(() => {
      clearTimeout(deadline)
      clearInterval(looking)
      done()
    })
    endpoint.streams.close()
  })
}

/**
 * A page beside the endpoint that anyone may read, such as a health check. Only a valid token reveals more: a loopback address
 * proves nothing, because a proxy on this machine has one too.
 */
function pageHandler(endpoint: Endpoint, page: OpenPage): NodeHttpHandler {
  return (req, res) => {
    const exchange = new NodeExchange(endpoint, req, res)
    const refusal = refuseUnlessGet(req.method)
    if (refusal !== undefined) return exchange.refuse(refusal)
    show(page, endpoint, exchange).catch(() => exchange.refuse(failed))
  }
}

async function show(page: OpenPage, endpoint: Endpoint, exchange: NodeExchange): Promise<void> {
  const header = (name: string): string | undefined => exchange.header(name)
  const { status, type, body } = await page.read({ principal: await authorized(endpoint, exchange), header })
  exchange.reply(status, ['content-type', type, 'cache-control', 'no-store'], exchange.method === 'HEAD' ? '' : body)
}

/** The principal of a valid token, if the request has one. */
async function authorized({ identify }: Endpoint, exchange: NodeExchange): Promise<Principal | undefined> {
  if (identify === undefined || exchange.header('authorization') === undefined) return undefined
  const found = await identify(name => exchange.header(name), exchange)
  return found === undefined || isRefusal(found) ? undefined : found
}

// The order of requests on one connection, and `Expect: 100-continue`.

/** Requests that may wait on one connection for the answer to an earlier one. */
const mostInTurn = 100

/**
 * Handles one request per connection at a time. Node emits all pipelined requests at once, and answers could pile up for a
 * client that reads none. A response has a socket only when all earlier ones are sent.
 */
function inOrder(endpoint: Endpoint, handle: NodeHttpHandler): NodeHttpHandler {
  const waiting = new WeakMap<object, number>()
  return (req, res) => {
    if (res.socket !== null) return handle(req, res)
    const before = waiting.get(req.socket) ?? 0
    if (before >= mostInTurn) return new NodeExchange(endpoint, req, res).refuse(tooManyInTurn)
    waiting.set(req.socket, before + 1)
    res.once('socket', () => {
      waiting.set(req.socket, (waiting.get(req.socket) ?? 1) - 1)
      handle(req, res)
    })
  }
}

const tooManyInTurn: Refusal = {
  status: 503,
  message: `More than ${mostInTurn} requests are queued on this connection. Read the responses, or open another connection`,
  headers: { 'retry-after': '1' },
}

/** Refuses a request with `Expect: 100-continue` before its body is sent, if it would be refused anyway. */
function answerExpect(endpoint: Endpoint, handle: NodeHttpHandler): NodeHttpHandler {
  return (req, res) => {
    const exchange = new NodeExchange(endpoint, req, res)
    const refusal = endpoint.guard.checkRequest(req) ?? (req.method === 'POST' ? checkBody(exchange, endpoint.limits) : undefined)
    if (refusal !== undefined) return exchange.refuse(refusal)
    res.writeContinue()
    handle(req, res)
  }
}
