/**
 * MCP Live on stateless wires, where only clients send requests: one long-lived `live/listen` request carries the server's messages. It
 * is reopened after the last cursor whenever it ends, and answers go back as separate requests. Also adapts answerers to engine
 * handlers and to deliveries.
 */
import { backoffMs, isFinalError, pause, steadyMs } from '../../engine/backoff.ts'
import type { ClientSession } from '../../engine/client-feature.ts'
import type { Engine } from '../../engine/engine.ts'
import type { Exchange } from '../../engine/exchange.ts'
import { failureOf } from '../../engine/outcome.ts'
import type { Side } from '../../engine/plan.ts'
import { McpError } from '../../jsonrpc/error.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { type Awaitable, isRecord, type Params } from '../../jsonrpc/message.ts'
import type { AnswerContext, Answerer } from './answers/messages.ts'
import { liveErrors, liveExtension, type WireSelection } from './feature-sets/messages.ts'
import { inferenceChunk } from './inference/messages.ts'
import { Deliveries } from './listen/client.ts'
import { answerLive, type ListenEnd, listenLive, type WireAnswer, type WireDelivery, type WireListen } from './listen/messages.ts'

interface ListenerParts {
  readonly session: ClientSession
  readonly hostId: string
  /** What the host declares about itself. */
  readonly host: Params
  /** Computes the answer to one delivery. */
  answer(delivery: WireDelivery, asked: AnswerContext): Promise<unknown>
  /** Called when the server finally refuses to be listened to. */
  disconnected(error: unknown): void
}

/** Number of streams in a row that may end at once before a backoff starts. */
const hasty = 3

/** Listens to a live server on a stateless wire and answers what it delivers. */
export class LiveListener {
  readonly #parts: ListenerParts
  readonly #deliveries = new Deliveries()
  readonly #running = new Map<string, AbortController>()
  readonly #stop = new AbortController()
  /** Calls of `select` that wait for the stream to open. */
  readonly #heard = new Set<AbortController>()
  // The selection that the next stream is opened with.
  #policy: WireSelection | undefined = undefined
  // Aborted to reopen the stream under another selection.
  #open: AbortController | undefined = undefined

  constructor(parts: ListenerParts) {
    this.#parts = parts
  }

  /** Reopens the stream with this selection; resolves when the server has opened it, or after a timeout. */
  async select(policy: WireSelection): Promise<void> {
    const first = this.#policy === undefined
    this.#policy = policy
    const waiting = new AbortController()
    this.#heard.add(waiting)
    if (first) {
      this.#run().catch(error => {
        this.#proceed()
        this.#parts.disconnected(error)
      })
    } else this.#open?.abort(again)
    await pause(this.#parts.session.engine.clock, silenceMs, waiting.signal, true)
    this.#heard.delete(waiting)
  }

  /** The server has opened the stream: where it starts, and how many deliveries are repeated. */
  opened(params: Params): void {
    const { cursor, redelivers } = params as { readonly cursor: string; readonly redelivers: number }
    this.#deliveries.begin(cursor, redelivers)
    this.#proceed()
  }

  // Wakes all callers of `select`.
  #proceed(): void {
    for (const waiting of this.#heard) waiting.abort()
  }

  // Ends the stream and cancels all running answers.
  close(): void {
    this.#stop.abort()
    this.#proceed()
    for (const running of this.#running.values()) running.abort()
  }

  // ── keeping the stream open ──

  async #run(): Promise<void> {
    const { session } = this.#parts
    const { clock } = session.engine
    const { signal } = this.#stop
    for (let failures = 0; !signal.aborted && !session.opened.conversation.ended; ) {
      const began = clock.now()
      const { cursor } = this.#deliveries
      let failed = false
      try {
        await this.#listen()
      } catch (error) {
        if (signal.aborted) return
        // Reopening with a new selection is not a failure.
        if (error !== again) {
          if (isFinalError(error) && !isBusy(error)) throw error
          session.engine.trace('live-listen-broken', error)
          failed = true
        }
      }
      // A stream that delivered something or lasted a while resets the backoff.
      const moved = this.#deliveries.cursor !== cursor || clock.now() - began > steadyMs
      failures = moved && !failed ? 0 : failures + 1
      if (failed || failures > hasty) await pause(clock, backoffMs(failures), signal, true)
    }
  }

  // Opens one stream; the request has no timeout.
  async #listen(): Promise<ListenEnd> {
    const { session, hostId, host } = this.#parts
    const { cursor } = this.#deliveries
    const own = new AbortController()
    this.#open = own
    const wish: WireListen = { hostId, ...(cursor === undefined ? {} : { after: cursor }), policy: this.#policy, host }
    return session.request(listenLive, wish as never, {
      signal: AbortSignal.any([this.#stop.signal, own.signal]),
      timeoutMs: Number.POSITIVE_INFINITY,
      totalMs: Number.POSITIVE_INFINITY,
    })
  }

  // ── deliveries ──

  /** Handles one delivery: starts it, repeats a known answer, or ignores a duplicate that is still running. */
  deliver(params: Params): void {
    const delivery = params as unknown as WireDelivery
    if (delivery.method === 'notifications/cancelled') return this.#cancel(delivery)
    const taken = this.#deliveries.take(delivery)
    if (taken === 'wait') return
    if (taken === 'work') this.#work(delivery).catch(error => this.#parts.session.engine.trace('live-delivery-failed', error))
    else this.#send(taken).catch(error => this.#parts.session.engine.trace('live-answer-lost', error))
  }

  // The server cancels a delivery by a notification on the stream.
  #cancel({ params }: WireDelivery): void {
    const { requestId } = params
    if (typeof requestId === 'string')
      this.#running.get(requestId)?.abort(new DOMException('The server cancelled the request', 'AbortError'))
  }

  // Runs an answerer, and sends its answer.
  async #work(delivery: WireDelivery): Promise<void> {
    const { deliveryId } = delivery
    const running = new AbortController()
    this.#running.set(deliveryId, running)
    const asked: AnswerContext = {
      signal: running.signal,
      chunk: async (index, delta) => {
        if (!running.signal.aborted) await this.#request({ deliveryId, chunks: [{ index, delta }] })
      },
    }
    try {
      const answer = await this.#answer(delivery, asked)
      // A cancelled delivery gets no answer.
      if (!delivery.answer || running.signal.aborted) return this.#deliveries.done(deliveryId)
      this.#deliveries.answered(answer)
      await this.#send(answer)
    } finally {
      this.#running.delete(deliveryId)
    }
  }

  // Turns a thrown error into an error answer.
  async #answer(delivery: WireDelivery, asked: AnswerContext): Promise<WireAnswer> {
    const { session, answer } = this.#parts
    try {
      const result = await answer(delivery, asked)
      return { deliveryId: delivery.deliveryId, result: isRecord(result) ? result : {} }
    } catch (error) {
      if (!delivery.answer) session.engine.trace('live-delivery-failed', error)
      return { deliveryId: delivery.deliveryId, error: errorIn(session.engine, error) }
    }
  }

  /** Retries until the server accepts or refuses the answer. An answer that never arrives is asked for again, and repeated. */
  async #send(answer: WireAnswer): Promise<void> {
    const { clock, trace } = this.#parts.session.engine
    const { signal } = this.#stop
    for (let failures = 1; !signal.aborted; failures++) {
      try {
        await this.#request(answer)
        return this.#deliveries.done(answer.deliveryId)
      } catch (error) {
        // An error response means that the server received the answer.
        if (error instanceof McpError && error.kind !== 'timeout') return this.#deliveries.done(answer.deliveryId)
        if (failures >= mostTries || isFinalError(error)) throw error
        trace('live-answer-failed', error)
        await pause(clock, backoffMs(failures), signal, true)
      }
    }
  }

  // Sends an answer, or a piece of one.
  #request(answer: WireAnswer): Promise<unknown> {
    const { session, hostId } = this.#parts
    const options = { signal: this.#stop.signal, meta: { [liveExtension]: { hostId } } }
    return session.request(answerLive, answer as never, options)
  }
}

