/** The fetch carrier: `fetch(Request) → Response`, for any web-standard runtime. */
import type { Cancel, Clock } from '../../core/clock.ts'
import type { Acceptor, Caller, Principal } from '../../jsonrpc/connection.ts'
import type { Download } from './document.ts'
import { createEndpoint, type Endpoint, type HttpOptions } from './endpoint.ts'
import type { ResponseStream, ResponseStreamOwner, StreamAccount } from './event-writer.ts'
import { HttpExchange } from './exchange.ts'
import { failed, notUtf8, type Refusal, tooLarge } from './refusal.ts'

/** What the runtime knows about a caller beyond the `Request`. */
export interface FetchInfo {
  /** The principal, if your code has already authenticated it. */
  readonly principal?: Principal
  /** The network address of the caller. */
  readonly remote?: string
}

/** Answers a web-standard `Request`. */
export type FetchHandler = (request: Request, info?: FetchInfo) => Promise<Response>

/** Serves Streamable HTTP on web-standard requests. */
export function fetchHandler(acceptor: Acceptor, options?: HttpOptions): FetchHandler {
  const endpoint = createEndpoint(acceptor, options)
  const remotes = new Map<string, object>()
  return (request, info = {}) =>
    new Promise(answer => {
      const exchange = new FetchExchange(endpoint, remotes, request, info, answer)
      try {
        exchange.serve(new URL(request.url).pathname)
      } catch {
        exchange.refuse(failed)
      }
    })
}

/** One request of a web-standard runtime. */
class FetchExchange extends HttpExchange {
  readonly method: string
  readonly #remotes: Map<string, object>
  readonly #request: Request
  readonly #info: FetchInfo
  readonly #answer: (response: Response) => void
  #admitted: Caller | undefined = undefined

  constructor(
    endpoint: Endpoint,
    remotes: Map<string, object>,
    request: Request,
    info: FetchInfo,
    answer: (response: Response) => void,
  ) {
    // Nobody is identified whom code in front has identified.
    super(endpoint, info.principal === undefined ? endpoint.identify : undefined)
    this.method = request.method
    this.#remotes = remotes
    this.#request = request
    this.#info = info
    this.#answer = answer
  }

  get url(): string {
    return this.#request.url
  }

  get address(): string | undefined {
    return this.#info.remote
  }

  get gone(): boolean {
    return this.#request.signal.aborted
  }

  header(name: string): string | undefined {
    return this.#request.headers.get(name) ?? undefined
  }

  /** `Headers` joins repeated values with commas, and a token contains none. */
  repeats(name: string): boolean {
    return this.header(name)?.includes(',') === true
  }

  reply(status: number, headers: string[], body: string): void {
    const empty = body === '' || (this.method === 'HEAD' && status < 400)
    this.#answer(new Response(empty ? null : body, { status, headers: pairs(headers) }))
  }

  open(headers: string[]): ResponseStream {
    const { limits, streams } = this.endpoint
    const output = new FetchResponseStream(limits.stallMs, this.tenant, streams.clock)
    // Some runtimes abort the request when the caller disconnects, and never cancel the body.
    this.onGone(() => output.drop())
    this.#answer(new Response(output.body, { status: 200, headers: pairs(headers) }))
    return output
  }

  onGone(fn: () => void): void {
    this.#request.signal.addEventListener('abort', fn, { once: true })
  }

  protected check(anyOrigin: boolean): Refusal | undefined {
    const host = this.header('host') ?? new URL(this.url).host
    return this.endpoint.guard.check(host, anyOrigin ? undefined : this.header('origin'))
  }

  protected admit(found: Principal | undefined): Caller | Refusal {
    const principal = found ?? this.#info.principal
    if (this.#admitted !== undefined) return this.#admitted.principal?.id === principal?.id ? this.#admitted : failed
    const { authorizer } = this.endpoint
    const connection = remoteOf(this.#remotes, principal, this.address)
    const header = (name: string) => this.header(name)
    const caller = { carrier: 'http', header, principal, connection } as const
    this.#admitted = authorizer ? { ...caller, challenge: scopes => authorizer.challenge(principal, scopes) } : caller
    return this.#admitted
  }

  protected read(): void {
    readWebBody(this.#request, this.endpoint.limits.frameBytes)
      .then(body => (typeof body === 'string' ? this.body(body) : this.refuse(body)))
      .catch(() => this.refuse(failed))
  }

  protected send(download: Download): void {
    const { status, headers } = download
    this.#answer(new Response(watchedBody(download) ?? null, { status, headers: pairs(headers) }))
  }
}

function pairs(flat: readonly string[]): Headers {
  const headers = new Headers()
  for (let at = 0; at + 1 < flat.length; at += 2) headers.append(flat[at] ?? '', flat[at + 1] ?? '')
  return headers
}

/** The text, or why there is none. */
async function readWebBody(request: Request, limit: number): Promise<string | Refusal> {
  const reader = request.body?.getReader()
  if (reader === undefined) return ''
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  let text = ''
  let size = 0
  try {
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      size += part.value.byteLength
      if (size > limit) {
        void reader.cancel().catch(() => undefined)
        return tooLarge(limit)
      }
      text += decoder.decode(part.value, { stream: true })
    }
    return text + decoder.decode()
  } catch {
    void reader.cancel().catch(() => undefined)
    return notUtf8
  }
}

/** The body of a download, which calls `over` by itself at its end. */
function watchedBody({ body, over }: Download): ReadableStream<Uint8Array> | undefined {
  if (body === undefined || over === undefined) return body
  const reader = body.getReader()
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await reader.read().catch(error => {
          over()
          throw error
        })
        if (!done) return controller.enqueue(value)
        over()
        controller.close()
      },
      cancel(reason) {
        over()
        return reader.cancel(reason)
      },
    },
    { highWaterMark: 0 },
  )
}

