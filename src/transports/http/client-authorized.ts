/**
 * A wire that adds credentials to requests, and repeats a request with new ones when the server refuses them. A request refused
 * with 401, or with 403 for its scope, did not run, so it is safe to repeat; the reader sees only the last answer. Credentials
 * go only to the origin of the wire below, which follows no redirects.
 */
import { type CredentialHeaders, type Credentials, wantsCredentials } from '../../core/credentials.ts'
import { ConnectionError } from '../../jsonrpc/connection.ts'
import {
  type AnswerReader,
  type HeaderView,
  type HttpWire,
  headerRecord,
  type WireCall,
  type WireRequest,
} from './client-wire.ts'

/** The most refusals in a row, whatever the authorizer decides. */
const mostTries = 8

/** Wraps a wire so that its requests carry credentials. */
export function authorizedWire(url: URL, wire: HttpWire, authorizer: Credentials): HttpWire {
  return {
    send: (request, reader) => new AuthorizedCall(url, wire, authorizer, request, reader),
    close: () => wire.close(),
  }
}

/** One request with all of its repetitions. */
class AuthorizedCall implements WireCall, AnswerReader {
  readonly #wire: HttpWire
  readonly #authorizer: Credentials
  readonly #request: WireRequest
  readonly #reader: AnswerReader
  readonly #url: URL
  #sent: CredentialHeaders | undefined
  #call: WireCall | undefined
  #abort: AbortController | undefined
  #times = 0
  #dropped = false

  constructor(url: URL, wire: HttpWire, authorizer: Credentials, request: WireRequest, reader: AnswerReader) {
    this.#url = new URL(request.path, url)
    this.#wire = wire
    this.#authorizer = authorizer
    this.#request = request
    this.#reader = reader
    this.#send()
  }

  drop(): void {
    this.#dropped = true
    this.#call?.drop()
    this.#abort?.abort()
  }

  head(status: number, headers: HeaderView): void {
    if (this.#dropped) return
    // Ending a session is not worth asking the user to sign in.
    const final = this.#request.method === 'DELETE' || !wantsCredentials(status, headers.get('www-authenticate'))
    if (!final) return this.#refused(status, headers)
    this.#authorizer.answered?.(name => headers.get(name) ?? undefined)
    this.#reader.head(status, headers)
  }

  get heard(): number {
    return this.#reader.heard ?? 0
  }

  chunk(bytes: Uint8Array): void {
    if (!this.#dropped) this.#reader.chunk(bytes)
  }

  end(): void {
    if (!this.#dropped) this.#reader.end()
  }

  fail(error: ConnectionError): void {
    if (!this.#dropped) this.#reader.fail(error)
  }

  /** Obtains credentials, then sends. */
  #send(): void {
    const credentials = this.#authorizer.headers(this.#request.method, this.#url)
    if (!(credentials instanceof Promise)) return this.#go(credentials)
    credentials.then(
      got => this.#go(got),
      (error: unknown) => this.fail(unauthorized(error)),
    )
  }

  #go(credentials: CredentialHeaders | undefined): void {
    if (this.#dropped) return
    this.#sent = credentials
    const headers = this.#request.headers.slice()
    for (const name in credentials) headers.push(name, credentials[name] as string)
    this.#call = this.#wire.send({ ...this.#request, headers }, this)
  }

  /** Asks the authorizer for better credentials; deadlines are suspended meanwhile. */
  #refused(status: number, headers: HeaderView): void {
    this.#call?.drop()
    this.#times++
    this.#abort ??= new AbortController()
    const refusal = {
      status,
      header: (name: string) => headers.get(name) ?? undefined,
      sent: this.#sent,
      times: this.#times,
      signal: this.#abort.signal,
    }
    const again =
      this.#times > mostTries
        ? Promise.reject(new Error(`The server refused the request ${this.#times} times in a row`))
        : this.#authorizer.refused(refusal)
    this.#reader.held?.(true)
    again.then(
      () => {
        if (this.#dropped) return
        this.#reader.held?.(false)
        this.#send()
      },
      (error: unknown) => this.fail(unauthorized(error, status, headers)),
    )
  }
}

function unauthorized(cause: unknown, status = 401, headers?: HeaderView): ConnectionError {
  const message = cause instanceof Error ? cause.message : 'The credentials could not be obtained'
  const said = headers === undefined ? {} : { headers: headerRecord(headers) }
  return new ConnectionError('unauthorized', message, { status, cause, ...said })
}
