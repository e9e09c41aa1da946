/**
 * One session over HTTP, seen as a duplex connection: answers find the exchange that asked. What is sent unasked goes on the stream of the
 * exchange that it names, else on the one kept open for it, else it waits.
 */
import { subscriptionKey } from '../engine/reserved.ts'
import { type Connection, ConnectionError, type Lane, type Outgoing, type SendHints, type Sink } from '../jsonrpc/connection.ts'
import { type Id, isId, isRecord, notificationFrame } from '../jsonrpc/message.ts'
import { parse } from '../jsonrpc/parse.ts'

interface Exchange {
  readonly lane: Lane
  /** The ids under which its answers are awaited here, each with the one that the client gave. */
  readonly open: Map<Id, Id>
  readonly tokens: Set<unknown>
}

/** The most frames that wait for a stream to be opened. */
const mostWaiting = 100

/** A session, or all that names none. */
export class HttpSession implements Connection {
  readonly carrier = 'http'
  readonly #session: string | undefined
  readonly #exchanges = new Map<Id, Exchange>()
  readonly #waiting: string[] = []
  readonly #closers: (() => void)[] = []
  #listener: Lane | undefined = undefined
  #sink: Sink | undefined = undefined
  #renamed = 0
  #opening = true
  ended = false

  constructor(session: string | undefined) {
    this.#session = session
  }

  start(sink: Sink): void {
    this.#sink = sink
  }

  onClose(fn: () => void): void {
    this.#closers.push(fn)
  }

  /** A posted body, and the way back. */
  take(text: string, value: unknown, lane: Lane): void {
    const requests = (Array.isArray(value) ? value : [value]).filter(isRequest)
    const exchange: Exchange = { lane, open: new Map(), tokens: new Set(requests.map(tokenOf)) }
    const names = new Map<Id, Id>()
    for (const { id } of requests) {
      // Clients that share a session know nothing of each other's ids.
      const own: Id = this.#exchanges.has(id) ? `${id}#${++this.#renamed}` : id
      if (own !== id) names.set(id, own)
      exchange.open.set(own, id)
      this.#exchanges.set(own, exchange)
    }
    lane.onClose(() => this.#left(exchange))
    this.#sink?.frame(names.size === 0 ? text : renamed(value, names))
    if (requests.length === 0) lane.end()
  }

  /** A stream for what is said unasked; a second one takes the place of the first. */
  hear(lane: Lane): void {
    this.#listener?.end()
    this.#listener = lane
    for (const frame of this.#waiting.splice(0)) lane.send(frame)
  }

  /** `outgoing.id` says whose answer it is, where that cannot be read from it. */
  send(text: string, outgoing?: Outgoing): void | Promise<void> {
    if (this.ended) return Promise.reject(new ConnectionError('lost', 'The client has left'))
    const value = parsedFrame(text)
    if (value === undefined) return this.#spoilt(text, outgoing?.id)
    const parts = Array.isArray(value) ? value : [value]
    const answered = parts.find(part => isRecord(part) && part['method'] === undefined && isId(part['id']))
    if (isRecord(answered)) return this.#answer(text, value, parts)
    const [first] = parts
    const lane = this.#related(first) ?? this.#open(this.#listener) ?? this.#newest()
    if (lane !== undefined) lane.send(text, this.#hints())
    else if (this.#waiting.length < mostWaiting) this.#waiting.push(text)
  }

  async close(): Promise<void> {
    if (this.ended) return
    this.ended = true
    const gone = { status: 502, headers: { connection: 'close' } }
    for (const { lane } of new Set(this.#exchanges.values())) lane.end(gone)
    this.#exchanges.clear()
    this.#listener?.end()
    for (const fn of this.#closers) fn()
    this.#sink?.closed()
  }

  #answer(text: string, value: unknown, parts: readonly unknown[]): void {
    const names = new Map<Id, Id>()
    let exchange: Exchange | undefined
    for (const part of parts) {
      if (!isRecord(part) || part['method'] !== undefined || !isId(part['id'])) continue
      const found = this.#exchanges.get(part['id'])
      const given = found?.open.get(part['id'])
      if (found === undefined || given === undefined) continue
      exchange = found
      found.open.delete(part['id'])
      this.#exchanges.delete(part['id'])
      if (given !== part['id']) names.set(part['id'], given)
    }
    if (exchange === undefined) return
    const final = exchange.open.size === 0
    exchange.lane.send(names.size === 0 ? text : renamed(value, names), { final, ...this.#hints() })
  }

  #spoilt(text: string, id: Id | undefined): void {
    const exchange = id === undefined ? undefined : this.#exchanges.get(id)
    if (exchange === undefined || id === undefined) return
    exchange.open.delete(id)
    this.#exchanges.delete(id)
    exchange.lane.send(text, { final: exchange.open.size === 0, ...this.#hints() })
  }

  /** The first thing that is sent names the session. */
  #hints(): SendHints {
    if (!this.#opening || this.#session === undefined) return {}
    this.#opening = false
    return { headers: { 'mcp-session-id': this.#session } }
  }

  /** The exchange that it names: by its progress token, or as the subscription that it belongs to. */
  #related(frame: unknown): Lane | undefined {
    if (!isRecord(frame) || !isRecord(frame['params'])) return undefined
    const { params } = frame
    const meta = isRecord(params['_meta']) ? params['_meta'] : {}
    const subscription = meta[subscriptionKey]
    if (isId(subscription)) return this.#open(this.#exchanges.get(subscription)?.lane)
    const token = params['progressToken']
    if (token === undefined) return undefined
    for (const { tokens, lane } of this.#exchanges.values()) if (tokens.has(token)) return this.#open(lane)
    return undefined
  }

  #newest(): Lane | undefined {
    return this.#open([...this.#exchanges.values()].at(-1)?.lane)
  }

  #open(lane: Lane | undefined): Lane | undefined {
    return lane === undefined || lane.closed || lane.answerOnly === true ? undefined : lane
  }

  #left(exchange: Exchange): void {
    for (const id of exchange.open.keys()) {
      this.#exchanges.delete(id)
      // Where there are no sessions, whoever hangs up has cancelled; a pipe has to be told so.
      if (this.#session === undefined && !this.ended)
        this.#sink?.frame(notificationFrame('notifications/cancelled', { requestId: id, reason: 'The client hung up' }))
    }
    exchange.open.clear()
  }
}

/** Undefined for what is no JSON, or too deep. */
export function parsedFrame(text: string): unknown {
  try {
    return parse(text)
  } catch {
    return undefined
  }
}

function isRequest(value: unknown): value is { id: Id; params?: unknown } {
  return isRecord(value) && typeof value['method'] === 'string' && isId(value['id'])
}

function tokenOf({ params }: { params?: unknown }): unknown {
  return isRecord(params) && isRecord(params['_meta']) ? params['_meta']['progressToken'] : undefined
}

function renamed(value: unknown, names: ReadonlyMap<Id, Id>): string {
  const one = (part: unknown): unknown =>
    isRecord(part) && isId(part['id']) ? { ...part, id: names.get(part['id']) ?? part['id'] } : part
  return JSON.stringify(Array.isArray(value) ? value.map(one) : one(value))
}
