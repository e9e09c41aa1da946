/**
 * One request on node:http: it is the caller, the receiver of the body and the face of the lane in one small object, since one
 * is created per request.
 */

import { isUtf8 } from 'node:buffer'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Entrance } from '../../core/credentials.ts'
import type { Caller, Principal } from '../../jsonrpc/connection.ts'
import { isThenable } from '../../jsonrpc/message.ts'
import { documentAnswer, notRead, type OwnDocument, ownAnswer, queryOf } from './document.ts'
import {
  acceptsNeither,
  checkBody,
  checkListen,
  corsHeaders,
  type Endpoint,
  type HeaderReader,
  type Identify,
  isRefusal,
  preflightHeaders,
  preflightRefusal,
  tenantOf,
  wrongMethod,
} from './endpoint.ts'
import { type Face, HttpLane } from './lane.ts'
import { cutWhenStalled, NodeOutlet, sendDownload } from './node-outlet.ts'
import type { StreamOutlet, Tenant } from './reader.ts'
import { explainedTo, failed, notUtf8, type Refusal, tooLarge } from './refusal.ts'

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

/** One request on node:http, and its answer. */
export class NodeExchange implements Caller, Face, BodyTaker, Entrance {
  readonly carrier = 'http'
  principal: Principal | undefined = undefined
  readonly connection: object
  readonly #endpoint: Endpoint
  readonly #req: IncomingMessage
  readonly #res: ServerResponse
  /** The document that was requested in place of the endpoint. */
  #wanted: OwnDocument | undefined = undefined
  /** Callers that were not admitted learn nothing about sessions. */
  #admitted = false
  /** The revocation epoch at which the caller was identified. */
  #epoch: number | undefined = undefined

  constructor(endpoint: Endpoint, req: IncomingMessage, res: ServerResponse) {
    this.#endpoint = endpoint
    this.#req = req
    this.#res = res
    this.connection = req.socket
  }

  /**
   * A method and not a closure per request: V8 treats closures stored in fields by a constructor as long-lived, and each would
   * keep its request alive until the next full collection.
   */
  header(name: string): string | undefined {
    const value = this.#req.headers[name]
    return typeof value === 'string' ? value : undefined
  }

