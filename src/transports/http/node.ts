/**
 * The node:http carrier: a request handler for an existing server, and the exchange behind it. One small object and a lane are
 * created per request, and no web Request or Response; a JSON answer is a single write.
 */

import { isUtf8 } from 'node:buffer'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Acceptor, Caller, Principal } from '../../jsonrpc/connection.ts'
import { type Download, pathOf } from './document.ts'
import { createEndpoint, type Endpoint, type HttpOptions } from './endpoint.ts'
import type { ResponseStream } from './event-writer.ts'
import { HttpExchange } from './exchange.ts'
import { cutWhenStalled, NodeResponseStream, sendDownload } from './node-response-stream.ts'
import { notUtf8, type Refusal, tooLarge } from './refusal.ts'

/** A node:http request handler. `parsedBody`: the body, if a framework has already read it. */
export type NodeHttpHandler = (req: IncomingMessage, res: ServerResponse, parsedBody?: unknown) => void

/** Serves Streamable HTTP in any framework based on node:http. */
export function nodeHttpHandler(acceptor: Acceptor, options?: HttpOptions): NodeHttpHandler {
  const endpoint = createEndpoint(acceptor, options)
  const { authorizer, document, downloads } = endpoint
  const alone = authorizer === undefined && document === undefined && downloads === undefined
  return (req, res, parsedBody) => {
    const exchange = new NodeExchange(endpoint, req, res, parsedBody)
    if (alone) exchange.begin()
    else exchange.serve(pathOf(originalUrl(req)))
  }
}

/** Frameworks remove the mount path from `url`, and keep the full path in `originalUrl`. */
function originalUrl(req: IncomingMessage): string | undefined {
  return 'originalUrl' in req && typeof req.originalUrl === 'string' ? req.originalUrl : req.url
}

/** One request on node:http: also its caller and the receiver of its body, in one small object. */
export class NodeExchange extends HttpExchange implements Caller, BodyTaker {
  readonly carrier = 'http'
  principal: Principal | undefined = undefined
  readonly connection: object
  readonly method: string | undefined
  readonly #req: IncomingMessage
  readonly #res: ServerResponse
  readonly #parsedBody: unknown

  constructor(endpoint: Endpoint, req: IncomingMessage, res: ServerResponse, parsedBody?: unknown) {
    super(endpoint, endpoint.identify)
    this.method = req.method
    this.#req = req
    this.#res = res
    this.#parsedBody = parsedBody
    this.connection = req.socket
  }

  get url(): string {
    return this.#req.url ?? ''
  }

  get address(): string | undefined {
    return this.#req.socket.remoteAddress
  }

  get gone(): boolean {
    return this.#res.destroyed || this.#req.socket.destroyed
  }

  /**
   * A method and not a closure per request: V8 treats closures stored in fields by a constructor as long-lived, and each would
   * keep its request alive until the next full collection.
   */
  header(name: string): string | undefined {
    const value = this.#req.headers[name]
    return typeof value === 'string' ? value : undefined
  }

  repeats(name: string): boolean {
    const { rawHeaders } = this.#req
    let count = 0
    for (let at = 0; at < rawHeaders.length; at += 2) if (rawHeaders[at]?.toLowerCase() === name) count++
    return count > 1
  }

  challenge(scopes: readonly string[]): Readonly<Record<string, string>> | undefined {
    return this.endpoint.authorizer?.challenge(this.principal, scopes)
  }

