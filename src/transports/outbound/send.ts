/** One request to addresses that were checked, and its answer, whole or as a stream: no proxy, no cookies, no kept socket, no second lookup. */

import { lookup } from 'node:dns/promises'
import http from 'node:http'
import https from 'node:https'
import { isIP, type LookupFunction } from 'node:net'
import { getCACertificates } from 'node:tls'
import { joinBytes } from '../../core/base64.ts'
import { OutboundError } from '../../core/outbound.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { giveBack } from '../../stores/blobs.ts'
import { addressFault, type Destination, isOwnName, type Ranges, refused, shown } from './destination.ts'

/** One request to one address, without redirects. */
export interface Hop {
  readonly to: Destination
  readonly addresses: readonly string[]
  readonly method: string
  readonly headers: Headers
  readonly body: Uint8Array | undefined
  /** Aborts at the deadline, or when the caller gives up. */
  readonly signal: AbortSignal
  readonly maxBytes: number
  /** Authorities trusted besides those that Node trusts. */
  readonly ca: string | undefined
  /** Where the body is wanted as a stream: the longest pause within it. */
  readonly idleMs: number | undefined
}

/** Its answer, with the body whole or as a stream. */
export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly body: Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array<ArrayBuffer>>
}

/** Rejects with the signal's reason where that aborts. */
export function sendOnce(hop: Hop): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>()
  const { to, signal, body } = hop
  signal.throwIfAborted()
  const request = open(hop)
  const thrift = hop.idleMs === undefined ? undefined : new Thrift(request)
  const stop = (): void => void request.destroy()
  const settle = <T>(give: (value: T) => void) => {
    return (value: T): void => {
      signal.removeEventListener('abort', stop)
      give(value)
      request.destroy()
    }
  }
  const give = (answer: Answer): void => {
    // A stream is under way: its reader ends it, or the signal does.
    if (answer.body instanceof ReadableStream) resolve(answer)
    else settle(resolve)(answer)
  }
  const fail = settle(reject)
  const lost = (cause?: unknown): void => fail(signal.aborted ? signal.reason : failure(to, cause))
  signal.addEventListener('abort', stop, { once: true })
  request.on('error', lost)
  // A switch of protocols ends without an answer and without an error; what breaks within an answer is the answer's to tell.
  let answered = false
  request.on('close', () => {
    if (!answered) lost()
  })
  request.on('response', response => {
    answered = true
    read(response, hop, thrift).then(give, error => (error instanceof OutboundError ? fail(error) : lost(error)))
  })
  request.end(body)
  return promise
}

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
  // An agent of its own: the global one may have been given a proxy by the environment, and keeps sockets.
  if (!to.secure) return http.request({ ...options, agent: new http.Agent({ keepAlive: false }) })
  return https.request({
    ...options,
    agent: new https.Agent({ keepAlive: false, maxCachedSessions: 0 }),
    // Said in words, for the environment can turn it off.
    rejectUnauthorized: true,
    minVersion: 'TLSv1.2',
    servername: isIP(to.host) === 0 ? to.host : '',
    ...(ca === undefined ? {} : { ca: [...getCACertificates('default'), ca] }),
  })
}

/** The headers that are the guard's alone. An answer that is compressed all the same is refused: its size could not be known. */
function own(to: Destination, body: Uint8Array | undefined): Record<string, string> {
  const length = body === undefined ? {} : { 'content-length': `${body.byteLength}` }
  return { host: to.url.host, 'accept-encoding': 'identity', connection: 'close', ...length }
}

async function read(response: http.IncomingMessage, hop: Hop, thrift: Thrift | undefined): Promise<Answer> {
  const { to, method, maxBytes } = hop
  const headers = new Headers()
  for (let at = 0; at + 1 < response.rawHeaders.length; at += 2)
    headers.append(response.rawHeaders[at] ?? '', response.rawHeaders[at + 1] ?? '')
  const encoding = headers.get('content-encoding')
  if (encoding !== null && encoding.toLowerCase() !== 'identity')
    throw new OutboundError(
      'failed',
      `The answer of ${shown(to.url)} is compressed (${clip(encoding)}) though identity was asked for; turn that off there`,
    )
  if (method !== 'HEAD' && Number(headers.get('content-length') ?? 0) > maxBytes) throw tooLarge(to, maxBytes)
  if (hop.idleMs !== undefined && thrift !== undefined)
    return { status: response.statusCode ?? 0, headers, body: streamed(response, hop, hop.idleMs, thrift) }
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of response as AsyncIterable<Buffer>) {
    size += chunk.byteLength
    if (size > maxBytes) throw tooLarge(to, maxBytes)
    chunks.push(chunk)
  }
  return { status: response.statusCode ?? 0, headers, body: joinBytes(chunks) }
}