/** An error with `retryAfterMs` means "come back later", not a refusal. */
function isBusy(error: unknown): boolean {
  return error instanceof McpError && isRecord(error.data) && typeof error.data['retryAfterMs'] === 'number'
}

/** Attempts to send one answer. */
const mostTries = 8
/** How long to wait for the server to open a stream. */
const silenceMs = 15_000
/** The abort reason for reopening the stream. */
const again = new DOMException('The stream is being reopened', 'AbortError')

// Adapters from answerers to engine handlers and to deliveries.

/** Runs an answerer at once or, for data, after the server knows the selection. */
type Admit = (answerer: Answerer, params: Params, asked: AnswerContext) => Awaitable<unknown>

/** Wraps answerers as handlers of the engine, for session wires. */
export function answeringHandlers(
  answerers: readonly Answerer[],
  admit: Admit,
  offered: () => boolean,
): NonNullable<Side['handlers']> {
  return answerers.map(answerer => [
    answerer.method,
    { offered, execute: (exchange: Exchange) => admit(answerer, exchange.params, asking(exchange)) },
  ])
}

// The answer context of a request on a session wire.
function asking(exchange: Exchange): AnswerContext {
  return {
    get signal() {
      return exchange.signal
    },
    chunk: async (index, delta) => {
      const { engine, conversation, id, answered } = exchange
      // The id keeps its JSON type: "7" and 7 are different ids.
      if (id !== undefined && !answered) await engine.tell(conversation, inferenceChunk, { requestId: id, index, delta })
    },
  }
}

/** Dispatches deliveries to answerers by method name, requests apart from notifications; throws what a delivery is refused with. */
export function deliveryAnswers(
  answerers: readonly Answerer[],
  admit: Admit,
  refused: (method: string, params: unknown, error: unknown) => void,
): (delivery: WireDelivery, asked: AnswerContext) => Promise<unknown> {
  const table = new Map(answerers.map(answerer => [`${answerer.method.kind} ${answerer.method.name}`, answerer]))
  return async ({ method, params, answer }, asked) => {
    const answerer = table.get(`${answer ? 'request' : 'notification'} ${method}`)
    if (answerer === undefined) throw new McpError('method-not-found', `There is no method "${clip(method)}"`)
    const fault = answerer.method.params.check(params)
    if (fault === undefined) return admit(answerer, params, asked)
    const where = fault.path === '' ? 'params' : `params.${clip(fault.path)}`
    const error = new McpError('invalid-params', `${where} must be ${fault.expected}`)
    refused(method, params, error)
    throw error
  }
}

/** Uses the error numbers of MCP Live, because the error is nested inside a request of another protocol. */
function errorIn(engine: Engine, thrown: unknown): NonNullable<WireAnswer['error']> {
  const failure = failureOf(thrown)
  if (failure.kind === 'internal') engine.trace('internal', failure.cause ?? failure)
  const own = new Map(Object.entries(liveErrors)).get(failure.kind)
  const code = own?.default ?? engine.outcome.number(failure, engine.fallback)
  return { code, message: failure.message, ...(failure.data === undefined ? {} : { data: failure.data }) }
}
