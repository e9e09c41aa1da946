/** The fetch carrier: `fetch(Request) → Response`, for any web-standard runtime. */
import type { Cancel, Clock } from '../../core/clock.ts'
import type { Entrance } from '../../core/credentials.ts'
import type { Caller, Door, Principal } from '../../jsonrpc/connection.ts'
import { documentAnswer, downloadName, notRead, type OwnDocument, ownAnswer, queryOf, watchedBody } from './document.ts'
import {
  acceptsNeither,
  checkBody,
  checkListen,
  corsHeaders,
  createEndpoint,
  type Endpoint,
  type HeaderReader,
  type HttpOptions,
  isRefusal,
  preflightHeaders,
  preflightRefusal,
  tenantOf,
  wrongMethod,
} from './endpoint.ts'
import { type Face, HttpLane } from './lane.ts'
import type { OutletOwner, StreamOutlet, Tenant } from './reader.ts'
import { explainedTo, failed, notUtf8, type Refusal, tooLarge } from './refusal.ts'

/** What the runtime knows about a caller beyond its Request. */
export interface FetchInfo {
  /** The principal, if code in front has identified it. */
  readonly principal?: Principal
  /** Its network address. */
  readonly remote?: string
}

/** Answers a web-standard request. */
export type FetchHandler = (request: Request, info?: FetchInfo) => Promise<Response>

/** Serves Streamable HTTP on web-standard requests. */
export function fetchHandler(door: Door, options?: HttpOptions): FetchHandler {
  return fetchFace(createEndpoint(door, options))
}

/** The same, over an endpoint that several carriers share. */
export function fetchFace(endpoint: Endpoint): FetchHandler {
  const remotes = createRemotes()
  return (request, info = {}) =>
    new Promise(answer => {
      const exchange = new FetchExchange(endpoint, request, answer)
      exchange.begin(info, remotes).catch(() => exchange.refuse(failed))
    })
}

/** One request: checks it, routes it, and is the face of its lane. */
class FetchExchange implements Face, Entrance {
  readonly #endpoint: Endpoint
  readonly #request: Request
  readonly #answer: (response: Response) => void
  #principal: Principal | undefined = undefined
  #address: string | undefined = undefined
  /** Code in front has identified the caller. */
  #known = false
  /** Set once the caller is admitted. */
  #caller: Caller | undefined = undefined
  #opened: HttpLane | undefined = undefined
  #connection: object = {}

  constructor(endpoint: Endpoint, request: Request, answer: (response: Response) => void) {
    this.#endpoint = endpoint
    this.#request = request
    this.#answer = answer
  }

  header(name: string): string | undefined {
    return this.#request.headers.get(name) ?? undefined
  }

