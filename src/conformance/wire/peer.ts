/** A raw peer over any carrier: numbers requests, matches answers, answers what it is asked. */
import { clip } from '../../jsonrpc/limits.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import { objectIn, parsedJson } from '../expectations.ts'
import { Failed, type Frame, type Json, type OpenOptions, type RevisionId } from '../scenario.ts'
import { harmlessMethod, requestMeta } from './envelope.ts'
import { FrameLog } from './frame-log.ts'
import {
  type Answer,
  type AnswerError,
  type Begun,
  type ChildControl,
  type HttpControl,
  letGo,
  type Match,
  type Pipe,
  type RawPeer,
  type RequestOptions,
  refusedBy,
  type SendContext,
  type Sent,
} from './raw-peer.ts'

interface Pending {
  readonly id: unknown
  readonly during: Frame[]
  done(frame: Frame): void
  /** An answer that is meant for it, under what is not quite its id. */
  strange?: Frame
  /** Nothing will come any more. */
  nothing(): void
}

/** How long an answer may take where nothing else is said. */
const answerMs = 10_000
const mostRounds = 10
/** A peer that floods is not written down for ever. */
const mostFrames = 50_000

/** Refuses what must not be sent, by throwing. */
export type SendGuard = (message: unknown) => void

/** A connection to the server that is judged. */
export class WirePeer implements RawPeer {
  readonly revision: RevisionId
  readonly closed: Promise<string>
  hello: Json | undefined
  readonly #pipe: Pipe
  readonly #guard: SendGuard
  readonly #log: FrameLog
  readonly #pending = new Map<number, Pending>()
  readonly #waiting = new Set<() => void>()
  readonly #answers = new Map<string, (params: Json) => unknown>()
  /** What went wrong while a question of the peer was answered: whoever waits for the peer alone would never hear of it. */
  readonly #faults: { readonly error: unknown }[] = []
  #options: OpenOptions
  #nextId = 1
  #end: (reason: string) => void = () => {}
  #ended: string | undefined

  constructor(pipe: Pipe, revision: RevisionId, options: OpenOptions, guard: SendGuard, onFrame?: (frame: Frame) => void) {
    this.#log = new FrameLog(onFrame)
    this.#pipe = pipe
    this.revision = revision
    this.#options = options
    this.#guard = guard
    this.closed = new Promise(resolve => {
      this.#end = resolve
    })
  }

  get carrier() {
    return this.#pipe.carrier
  }

  get http(): HttpControl {
    if (this.#pipe.http === undefined) throw new TypeError(`${this.carrier} does not use HTTP`)
    return this.#pipe.http
  }

  get child(): ChildControl {
    if (this.#pipe.child === undefined) throw new TypeError(`${this.carrier} does not use a process`)
    return this.#pipe.child
  }

  get frames(): readonly Frame[] {
    return this.#log.frames
  }

  get ended(): string | undefined {
    return this.#ended
  }

  get faults(): readonly { readonly error: unknown }[] {
    return this.#faults
  }

  async start(): Promise<void> {
    await this.#pipe.start({
      frame: (text, status, exchange) => this.#hear(text, status, exchange),
      closed: reason => this.#over(reason),
    })
  }

  #over(reason: string): void {
    this.#ended ??= reason
    this.#log.end(reason)
    for (const nothing of this.#waiting) nothing()
    this.#end(reason)
  }

  listen(): Promise<void> {
    return this.#pipe.listen?.() ?? Promise.resolve()
  }

  /** Made ready for another scenario: nothing of the last one is left on this side. */
  renew(options: OpenOptions): void {
    this.#options = options
    this.#log.clear()
    this.#answers.clear()
    this.#pending.clear()
    this.#faults.length = 0
  }

