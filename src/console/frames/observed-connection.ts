/** A connection to a server with everything written down that passes, on which frames can be sent again beside those of the client. */
import type { Clock } from '../../core/clock.ts'
import { realClock } from '../../core/clock.ts'
import type { Connection, Sink } from '../../jsonrpc/connection.ts'
import { type Id, isId, isRecord } from '../../jsonrpc/message.ts'
import { jsonValue, messagesOf } from '../../recording/format.ts'
import { foreignOutgoing } from '../../recording/frame-sender.ts'
import { type RevisionId, revisionById } from '../../revisions/index.ts'
import type { ConnectionRow, FrameRow, FrameWay } from '../contract/frames.ts'
import { passing, type SentFrame } from './http-heads.ts'
import type { FrameRedaction } from './redaction.ts'
import type { FrameRing, StoredFrame } from './ring.ts'
import { type FrameSummary, summaryOf } from './summary.ts'

/** Requests that are remembered until they are answered. */
const mostOpen = 2_000

interface ObservedParts {
  readonly name: string
  readonly server: string
  readonly clock: Clock
  readonly ring: FrameRing
  readonly redaction: FrameRedaction
  /** It was opened, its revision is known, or it has ended. */
  changed(connection: ObservedConnection): void
}

/** A request without an answer. */
interface OpenRequest {
  readonly stored: StoredFrame
  readonly method: string
  readonly token: unknown
  readonly began: number
  readonly sent?: SentFrame
}

/** One connection, observed. */
export class ObservedConnection {
  readonly #parts: ObservedParts
  readonly #inner: Connection
  readonly #since: number
  readonly #now: () => number
  /** By the way that the request went, and its id. */
  readonly #requests: Readonly<Record<FrameWay, Map<Id, OpenRequest>>> = { out: new Map(), in: new Map() }
  /** Ids of frames that were sent again: their answers are not for the client. */
  readonly #again = new Set<Id>()
  #repeated = 0
  #revision: RevisionId | undefined
  #end: { readonly at: number; readonly why?: string } | undefined

  constructor(inner: Connection, parts: ObservedParts) {
    this.#inner = inner
    this.#parts = parts
    this.#now = preciseTime(parts.clock)
    this.#since = parts.clock.now()
    this.#mark('open', `over ${inner.carrier}`)
    parts.changed(this)
  }

