/** What both faces and the old pair share: one door, its guard, limits and streams, and the checks in their order. */
import type { Authorizer, Entrance, HeaderReader } from '../../core/credentials.ts'
import { callerAccount } from '../../core/occupancy.ts'
import type { Caller, CarrierRefusal, Connection, Principal } from '../../jsonrpc/connection.ts'
import { clip } from '../../jsonrpc/limits.ts'
import type { Awaitable } from '../../jsonrpc/message.ts'
import type { Downloads, OwnDocument } from './document.ts'
import { createGuard, type Guard, type GuardOptions } from './guard.ts'
import type { HttpLane } from './lane.ts'
import { type HttpLimits, httpLimits } from './limits.ts'
import type { Tenant } from './outlet.ts'
import { type Refusal, tooLarge } from './refusal.ts'
import { Streams } from './streams.ts'

export type { HeaderReader } from '../../core/credentials.ts'

/** Finds out who calls; refuses by an HTTP status (401, 403). Called after the guard and before everything else. */
export type Identify = (header: HeaderReader, entrance: Entrance) => Awaitable<Principal | Refusal | undefined>

export interface HttpOptions extends GuardOptions {
  /** Sizes, waits and counts of the listener that are to differ from the defaults. */
  readonly limits?: Partial<HttpLimits>
  /** Finds out who calls, before anything is read. */
  readonly identify?: Identify
  /** The same with what belongs to it: challenges, and the document that says where tokens are had. */
  readonly authorizer?: Authorizer
  /** Told of each request whose token is not taken: by which status, and from which address. */
  readonly onDenied?: ((status: number, address: string | undefined) => void) | undefined
  /** A document beside the endpoint, for whoever may call. */
  readonly document?: OwnDocument | undefined
  /** Contents beside the endpoint, by signed addresses. */
  readonly downloads?: Downloads | undefined
  /** Share one table between several faces of a server; the caps then hold for all of them together. */
  readonly streams?: Streams
}

/** A door that may use what lanes over HTTP can do beyond others; every door is one. */
export interface HttpDoor {
  deliver(text: string, caller: Caller, reply: HttpLane): void
  listen(caller: Caller, lane: HttpLane): Awaitable<void>
  leave(caller: Caller, reply: HttpLane): void
  accept(connection: Connection): void
  refusalData?(caller: Caller, refusal: CarrierRefusal): unknown
}

/** Immutable: what changes in the life of a server is in its streams. */
export interface Endpoint {
  readonly door: HttpDoor
  readonly guard: Guard
  readonly limits: HttpLimits
  readonly streams: Streams
  readonly identify: Identify | undefined
  readonly authorizer: Authorizer | undefined
  readonly onDenied: HttpOptions['onDenied']
  readonly document: OwnDocument | undefined
  readonly downloads: Downloads | undefined
  /** What the Accept header lets through, remembering the last one: callers seldom change theirs. */
  readonly takes: (accept: string | undefined) => number
  /** Where answers come on the stream that a GET opened (the pair of 2024-11-05), it is no mere listener. */
  readonly answersOnGet: boolean
}

export function createEndpoint(door: HttpDoor, options: HttpOptions = {}): Endpoint {
  const limits = { ...httpLimits, ...options.limits }
  const { authorizer } = options
  let lastAccept: string | undefined
  let lastTakes = takes(undefined)
  return {
    door,
    guard: createGuard(options),
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

export function isRefusal(found: Principal | Refusal): found is Refusal {
  return 'status' in found
}

/** Checks what a POST says about its body, before any of it is read. */
export function checkBody(request: { header: HeaderReader }, limits: HttpLimits): Refusal | undefined {
  const type = request.header('content-type')
  if (!isJson(type)) return wrongType(type)
  const encoding = request.header('content-encoding')
  if (encoding !== undefined && encoding !== 'identity') {
    return { status: 415, message: `Content-Encoding ${clip(encoding)} is not accepted. Send the body uncompressed` }
  }
  const length = request.header('content-length')
  return length !== undefined && Number(length) > limits.frameBytes ? tooLarge(limits.frameBytes) : undefined
}

function wrongType(type: string | undefined): Refusal {
  const found = type === undefined ? 'no Content-Type' : `Content-Type ${clip(type)}`
  return { status: 415, message: `The body has ${found}. Send application/json in UTF-8` }
}

/** Checks that an event stream can be opened for a GET. */
export function checkListen(endpoint: Endpoint, accepted: number, tenant: Tenant | undefined): Refusal | undefined {
  if ((accepted & takesStream) === 0) {
    return { status: 406, message: 'A GET opens an event stream. Accept text/event-stream, or send messages by POST' }
  }
  return endpoint.streams.refusal(tenant)
}

/** Whose streams those are that a request of this method opens, and until when they may stay open. */
export function tenantOf(
  method: string | undefined,
  caller: Pick<Caller, 'principal' | 'connection'>,
  authorizer: Authorizer | undefined,
): Tenant {
  const account = callerAccount({ ...caller, carrier: 'http' })
  const { principal } = caller
  if (principal === undefined) return { account, key: account, limit: undefined, expiresAt: undefined }
  const proof = {
    account,
    expiresAt: principal.expiresAt,
    ...(authorizer !== undefined && { holds: () => authorizer.holds(principal) }),
  }
  if (method === 'GET') return { key: `GET ${account}`, limit: 'streamsPerPrincipal', ...proof }
  return { key: `POST ${account}`, limit: 'answersPerPrincipal', ...proof }
}

export const acceptsNeither: Refusal = {
  status: 406,
  message: 'The Accept header excludes every form of answer. Accept application/json and text/event-stream',
}

export function wrongMethod(method: string | undefined): Refusal {
  return {
    status: 405,
    message: `Method ${clip(method ?? '')} is not served here. Send messages by POST; GET opens a stream, DELETE ends a session`,
    headers: { allow: 'GET, POST, DELETE' },
  }
}

// Content-Type and Accept by parsed media type: a substring match would let a browser form through as JSON.

/** Bits of what a caller takes. */
export const takesJson = 1
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

/** Which of JSON and event streams the Accept header lets through; without one, both. */
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

/** The most specific range decides (RFC 9110 §12.5.1), so that a wildcard does not undo an exclusion. */
function admits(ranges: readonly Range[], type: string, subtype: string): boolean {
  for (const name of [`${type}/${subtype}`, `${type}/*`, '*/*']) {
    const range = ranges.find(candidate => candidate.type === name)
    if (range !== undefined) return range.weight > 0
  }
  return false
}
