/**
 * One HTTP request from its first check to its answer, independent of node:http and fetch: Host and Origin, preflights, identity,
 * then routing by method. `node.ts` and `fetch.ts` supply how a request is read and answered.
 */

import { callerAccount } from '../../core/accounts.ts'
import type { HttpRequestFacts } from '../../core/credentials.ts'
import type { Caller, Principal } from '../../jsonrpc/connection.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { isThenable } from '../../jsonrpc/message.ts'
import { type CallerDocument, type DocumentText, type Download, downloadName, refuseUnlessGet } from './document.ts'
import { type AuthenticateCaller, badOrigin, checkBody, type Endpoint, isRefusal } from './endpoint.ts'
import type { ResponseStream, StreamAccount } from './event-writer.ts'
import { HttpLane } from './lane.ts'
import { failed, type Refusal } from './refusal.ts'

/** One request and its answer. Headers of answers are flat lists of names and values. */
export abstract class HttpExchange implements HttpRequestFacts {
  protected readonly endpoint: Endpoint
  /** How callers are identified; undefined if all are let in as they are. */
  readonly #identifies: AuthenticateCaller | undefined
  /** The document that was requested in place of the endpoint. */
  #wanted: CallerDocument | undefined = undefined
  /** Set once the caller is admitted: before that it learns nothing about sessions. */
  #caller: Caller | undefined = undefined
  /** The revocation epoch at which the caller was identified. */
  #epoch: number | undefined = undefined
  #opened: HttpLane | undefined = undefined

  constructor(endpoint: Endpoint, identifies: AuthenticateCaller | undefined) {
    this.endpoint = endpoint
    this.#identifies = identifies
  }

  abstract readonly method: string | undefined
  abstract get url(): string
  /** The network address of the caller. */
  abstract get address(): string | undefined
  /** True when the caller has disconnected. */
  abstract get gone(): boolean
  abstract header(name: string): string | undefined
  abstract repeats(name: string): boolean
  /** Sends the complete answer. */
  abstract reply(status: number, headers: string[], body: string): void
  /** Starts an event stream as the answer. */
  abstract open(headers: string[]): ResponseStream
  /** Calls back when the caller disconnects before it was answered. */
  abstract onGone(fn: () => void): void
  /** Checks Host and, unless pages of any origin may read the answer, Origin. */
  protected abstract check(anyOrigin: boolean): Refusal | undefined
  /** The caller with this principal, at first and whenever it is identified again. */
  protected abstract admit(principal: Principal | undefined): Caller | Refusal
  /** Reads the body, then calls `body` or `refuse`. */
  protected abstract read(): void
  protected abstract send(download: Download): void | Promise<void>

  /** Serves what the path names: a public document, a document for callers, a download, or else the endpoint. */
  serve(path: string): void {
    const { authorizer, document, downloads } = this.endpoint
    const text = authorizer?.document(path)
    if (text !== undefined) return this.document(text)
    if (document !== undefined && path.endsWith(document.path)) return this.own(document)
    const name = downloadName(downloads, path)
    if (name === undefined) this.begin()
    else this.download(name)
  }

