/**
 * One outbound request on Node, to addresses that were checked before, and its answer, as bytes or as a stream. It uses no
 * proxy, no cookies and no kept-alive socket, and resolves a name only once, so that the checked address is the one connected
 * to.
 */

import { lookup } from 'node:dns/promises'
import http from 'node:http'
import https from 'node:https'
import { isIP, type LookupFunction } from 'node:net'
import { getCACertificates } from 'node:tls'
import { joinBytes } from '../../core/base64.ts'
import { OutboundError } from '../../core/outbound.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { releaseBuffer } from '../../stores/blobs.ts'
import { answerTooLarge, boundedBody } from './body.ts'
import { addressFault, type Destination, displayUrl, isOwnName, type Ranges, refusedAddress } from './destination.ts'

/** One request to one destination, without redirects. */
export interface Hop {
  readonly to: Destination
  /** The checked addresses of the destination; no others are connected to. */
  readonly addresses: readonly string[]
  readonly method: string
  readonly headers: Headers
  readonly body: Uint8Array | undefined
  /** Aborts at the deadline, or when the caller gives up. */
  readonly signal: AbortSignal
  readonly maxBytes: number
  /** Additional certificate authorities, in PEM. */
  readonly ca: string | undefined
  /** Set if the body is wanted as a stream: the longest pause within it. */
  readonly idleMs: number | undefined
}

/** The answer, with its body as bytes or as a stream. */
export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly body: Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array<ArrayBuffer>>
}

/** Sends one request. Rejects with the reason of the signal if that aborts. */
export function sendOnce(hop: Hop): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>()
  const { to, signal, body } = hop
  signal.throwIfAborted()
  const request = open(hop)
  const bufferReleaser = hop.idleMs === undefined ? undefined : new BufferReleaser(request)
  const stop = (): void => void request.destroy()
  const settle = <T>(give: (value: T) => void) => {
    return (value: T): void => {
      signal.removeEventListener('abort', stop)
      give(value)
      request.destroy()
    }
  }
  const give = (answer: Answer): void => {
    // The body is still being read: its reader or the signal ends the request.
    if (answer.body instanceof ReadableStream) resolve(answer)
    else settle(resolve)(answer)
  }
  const fail = settle(reject)
  const lost = (cause?: unknown): void => fail(signal.aborted ? signal.reason : failure(to, cause))
  signal.addEventListener('abort', stop, { once: true })
  request.on('error', lost)
  // A protocol switch closes the request without a response or an error. Failures within an answer are reported by its body.
  let answered = false
  request.on('close', () => {
    if (!answered) lost()
  })
  request.on('response', response => {
    answered = true
    read(response, hop, bufferReleaser).then(give, error => (error instanceof OutboundError ? fail(error) : lost(error)))
  })
  request.end(body)
  return promise
}

/** Opens the request with a lookup that returns only the checked addresses. */
function open({ to, addresses, method, headers, body, ca }: Hop): http.ClientRequest {
  const pinned: LookupFunction = (_name, options, callback) => {
    const all = addresses.map(address => ({ address, family: isIP(address) }))
    if (options.all === true) callback(null, all)
    else callback(null, all[0]?.address ?? '', all[0]?.family)
  }
  const options = {
    host: to.host,
    port: to.port,
    path: to.url.pathname + to.url.search,
    method,
    lookup: pinned,
    headers: { ...Object.fromEntries(headers), ...own(to, body) },
    maxHeaderSize: 16_384,
    insecureHTTPParser: false,
  }
  // Own agents: the global ones may use a proxy from the environment, and keep sockets alive.
  if (!to.secure) return http.request({ ...options, agent: new http.Agent({ keepAlive: false }) })
  return https.request({
    ...options,
    agent: new https.Agent({ keepAlive: false, maxCachedSessions: 0 }),
    // Explicit, since NODE_TLS_REJECT_UNAUTHORIZED can turn the default off.
    rejectUnauthorized: true,
    minVersion: 'TLSv1.2',
    servername: isIP(to.host) === 0 ? to.host : '',
    ...(ca === undefined ? {} : { ca: [...getCACertificates('default'), ca] }),
  })
}

/** Headers that only the guard sets. It asks for identity, because the size of a compressed answer is not known in advance. */
function own(to: Destination, body: Uint8Array | undefined): Record<string, string> {
  const length = body === undefined ? {} : { 'content-length': `${body.byteLength}` }
  return { host: to.url.host, 'accept-encoding': 'identity', connection: 'close', ...length }
}

/** Reads the head, checks it, and reads or wraps the body. */
async function read(response: http.IncomingMessage, hop: Hop, bufferReleaser: BufferReleaser | undefined): Promise<Answer> {
  const { to, method, maxBytes } = hop
  const headers = new Headers()
  for (let at = 0; at + 1 < response.rawHeaders.length; at += 2)
    headers.append(response.rawHeaders[at] ?? '', response.rawHeaders[at + 1] ?? '')
  const encoding = headers.get('content-encoding')
  if (encoding !== null && encoding.toLowerCase() !== 'identity')
    throw new OutboundError(
      'failed',
      `The response of ${displayUrl(to.url)} is compressed (${clip(encoding)}) although the request accepts only identity; disable compression there`,
    )
  if (method !== 'HEAD' && Number(headers.get('content-length') ?? 0) > maxBytes) throw answerTooLarge(to, maxBytes)
  if (bufferReleaser !== undefined) {
    const source = { read: oneByOne(response, bufferReleaser), stop: () => void response.destroy(), failure }
    return { status: response.statusCode ?? 0, headers, body: boundedBody(hop, source) }
  }
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of response as AsyncIterable<Buffer>) {
    size += chunk.byteLength
    if (size > maxBytes) throw answerTooLarge(to, maxBytes)
    chunks.push(chunk)
  }
  return { status: response.statusCode ?? 0, headers, body: joinBytes(chunks) }
}