  async begin(info: FetchInfo, remotes: Remotes): Promise<void> {
    const { guard, identify, authorizer } = this.#endpoint
    const header: HeaderReader = name => this.header(name)
    const host = header('host') ?? new URL(this.#request.url).host
    const document = authorizer?.document(new URL(this.#request.url).pathname)
    if (document !== undefined) return this.#document(host, document)
    const bad = guard.check(host, header('origin'))
    if (bad !== undefined) return this.refuse(bad)
    const name = downloadName(this.#endpoint.downloads, new URL(this.#request.url).pathname)
    if (name !== undefined) return this.#download(name)
    if (this.#request.method === 'OPTIONS') return this.#preflight()
    this.#known = info.principal !== undefined
    this.#address = info.remote
    const found = info.principal ?? (await identify?.(header, this))
    if (found !== undefined && isRefusal(found)) return this.refuse(found)
    this.#principal = found
    const key = found === undefined ? info.remote && `@${info.remote}` : `=${found.id}`
    this.#connection = remotes.of(key, info.remote)
    const caller = { carrier: 'http', header, principal: found, connection: this.#connection } as const
    if (authorizer === undefined) return this.#route(caller)
    return this.#route({ ...caller, challenge: scopes => authorizer.challenge(found, scopes) })
  }

  get url(): string {
    return this.#request.url
  }

  get address(): string | undefined {
    return this.#address
  }

  /** `Headers` joins repeated values with commas, and a token contains none. */
  repeats(name: string): boolean {
    return this.header(name)?.includes(',') === true
  }

  refuse(refusal: Refusal): void {
    this.#lane.refuse(refusal)
  }

  explained(refusal: Refusal): Refusal {
    return this.#caller === undefined ? refusal : explainedTo(this.#endpoint.door, this.#caller, refusal)
  }

  reply(status: number, headers: string[], body: string): void {
    this.#answer(new Response(body === '' ? null : body, { status, headers: pairs(headers) }))
  }

  open(headers: string[]): StreamOutlet {
    const { limits, streams } = this.#endpoint
    const outlet = new FetchOutlet(limits.stallMs, this.tenant, streams.clock)
    // Some runtimes abort the request when the caller disconnects, and never cancel the body.
    this.onGone(() => outlet.drop())
    this.#answer(new Response(outlet.body, { status: 200, headers: pairs(headers) }))
    return outlet
  }

  get tenant(): Tenant | undefined {
    const caller = { principal: this.#principal, connection: this.#connection }
    return tenantOf(this.#request.method, caller, this.#endpoint.authorizer)
  }

  get gone(): boolean {
    return this.#request.signal.aborted
  }

  onGone(fn: () => void): void {
    this.#request.signal.addEventListener('abort', fn, { once: true })
  }

  get #listening(): boolean {
    return this.#request.method === 'GET'
  }

  async #route(caller: Caller): Promise<void> {
    this.#caller = caller
    const { door, document } = this.#endpoint
    if (document !== undefined && new URL(this.#request.url).pathname.endsWith(document.path)) return this.#read(caller, document)
    if (this.#request.method === 'POST') await this.#post(caller)
    else if (this.#listening) await this.#listen(caller)
    else if (this.#request.method === 'DELETE') door.leave(caller, this.#lane)
    else this.refuse(wrongMethod(this.#request.method))
  }

  async #post(caller: Caller): Promise<void> {
    const { door, limits } = this.#endpoint
    const refusal = checkBody(this, limits) ?? (this.#takes === 0 ? acceptsNeither : undefined)
    const epoch = this.#endpoint.authorizer?.epoch
    const body = refusal ?? (await readWebBody(this.#request, limits.frameBytes))
    if (typeof body !== 'string') return this.refuse(body)
    // Tokens may have been revoked while the body was read.
    const current = this.#known || this.#endpoint.authorizer?.epoch === epoch
    const shutOut = current ? undefined : await this.#identifyAnew(caller)
    if (shutOut === undefined) door.deliver(body, caller, this.#lane)
    else this.refuse(shutOut)
  }

  async #identifyAnew({ principal }: Caller): Promise<Refusal | undefined> {
    const found = await this.#endpoint.identify?.(name => this.header(name), this)
    if (found !== undefined && isRefusal(found)) return found
    return found?.id === principal?.id ? undefined : failed
  }

  async #read(caller: Caller, document: OwnDocument): Promise<void> {
    const { method } = this.#request
    const refusal = notRead(method)
    if (refusal !== undefined) return this.refuse(refusal)
    const { status, headers, body } = ownAnswer(await document.read(caller), this.header('if-none-match'))
    const extra = corsHeaders(this.#endpoint.guard, this.header('origin'))
    this.reply(status, [...headers, ...extra], method === 'HEAD' ? '' : body)
  }

  async #download(name: string): Promise<void> {
    const { downloads, guard } = this.#endpoint
    const { method, url } = this.#request
    const found = await downloads?.open({ method, name, query: queryOf(url), header: each => this.header(each) })
    if (found === undefined) return this.refuse(failed)
    const headers = pairs([...found.headers, ...corsHeaders(guard, this.header('origin'))])
    this.#answer(new Response(watchedBody(found) ?? null, { status: found.status, headers }))
  }

  async #listen(caller: Caller): Promise<void> {
    const refusal = checkListen(this.#endpoint, this.#takes, this.tenant)
    if (refusal !== undefined) this.refuse(refusal)
    else {
      await this.#endpoint.door.listen(caller, this.#lane)
      this.#lane.open()
    }
  }

  /** Public documents are for pages of any origin, but the Host must still be ours. */
  #document(host: string, text: string): void {
    const answer = this.#endpoint.guard.check(host, undefined) ?? documentAnswer(this.#request.method, text)
    if ('message' in answer) this.refuse(answer)
    else this.reply(answer.status, answer.headers, this.#request.method === 'HEAD' ? '' : answer.body)
  }

  #preflight(): void {
    const header: HeaderReader = name => this.header(name)
    const wish = header('access-control-request-method')
    const headers = preflightHeaders(this.#endpoint.guard, header('origin'), wish, header('access-control-request-headers'))
    if (headers === undefined) this.refuse(preflightRefusal(header('origin'), wish) ?? wrongMethod('OPTIONS'))
    else this.reply(204, headers, '')
  }

  get #takes(): number {
    return this.#endpoint.takes(this.header('accept'))
  }

  get #lane(): HttpLane {
    if (this.#opened === undefined) {
      const extra = corsHeaders(this.#endpoint.guard, this.header('origin'))
      this.#opened = new HttpLane(this, this.#endpoint.streams, this.#takes, extra, this.#listening)
    }
    return this.#opened
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

/**
 * Stand-ins for the connection where a runtime shows none: one object for each principal or remote address, so that
 * what is counted "per connection" has something to hang on. Bounded: the one longest unused gives way.
 */

interface Remotes {
  /** The same object for the same key; a fresh one without a key, as if every request had its own connection. */
  of(key: string | undefined, remoteAddress?: string): object
}

function createRemotes(limit = 10_000): Remotes {
  const known = new Map<string, object>()
  return {
    of(key, remoteAddress) {
      if (key === undefined) return {}
      // Read wherever a socket would be asked for it.
      const remote = known.get(key) ?? (remoteAddress === undefined ? {} : { remoteAddress })
      known.delete(key)
      known.set(key, remote)
      if (known.size > limit) {
        for (const oldest of known.keys()) {
          known.delete(oldest)
          break
        }
      }
      return remote
    },
  }
}

// An event stream as the body of a web Response. With a high-water mark of 0, each pull shows that the reader is active.

const encoder = new TextEncoder()
/** Characters that may wait before the reader counts as slow. */
const mostHeld = 64 * 1024

/** Writes an event stream to the body of a web Response. */
export class FetchOutlet implements StreamOutlet {
  owner: OutletOwner | undefined = undefined
  readonly tenant: Tenant | undefined
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

  constructor(stallMs: number, tenant: Tenant | undefined, clock: Clock) {
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
    this.#controller?.error(new Error('The reader took nothing for too long'))
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
