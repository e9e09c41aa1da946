/**
 * HTTP on both sides: each exchange passes as it is, byte for byte, and is recorded. Any path of the server's origin is passed on,
 * because the old pair of endpoints and the documents about authorization lie beside the endpoint.
 */
import { createServer, type IncomingMessage, request as requestHttp, type Server, type ServerResponse } from 'node:http'
import { request as requestHttps } from 'node:https'
import type { AddressInfo } from 'node:net'
import { clip } from '../jsonrpc/limits.ts'
import { createGuard } from '../transports/http/guard.ts'
import { type ExchangeRecorder, HttpRecorder } from './http-exchanges.ts'
import type { RecordingProxy } from './proxy.ts'
import type { RecordingWriter } from './writer.ts'

interface HttpProxyOptions {
  readonly port?: number
  readonly host?: string
  readonly headers?: Readonly<Record<string, string>> | undefined
  readonly writer: RecordingWriter
  readonly onTrouble: (error: Error) => void
}

/** They concern one hop (RFC 9110 §7.6.1), or would make the answer unreadable. */
const ownHop = new Set(['connection', 'keep-alive', 'te', 'trailer', 'transfer-encoding', 'upgrade', 'host', 'accept-encoding'])

/** Opens a proxy before a server over HTTP. */
export async function openHttpProxy(target: URL, options: HttpProxyOptions): Promise<RecordingProxy> {
  const { port = 0, host = '127.0.0.1' } = options
  const guard = createGuard({ host })
  const recorder = new HttpRecorder(options.writer)
  const server = createServer((req, res) => {
    const refusal = guard.checkRequest(req)
    if (refusal === undefined) pass(target, options, recorder, req, res)
    else end(res, refusal.status, refusal.message)
  })
  await listening(server, port, host)
  const { port: taken } = server.address() as AddressInfo
  const name = host.includes(':') ? `[${host}]` : host
  return {
    url: `http://${name}:${taken}${target.pathname}${target.search}`,
    over: new Promise(() => {}),
    close: () =>
      new Promise(done => {
        server.close(() => done())
        server.closeAllConnections()
      }),
  }
}

function pass(target: URL, options: HttpProxyOptions, recorder: HttpRecorder, req: IncomingMessage, res: ServerResponse): void {
  const exchange = recorder.begin(req.method ?? 'GET', req.url ?? '/', plainHeaders(req.headers))
  const up = (target.protocol === 'https:' ? requestHttps : requestHttp)({
    hostname: target.hostname.replace(/^\[|\]$/g, ''),
    port: target.port,
    protocol: target.protocol,
    method: req.method,
    path: req.url,
    headers: { ...forwarded(req), ...options.headers, host: target.host, 'accept-encoding': 'identity' },
  })
  up.on('response', answer => passBack(answer, res, exchange))
  up.on('error', error => {
    // A client that hangs up is no trouble of the server's.
    if (res.destroyed) return
    exchange.failed()
    options.onTrouble(error)
    end(res, 502, `The server at ${clip(target.origin)} cannot be reached: ${clip(error.message)}`)
  })
  res.on('close', () => up.destroy())
  req.on('data', (chunk: Buffer) => exchange.sent(chunk))
  req.on('end', () => exchange.sentAll())
  req.pipe(up)
}

function passBack(answer: IncomingMessage, res: ServerResponse, exchange: ExchangeRecorder): void {
  const { statusCode = 502 } = answer
  exchange.answered(statusCode, plainHeaders(answer.headers))
  res.writeHead(statusCode, answer.statusMessage, passedHeaders(answer.rawHeaders))
  // A stream that has nothing to say yet is open all the same.
  res.flushHeaders()
  answer.on('data', (chunk: Buffer) => exchange.received(chunk))
  answer.on('end', () => exchange.receivedAll())
  answer.on('error', () => res.destroy())
  answer.pipe(res)
}

function forwarded({ rawHeaders }: IncomingMessage): Record<string, string | string[]> {
  const headers: Record<string, string | string[]> = {}
  const flat = passedHeaders(rawHeaders)
  for (let at = 0; at < flat.length; at += 2) {
    const [name = '', value = ''] = [flat[at], flat[at + 1]]
    const before = headers[name]
    headers[name] = before === undefined ? value : [...(Array.isArray(before) ? before : [before]), value]
  }
  return headers
}

function passedHeaders(raw: readonly string[]): string[] {
  const flat: string[] = []
  for (let at = 0; at < raw.length; at += 2)
    if (!ownHop.has((raw[at] ?? '').toLowerCase())) flat.push(raw[at] ?? '', raw[at + 1] ?? '')
  return flat
}

function plainHeaders(headers: IncomingMessage['headers']): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, Array.isArray(value) ? value.join(', ') : `${value}`]),
  )
}

function end(res: ServerResponse, status: number, message: string): void {
  if (res.headersSent) return void res.destroy()
  res.writeHead(status, { 'content-type': 'text/plain; charset=utf-8' }).end(`${message}\n`)
}

function listening(server: Server, port: number, host: string): Promise<void> {
  return new Promise((done, fail) => {
    server.once('error', error => fail(new Error(`Cannot listen on ${clip(host)}:${port}: ${error.message}`, { cause: error })))
    server.listen(port, host, () => done())
  })
}
