/**
 * One outbound request by the platform's `fetch`, for browsers and Workers: no cookies, and redirects are returned, not
 * followed. Replaces `send.ts`, which needs sockets and DNS.
 */

import { OutboundError } from '../../core/outbound.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { boundedBody } from './body.ts'
import { addressFault, type Destination, displayUrl, type Ranges, refusedAddress } from './destination.ts'
import type { Answer, Hop, Resolve } from './send.ts'

/** Sends one request. Rejects with the reason of the signal if that aborts. */
export async function sendOnce(hop: Hop): Promise<Answer> {
  const { to, signal, idleMs } = hop
  if (hop.ca !== undefined)
    throw new OutboundError('refused', 'The option ca works only on Node; this platform uses its own certificate authorities')
  const over = new AbortController()
  const response = await fetch(to.url, initOf(hop, AbortSignal.any([signal, over.signal]))).catch((cause: unknown) => {
    throw signal.aborted ? signal.reason : failure(to, cause)
  })
  if (response.type === 'opaqueredirect')
    throw new OutboundError(
      'failed',
      `${displayUrl(to.url)} redirects, and browsers do not reveal the target; give the final address`,
    )
  const headers = new Headers(response.headers)
  // The platform has already decompressed the body; with these headers, libraries would do it again.
  for (const name of ['content-encoding', 'content-length']) headers.delete(name)
  const chunks = (response.body ?? new Blob([]).stream()).getReader()
  const stop = (): void => {
    over.abort()
    chunks.cancel().catch(() => undefined)
  }
  const body = boundedBody(hop, { read: async () => (await chunks.read()).value, stop, failure })
  if (idleMs !== undefined) return { status: response.status, headers, body }
  return { status: response.status, headers, body: new Uint8Array(await new Response(body).arrayBuffer()) }
}

/** Workers have no cookies and reject the option `credentials`. */
const withoutCookies: RequestInit = 'credentials' in Request.prototype ? { credentials: 'omit' } : {}

/** The options for `fetch`. */
function initOf({ method, headers, body }: Hop, signal: AbortSignal): RequestInit {
  return {
    method,
    headers,
    signal,
    redirect: 'manual',
    ...withoutCookies,
    ...(body === undefined ? {} : { body: new Blob([body as BlobPart]) }),
  }
}

/** The error for a request without an answer. */
function failure(to: Destination, cause: unknown): OutboundError {
  const why = cause instanceof Error ? cause.message : 'the connection ended without a response'
  return new OutboundError('failed', `${displayUrl(to.url)} did not respond: ${clip(why)}`, cause)
}

// The platform resolves names itself and does not reveal the address, so an address can only be refused by how it is written.
// In a browser, requests come from the page's own network; Workers reach only public addresses.

/** Single labels and endings that no public name has (RFC 6761, RFC 6762, RFC 8375 and ICANN's private names). */
const inside = /^[^.]+$|\.(local|internal|home\.arpa|lan|corp|home|test|invalid|onion)$/

/**
 * Throws if the destination is not allowed. The list is always empty, since the platform resolves the name when it connects.
 */
export async function addressesOf(to: Destination, resolve: Resolve | undefined, allowed: Ranges): Promise<readonly string[]> {
  if (to.loopback) return []
  if (!to.literal && inside.test(to.host))
    throw refusedAddress(to.url, 'its host name is not public; only public addresses are allowed')
  const addresses = to.literal ? [to.host] : await resolve?.(to.host)
  for (const address of addresses ?? []) {
    const fault = addressFault(address, allowed)
    if (fault !== undefined) throw refusedAddress(to.url, `it is ${fault}; only public addresses are allowed`)
  }
  return []
}
