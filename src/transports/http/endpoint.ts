/**
 * What all HTTP carriers of one server share: the door to the engine, the limits and streams, and the checks before a message
 * is read, namely Host and Origin, and content types. Independent of node:http and fetch.
 */

import type { Authorizer, HeaderReader, HttpRequestFacts } from '../../core/credentials.ts'
import type { Caller, CarrierRefusal, Connection, Principal } from '../../jsonrpc/connection.ts'
import { clip } from '../../jsonrpc/limits.ts'
import type { Awaitable } from '../../jsonrpc/message.ts'
import type { CallerDocument, Downloads } from './document.ts'
import type { HttpLane } from './lane.ts'
import { type HttpLimits, httpLimits } from './limits.ts'
import { authority, checkNames, type GuardNames } from './names.ts'
import { type Refusal, tooLarge } from './refusal.ts'
import { Streams } from './streams.ts'

/** Identifies the caller, or refuses with an HTTP status (401, 403). Called after the guard and before everything else. */
export type AuthenticateCaller = (header: HeaderReader, entrance: HttpRequestFacts) => Awaitable<Principal | Refusal | undefined>

/** Options of HTTP carriers. */
export interface HttpOptions extends GuardOptions {
  /** Limits that differ from the defaults. */
  readonly limits?: Partial<HttpLimits>
  /** Identifies the caller before anything is read. */
  readonly identify?: AuthenticateCaller
  /** Identifies callers, and supplies challenges and the metadata document that names the authorization server. */
  readonly authorizer?: Authorizer
  /** Called for each request whose token is refused, with the status and the address of the caller. Default: not called. */
  readonly onDenied?: ((status: number, address: string | undefined) => void) | undefined
  /** A document beside the endpoint, for authorized callers. */
  readonly document?: CallerDocument | undefined
  /** Downloads beside the endpoint, by signed address. */
  readonly downloads?: Downloads | undefined
  /** Share the streams of several carriers, so that the limits apply to all of them together. */
  readonly streams?: Streams
}

/** The entrance to the engine for HTTP, with lanes that can do more than those of other carriers. */
export interface HttpAcceptor {
  deliver(text: string, caller: Caller, reply: HttpLane): void
  listen(caller: Caller, lane: HttpLane): Awaitable<void>
  leave(caller: Caller, reply: HttpLane): void
  accept(connection: Connection): void
  refusalData?(caller: Caller, refusal: CarrierRefusal): unknown
}

/** The shared, immutable state of the carriers. What changes over time is in `streams`. */
export interface Endpoint {
  readonly acceptor: HttpAcceptor
  readonly guard: Guard
  readonly limits: HttpLimits
  readonly streams: Streams
  readonly identify: AuthenticateCaller | undefined
  readonly authorizer: Authorizer | undefined
  readonly onDenied: HttpOptions['onDenied']
  readonly document: CallerDocument | undefined
  readonly downloads: Downloads | undefined
  /** What the Accept header allows. The last result is cached, since clients rarely change the header. */
  readonly takes: (accept: string | undefined) => number
  /** True for HTTP+SSE, where answers arrive on the stream that a GET opened. */
  readonly answersOnGet: boolean
}

/** Makes the endpoint of a server. */
export function createEndpoint(acceptor: HttpAcceptor, options: HttpOptions = {}): Endpoint {
  const limits = { ...httpLimits, ...options.limits }
  const { authorizer } = options
  let lastAccept: string | undefined
  let lastTakes = takes(undefined)
  return {
    acceptor,
    guard: new Guard(options),
    limits,
    streams: options.streams ?? new Streams({ limits }),
    identify: options.identify ?? authorizer?.identify.bind(authorizer),
    authorizer,
    onDenied: options.onDenied,
    document: options.document,
    downloads: options.downloads,
    takes(accept) {
      if (accept !== lastAccept) {
        lastTakes = takes(accept)
        lastAccept = accept
      }
      return lastTakes
    },
    answersOnGet: false,
  }
}