/** The most callers whose stand-in for a connection is remembered; the one longest unused is forgotten. */
const mostRemotes = 10_000

/**
 * A stand-in for the connection, which these runtimes do not show: one object per principal or remote address, for all that is
 * counted per connection. Without either it is a new object, as if every request had its own connection.
 */
function remoteOf(known: Map<string, object>, principal: Principal | undefined, remoteAddress: string | undefined): object {
  const key = principal === undefined ? remoteAddress && `@${remoteAddress}` : `=${principal.id}`
  if (key === undefined) return {}
  // `remoteAddress` is read wherever a socket would be asked for it.
  const remote = known.get(key) ?? (remoteAddress === undefined ? {} : { remoteAddress })
  known.delete(key)
  known.set(key, remote)
  if (known.size > mostRemotes) known.delete(known.keys().next().value ?? '')
  return remote
}

// An event stream as the body of a web Response. With a high-water mark of 0, each pull shows that the reader is active.

const encoder = new TextEncoder()
/** Characters that may wait before the reader counts as slow. */
const mostHeld = 64 * 1024

/** Writes an event stream to the body of a web Response. */
export class FetchResponseStream implements ResponseStream {
  owner: ResponseStreamOwner | undefined = undefined
  readonly tenant: StreamAccount | undefined
  readonly body: ReadableStream<Uint8Array>
  silence = 0
  blocked = false
  readonly #stallMs: number
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined = undefined
  #held = ''
  #wanted = false
  #ending = false
  readonly #clock: Clock
  #stall: Cancel | undefined = undefined

  constructor(stallMs: number, tenant: StreamAccount | undefined, clock: Clock) {
    this.#clock = clock
    this.#stallMs = stallMs
    this.tenant = tenant
    const source: UnderlyingDefaultSource<Uint8Array> = {
      start: controller => {
        this.#controller = controller
      },
      pull: () => this.#pulled(),
      cancel: () => this.#close(),
    }
    this.body = new ReadableStream(source, { highWaterMark: 0 })
  }

  write(text: string): boolean {
    if (this.#ending) return true
    this.silence = 0
    if (this.#wanted) {
      this.#wanted = false
      this.#controller?.enqueue(encoder.encode(text))
    } else this.#held += text
    this.blocked = this.#held.length > mostHeld
    return !this.blocked
  }

  end(text = ''): void {
    if (this.#ending || this.#controller === undefined) return
    if (text !== '') this.write(text)
    this.#ending = true
    if (this.#held === '') this.#finish()
    else this.watch(true)
  }

  cut(): void {
    this.#controller?.error(new Error('The reader of the response stalled for too long'))
    this.#close()
  }

  /** The caller has disconnected. */
  drop(): void {
    this.#controller?.error(new DOMException('The request was aborted', 'AbortError'))
    this.#close()
  }

  watch(on: boolean): void {
    if (on) this.#stall ??= this.#clock.setTimeout(() => this.cut(), this.#stallMs, true)
    else {
      this.#stall?.()
      this.#stall = undefined
    }
  }

  #pulled(): void {
    if (this.#stall !== undefined) {
      this.watch(false)
      this.watch(true)
    }
    if (this.#held === '') this.#wanted = true
    else {
      this.#controller?.enqueue(encoder.encode(this.#held))
      this.#held = ''
    }
    if (this.#ending) this.#finish()
    else if (this.blocked) {
      this.blocked = false
      this.owner?.drained()
    }
  }

  #finish(): void {
    this.#controller?.close()
    this.#close()
  }

  #close(): void {
    if (this.#controller === undefined) return
    this.#controller = undefined
    this.#held = ''
    this.watch(false)
    this.owner?.gone()
  }
}