function failure(to: Destination, cause: unknown): OutboundError {
  const code = cause instanceof Error && 'code' in cause && typeof cause.code === 'string' ? cause.code : undefined
  const why = code ?? (cause instanceof Error ? cause.message : 'the connection ended without a response')
  return new OutboundError('failed', `${displayUrl(to.url)} did not respond: ${clip(why)}`, cause)
}

// The body of an answer, chunk by chunk, with no more memory than the chunk being read.

type Chunk = Buffer<ArrayBuffer>

/**
 * Each call returns the next chunk as the parser produced it; undefined at the end. Iterating over the response would join
 * chunks that arrived meanwhile, and use twice the memory.
 */
function oneByOne(response: http.IncomingMessage, bufferReleaser: BufferReleaser): () => Promise<Chunk | undefined> {
  let over: { readonly error?: unknown } | undefined
  let waiting: PromiseWithResolvers<Chunk | undefined> | undefined
  const end = (error?: unknown): void => {
    over ??= error === undefined ? {} : { error }
    if (over.error === undefined) waiting?.resolve(undefined)
    else waiting?.reject(over.error)
  }
  response.pause()
  response.on('data', (chunk: Chunk) => {
    response.pause()
    bufferReleaser.parsed(chunk)
    waiting?.resolve(chunk)
  })
  response.on('end', () => end())
  response.on('error', end)
  response.on('close', () => end(new Error('the connection ended during the response')))
  return async () => {
    if (over?.error !== undefined) throw over.error
    if (over !== undefined) return undefined
    waiting = Promise.withResolvers()
    response.resume()
    return waiting.promise
  }
}

/** Reads that are tracked before the first chunk of a body arrives. */
const remembered = 16

/**
 * Frees the read buffers of a socket early. Node's parser copies bodies out of them, and they would stay until garbage
 * collection: as much memory again as the content. A buffer is freed once it is parsed, after the first chunk has shown that
 * chunks are copies.
 */
class BufferReleaser {
  #reads: unknown[] = []
  #copied: boolean | undefined

  constructor(request: http.ClientRequest) {
    request.on('socket', socket => {
      // Runs after the listener of the parser, which was added first and consumes the data synchronously.
      if (socket.listenerCount('data') > 0) socket.on('data', (data: Chunk) => this.#read(data))
    })
  }

  /** The parser has produced a chunk. */
  parsed({ buffer }: Chunk): void {
    this.#copied ??= !this.#reads.includes(buffer)
    this.#reads = []
  }

  #read(data: Chunk): void {
    if (this.#copied === true) releaseBuffer(data)
    if (this.#copied !== undefined) return
    this.#reads.push(data.buffer)
    // Too many reads to tell which of them the chunk came from.
    if (this.#reads.length > remembered) this.#copied = false
  }
}

// Resolves a name to addresses that may be connected to. It is resolved once: the checked addresses are the ones used.

/** Resolves a name to all of its addresses. Called once per hop. */
export type Resolve = (name: string) => Promise<readonly string[]>

/** The resolver of the operating system, including its hosts file. */
const systemResolve: Resolve = async name => (await lookup(name, { all: true, verbatim: true })).map(each => each.address)

/** The most addresses of one name; each may be tried in turn. */
const addressCount = 32

/**
 * The addresses of a destination. One forbidden address refuses the name: mixing internal and public addresses is typical of
 * DNS rebinding.
 */
export async function addressesOf(to: Destination, resolve: Resolve | undefined, allowed: Ranges): Promise<readonly string[]> {
  // Never resolved by DNS, which might return another address.
  if (isOwnName(to.host)) return ['127.0.0.1', '::1']
  if (to.loopback) return [to.host]
  const addresses = to.literal ? [to.host] : await ask(to, resolve ?? systemResolve)
  for (const address of addresses) {
    const fault = addressFault(address, allowed)
    if (fault === undefined) continue
    const where = to.literal ? 'it' : `${clip(address)}, to which its host name resolves,`
    throw refusedAddress(to.url, `${where} is ${fault}; only public addresses are allowed`)
  }
  return addresses
}

async function ask(to: Destination, resolve: Resolve): Promise<readonly string[]> {
  let found: readonly string[]
  try {
    found = await resolve(to.host)
  } catch (cause) {
    throw new OutboundError('failed', `The host name of ${displayUrl(to.url)} cannot be resolved; check the spelling`, cause)
  }
  if (found.length === 0)
    throw new OutboundError('failed', `The host name of ${displayUrl(to.url)} has no address; check the spelling`)
  if (found.length > addressCount)
    throw refusedAddress(to.url, `its host name has ${found.length} addresses; the limit is ${addressCount}`)
  return found
}