  /** Checks the request in order: Host and Origin, preflight, identity, then routing. */
  begin(parsedBody: unknown): void {
    const { guard, identify } = this.#endpoint
    const refusal = guard.checkRequest(this.#req)
    if (refusal !== undefined) this.refuse(refusal)
    else if (this.#req.method === 'OPTIONS') this.#preflight()
    else if (identify === undefined) this.#route(parsedBody)
    else this.#identify(identify, () => this.#route(parsedBody))
  }

  get url(): string {
    return this.#req.url ?? ''
  }

  get address(): string | undefined {
    return this.#req.socket.remoteAddress
  }

  repeats(name: string): boolean {
    const { rawHeaders } = this.#req
    let count = 0
    for (let at = 0; at < rawHeaders.length; at += 2) if (rawHeaders[at]?.toLowerCase() === name) count++
    return count > 1
  }

  challenge(scopes: readonly string[]): Readonly<Record<string, string>> | undefined {
    return this.#endpoint.authorizer?.challenge(this.principal, scopes)
  }

  /** Answers with a public document. Pages of any origin may read it, but the Host must be ours. */
  document(text: string): void {
    const { headers, rawHeaders, method } = this.#req
    const refusal = this.#endpoint.guard.checkRequest({ headers: { ...headers, origin: undefined }, rawHeaders })
    const answer = refusal ?? documentAnswer(method, text)
    if ('message' in answer) this.refuse(answer)
    else this.reply(answer.status, answer.headers, answer.body)
  }

  /** Answers with a document for authorized callers, after the same checks as for any request. */
  own(document: OwnDocument): void {
    this.#wanted = document
    this.begin(undefined)
  }

  /** Answers with a download, which its signed address authorizes. */
  download(name: string): void {
    const { downloads, guard, limits } = this.#endpoint
    const refusal = guard.checkRequest(this.#req)
    if (refusal !== undefined || downloads === undefined) return this.refuse(refusal ?? failed)
    const header: HeaderReader = each => this.header(each)
    const extra = corsHeaders(guard, header('origin'))
    downloads
      .open({ method: this.#req.method ?? '', name, query: queryOf(this.url), header })
      .then(found => sendDownload(this.#res, { ...found, headers: [...found.headers, ...extra] }, limits.stallMs))
      .catch(() => this.refuse(failed))
  }

  body(text: string): void {
    const { identify, authorizer } = this.#endpoint
    // Tokens may have been revoked while the body was read.
    if (identify !== undefined && authorizer?.epoch !== this.#epoch) return this.#identify(identify, () => this.body(text))
    const lane = this.#lane()
    try {
      this.#endpoint.door.deliver(text, this, lane)
    } catch {
      lane.refuse(failed)
    }
  }

  badBody(refusal: Refusal): void {
    this.refuse(refusal)
  }

  refuse(refusal: Refusal): void {
    this.#lane().refuse(refusal)
  }

  explained(refusal: Refusal): Refusal {
    return this.#admitted ? explainedTo(this.#endpoint.door, this, refusal) : refusal
  }

  reply(status: number, headers: string[], body: string): void {
    const res = this.#res
    if (res.headersSent || res.destroyed) return
    if (status !== 204) headers.push('content-length', `${Buffer.byteLength(body)}`)
    if (status >= 400 && mustLinger(this.#req)) lingerReply(this.#req, res, status, headers, body)
    else {
      if (this.#endpoint.streams.closing) headers.push('connection', 'close')
      res.writeHead(status, headers)
      res.end(body)
      // A client that does not read must not hold a long answer for ever.
      if (res.writableLength > 0) cutWhenStalled(res, this.#endpoint.limits.stallMs)
    }
  }

  open(headers: string[]): StreamOutlet {
    if (this.#endpoint.streams.closing) headers.push('connection', 'close')
    const { stallMs } = this.#endpoint.limits
    return new NodeOutlet(this.#res, headers, stallMs, this.tenant)
  }

  get tenant(): Tenant | undefined {
    const { principal, connection } = this
    return tenantOf(this.#req.method, { principal, connection }, this.#endpoint.authorizer)
  }

  get gone(): boolean {
    return this.#res.destroyed || this.#req.socket.destroyed
  }

  onGone(fn: () => void): void {
    this.#res.once('close', fn)
  }

  #identify(identify: Identify, then: () => void): void {
    const found = attempt(identify, this)
    if (isThenable(found)) found.then(who => this.#identified(who, then)).then(undefined, () => this.refuse(failed))
    else this.#identified(found, then)
  }

  #identified(found: Principal | Refusal | undefined, then: () => void): void {
    if (found !== undefined && isRefusal(found)) {
      // A request without a token only asks where to get one, and is not reported.
      if (this.header('authorization') !== undefined) this.#endpoint.onDenied?.(found.status, this.#req.socket.remoteAddress)
      this.refuse(found)
    } else {
      this.principal = found
      this.#epoch = this.#endpoint.authorizer?.epoch
      then()
    }
  }

  #route(parsedBody: unknown): void {
    this.#admitted = true
    if (this.#wanted !== undefined) {
      this.#read(this.#wanted).catch(() => this.refuse(failed))
      return
    }
    switch (this.#req.method) {
      case 'POST':
        this.#post(parsedBody)
        break
      case 'GET':
        this.#listen()
        break
      case 'DELETE':
        this.#leave()
        break
      default:
        this.refuse(wrongMethod(this.#req.method))
    }
  }

  #post(parsedBody: unknown): void {
    const { limits } = this.#endpoint
    const refusal = checkBody(this, limits)
    if (refusal !== undefined) this.refuse(refusal)
    else if (this.#endpoint.takes(this.header('accept')) === 0) this.refuse(acceptsNeither)
    else if (parsedBody !== undefined) takeParsed(parsedBody, limits.frameBytes, this)
    else readBody(this.#req, limits.frameBytes, this)
  }

  #listen(): void {
    const lane = this.#lane()
    const refusal = checkListen(this.#endpoint, this.#endpoint.takes(this.header('accept')), this.tenant)
    if (refusal !== undefined) {
      lane.refuse(refusal)
      return
    }
    try {
      const listening = this.#endpoint.door.listen(this, lane)
      if (!isThenable(listening)) lane.open()
      else
        listening.then(
          () => lane.open(),
          () => lane.refuse(failed),
        )
    } catch {
      lane.refuse(failed)
    }
  }

  async #read(document: OwnDocument): Promise<void> {
    const refusal = notRead(this.#req.method)
    if (refusal !== undefined) return this.refuse(refusal)
    const { status, headers, body } = ownAnswer(await document.read(this), this.header('if-none-match'))
    const extra = corsHeaders(this.#endpoint.guard, this.header('origin'))
    this.reply(status, [...headers, ...extra], body)
  }

  #leave(): void {
    const lane = this.#lane()
    try {
      this.#endpoint.door.leave(this, lane)
    } catch {
      lane.refuse(failed)
    }
  }

  #preflight(): void {
    const wish = this.header('access-control-request-method')
    const names = this.header('access-control-request-headers')
    const headers = preflightHeaders(this.#endpoint.guard, this.header('origin'), wish, names)
    if (headers === undefined) this.refuse(preflightRefusal(this.header('origin'), wish) ?? wrongMethod('OPTIONS'))
    else this.reply(204, headers, '')
  }

  #lane(): HttpLane {
    const { guard, streams, takes, answersOnGet } = this.#endpoint
    const origin = this.header('origin')
    const extra = origin === undefined ? noHeaders : corsHeaders(guard, origin)
    return new HttpLane(this, streams, takes(this.header('accept')), extra, this.#req.method === 'GET' && !answersOnGet)
  }
}

const noHeaders: readonly string[] = []

/** If identification throws, the request is refused. */
function attempt(identify: Identify, exchange: NodeExchange): ReturnType<Identify> {
  try {
    return identify(name => exchange.header(name), exchange)
  } catch {
    return failed
  }
}

// Reads the body of a node:http request: counted as it arrives, checked as UTF-8, decoded once.

/** Receives the text of a body, or the refusal of it. */
interface BodyTaker {
  body(text: string): void
  badBody(refusal: Refusal): void
}

/** Reads the body. If the caller disconnects before its end, nothing is called. */
function readBody(req: IncomingMessage, limit: number, taker: BodyTaker): void {
  let first: Buffer | undefined
  let rest: Buffer[] | undefined
  let size = 0
  req.on('data', (chunk: Buffer) => {
    size += chunk.length
    if (size > limit) {
      if (size - chunk.length <= limit) taker.badBody(tooLarge(limit))
    } else if (first === undefined) first = chunk
    else if (rest === undefined) rest = [first, chunk]
    else rest.push(chunk)
  })
  req.on('end', () => {
    if (size <= limit) decode(rest === undefined ? (first ?? nothing) : Buffer.concat(rest, size), taker)
  })
}

/** Takes a body that a framework has already read, as bytes, text or parsed JSON. */
function takeParsed(parsed: unknown, limit: number, taker: BodyTaker): void {
  const bytes = parsed instanceof Uint8Array ? Buffer.from(parsed.buffer, parsed.byteOffset, parsed.byteLength) : undefined
  const text = bytes === undefined ? asText(parsed) : undefined
  if ((bytes?.length ?? Buffer.byteLength(text ?? '')) > limit) taker.badBody(tooLarge(limit))
  else if (bytes !== undefined) decode(bytes, taker)
  else taker.body(text ?? '')
}

function asText(parsed: unknown): string {
  return typeof parsed === 'string' ? parsed : (JSON.stringify(parsed) ?? '')
}

function decode(bytes: Buffer, taker: BodyTaker): void {
  if (isUtf8(bytes)) taker.body(bytes.toString('utf8'))
  else taker.badBody(notUtf8)
}

const nothing = Buffer.alloc(0)
