/**
 * The client wire over a web-standard `fetch`, for runtimes other than Node and for callers who pass their own. It imports
 * nothing of Node. The platform decompresses bodies; limits count the decompressed bytes.
 */
import { ConnectionError } from '../../jsonrpc/connection.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { unreachableError } from '../unreachable.ts'
import { type AnswerReader, asConnectionError, type HttpWire, type WireCall, type WireRequest } from './client-wire.ts'

/** The standard `fetch`, or a function with the same signature. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>

/** A wire to the origin of `url`. */
export function fetchWire(url: URL, fetch: Fetch): HttpWire {
  return {
    send: (request, reader) => new FetchCall(`${url.origin}${request.path}`, fetch, request, reader),
    close: () => undefined,
  }
}

/** One request by `fetch`. */
class FetchCall implements WireCall {
  readonly #abort = new AbortController()
  readonly #reader: AnswerReader

  constructor(url: string, fetch: Fetch, request: WireRequest, reader: AnswerReader) {
    this.#reader = reader
    queueMicrotask(() => void this.#run(url, fetch, request))
  }

  drop(): void {
    this.#abort.abort()
  }

  async #run(url: string, fetch: Fetch, request: WireRequest): Promise<void> {
    const { signal } = this.#abort
    try {
      const { method, headers, body = null } = request
      const response = await fetch(url, { method, headers: pairs(headers), body, signal, redirect: 'manual', cache: 'no-store' })
      if (signal.aborted) return
      if (response.type === 'opaqueredirect')
        throw new ConnectionError('status', 'The server redirects. Redirects are not followed; connect to the final address')
      this.#reader.head(response.status, response.headers)
      if (response.body !== null) await this.#read(response.body)
      if (!signal.aborted) this.#reader.end()
    } catch (thrown) {
      if (!signal.aborted) this.#reader.fail(translate(thrown, url))
    }
  }

  async #read(body: ReadableStream<Uint8Array>): Promise<void> {
    const reader = body.getReader()
    // Not every `fetch` passed by a caller ends the body when the signal aborts.
    this.#abort.signal.addEventListener('abort', () => void reader.cancel().catch(() => undefined), { once: true })
    for (;;) {
      const { done, value } = await reader.read()
      if (done || this.#abort.signal.aborted) return
      this.#reader.chunk(value)
    }
  }
}

function pairs(flat: readonly string[]): [string, string][] {
  const list: [string, string][] = []
  for (let at = 0; at + 1 < flat.length; at += 2) list.push([flat[at] as string, flat[at + 1] as string])
  return list
}

/** Error codes, on runtimes that have them, of failures before the request was sent. */
const neverLeft = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'UND_ERR_CONNECT_TIMEOUT'])

function translate(thrown: unknown, url: string): ConnectionError {
  if (thrown instanceof ConnectionError) return asConnectionError(thrown)
  const cause = thrown instanceof Error && thrown.cause instanceof Error ? thrown.cause : thrown
  const code = cause instanceof Error && 'code' in cause && typeof cause.code === 'string' ? cause.code : undefined
  const why = code ?? clip(thrown instanceof Error ? thrown.message : String(thrown))
  return code !== undefined && neverLeft.has(code)
    ? unreachableError(new URL(url), code, why, thrown)
    : new ConnectionError('lost', `The request failed (${why}); it is unknown whether the server ran it${hint(url)}`, {
        cause: thrown,
      })
}

/** Browsers hide the reason: a request blocked by CORS looks like an unreachable server. */
function hint(url: string): string {
  const page: unknown = globalThis.location?.origin
  if (typeof page !== 'string' || page === new URL(url).origin) return ''
  return `. If the server is running, it may not allow this page (CORS): add ${clip(page)} to its option origins`
}
