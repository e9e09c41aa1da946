/**
 * The events of one server as an async iterable: subscribes in whatever way the wire offers, polls if nothing is pushed, and resumes at
 * the last cursor after a failure or gap. Each event is yielded once, in the order of the server's feed.
 */

import { toMilliseconds } from '../../../core/clock.ts'
import { backoffMs, isFinalError, pause, steadyMs } from '../../../engine/backoff.ts'
import type { ClientKit } from '../../../engine/client-feature.ts'
import { declaredSettings } from '../../../engine/extensions.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { given, type Id, type Params } from '../../../jsonrpc/message.ts'
import { type ListenFilter, listen } from '../../mcp/subscriptions/messages.ts'
import type { EventsClientOptions } from './client.ts'
import { eventsEndedError, Intake, noEvents, type ServerEvent, subscriptionDenied } from './intake.ts'
import {
  eventsDeclaration,
  eventsExtension,
  pollEvents,
  subscribeEvents,
  unsubscribeEvents,
  type WireBookmark,
  type WireEvent,
  type WireSubscribed,
  type WireSubscription,
  type WireTerminated,
} from './messages.ts'

/** The streams of one client, by what arrives for them. */
export class OpenStreams {
  /** By subscription id. */
  readonly heard = new Map<string, EventStream>()
  /** Listen requests that wait for their acknowledgement, by request id. */
  readonly acknowledged = new Map<string, (honoured: ListenFilter) => void>()
  /** Those that are being read. */
  readonly read = new Set<EventStream>()
}

/** Limit of unread events; beyond it the server has to wait. */
const mostUnread = 1_000
const pollEveryMs = 5_000
/** Number of subscriptions that may end at once before a backoff starts. */
const hasty = 3

/** A stream of events. */
export interface EventReader extends AsyncGenerator<ServerEvent, void, undefined> {
  /** Subscribes if nothing was read yet; resolves when the server has accepted. */
  readonly ready: Promise<void>
}

/** One stream of events across reconnects. */
export class EventStream implements EventReader {
  readonly #kit: ClientKit
  readonly #streams: OpenStreams
  readonly #names: readonly string[]
  readonly #filter: Params | undefined
  readonly #signal: AbortSignal | undefined
  readonly #pollMs: number | undefined
  readonly #intake: Intake
  readonly #stop = new AbortController()
  readonly #ready = Promise.withResolvers<void>()
  #begun = false
  // The server cannot push.
  #polls = false
  // Set when the stream ends; the reason is thrown to the reader.
  #over: { readonly reason: unknown } | undefined = undefined
  #wake: (() => void)[] = []
  /** Ends the current subscription and starts another. */
  #again: () => void = () => {}
  #fail: (error: unknown) => void = () => {}

  constructor(kit: ClientKit, streams: OpenStreams, names: readonly string[], options: EventsClientOptions) {
    this.#kit = kit
    this.#streams = streams
    this.#names = names
    // Read once: the caller may use the object for something else before the stream is read.
    const { filter, after, signal, pollEvery } = options
    this.#filter = filter
    this.#signal = signal
    this.#pollMs = pollEvery === undefined ? undefined : toMilliseconds(pollEvery, 'pollEvery')
    this.#intake = new Intake(after, mostUnread)
  }

  get ready(): Promise<void> {
    this.#begin()
    return this.#ready.promise
  }

  async next(): Promise<IteratorResult<ServerEvent, void>> {
    this.#begin()
    for (;;) {
      const event = this.#over?.reason === stopped ? undefined : this.#intake.shift()
      if (event !== undefined) {
        this.#wakeReaders()
        return { done: false, value: event }
      }
      if (this.#over !== undefined) {
        const { reason } = this.#over
        this.#over = { reason: stopped }
        if (reason === stopped || reason === undefined) return { done: true, value: undefined }
        throw reason
      }
      await this.#change()
    }
  }

  async return(): Promise<IteratorResult<ServerEvent, void>> {
    this.#close()
    return { done: true, value: undefined }
  }

  async throw(error: unknown): Promise<IteratorResult<ServerEvent, void>> {
    this.#close()
    throw error
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#close()
  }

