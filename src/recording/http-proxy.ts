/**
 * HTTP on both sides: each exchange passes as it is, byte for byte, and is recorded. Any path of the server's origin is passed on,
 * because the old pair of endpoints and the documents about authorization lie beside the endpoint.
 */
import { createServer, type IncomingMessage, request as requestHttp, type Server, type ServerResponse } from 'node:http'
import { request as requestHttps } from 'node:https'
import type { AddressInfo } from 'node:net'
import { clip } from '../jsonrpc/limits.ts'
import { isRecord } from '../jsonrpc/message.ts'
import { Guard } from '../transports/http/endpoint.ts'
import { SseParser } from '../transports/sse/parse.ts'
import { type HttpFacts, jsonValue, messagesOf } from './format.ts'
import type { ClientListener } from './listener.ts'
import type { RecordingWriter } from './writer.ts'

type ConnectionWriter = ReturnType<RecordingWriter['connection']>

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
export async function openHttpProxy(target: URL, options: HttpProxyOptions): Promise<ClientListener> {
  const { port = 0, host = '127.0.0.1' } = options
  const guard = new Guard({ host })
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

/** Passes one exchange to the server. */
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
    end(res, 502, `The server at ${clip(target.origin)} is not reachable: ${clip(error.message)}`)
  })
  res.on('close', () => up.destroy())
  req.on('data', (chunk: Buffer) => exchange.keep(chunk))
  req.on('end', () => exchange.sentAll())
  req.pipe(up)
}

/** Passes the answer back to the client. */
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

/** Request headers for the server; repeated ones become lists. */
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

/** Headers without those that concern a single hop. */
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

// Records HTTP exchanges as they pass: which connection each belongs to, and the frames in bodies and event streams.

type Headers = Readonly<Record<string, string>>

/** What of a body is read; the rest passes unread. */
const mostBytes = 64 * 1024 * 1024

/** Those that say something of the protocol. Where a client comes from and what it is called is nobody's business. */
const telling =
  /^(content-type|accept|last-event-id|mcp-.*|www-authenticate|authorization|retry-after|allow|location|dpop|idempotency-key|x-idempotency-key)$/

/** All exchanges of a proxy. */
class HttpRecorder {
  readonly #writer: RecordingWriter
  readonly #sessions = new Map<string, ConnectionWriter>()
  #sessionless: ConnectionWriter | undefined = undefined
  #exchanges = 0

  constructor(writer: RecordingWriter) {
    this.#writer = writer
  }

  begin(method: string, path: string, headers: Headers): ExchangeRecorder {
    // The old pair knows its sessions by the address for posts.
    const known = this.#sessions.get(headers['mcp-session-id'] ?? path)
    const facts: HttpFacts = { method, path, headers: told(headers) }
    return new ExchangeRecorder(this, known, ++this.#exchanges, facts)
  }

  /** The pair of 2024-11-05 begins with a stream that names the address for posts. */
  pair(posts: string, at: string): ConnectionWriter {
    const connection = this.#writer.connection('sse')
    const { pathname, search } = new URL(posts, `http://tape${at}`)
    this.name(pathname + search, connection)
    return connection
  }

  /** A session that begins has a connection of its own; all that names none shares one. */
  connection(opening: boolean): ConnectionWriter {
    if (opening) return this.#writer.connection('http')
    this.#sessionless ??= this.#writer.connection('http')
    return this.#sessionless
  }

  name(session: string, connection: ConnectionWriter): void {
    if (this.#sessions.size < 10_000) this.#sessions.set(session, connection)
  }
}

/** One exchange. */
class ExchangeRecorder {
  readonly #recorder: HttpRecorder
  readonly #number: number
  readonly #asked: HttpFacts
  #connection: ConnectionWriter | undefined
  #body: Buffer[] = []
  #bytes = 0
  #sse: SseParser | undefined = undefined
  #facts: HttpFacts | undefined = undefined

  constructor(recorder: HttpRecorder, connection: ConnectionWriter | undefined, number: number, asked: HttpFacts) {
    this.#recorder = recorder
    this.#connection = connection
    this.#number = number
    this.#asked = asked
  }

  /** A chunk of a body. */
  keep(chunk: Buffer): void {
    this.#bytes += chunk.length
    if (this.#bytes <= mostBytes) this.#body.push(chunk)
  }

  /** The request is complete: its body is recorded as a frame. */
  sentAll(): void {
    const text = this.#taken()
    this.#connection ??= this.#recorder.connection(isOpening(text))
    if (text === '') this.#connection.http('client', this.#number, this.#asked)
    else this.#connection.frame('client', text, { exchange: this.#number, http: this.#asked })
  }

  /** The answer has begun. */
  answered(status: number, headers: Headers): void {
    // An answer may come before all was asked.
    this.#connection ??= this.#recorder.connection(false)
    const session = headers['mcp-session-id']
    if (session !== undefined) this.#recorder.name(session, this.#connection)
    this.#facts = { status, headers: told(headers) }
    if (!/^text\/event-stream\b/i.test(headers['content-type'] ?? '')) return
    this.#connection.http('server', this.#number, this.#facts)
    this.#sse = new SseParser({ eventBytes: mostBytes }, (data, type) => this.#event(data, type))
  }

  /** A chunk of the answer. */
  received(chunk: Buffer): void {
    if (this.#sse === undefined) return this.keep(chunk)
    try {
      this.#sse.push(chunk)
    } catch {
      // It passes all the same; what cannot be read is not recorded.
      this.#sse = new SseParser({ eventBytes: mostBytes }, () => {})
    }
  }

  /** The answer is complete. */
  receivedAll(): void {
    if (this.#sse !== undefined || this.#facts === undefined) return
    const text = this.#taken()
    if (isMessage(text)) this.#connection?.frame('server', text, { exchange: this.#number, http: this.#facts })
    else this.#connection?.http('server', this.#number, this.#facts)
  }

  /** The server could not be reached. */
  failed(): void {
    this.#connection?.http('server', this.#number, { status: 502 })
  }

  /** An event of a stream: a frame, or the address for posts. */
  #event(data: string, type: string): void {
    if (type === 'endpoint') this.#connection = this.#recorder.pair(data, this.#asked.path ?? '/')
    else if ((type === '' || type === 'message') && data !== '')
      this.#connection?.frame('server', data, { exchange: this.#number })
  }

  #taken(): string {
    const text = Buffer.concat(this.#body).toString('utf8')
    this.#body = []
    this.#bytes = 0
    return text
  }
}

/** Headers worth recording. */
function told(headers: Headers): Headers {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => telling.test(name)))
}

function isOpening(text: string): boolean {
  return messagesOf(jsonValue(text)).some(({ method }) => method === 'initialize')
}

function isMessage(text: string): boolean {
  const value = jsonValue(text)
  return Array.isArray(value) || (isRecord(value) && value['jsonrpc'] !== undefined)
}