  begin(method: string, params: Json = {}, options: RequestOptions = {}): Begun {
    const number = this.#nextId++
    const id = 'id' in options ? options.id : number
    const message = { jsonrpc: '2.0', id, method, ...this.#params(params, options) }
    const dropped = new AbortController()
    const answer = letGo(this.#ask(number, message, options, dropped.signal))
    return { id, answer, abort: () => dropped.abort() }
  }

  request(method: string, params?: Json, options?: RequestOptions): Promise<Answer> {
    return this.begin(method, params, options).answer
  }

  converse(method: string, params: Json = {}, options: RequestOptions = {}): Promise<Answer> {
    return letGo(this.#converse(method, params, options))
  }

  async #converse(method: string, params: Json, options: RequestOptions): Promise<Answer> {
    let answer = await this.request(method, params, options)
    for (let round = 0; round < mostRounds; round++) {
      const { result } = answer
      if (!isRecord(result) || result['resultType'] !== 'input_required') return answer
      const inputResponses: Record<string, unknown> = {}
      for (const [key, ask] of Object.entries(objectIn(result, 'inputRequests')))
        inputResponses[key] = await this.#answerInside(ask)
      const state = result['requestState'] === undefined ? {} : { requestState: result['requestState'] }
      answer = await this.request(method, { ...params, inputResponses, ...state }, options)
    }
    throw new Failed(`${method} still asks after ${mostRounds} rounds`, [answer.frame])
  }

  notify(method: string, params: Json = {}, options: RequestOptions = {}): Promise<Sent> {
    const meta = options.meta === undefined ? {} : { _meta: options.meta }
    const message = { jsonrpc: '2.0', method, params: { ...params, ...meta } }
    return letGo(this.#send(JSON.stringify(message), message, options))
  }

  send(text: string, options: RequestOptions = {}): Promise<Sent> {
    const value = parsedJson(text)
    return letGo(this.#send(text, isRecord(value) ? value : undefined, options))
  }

  next(match: Match, ms = 5_000): Promise<Frame> {
    return letGo(this.#log.next(match, ms))
  }

  heard(match: Match): readonly Frame[] {
    return this.#log.heard(match)
  }

  hears(match: Match, ms: number): Promise<boolean> {
    return letGo(this.#log.find(match, ms).then(frame => frame !== undefined))
  }

  onRequest(method: string, answer: (params: Json) => unknown): void {
    this.#answers.set(method, answer)
  }

  settled(): Promise<void> {
    return letGo(this.request(harmlessMethod(this.revision)).then(() => undefined))
  }

  async close(): Promise<void> {
    await this.#pipe.close()
  }

  #params(params: Json, options: RequestOptions): { params?: Json } {
    const more = { ...objectIn(params, '_meta'), ...options.meta }
    const bare = Object.keys(more).length === 0 ? undefined : more
    const meta = options.envelope === false ? bare : requestMeta(this.revision, this.#options, more)
    return { params: meta === undefined ? params : { ...params, _meta: meta } }
  }

  async #ask(number: number, message: Json, options: RequestOptions, signal: AbortSignal): Promise<Answer> {
    const { id } = message
    const ms = options.ms ?? answerMs
    const during: Frame[] = []
    const sent: { status?: number; headers?: Readonly<Record<string, string>>; body?: string } = {}
    const found = Promise.withResolvers<Frame | undefined>()
    const nothing = (): void => found.resolve(undefined)
    const timer = setTimeout(nothing, ms)
    const pending: Pending = { id, during, done: found.resolve, nothing }
    this.#pending.set(number, pending)
    const before = this.#log.frames.length
    this.#waiting.add(nothing)
    signal.addEventListener('abort', nothing)
    const onHead = (status: number, headers: Readonly<Record<string, string>>): void =>
      void Object.assign(sent, { status, headers })
    const away = this.#send(JSON.stringify(message), message, options, { exchange: number, signal, onHead })
    away.then(how => {
      Object.assign(sent, how)
      if (this.#isOver(how)) nothing()
    }, found.reject)
    try {
      const frame = await found.promise
      if (frame !== undefined) return answerOf(id, frame, during, sent)
      if (sent.status !== undefined && (sent.body !== undefined || sent.status >= 400))
        return { id, frame: undefined, during, ...sent }
      throw this.#noAnswer(String(message['method']), ms, pending, this.#log.frames.slice(before))
    } finally {
      clearTimeout(timer)
      this.#waiting.delete(nothing)
      this.#pending.delete(number)
    }
  }

  /** An exchange that is over has said all: no answer comes by another way. */
  #isOver(sent: Sent): boolean {
    return this.carrier === 'http' || (sent.status ?? 200) >= 400
  }

  #noAnswer(method: string, ms: number, { id, strange }: Pending, since: readonly Frame[]): Failed {
    if (strange !== undefined) {
      const [asked, got] = typeof id === 'number' ? ['a number', 'a string'] : ['a string', 'a number']
      return new Failed(`the id of a request is ${asked}, and the answer names it as ${got}: it must come back as it was`, [
        since[0],
        strange,
      ])
    }
    const why = this.#ended === undefined ? `within ${ms} ms` : `before the connection ended (${clip(this.#ended, 200)})`
    return new Failed(`${method} was not answered ${why}`, since.slice(0, 6))
  }

  async #send(text: string, message: Json | undefined, options: RequestOptions, way: Partial<SendContext> = {}): Promise<Sent> {
    this.#guard(message ?? parsedJson(text))
    this.#log.add('out', text)
    try {
      return await this.#pipe.send(text, { message, headers: options.headers, ...way })
    } catch (error) {
      if (this.#ended !== undefined)
        throw new Failed(`The connection has ended: ${clip(this.#ended)}`, this.#log.frames.slice(-6))
      throw error
    }
  }

  #hear(text: string, status: number | undefined, exchange: number | undefined): void {
    if (this.#log.frames.length >= mostFrames) return this.#over(`it sent more than ${mostFrames} frames`)
    const frame = this.#log.add('in', text, status)
    const { value } = frame
    if (!isRecord(value)) return
    const isCall = typeof value['method'] === 'string'
    const pending = isCall ? undefined : this.#answered(value, exchange)
    if (pending !== undefined) return pending.done(frame)
    for (const [number, { during }] of this.#pending) if (exchange === undefined || exchange === number) during.push(frame)
    if (!isCall) this.#missed(value, frame)
    if (isCall && 'id' in value) void this.#answer(value)
  }

  /** The request that this answers: by its id, or because it came on its own exchange and names none. */
  #answered(value: Json, exchange: number | undefined): Pending | undefined {
    const own = exchange === undefined ? undefined : this.#pending.get(exchange)
    if (own !== undefined && (own.id === value['id'] || (value['id'] ?? null) === null)) return own
    for (const pending of this.#pending.values()) if (pending.id === value['id']) return pending
    return undefined
  }

  /** A number that comes back as a text, or the other way round, is an answer that nobody can match: it is not waited for in vain. */
  #missed(value: Json, frame: Frame): void {
    const { id } = value
    if (typeof id !== 'string' && typeof id !== 'number') return
    for (const pending of this.#pending.values()) {
      if ((typeof pending.id !== 'string' && typeof pending.id !== 'number') || String(pending.id) !== String(id)) continue
      pending.strange = frame
      pending.nothing()
    }
  }

  async #answer(request: Json): Promise<void> {
    const { id, method, params } = request
    let response: Json
    try {
      response = await this.#response(String(method), objectIn(params))
    } catch (error) {
      this.#faults.push({ error })
      response = { error: { code: -32603, message: 'The kit could not answer' } }
    }
    const message = { jsonrpc: '2.0', id, ...response }
    await this.#send(JSON.stringify(message), message, {}).catch(() => undefined)
  }

  async #response(method: string, params: Json): Promise<Json> {
    if (method === 'ping') return { result: {} }
    const answer = this.#answers.get(method)
    if (answer === undefined) return { error: { code: -32601, message: `The scenario has no answer for ${clip(method)}` } }
    try {
      return { result: await answer(params) }
    } catch (error) {
      return refusedBy(error)
    }
  }

  async #answerInside(ask: unknown): Promise<unknown> {
    const { method = '', params } = objectIn(ask)
    const answer = this.#answers.get(String(method))
    if (answer === undefined)
      throw new Failed(`A result asks for "${clip(String(method))}", which the kit did not declare`, this.#log.frames.slice(-2))
    return answer(objectIn(params))
  }
}

function answerOf(id: unknown, frame: Frame, during: readonly Frame[], sent: Sent | undefined): Answer {
  const value = frame.value as Json
  const error = value['error']
  return {
    id,
    frame,
    during,
    ...sent,
    ...('result' in value ? { result: value['result'] } : {}),
    ...(isRecord(error) ? { error: error as unknown as AnswerError } : {}),
  }
}