  // ── incoming notifications ──

  event(wire: WireEvent): void {
    this.#judge(this.#intake.take(wire))
  }

  bookmark(wire: WireBookmark): void {
    this.#judge(this.#intake.bookmark(wire))
  }

  terminated({ reason }: WireTerminated): void {
    if (reason === 'revoked' || reason === 'withdrawn') this.#fail(eventsEndedError(reason, this.#names))
    else this.#again()
  }

  /** Notifications may have been lost: resubscribe on session wires. */
  doubt(): void {
    if (!this.#polls && this.#kit.session.opened.revision.era === 'session') this.#again()
  }

  /** Ends the stream. */
  end(reason: unknown): void {
    this.#over ??= { reason }
    if (reason !== undefined) this.#ready.reject(reason)
    this.#leave()
  }

  // A gap or a full queue leads to a new subscription at the last cursor.
  #judge(verdict: ReturnType<Intake['take']>): void {
    if (verdict === 'taken') this.#wakeReaders()
    else if (verdict !== 'known') this.#again()
  }

  // ── staying subscribed ──

  #begin(): void {
    if (this.#signal?.aborted) this.#close()
    if (this.#begun || this.#over !== undefined) return
    this.#begun = true
    // Without a handler a rejection would be reported as unhandled; readers get the error from `next()`.
    this.#ready.promise.catch(() => {})
    this.#streams.read.add(this)
    this.#signal?.addEventListener('abort', this.#onAbort, { once: true })
    this.#run().catch(error => this.end(error))
  }

  async #run(): Promise<void> {
    const { session } = this.#kit
    const { clock } = session.engine
    const { signal } = this.#stop
    for (let failures = 0; !signal.aborted; ) {
      const began = clock.now()
      const { cursor } = this.#intake
      let failed = false
      try {
        await this.#subscribed()
      } catch (error) {
        if (signal.aborted || session.opened.conversation.ended) return
        const isBusy = error instanceof McpError && error.kind === 'busy'
        if (isFinalError(error) && !isBusy) throw error
        session.engine.trace('events-broken', error)
        failed = true
      }
      if (this.#intake.unread >= mostUnread) await this.#drained()
      const moved = this.#intake.cursor !== cursor || clock.now() - began > steadyMs
      failures = moved && !failed ? 0 : failures + 1
      if (!signal.aborted && (failed || failures > hasty)) await pause(clock, backoffMs(failures), signal)
    }
  }

  /** Runs one subscription until it must be renewed. */
  async #subscribed(): Promise<void> {
    const { opened } = this.#kit.session
    const settings = declaredSettings(opened, eventsExtension)
    if (settings === undefined) throw noEvents(this.#names)
    if (settings['supported'] === false) this.#polls = true
    if (this.#polls) return this.#poll(settings['poll_interval_seconds'])
    const id = crypto.randomUUID()
    this.#streams.heard.set(id, this)
    const { promise: over, resolve, reject } = Promise.withResolvers<void>()
    over.catch(() => {})
    this.#again = resolve
    this.#fail = reject
    try {
      await (opened.revision.era === 'request' ? this.#listen(id, over) : this.#subscribe(id, over))
    } finally {
      this.#streams.heard.delete(id)
    }
  }

  #wish(id: string): WireSubscription {
    return { subscription_id: id, events: this.#names, ...given({ filter: this.#filter, cursor: this.#intake.cursor }) }
  }

  // Session wires: `event/subscribe`, then notifications.
  async #subscribe(id: string, over: Promise<void>): Promise<void> {
    const { session } = this.#kit
    const { signal } = this.#stop
    if (!this.#accept(await session.request(subscribeEvents, this.#wish(id), { ...this.#kit.send(), signal }))) return
    await Promise.race([over, aborted(signal)]).finally(() => {
      if (session.opened.conversation.ended || !session.intact) return
      const leaving = session.request(unsubscribeEvents, { subscription_id: id }, this.#kit.send())
      leaving.catch(error => session.engine.trace('unsubscribe-failed', error))
    })
  }

  // Stateless wires: `subscriptions/listen`.
  async #listen(id: string, over: Promise<void>): Promise<void> {
    const { session } = this.#kit
    const { acknowledged } = this.#streams
    const own = new AbortController()
    const { promise: refused, reject } = Promise.withResolvers<never>()
    refused.catch(() => {})
    let key = ''
    const onSent = (sent: Id): void => {
      key = String(sent)
      acknowledged.set(key, honoured => {
        try {
          if (!this.#accept(responseIn(honoured))) this.#again()
        } catch (error) {
          reject(error)
        }
      })
    }
    const request = session.request(
      listen,
      { notifications: { [eventsExtension]: [this.#wish(id)] } },
      {
        ...this.#kit.send(),
        signal: AbortSignal.any([this.#stop.signal, own.signal]),
        timeoutMs: Number.POSITIVE_INFINITY,
        totalMs: Number.POSITIVE_INFINITY,
        declares: eventsDeclaration,
        onSent,
      },
    )
    try {
      await Promise.race([request, over, refused])
    } catch (error) {
      if (!noMethod(error)) throw error
      this.#polls = true
    } finally {
      acknowledged.delete(key)
      own.abort()
      request.catch(() => {})
    }
  }

  /** Handles the server's answer. False: poll instead. Throws if denied. */
  #accept(response: WireSubscribed | undefined): boolean {
    if (response?.status === 'denied') throw subscriptionDenied(response)
    if (response === undefined || response.supported === false) this.#polls = true
    else {
      this.#intake.begin(response.cursor, response.truncated === true)
      this.#ready.resolve()
    }
    return !this.#polls
  }

  async #poll(declaredSeconds: unknown): Promise<void> {
    const { session } = this.#kit
    const { signal } = this.#stop
    while (!signal.aborted) {
      const { subscription_id: _, ...wish } = this.#wish('')
      const page = await session.request(pollEvents, wish, { ...this.#kit.send(), signal }).catch(error => {
        throw noMethod(error) ? noEvents(this.#names) : error
      })
      this.#ready.resolve()
      for (const event of page.events) {
        while (this.#intake.take(event) === 'full') await this.#drained()
        this.#wakeReaders()
      }
      this.#intake.pass(page.cursor, page.truncated && page.events.length === 0)
      const seconds = page.poll_interval_seconds ?? declaredSeconds
      const everyMs = this.#pollMs ?? (typeof seconds === 'number' && seconds > 0 ? seconds * 1_000 : pollEveryMs)
      if (!page.more) await pause(session.engine.clock, everyMs, signal)
    }
  }

  // ── waiting ──

  /** Resolves when half of the queue was read. */
  async #drained(): Promise<void> {
    while (this.#intake.unread > mostUnread / 2 && !this.#stop.signal.aborted) await this.#change()
  }

  #change(): Promise<void> {
    return new Promise(resolve => this.#wake.push(resolve))
  }

  #wakeReaders(): void {
    for (const wake of this.#wake.splice(0)) wake()
  }

  #close(): void {
    this.#over = { reason: stopped }
    this.#leave()
  }

  #leave(): void {
    this.#signal?.removeEventListener('abort', this.#onAbort)
    this.#streams.read.delete(this)
    this.#ready.resolve()
    this.#stop.abort()
    this.#wakeReaders()
  }

  readonly #onAbort = (): void => this.#close()
}

/** The reader has stopped; unread events are dropped too. */
const stopped = Symbol('stopped')

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve()
  return new Promise(resolve => signal.addEventListener('abort', () => resolve(), { once: true }))
}

function noMethod(error: unknown): boolean {
  return error instanceof McpError && (error.kind === 'method-not-found' || error.code === -32601)
}

function responseIn(honoured: ListenFilter): WireSubscribed | undefined {
  const answers = (honoured as Params)[eventsExtension]
  const first: unknown = Array.isArray(answers) ? answers[0] : undefined
  if (first === undefined) return undefined
  if (typeof first !== 'object' || first === null)
    throw new McpError('invalid-result', 'The response of the server to the event subscription is not valid')
  return first as WireSubscribed
}
