/**
 * The outbound guard: a `fetch` for addresses that a peer chose. It applies one deadline and the same address rules to every
 * hop of a request. `destination.ts` has the rules, `send.ts` (or `send.web.ts`) sends one hop.
 */
import { type Clock, type Duration, realClock, toMilliseconds } from '../../core/clock.ts'
import { unlessAborted } from '../../core/deadlines.ts'
import { type Outbound, OutboundError, type OutboundRequest } from '../../core/outbound.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { type Destination, displayUrl, readDestination, readRanges, refusedAddress } from './destination.ts'
import { type Answer, addressesOf, type Resolve, sendOnce } from './send.ts'

/** Statuses that have no body (https://fetch.spec.whatwg.org/#null-body-status). */
const bodiless = new Set([204, 205, 304])

/**
 * Makes the Response. `url` and `redirected` are set by hand: libraries read them, and a constructed Response leaves them
 * empty.
 */
function responseOf({ status, headers, body }: Answer, url: URL, redirected: boolean): Response {
  if (status < 200 || status > 599)
    throw new OutboundError('failed', `${displayUrl(url)} sent status ${status}, which is not an HTTP status`)
  // Cookies are neither stored nor exposed.
  headers.delete('set-cookie')
  const response = new Response(bodiless.has(status) ? null : body, { status, headers })
  Object.defineProperties(response, { url: { value: url.href }, redirected: { value: redirected } })
  return response
}

/** Options of requests to foreign addresses. */
export interface OutboundOptions {
  /** Whether http and https to this machine are allowed, for development. Default false. */
  readonly loopback?: boolean
  /** Private or special address ranges that are allowed nevertheless, for example `10.1.0.0/16`. Default: none. */
  readonly allow?: readonly string[]
  /** The timeout of a request, including name resolution, redirects and the body. Default 5 s. */
  readonly timeout?: Duration
  /** The most bytes of a response body. Default 64 KiB. */
  readonly maxBytes?: number
  /**
   * Whether bodies are returned as streams. `timeout` then applies to the response headers, and to each pause in the body.
   * Default false.
   */
  readonly stream?: boolean
  /** The most redirects. Default 3. */
  readonly maxRedirects?: number
  /** Additional certificate authorities, in PEM. Default: none. */
  readonly ca?: string
  /** Resolves names to addresses. Default: the resolver of the operating system. */
  readonly resolve?: Resolve
  /** For tests: timers. Default: the real clock. */
  readonly clock?: Clock
}

/**
 * A `fetch` for addresses that came from a peer.
 *
 * @example
 * const outbound = createOutbound()
 * const response = await outbound('https://example.com/.well-known/oauth-authorization-server')
 */
export function createOutbound(options: OutboundOptions = {}): Outbound {
  const { loopback = false, maxBytes = 65_536, maxRedirects = 3, ca, resolve, clock = realClock } = options
  const allowed = readRanges(options.allow ?? [])
  const timeoutMs = toMilliseconds(options.timeout ?? '5s', 'timeout')
  const idleMs = options.stream === true ? timeoutMs : undefined

  /** Sends one hop, to addresses that were checked. */
  async function reach(to: Destination, draft: Draft, signal: AbortSignal): Promise<Answer> {
    const addresses = await unlessAborted(addressesOf(to, resolve, allowed), signal)
    return sendOnce({ ...draft, to, addresses, signal, maxBytes, ca, idleMs })
  }

  /** Follows redirects, with the full check for each of them. */
  async function walk(url: string | URL, request: OutboundRequest, signal: AbortSignal): Promise<Response> {
    let draft = draftOf(request)
    let to = readDestination(url, loopback)
    for (let hops = 0; ; hops++) {
      const answer = await reach(to, draft, signal)
      const next = redirectOf(answer)
      if (next === undefined || draft.redirect === 'manual') return responseOf(answer, to.url, hops > 0)
      discard(answer)
      if (hops === maxRedirects)
        throw refusedAddress(to.url, `it is the ${hops + 1}th redirect in a row; the limit is ${maxRedirects}`)
      const from = to
      to = follow(next, from, draft, loopback)
      if (to.url.origin !== from.url.origin) draft = withoutSecrets(draft)
    }
  }

  return async (url, request = {}) => {
    request.signal?.throwIfAborted()
    const late = new AbortController()
    const cancel = clock.setTimeout(
      () => late.abort(new OutboundError('limit', `The response took longer than ${timeoutMs} ms; the request was cancelled`)),
      timeoutMs,
    )
    const signal = request.signal === undefined ? late.signal : AbortSignal.any([late.signal, request.signal])
    try {
      return await walk(url, request, signal)
    } finally {
      cancel()
    }
  }
}