  get row(): ConnectionRow {
    const { name, server } = this.#parts
    return {
      ...{ name, server, carrier: this.#inner.carrier, open: this.#end === undefined, since: this.#since },
      ...(this.#revision !== undefined && { revision: this.#revision }),
      ...(this.#end !== undefined && { until: this.#end.at }),
      ...(this.#end?.why !== undefined && { why: this.#end.why }),
    }
  }

  /** The connection as the client gets it. */
  get connection(): Connection {
    const inner = this.#inner
    const { listen, drop, rest, expire } = inner
    return {
      carrier: inner.carrier,
      ...(inner.caller === undefined ? {} : { caller: inner.caller }),
      start: sink => inner.start(this.#sinkFor(sink)),
      send: (text, outgoing) => {
        const sent = this.#out(text)
        return passing.run({ call: passing.getStore()?.call, sent }, () => inner.send(text, outgoing))
      },
      ...(listen === undefined ? {} : { listen: (outgoing, user) => listen.call(inner, outgoing, user) }),
      ...(drop === undefined ? {} : { drop: (id, reason) => drop.call(inner, id, reason) }),
      ...(rest === undefined ? {} : { rest: ms => rest.call(inner, ms) }),
      ...(expire === undefined ? {} : { expire: () => expire.call(inner) }),
      close: () => inner.close(),
    }
  }

  /** The revision is known. */
  settle(revision: RevisionId): void {
    this.#revision = revision
    this.#parts.changed(this)
  }

  /** Sends a frame with new ids. What cannot be delivered is told in a row. */
  again(text: string, of: number): { readonly n: number; readonly id?: Id } {
    const { text: renewed, id } = this.#renewed(text)
    const sent = this.#out(renewed, of)
    const { n } = sent.stored.row
    const settled = this.#revision === undefined ? undefined : revisionById(this.#revision)
    const failed = (error: unknown): void => {
      const about = error instanceof Error ? error.message : String(error)
      this.#add({ way: 'in', kind: 'http', of: n, status: 'error', bytes: 0, about: this.#parts.redaction.text(about) })
    }
    try {
      const accepted = passing.run({ sent }, () => this.#inner.send(renewed, foreignOutgoing(renewed, this.#inner, settled)))
      accepted?.catch(failed)
    } catch (error) {
      failed(error)
    }
    return { n, ...(id !== undefined && { id }) }
  }

  /** Adds a row that is no frame. */
  note(row: Pick<FrameRow, 'way' | 'kind'> & Partial<FrameRow>, more: Pick<Partial<StoredFrame>, 'head'> = {}): number {
    return this.#add({ bytes: 0, ...row }, more).row.n
  }

  #sinkFor(sink: Sink): Sink {
    return {
      frame: (text, status, within) => {
        if (this.#in(text, status, within)) sink.frame(text, status, within)
      },
      fault: fault => {
        this.#add({ way: 'in', kind: 'invalid', bytes: 0, about: fault.message })
        sink.fault(fault)
      },
      closed: reason => {
        this.#closed(reason)
        sink.closed(reason)
      },
      hold: (id, held) => sink.hold?.(id, held),
      released: (id, retryMs) => sink.released?.(id, retryMs),
      quiet: () => sink.quiet?.() ?? Promise.resolve(),
    }
  }

  #closed(reason: Error | undefined): void {
    if (this.#end !== undefined) return
    const why = reason === undefined ? undefined : this.#parts.redaction.text(reason.message).slice(0, 500)
    this.#end = { at: this.#parts.clock.now(), ...(why !== undefined && { why }) }
    this.#mark('closed', why ?? '')
    this.#requests.out.clear()
    this.#requests.in.clear()
    this.#parts.changed(this)
  }

  #out(text: string, again?: number): SentFrame {
    const { stored, summary } = this.#frame('out', text, { ...(again !== undefined && { again }) })
    const sent: SentFrame = { text, stored }
    for (const asked of summary.asks) this.#open('out', asked, stored, sent)
    return sent
  }

  /** Whether the client gets it. */
  #in(text: string, http: number | undefined, within: Id | undefined): boolean {
    const { stored, summary } = this.#frame('in', text, { ...(http !== undefined && { http }) }, within)
    for (const asked of summary.asks) this.#open('in', asked, stored)
    const { answers, asks } = summary
    if (answers.length === 0 || asks.length > 0 || !answers.every(id => this.#again.has(id))) return true
    for (const id of answers) this.#again.delete(id)
    return false
  }

  #frame(way: FrameWay, text: string, more: Partial<FrameRow>, within?: Id): { stored: StoredFrame; summary: FrameSummary } {
    const clean = this.#parts.redaction.frame(text)
    const summary = summaryOf(clean.value, clean.text)
    const { kind, id, status, code, about, method } = summary
    const other = way === 'out' ? 'in' : 'out'
    const request = this.#requestOf(summary, other, within)
    const isAnswer = summary.answers.length > 0 && request !== undefined
    const ms = isAnswer ? Math.round((performance.now() - request.began) * 100) / 100 : undefined
    const named = method ?? (isAnswer ? request.method : undefined)
    const row = {
      ...{ way, kind, bytes: Buffer.byteLength(text), about, ...more },
      ...(named !== undefined && { method: named }),
      ...(id !== undefined && { id }),
      ...(status !== undefined && { status }),
      ...(code !== undefined && { code }),
      ...(request !== undefined && { of: request.stored.row.n }),
      ...(ms !== undefined && { ms }),
    }
    const call = request?.stored.call ?? passing.getStore()?.call
    const head = isAnswer ? request.sent?.answer : undefined
    const stored = this.#add(row, {
      text: clean.text,
      taken: clean.taken,
      ...(call !== undefined && { call }),
      ...(head !== undefined && { head }),
    })
    for (const answered of summary.answers) this.#answered(other, answered, stored)
    return { stored, summary }
  }

  /** The request that a frame answers, tells the progress of, or came on the stream of. */
  #requestOf({ answers, token }: FrameSummary, way: FrameWay, within: Id | undefined): OpenRequest | undefined {
    const requests = this.#requests[way]
    const [answered] = answers
    if (answered !== undefined) return requests.get(answered)
    if (token !== undefined) for (const request of requests.values()) if (request.token === token) return request
    return within === undefined ? undefined : requests.get(within)
  }

  #open(way: FrameWay, { id, method, token }: FrameSummary['asks'][number], stored: StoredFrame, sent?: SentFrame): void {
    const requests = this.#requests[way]
    const [oldest] = requests.keys()
    if (requests.size >= mostOpen && oldest !== undefined) requests.delete(oldest)
    requests.set(id, { stored, method, token, began: performance.now(), ...(sent !== undefined && { sent }) })
  }

  #answered(way: FrameWay, id: Id, answer: StoredFrame): void {
    const request = this.#requests[way].get(id)
    if (request === undefined) return
    this.#requests[way].delete(id)
    const { n, ms, status, code } = answer.row
    request.stored.row = {
      ...request.stored.row,
      answer: n,
      ...(ms !== undefined && { ms }),
      ...(status !== undefined && { status }),
      ...(code !== undefined && { code }),
    }
  }

  #mark(kind: 'open' | 'closed', about: string): void {
    this.#add({ way: 'out', kind, bytes: 0, about })
  }

  #add(
    row: Omit<FrameRow, 'n' | 'at' | 'server' | 'connection'>,
    { taken = 0, ...more }: Partial<Omit<StoredFrame, 'row' | 'cut'>> = {},
  ): StoredFrame {
    const { server, name: connection } = this.#parts
    return this.#parts.ring.add({ ...more, taken, row: { at: this.#now(), server, connection, ...row } })
  }

  /** The same frame with ids of its own. */
  #renewed(text: string): { readonly text: string; readonly id?: Id } {
    const value = jsonValue(text)
    const ids = messagesOf(value).filter(({ id, method }) => isId(id) && typeof method === 'string')
    if (ids.length === 0) return { text }
    let first: Id | undefined
    const one = (message: unknown): unknown => {
      if (!isRecord(message) || !isId(message['id']) || typeof message['method'] !== 'string') return message
      const id = `again-${++this.#repeated}`
      this.#again.add(id)
      first ??= id
      return { ...message, id }
    }
    const renewed = JSON.stringify(Array.isArray(value) ? value.map(one) : one(value))
    return { text: renewed, ...(first !== undefined && { id: first }) }
  }
}

/** The time with parts of milliseconds, where the clock is that of the machine. */
function preciseTime(clock: Clock): () => number {
  if (clock !== realClock) return () => clock.now()
  let base = Date.now() - performance.now()
  return () => {
    const at = base + performance.now()
    // The clock of the machine was set, or it slept.
    if (Math.abs(at - Date.now()) > 50) base = Date.now() - performance.now()
    return Math.round((base + performance.now()) * 100) / 100
  }
}