/** True if identification refused the request. */
export function isRefusal(found: Principal | Refusal): found is Refusal {
  return 'status' in found
}

/** Checks the headers of a POST before its body is read. */
export function checkBody(request: { header: HeaderReader }, limits: HttpLimits): Refusal | undefined {
  const type = request.header('content-type')
  if (!isJson(type)) return wrongType(type)
  const encoding = request.header('content-encoding')
  if (encoding !== undefined && encoding !== 'identity') {
    return { status: 415, message: `Content-Encoding ${clip(encoding)} is not supported. Send the body uncompressed` }
  }
  const length = request.header('content-length')
  return length !== undefined && Number(length) > limits.frameBytes ? tooLarge(limits.frameBytes) : undefined
}

function wrongType(type: string | undefined): Refusal {
  const found = type === undefined ? 'no Content-Type' : `Content-Type ${clip(type)}`
  return { status: 415, message: `The body has ${found}. Send application/json in UTF-8` }
}

// Content-Type and Accept, by parsed media type: a substring match would accept a browser form as JSON.

/** Bit: the caller accepts JSON. */
export const takesJson = 1
/** Bit: the caller accepts event streams. */
export const takesStream = 2

/** True for `application/json`, alone or with a UTF-8 charset. */
export function isJson(contentType: string | undefined): boolean {
  if (contentType === 'application/json') return true
  if (contentType === undefined) return false
  const [type, ...parameters] = contentType.toLowerCase().split(';')
  return type?.trim() === 'application/json' && parameters.every(isHarmless)
}

function isHarmless(parameter: string): boolean {
  const [name, value] = parameter.split('=')
  return name?.trim() !== 'charset' || /^"?utf-?8"?$/.test(value?.trim() ?? '')
}

/** The bits that an Accept header allows; without the header, both. */
export function takes(accept: string | undefined): number {
  if (accept === undefined || accept.trim() === '' || accept === '*/*') return takesJson | takesStream
  const ranges = accept.toLowerCase().split(',').map(readRange)
  return (admits(ranges, 'application', 'json') ? takesJson : 0) | (admits(ranges, 'text', 'event-stream') ? takesStream : 0)
}

interface Range {
  readonly type: string
  readonly weight: number
}

function readRange(text: string): Range {
  const [type, ...parameters] = text.split(';')
  const quality = parameters.map(part => part.trim()).find(part => part.startsWith('q='))
  const weight = quality === undefined ? 1 : Number(quality.slice(2))
  return { type: type?.trim() ?? '', weight: Number.isNaN(weight) ? 0 : weight }
}

/** The most specific range decides (RFC 9110 §12.5.1), so that a wildcard does not override an exclusion. */
function admits(ranges: readonly Range[], type: string, subtype: string): boolean {
  for (const name of [`${type}/${subtype}`, `${type}/*`, '*/*']) {
    const range = ranges.find(candidate => candidate.type === name)
    if (range !== undefined) return range.weight > 0
  }
  return false
}

// Host and Origin checks against DNS rebinding: they keep web pages from calling a local server through the visitor's browser.
// On by default on every listener, before anything else of a request is examined.

/** The hosts and origins that a listener accepts. */
interface GuardOptions extends GuardNames {
  /** The address to listen at. A name or a single address is also accepted as `Host` header; a wildcard address is not. */
  readonly host?: string
}

/** The parts of a request that the guard examines; a node:http request has them. */
interface GuardedRequest {
  readonly headers: {
    readonly host?: string | undefined
    readonly origin?: string | undefined
    readonly [name: string]: string | string[] | undefined
  }
  /** Names and values as received: only here a second Host header is visible. */
  readonly rawHeaders: readonly string[]
}