/** Reads on only when its reader does. */
function streamed(
  response: http.IncomingMessage,
  { to, maxBytes, signal }: Hop,
  idleMs: number,
  thrift: Thrift,
): ReadableStream<Uint8Array<ArrayBuffer>> {
  const chunks = oneByOne(response, thrift)
  let size = 0
  const end = (): void => void response.destroy()
  const next = async (): Promise<Buffer<ArrayBuffer> | undefined> => {
    const late = setTimeout(
      () => response.destroy(new OutboundError('limit', `${shown(to.url)} paused for more than ${idleMs} ms and was given up`)),
      idleMs,
    )
    try {
      return await chunks()
    } catch (error) {
      throw signal.aborted ? signal.reason : error instanceof OutboundError ? error : failure(to, error)
    } finally {
      clearTimeout(late)
    }
  }
  return new ReadableStream(
    {
      async pull(controller) {
        const value = await next()
        if (value === undefined) return controller.close()
        size += value.byteLength
        if (size > maxBytes) end()
        if (size > maxBytes) throw tooLarge(to, maxBytes)
        controller.enqueue(value)
      },
      cancel: end,
    },
    { highWaterMark: 0 },
  )
}

function tooLarge(to: Destination, maxBytes: number): OutboundError {
  return new OutboundError('limit', `The answer of ${shown(to.url)} is larger than ${maxBytes} bytes and was cut off`)
}

function failure(to: Destination, cause: unknown): OutboundError {
  const code = cause instanceof Error && 'code' in cause && typeof cause.code === 'string' ? cause.code : undefined
  const why = code ?? (cause instanceof Error ? cause.message : 'the connection ended without an answer')
  return new OutboundError('failed', `${shown(to.url)} gave no answer: ${clip(why)}`, cause)
}

// The body of an answer, chunk by chunk, without more memory than what is being read.

type Chunk = Buffer<ArrayBuffer>

/**
 * Each call gives the next chunk as it came from the parser; undefined at the end. Iterating over the response would copy together
 * what has come meanwhile, and leave twice the memory behind.
 */
function oneByOne(response: http.IncomingMessage, thrift: Thrift): () => Promise<Chunk | undefined> {
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
    thrift.parsed(chunk)
    waiting?.resolve(chunk)
  })
  response.on('end', () => end())
  response.on('error', end)
  response.on('close', () => end(new Error('the connection ended within its answer')))
  return async () => {
    if (over?.error !== undefined) throw over.error
    if (over !== undefined) return undefined
    waiting = Promise.withResolvers()
    response.resume()
    return waiting.promise
  }
}

/** Reads that are remembered before the first chunk of a body is there. */
const remembered = 16

/**
 * Node's parser copies bodies out of what the socket has read, and that lies about until it is collected: as much again as the content.
 * It is given back as soon as it is parsed, once the first chunk has shown that it is a copy indeed.
 */
class Thrift {
  #reads: unknown[] = []
  #copied: boolean | undefined

  constructor(request: http.ClientRequest) {
    request.on('socket', socket => {
      // Heard after the parser, which is there first and takes all of it at once.
      if (socket.listenerCount('data') > 0) socket.on('data', (data: Chunk) => this.#read(data))
    })
  }

  /** A chunk has come of it. */
  parsed({ buffer }: Chunk): void {
    this.#copied ??= !this.#reads.includes(buffer)
    this.#reads = []
  }

  #read(data: Chunk): void {
    if (this.#copied === true) giveBack(data)
    if (this.#copied !== undefined) return
    this.#reads.push(data.buffer)
    // From which of them a chunk comes could no longer be told.
    if (this.#reads.length > remembered) this.#copied = false
  }
}

// From a name to the addresses that may be connected to. Asked once: what was checked is what is used.

/** Gives every address of a name. Called once per hop. */
export type Resolve = (name: string) => Promise<readonly string[]>

/** As the operating system resolves names, its hosts file included. */
export const systemResolve: Resolve = async name => (await lookup(name, { all: true, verbatim: true })).map(each => each.address)

/** More than any honest name has; each may be tried in turn. */
const addressCount = 32

/**
 * The addresses behind a destination. One forbidden address among them refuses the name: a name that points inside and outside
 * at once is waiting for the right moment.
 */
export async function addressesOf(to: Destination, resolve: Resolve, allowed: Ranges): Promise<readonly string[]> {
  // Never asked of DNS, which might say otherwise.
  if (isOwnName(to.host)) return ['127.0.0.1', '::1']
  if (to.loopback) return [to.host]
  const literal = to.host.includes(':') || /^[\d.]+$/.test(to.host)
  const addresses = literal ? [to.host] : await ask(to, resolve)
  for (const address of addresses) {
    const fault = addressFault(address, allowed)
    if (fault === undefined) continue
    const where = literal ? 'it' : `${clip(address)}, to which its name leads,`
    throw refused(to.url, `${where} is ${fault}; only public addresses are spoken to`)
  }
  return addresses
}

async function ask(to: Destination, resolve: Resolve): Promise<readonly string[]> {
  let found: readonly string[]
  try {
    found = await resolve(to.host)
  } catch (cause) {
    throw new OutboundError('failed', `The name of ${shown(to.url)} cannot be resolved; check its spelling`, cause)
  }
  if (found.length === 0) throw new OutboundError('failed', `The name of ${shown(to.url)} has no address; check its spelling`)
  if (found.length > addressCount) throw refused(to.url, `its name has ${found.length} addresses; the limit is ${addressCount}`)
  return found
}