  /** Serves the endpoint. Checks in order: Host and Origin, preflight, identity, then routing. */
  begin(): void {
    const refusal = this.check(false)
    if (refusal !== undefined) this.refuse(refusal)
    else if (this.method === 'OPTIONS') this.#preflight()
    else if (this.#identifies === undefined) this.#identified(undefined, undefined)
    else this.#identify(this.#identifies, undefined)
  }

  /** Answers with a public document. Pages of any origin may read it, but the Host must be ours. */
  document(text: string): void {
    const answer = this.check(true) ?? documentAnswer(this.method, text)
    if ('message' in answer) this.refuse(answer)
    else this.reply(answer.status, answer.headers, answer.body)
  }

  /** Answers with a document for authorized callers, after the same checks as for any request. */
  own(document: CallerDocument): void {
    this.#wanted = document
    this.begin()
  }

  /** Answers with a download, which its signed address authorizes. */
  download(name: string): void {
    const { downloads } = this.endpoint
    const refusal = this.check(false)
    if (refusal !== undefined || downloads === undefined) return this.refuse(refusal ?? failed)
    downloads
      .open({ method: this.method ?? '', name, query: queryOf(this.url), header: each => this.header(each) })
      .then(found => this.send({ ...found, headers: [...found.headers, ...this.#cors()] }))
      .catch(() => this.refuse(failed))
  }

  /** The body was read. */
  body(text: string): void {
    // Tokens may have been revoked while the body was read.
    if (this.#identifies !== undefined && this.endpoint.authorizer?.epoch !== this.#epoch)
      return this.#identify(this.#identifies, text)
    const caller = this.#caller
    const lane = this.#lane
    try {
      if (caller !== undefined) this.endpoint.acceptor.deliver(text, caller, lane)
    } catch {
      lane.refuse(failed)
    }
  }

  refuse(refusal: Refusal): void {
    this.#lane.refuse(refusal)
  }

  /** The refusal with what an admitted caller may know, if its extensions support that. */
  explained(refusal: Refusal): Refusal {
    if (this.#caller === undefined) return refusal
    const { status, message, headers } = refusal
    const wait = headers?.['retry-after']
    const retryAfterMs = wait === undefined ? undefined : Number(wait) * 1000
    const data = this.endpoint.acceptor.refusalData?.(this.#caller, { status, message, retryAfterMs })
    return data === undefined ? refusal : { ...refusal, data }
  }

  /** Who the streams of this request are counted for, and until when they may stay open. */
  get tenant(): StreamAccount | undefined {
    if (this.#caller === undefined) return undefined
    const { principal } = this.#caller
    const account = callerAccount(this.#caller)
    if (principal === undefined) return { account, key: account, limit: undefined, expiresAt: undefined }
    const { authorizer } = this.endpoint
    const proof = {
      account,
      expiresAt: principal.expiresAt,
      ...(authorizer !== undefined && { holds: () => authorizer.holds(principal) }),
    }
    if (this.method === 'GET') return { key: `GET ${account}`, limit: 'streamsPerPrincipal', ...proof }
    return { key: `POST ${account}`, limit: 'answersPerPrincipal', ...proof }
  }

  /** Identifies the caller, at first and again with the body `text`. */
  #identify(identify: AuthenticateCaller, text: string | undefined): void {
    const found = attempt(identify, this)
    if (isThenable(found)) found.then(who => this.#identified(who, text)).then(undefined, () => this.refuse(failed))
    else this.#identified(found, text)
  }

  #identified(found: Principal | Refusal | undefined, text: string | undefined): void {
    if (found !== undefined && isRefusal(found)) {
      // A request without a token only asks where to get one, and is not reported.
      if (this.header('authorization') !== undefined) this.endpoint.onDenied?.(found.status, this.address)
      return this.refuse(found)
    }
    this.#epoch = this.endpoint.authorizer?.epoch
    const caller = this.admit(found)
    if ('status' in caller) return this.refuse(caller)
    this.#caller = caller
    if (text === undefined) this.#route(caller)
    else this.body(text)
  }

  #route(caller: Caller): void {
    const { acceptor } = this.endpoint
    if (this.#wanted !== undefined) this.#show(caller, this.#wanted).catch(() => this.refuse(failed))
    else if (this.method === 'POST') {
      const refusal = checkBody(this, this.endpoint.limits) ?? (this.#lane.takes === 0 ? acceptsNeither : undefined)
      if (refusal === undefined) this.read()
      else this.refuse(refusal)
    } else if (this.method === 'GET') this.#listen(caller)
    else if (this.method === 'DELETE') this.#orFail(() => acceptor.leave(caller, this.#lane))
    else this.refuse(wrongMethod(this.method))
  }

  #listen(caller: Caller): void {
    const lane = this.#lane
    const refusal = lane.answerOnly ? acceptsNoStream : this.endpoint.streams.refusal(this.tenant)
    if (refusal !== undefined) return lane.refuse(refusal)
    this.#orFail(() => {
      const listening = this.endpoint.acceptor.listen(caller, lane)
      if (!isThenable(listening)) return lane.open()
      listening.then(
        () => lane.open(),
        () => lane.refuse(failed),
      )
    })
  }

  #orFail(fn: () => void): void {
    try {
      fn()
    } catch {
      this.refuse(failed)
    }
  }

  async #show(caller: Caller, document: CallerDocument): Promise<void> {
    const refusal = refuseUnlessGet(this.method)
    if (refusal !== undefined) return this.refuse(refusal)
    const { status, headers, body } = ownAnswer(await document.read(caller), this.header('if-none-match'))
    this.reply(status, [...headers, ...this.#cors()], body)
  }

  #preflight(): void {
    const origin = this.header('origin')
    if (origin === undefined || this.header('access-control-request-method') === undefined)
      return this.refuse(wrongMethod('OPTIONS'))
    if (!this.endpoint.guard.lists(origin)) return this.refuse(badOrigin(origin))
    const headers = ['access-control-allow-origin', origin, 'access-control-allow-methods', 'GET, POST, DELETE']
    const names = this.header('access-control-request-headers')
    // Servers can define their own parameter headers, so any well-formed list of names is allowed.
    if (names !== undefined && names.length <= 2048 && headerNames.test(names))
      headers.push('access-control-allow-headers', names)
    headers.push('access-control-max-age', '600', 'vary', 'origin, access-control-request-headers')
    this.reply(204, headers, '')
  }

  get #lane(): HttpLane {
    const listening = this.method === 'GET' && !this.endpoint.answersOnGet
    const { streams, takes } = this.endpoint
    this.#opened ??= new HttpLane(this, streams, takes(this.header('accept')), this.#cors(), listening)
    return this.#opened
  }

  /** CORS headers that let a page read the answer; none for an origin that is not listed. */
  #cors(): readonly string[] {
    const origin = this.header('origin')
    if (origin === undefined || !this.endpoint.guard.lists(origin)) return noHeaders
    return ['access-control-allow-origin', origin, 'access-control-expose-headers', exposed, 'vary', 'origin']
  }
}

/** If identification throws, the request is refused. */
function attempt(identify: AuthenticateCaller, exchange: HttpExchange): ReturnType<AuthenticateCaller> {
  try {
    return identify(name => exchange.header(name), exchange)
  } catch {
    return failed
  }
}

/** A complete answer. */
interface DocumentAnswer {
  readonly status: number
  /** Flat: names and values. */
  readonly headers: string[]
  readonly body: string
}

const open = ['access-control-allow-origin', '*']
const allowed = 'GET, HEAD, OPTIONS'

/** The answer to a request for a public document; pages of any origin may read it. */
function documentAnswer(method: string | undefined, text: string): DocumentAnswer | Refusal {
  if (method === 'OPTIONS') {
    const headers = [...open, 'access-control-allow-methods', allowed, 'access-control-allow-headers', '*']
    return { status: 204, headers: [...headers, 'access-control-max-age', '600'], body: '' }
  }
  if (method === 'GET' || method === 'HEAD') {
    return { status: 200, headers: [...open, 'content-type', 'application/json', 'cache-control', 'max-age=300'], body: text }
  }
  return {
    status: 405,
    message: `Method ${clip(method ?? '')} is not allowed here. Read this document with GET`,
    headers: { allow: allowed },
  }
}

/** The answer with such a document. `knownTag`: the tags that the client has cached (If-None-Match). */
function ownAnswer({ text, tag, maxAgeMs, cacheScope }: DocumentText, knownTag: string | undefined): DocumentAnswer {
  const etag = `"${tag}"`
  const headers = ['etag', etag, 'cache-control', `${cacheScope}, max-age=${Math.floor(maxAgeMs / 1000)}`]
  const known = knownTag?.split(',').some(each => each.trim().replace(/^W\//, '') === etag || each.trim() === '*')
  if (known === true) return { status: 304, headers, body: '' }
  return { status: 200, headers: ['content-type', 'application/json', ...headers], body: text }
}

/** The query of an address. */
function queryOf(url: string): URLSearchParams {
  const at = url.indexOf('?')
  return new URLSearchParams(at === -1 ? '' : url.slice(at + 1))
}

const acceptsNeither: Refusal = {
  status: 406,
  message: 'The Accept header excludes every form of response. Accept application/json and text/event-stream',
}

const acceptsNoStream: Refusal = {
  status: 406,
  message: 'A GET opens an event stream. Accept text/event-stream, or send messages with POST',
}

function wrongMethod(method: string | undefined): Refusal {
  return {
    status: 405,
    message: `Method ${clip(method ?? '')} is not allowed here. Send messages with POST; GET opens a stream, DELETE ends a session`,
    headers: { allow: 'GET, POST, DELETE' },
  }
}

// CORS headers, for listed origins only. Credentials such as cookies are never allowed.

const exposed = 'mcp-session-id, mcp-protocol-version, www-authenticate, retry-after, ratelimit, ratelimit-policy'
const headerNames = /^[\w!#$%&'*+.^`|~-]+(?: *, *[\w!#$%&'*+.^`|~-]+)*$/
const noHeaders: readonly string[] = []