const webOrigin = /^https?:\/\/(.+)$/
const loopback: readonly string[] = ['localhost', '127.0.0.1', '[::1]']
const wildcardBinds: readonly string[] = ['0.0.0.0', '::', '']

/** Checks Host and Origin; without options it accepts loopback names only. */
export class Guard {
  readonly #hosts: ReadonlySet<string>
  readonly #origins: ReadonlySet<string>
  /** Clients send the same Host with every request, so the last accepted one is remembered. */
  #lastGoodHost: string | undefined = undefined

  constructor(options: GuardOptions = {}) {
    checkNames(options)
    const hosts = new Set([...loopback, ...(options.hosts ?? []).map(name => name.toLowerCase())])
    if (options.host !== undefined && !wildcardBinds.includes(options.host)) hosts.add(bracketed(options.host.toLowerCase()))
    this.#hosts = hosts
    this.#origins = new Set((options.origins ?? []).map(origin => origin.toLowerCase().replace(/\/$/, '')))
  }

  /** Returns the refusal, or undefined if the request may pass. */
  check(host: string | undefined, origin: string | undefined): Refusal | undefined {
    if (host === undefined || host !== this.#lastGoodHost) {
      const refusal = checkHost(host, this.#hosts)
      if (refusal !== undefined) return refusal
      this.#lastGoodHost = host
    }
    return origin === undefined || this.lists(origin) || isLoopbackOrigin(origin) ? undefined : badOrigin(origin)
  }

  /** The same for a node:http request, upgrade requests included. `anyOrigin`: only the host is checked. */
  checkRequest({ headers, rawHeaders }: GuardedRequest, anyOrigin = false): Refusal | undefined {
    if (countHosts(rawHeaders) > 1) return twoHosts
    return this.check(headers.host ?? single(headers[':authority']), anyOrigin ? undefined : headers.origin)
  }

  /** True for an origin in the option `origins`: its pages may read answers. */
  lists(origin: string): boolean {
    return this.#origins.size > 0 && (this.#origins.has('*') || this.#origins.has(origin.toLowerCase()))
  }
}

function checkHost(host: string | undefined, allowed: ReadonlySet<string>): Refusal | undefined {
  if (host === undefined || host === '') {
    return { status: 400, message: 'The request has no Host header. Send one (RFC 9112 §3.2)' }
  }
  if (host.includes(',')) return twoHosts
  if (allowed.has('*')) return undefined
  const parts = authority.exec(host.toLowerCase())
  if (parts !== null && (allowed.has(parts[1] ?? '') || allowed.has(parts[0]))) return undefined
  return {
    status: 403,
    message: `Host ${clip(host)} is not allowed. Use a loopback name, or add the name to the option hosts (vivarium serve: --hosts)`,
  }
}

const twoHosts: Refusal = { status: 400, message: 'The request has more than one Host header. Send exactly one (RFC 9112 §3.2)' }

/** The refusal of an origin that is not listed; names the option that would allow it. */
export function badOrigin(origin: string): Refusal {
  return {
    status: 403,
    message: `This origin is not allowed to call the server (CORS). To allow it, give listen, fetchWith or the adapter the option origins: ['${clip(origin)}']`,
  }
}

function isLoopbackOrigin(origin: string): boolean {
  const host = webOrigin.exec(origin.toLowerCase())?.[1]
  const parts = host === undefined ? null : authority.exec(host)
  return parts !== null && loopback.includes(parts[1] ?? '')
}

/** Counts Host headers. Compares the length first: few other names have four letters. */
function countHosts(rawHeaders: readonly string[]): number {
  let count = 0
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]
    if (name?.length === 4 && (name === 'Host' || name === 'host' || name.toLowerCase() === 'host')) count++
  }
  return count
}

function bracketed(host: string): string {
  return host.includes(':') && !host.startsWith('[') ? `[${host}]` : host
}

function single(value: string | string[] | undefined): string | undefined {
  return typeof value === 'string' ? value : undefined
}