  reply(status: number, headers: string[], body: string): void {
    const res = this.#res
    if (res.headersSent || res.destroyed) return
    if (status !== 204) headers.push('content-length', `${Buffer.byteLength(body)}`)
    if (status >= 400 && mustLinger(this.#req)) lingerReply(this.#req, res, status, headers, body)
    else {
      if (this.endpoint.streams.closing) headers.push('connection', 'close')
      res.writeHead(status, headers)
      res.end(body)
      // A client that does not read must not hold a long answer for ever.
      if (res.writableLength > 0) cutWhenStalled(res, this.endpoint.limits.stallMs)
    }
  }

  open(headers: string[]): ResponseStream {
    if (this.endpoint.streams.closing) headers.push('connection', 'close')
    return new NodeResponseStream(this.#res, headers, this.endpoint.limits.stallMs, this.tenant)
  }

  onGone(fn: () => void): void {
    this.#res.once('close', fn)
  }

  protected check(anyOrigin: boolean): Refusal | undefined {
    return this.endpoint.guard.checkRequest(this.#req, anyOrigin)
  }

  protected admit(principal: Principal | undefined): Caller {
    this.principal = principal
    return this
  }

  /** If the caller disconnects before the end of the body, nothing is called. */
  protected read(): void {
    const limit = this.endpoint.limits.frameBytes
    if (this.#parsedBody !== undefined) return takeParsed(this.#parsedBody, limit, this)
    let first: Buffer | undefined
    let rest: Buffer[] | undefined
    let size = 0
    this.#req.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size > limit) {
        if (size - chunk.length <= limit) this.refuse(tooLarge(limit))
      } else if (first === undefined) first = chunk
      else if (rest === undefined) rest = [first, chunk]
      else rest.push(chunk)
    })
    this.#req.on('end', () => {
      if (size <= limit) decode(rest === undefined ? (first ?? nothing) : Buffer.concat(rest, size), this)
    })
  }

  protected send(download: Download): Promise<void> {
    return sendDownload(this.#res, download, this.endpoint.limits.stallMs)
  }
}

/** Bodies up to this size are read to their end after a refusal, so that the connection can be reused. */
const shortBody = 64 * 1024
/** Of longer bodies this much is read before the connection closes. */
const lingerBytes = 1024 * 1024
const lingerMs = 1_000

/** True if more than a short body may still arrive. */
function mustLinger(req: IncomingMessage): boolean {
  if (req.complete || req.httpVersionMajor !== 1) return false
  const length = req.headers['content-length']
  return length === undefined ? req.headers['transfer-encoding'] !== undefined : Number(length) > shortBody
}

/**
 * Refuses a request whose body is still being sent. Closing at once would reset the connection before the client has read the
 * answer.
 */
function lingerReply(req: IncomingMessage, res: ServerResponse, status: number, headers: string[], body: string): void {
  res.writeHead(status, [...headers, 'connection', 'close'])
  res.write(body)
  let left = lingerBytes
  const close = () => {
    clearTimeout(timer)
    if (!res.writableEnded) res.end()
  }
  const timer = setTimeout(close, lingerMs)
  timer.unref()
  req.on('data', (chunk: Buffer) => {
    left -= chunk.length
    // Only pause: a client that is still sending has not read its answer yet.
    if (left < 0) req.pause()
  })
  req.once('end', close)
  res.once('close', close)
}

// A body: counted as it arrives, checked as UTF-8, decoded once.

/** Receives the text of a body, or the refusal of it. */
interface BodyTaker {
  body(text: string): void
  refuse(refusal: Refusal): void
}

/** Takes a body that a framework has already read, as bytes, text or parsed JSON. */
function takeParsed(parsed: unknown, limit: number, taker: BodyTaker): void {
  const bytes = parsed instanceof Uint8Array ? Buffer.from(parsed.buffer, parsed.byteOffset, parsed.byteLength) : undefined
  const text = bytes === undefined ? asText(parsed) : undefined
  if ((bytes?.length ?? Buffer.byteLength(text ?? '')) > limit) taker.refuse(tooLarge(limit))
  else if (bytes !== undefined) decode(bytes, taker)
  else taker.body(text ?? '')
}

function asText(parsed: unknown): string {
  return typeof parsed === 'string' ? parsed : (JSON.stringify(parsed) ?? '')
}

function decode(bytes: Buffer, taker: BodyTaker): void {
  if (isUtf8(bytes)) taker.body(bytes.toString('utf8'))
  else taker.refuse(notUtf8)
}

const nothing = Buffer.alloc(0)