/** Releases the connection of a body that nobody will read. */
function discard({ body }: Answer): void {
  if (body instanceof ReadableStream) body.cancel().catch(() => undefined)
}

const redirects = new Set([301, 302, 303, 307, 308])

function redirectOf({ status, headers }: Answer): string | undefined {
  return redirects.has(status) ? (headers.get('location') ?? undefined) : undefined
}

/** Checks a redirect like any other address. It must not lead from https to http, nor from another machine to this one. */
function follow(location: string, from: Destination, draft: Draft, loopback: boolean): Destination {
  if (draft.redirect === 'error') throw refusedAddress(from.url, 'it redirects, and redirects are disabled for this request')
  if (draft.method !== 'GET' && draft.method !== 'HEAD')
    throw refusedAddress(from.url, `it redirects ${draft.method}, but only GET and HEAD follow redirects; give the final address`)
  if (!URL.canParse(location, from.url)) throw refusedAddress(from.url, 'it redirects to an address that is not a valid URL')
  const to = readDestination(new URL(location, from.url), loopback)
  if (from.secure && !to.secure) throw refusedAddress(to.url, `${displayUrl(from.url)} redirects from https to plain http`)
  if (to.loopback && !from.loopback)
    throw refusedAddress(to.url, 'another machine redirects to it, and it is an address of this machine')
  return to
}

/** A request after its method, headers and body were checked. */
interface Draft {
  readonly method: string
  readonly headers: Headers
  readonly body: Uint8Array | undefined
  readonly redirect: 'follow' | 'manual' | 'error'
}

const methods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'])

/** Headers that control the connection, the framing or the host name are set by the guard alone. */
const own =
  /^(host|connection|content-length|transfer-encoding|accept-encoding|cookie2?|te|trailer|upgrade|expect|keep-alive|proxy-.*)$/

/** Headers that are kept when a redirect leads to another origin. */
const harmless = new Set(['accept', 'accept-language', 'mcp-protocol-version', 'user-agent'])

/** Checks what the caller wants to send. */
function draftOf({ method = 'GET', headers, body, redirect = 'follow' }: OutboundRequest): Draft {
  const verb = method.toUpperCase()
  if (!methods.has(verb))
    throw new OutboundError('refused', `The method ${clip(method)} is refused: use ${[...methods].join(', ')}`)
  const list = new Headers(headers)
  for (const name of list.keys())
    if (own.test(name))
      throw new OutboundError('refused', `The header ${clip(name)} is refused: it is set automatically; remove it`)
  const bytes = body === undefined || body === null ? undefined : bytesOf(body, list)
  if (bytes !== undefined && (verb === 'GET' || verb === 'HEAD'))
    throw new OutboundError('refused', `A ${verb} with a body is refused: remove the body, or use POST`)
  return { method: verb, headers: list, body: bytes, redirect }
}

/** For another origin: only headers that cannot be credentials. */
function withoutSecrets(draft: Draft): Draft {
  return { ...draft, headers: new Headers([...draft.headers].filter(([name]) => harmless.has(name))) }
}

function bytesOf(body: string | URLSearchParams | Uint8Array, headers: Headers): Uint8Array {
  if (body instanceof Uint8Array) return body
  if (body instanceof URLSearchParams && !headers.has('content-type'))
    headers.set('content-type', 'application/x-www-form-urlencoded;charset=UTF-8')
  return new TextEncoder().encode(String(body))
}
