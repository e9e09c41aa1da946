/** One request by node:http and what comes back for it, told to a reader in the words of `client-wire.ts`. */
import type http from 'node:http'
import type { Duplex } from 'node:stream'
import { ConnectionError } from '../../jsonrpc/connection.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { unreached } from '../unreached.ts'
import { pace } from './client-pace.ts'
import type { AnswerReader, HeaderView, WireCall, WireRequest } from './client-wire.ts'

/** Whoever holds the sockets. */
export interface RequestMaker {
  readonly retryReset: boolean
  readonly address: URL
  request(request: WireRequest): http.ClientRequest
  /** A socket has just done its work. */
  used(): void
  /** Whether this socket was ever open. */
  reached(socket: Duplex | null): boolean
}

export class NodeCall implements WireCall {
  readonly #wire: RequestMaker
  readonly #request: WireRequest
  readonly #reader: AnswerReader
  #current: http.ClientRequest | undefined
  #answered = false
  #repeated = false
  #done = false

  constructor(wire: RequestMaker, request: WireRequest, reader: AnswerReader) {
    this.#wire = wire
    this.#request = request
    this.#reader = reader
  }

  go(): void {
    if (this.#done) return
    try {
      const current = this.#wire.request(this.#request)
      this.#current = current
      current.on('response', response => this.#answer(response))
      current.on('error', error => this.#failed(current, error))
      current.on('close', () => this.#closed(current))
      current.end(this.#request.body)
    } catch (cause) {
      const error = new ConnectionError('refused', `The request could not be made: ${reason(cause)}`, { cause })
      queueMicrotask(() => this.#fail(error))
    }
  }

  drop(): void {
    if (this.#done) return
    this.#done = true
    this.#current?.destroy()
  }

  #answer(response: http.IncomingMessage): void {
    if (this.#done) return
    this.#answered = true
    const encoding = response.headers['content-encoding']
    if (encoding !== undefined && encoding !== 'identity') {
      this.#current?.destroy()
      this.#fail(
        new ConnectionError(
          'protocol',
          'The server compressed its answer though identity was asked for; turn that off for this path',
        ),
      )
      return
    }
    const take = (chunk: Uint8Array): void => {
      if (!this.#done) this.#reader.chunk(chunk)
    }
    const end = (): void => this.#end()
    const fail = (cause: Error): void =>
      this.#fail(new ConnectionError('lost', `The connection broke while the answer came: ${reason(cause)}`, { cause }))
    const heard = (): number => this.#reader.heard ?? 0
    if (response.headers['content-type']?.startsWith('text/event-stream') === true) pace(response, { take, end, fail, heard })
    else response.on('data', take).on('end', end).on('error', fail)
    this.#reader.head(response.statusCode ?? 0, new NodeHeaders(response.headers))
  }

  #end(): void {
    if (this.#done) return
    this.#done = true
    this.#wire.used()
    this.#reader.end()
  }

  #failed(request: http.ClientRequest, error: NodeJS.ErrnoException): void {
    if (this.#done) return
    if (this.#wire.retryReset && !this.#repeated && request.reusedSocket && error.code === 'ECONNRESET' && !this.#answered) {
      this.#repeated = true
      this.go()
      return
    }
    this.#fail(
      error instanceof ConnectionError ? error : translate(error, this.#wire.reached(request.socket), this.#wire.address),
    )
  }

  /** A switch of protocols ends without an answer and without an error. */
  #closed(request: http.ClientRequest): void {
    if (this.#done || this.#answered || this.#current !== request) return
    this.#fail(new ConnectionError('lost', 'The connection ended without an answer; whether the server acted is unknown'))
  }

  #fail(error: ConnectionError): void {
    if (this.#done) return
    this.#done = true
    this.#reader.fail(error)
  }
}

class NodeHeaders implements HeaderView {
  readonly #headers: http.IncomingHttpHeaders

  constructor(headers: http.IncomingHttpHeaders) {
    this.#headers = headers
  }

  get(name: string): string | undefined {
    const value = this.#headers[name]
    return typeof value === 'object' ? value.join(', ') : value
  }

  forEach(fn: (value: string, name: string) => void): void {
    for (const name of Object.keys(this.#headers)) fn(this.get(name) ?? '', name)
  }
}

function translate(cause: NodeJS.ErrnoException, reached: boolean, address: URL): ConnectionError {
  const { code } = cause
  if (code === 'HPE_HEADER_OVERFLOW')
    return new ConnectionError('too-large', 'The headers of the answer are longer than 16 KiB', { cause })
  if (code?.startsWith('HPE_')) return new ConnectionError('protocol', `The answer is not HTTP (${reason(cause)})`, { cause })
  return reached
    ? new ConnectionError(
        'lost',
        `The connection broke before the answer (${reason(cause)}); whether the server acted is unknown`,
        { cause },
      )
    : unreached(address, code, reason(cause), cause)
}

function reason(cause: unknown): string {
  if (!(cause instanceof Error)) return clip(String(cause))
  return 'code' in cause && typeof cause.code === 'string' ? cause.code : clip(cause.message)
}
