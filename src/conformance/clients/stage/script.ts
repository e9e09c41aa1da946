/** The scripted server: takes a frame, finds who answers it, and writes the answer by hand as its revision says. */
import { isRecord } from '../../../jsonrpc/message.ts'
import type { RevisionId } from '../../../revisions/index.ts'
import { type Book, type Frame, metaIn, paramsOf, type Said } from './book.ts'

/** The way back of one message. */
export interface Way {
  readonly line: number
  /** Something before the answer; over HTTP it makes the answer a stream. */
  write(text: string): void
  /** The answer, or with nothing an acknowledgement. */
  finish(text?: string, more?: { readonly status?: number; readonly headers?: Readonly<Record<string, string>> }): void
  /** Ends without an answer, as a broken connection does. */
  cut(): void
  /** Over HTTP: writes on the stream of the answer as it is, to say ids and retry times. */
  stream?(text: string): void
}

/** Given instead of a result: no answer. */
export const silence = Symbol('silence')

/** Thrown instead of a result: a JSON-RPC error. */
export class Refusal extends Error {
  readonly body: Frame
  readonly status: number | undefined

  constructor(code: number, message: string, data?: unknown, status?: number) {
    super(message)
    this.body = { code, message, ...(data === undefined ? {} : { data }) }
    this.status = status
  }
}

/** A request of the client while it is answered. */
export interface Call {
  readonly method: string
  readonly id: unknown
  readonly params: Frame
  readonly meta: Frame
  readonly said: Said
  readonly book: Book
  readonly revision: RevisionId
  readonly way: Way
  /** A notification on the line of this request. */
  tell(method: string, params: Frame): void
  /** A request to the client on the line of this request; undefined: no answer in time. */
  ask(method: string, params: Frame | undefined, id?: unknown): Promise<Frame | undefined>
  /**
   * Asks the client: by requests where the wire has them, else inside a result, to which the client comes back with another call.
   * Gives the answers by their keys; what is missing was not answered.
   */
  questions(asked: Readonly<Record<string, { method: string; params?: Frame }>>, state?: string): Promise<Frame>
}

export type Handler = (call: Call) => unknown
export type Handlers = ReadonlyMap<string, Handler>

/** Thrown by `questions` where they travel inside a result. */
class InputRequired {
  readonly result: Frame
  constructor(result: Frame) {
    this.result = result
  }
}

export interface ScriptOptions {
  readonly book: Book
  readonly revision: RevisionId
  readonly handlers: Handlers
  /** How long an answer of the client is waited for. */
  readonly patienceMs: number
}

const ERA: ReadonlySet<RevisionId> = new Set<RevisionId>(['2026-07-28', 'draft-2026-v1'])
const CACHEABLE = new Set([
  'server/discover',
  'tools/list',
  'prompts/list',
  'resources/list',
  'resources/templates/list',
  'resources/read',
])

export function isStateless(revision: RevisionId): boolean {
  return ERA.has(revision)
}

export class Script {
  readonly #options: ScriptOptions
  #asked = 0

  constructor(options: ScriptOptions) {
    this.#options = options
  }

  /** One message; every way is finished, be it with nothing. */
  async take(said: Said, way: Way): Promise<void> {
    const { frame } = said
    const { handlers } = this.#options
    const method = frame?.['method']
    if (frame === undefined || typeof method !== 'string') return way.finish()
    const handler = handlers.get(method)
    const call = this.#call(method, said, way)
    if (frame['id'] === undefined) {
      way.finish()
      await handler?.(call)
      return
    }
    try {
      if (handler === undefined) throw new Refusal(-32601, `There is no ${method} here`, undefined, this.#unknownStatus)
      const result = await handler(call)
      if (result !== silence) this.#answer(call, { result: this.#whole(method, result) })
    } catch (error) {
      if (error instanceof InputRequired) this.#answer(call, { result: error.result })
      else if (error instanceof Refusal) this.#answer(call, { error: error.body }, error.status)
      else throw error
    }
  }

  get #unknownStatus(): number | undefined {
    return isStateless(this.#options.revision) ? 404 : undefined
  }

  #answer({ id, way, book }: Call, body: Frame, status?: number): void {
    const session = book.notes.get('session')
    const greets = isRecord(body['result']) && 'protocolVersion' in body['result'] && typeof session === 'string'
    way.finish(JSON.stringify({ jsonrpc: '2.0', id, ...body }), {
      ...(status === undefined ? {} : { status }),
      ...(greets ? { headers: { 'mcp-session-id': session } } : {}),
    })
  }

  /** What every result of the stateless wires must carry. */
  #whole(method: string, result: unknown): unknown {
    const { revision } = this.#options
    if (!isStateless(revision) || !isRecord(result)) return result
    const cached = revision === '2026-07-28' && CACHEABLE.has(method) ? { ttlMs: 0, cacheScope: 'private' } : {}
    return { resultType: 'complete', ...cached, ...result }
  }

  #call(method: string, said: Said, way: Way): Call {
    const { book, revision } = this.#options
    const call: Call = {
      method,
      id: said.frame?.['id'],
      params: paramsOf(said),
      meta: metaIn(said),
      said,
      book,
      revision,
      way,
      tell: (name, params) => way.write(JSON.stringify({ jsonrpc: '2.0', method: name, params })),
      ask: (name, params, id = `ask-${++this.#asked}`) => this.ask(way, name, params, id),
      questions: (asked, state) => this.#questions(call, asked, state),
    }
    return call
  }

  async ask(
    way: Pick<Way, 'write'>,
    method: string,
    params: Frame | undefined,
    id: unknown = `ask-${++this.#asked}`,
  ): Promise<Frame | undefined> {
    const { book, patienceMs } = this.#options
    way.write(JSON.stringify({ jsonrpc: '2.0', id, method, ...(params === undefined ? {} : { params }) }))
    const answers = ({ from, frame }: Said): boolean =>
      from === 'client' && frame?.['id'] === id && frame?.['method'] === undefined
    return (await book.until(() => book.said.find(answers), patienceMs))?.frame
  }

  async #questions(
    call: Call,
    asked: Readonly<Record<string, { method: string; params?: Frame }>>,
    state?: string,
  ): Promise<Frame> {
    if (isStateless(call.revision)) {
      const given = call.params['inputResponses']
      if (isRecord(given)) return given
      const requestState = state === undefined ? {} : { requestState: state }
      throw new InputRequired({ resultType: 'input_required', inputRequests: asked, ...requestState })
    }
    const answers: [string, unknown][] = []
    for (const [key, { method, params }] of Object.entries(asked)) {
      const answer = await call.ask(method, params)
      if (answer !== undefined) answers.push([key, 'error' in answer ? { refused: answer['error'] } : answer['result']])
    }
    return Object.fromEntries(answers)
  }
}
