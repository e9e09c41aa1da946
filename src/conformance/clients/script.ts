/** The script of the server: takes a message, finds what answers it, and writes the answer by hand as its revision says. */
import { isRecord } from '../../jsonrpc/message.ts'
import type { Json, RevisionId } from '../scenario.ts'
import { isStateless } from '../wire/envelope.ts'
import type { LoggedMessage, MessageLog } from './log.ts'
import type { ServedMethods } from './play.ts'

/** The way back for one message. */
export interface ReplyChannel {
  /** The number of the connection or HTTP exchange. */
  readonly line: number
  /** Sends something before the answer. Over HTTP the response becomes a stream. */
  write(text: string): void
  /** Sends the answer, or without a text an acknowledgement. */
  finish(
    text?: string,
    more?: {
      /** The HTTP status. Default 200 with a text, else 202. */
      readonly status?: number
      /** Further response headers. */
      readonly headers?: Readonly<Record<string, string>>
    },
  ): void
  /** Ends without an answer, like a broken connection. */
  cut(): void
  /** Over HTTP: writes raw text to the response stream, for example event ids and retry times. */
  stream?(text: string): void
}

/** Given instead of a result: no answer. */
export const noAnswer = Symbol('no answer')

/** A JSON-RPC error, to return or throw instead of a result. */
export class Refusal extends Error {
  /** The error object of the response. */
  readonly body: Json
  /** The HTTP status of the response. Undefined: that of the revision. */
  readonly status: number | undefined

  constructor(code: number, message: string, data?: unknown, status?: number) {
    super(message)
    this.body = { code, message, ...(data === undefined ? {} : { data }) }
    this.status = status
  }
}

/** Questions of the server to its client, by the keys of the answers. */
export type Questions = Readonly<
  Record<
    string,
    {
      /** The method of the question, for example `elicitation/create`. */
      readonly method: string
      /** The params of the question. */
      readonly params?: Json
    }
  >
>

/** A request of the client while it is answered. */
export interface ClientRequest extends Pick<LoggedMessage, 'id' | 'params' | 'meta' | 'args'> {
  /** All messages of the play so far. */
  readonly log: MessageLog
  /** The revision of the play. */
  readonly revision: RevisionId
  /** Sends the answer. */
  readonly reply: ReplyChannel
  /** Sends a notification on the line of this request. */
  tell(method: string, params: Json): void
  /** Sends a request to the client on the line of this request. Undefined if there is no answer in time. */
  ask(method: string, params: Json | undefined, id?: unknown): Promise<Json | undefined>
  /**
   * Asks the client: by requests, or in revisions without them in a result, after which the client calls again. Returns the
   * answers by key; a missing one was not given.
   */
  questions(asked: Questions, state?: string): Promise<Json>
}

/** Answers a request: returns the result or `noAnswer`, or throws a `Refusal`. */
export type Handler = (request: ClientRequest) => unknown

/** Thrown by `questions` where they travel inside a result. */
class InputRequired {
  readonly result: Json
  constructor(result: Json) {
    this.result = result
  }
}

interface ScriptOptions {
  readonly log: MessageLog
  readonly revision: RevisionId
  /** How long an answer of the client is waited for. */
  readonly waitMs: number
}

const CACHEABLE = new Set([
  'server/discover',
  'tools/list',
  'prompts/list',
  'resources/list',
  'resources/templates/list',
  'resources/read',
])

/** Answers the messages of one client, by what the play serves. */
export class Script {
  /** Filled before the client comes. */
  serves: ServedMethods = {}
  readonly #options: ScriptOptions
  #asked = 0

  constructor(options: ScriptOptions) {
    this.#options = options
  }

  /** One message; every reply is finished, be it with nothing. */
  async take(message: LoggedMessage, reply: ReplyChannel): Promise<void> {
    const { frame, method } = message
    if (typeof method !== 'string') return reply.finish()
    const served = this.serves[method]
    const request = this.#request(message, reply)
    if (frame?.['id'] === undefined) {
      reply.finish()
      if (typeof served === 'function') await served(request)
      return
    }
    try {
      if (served === undefined) throw new Refusal(-32601, `There is no ${method} here`, undefined, this.#unknownStatus)
      if (served instanceof Refusal) throw served
      const result: unknown = typeof served === 'function' ? await served(request) : served
      if (result !== noAnswer) this.#answer(request, { result: this.#whole(method, result) })
    } catch (error) {
      if (error instanceof InputRequired) this.#answer(request, { result: error.result })
      else if (error instanceof Refusal) this.#answer(request, { error: error.body }, error.status)
      else throw error
    }
  }

  get #unknownStatus(): number | undefined {
    return isStateless(this.#options.revision) ? 404 : undefined
  }

  #answer({ id, reply, log }: ClientRequest, body: Json, status?: number): void {
    const session = log.notes.get('session')
    const greets = isRecord(body['result']) && 'protocolVersion' in body['result'] && typeof session === 'string'
    reply.finish(JSON.stringify({ jsonrpc: '2.0', id, ...body }), {
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

  #request({ id, params, meta, args }: LoggedMessage, reply: ReplyChannel): ClientRequest {
    const { log, revision } = this.#options
    const request: ClientRequest = {
      ...{ id, params, meta, args, log, revision, reply },
      tell: (method, told) => reply.write(JSON.stringify({ jsonrpc: '2.0', method, params: told })),
      ask: (method, asked, as) => this.ask(reply, method, asked, as),
      questions: (asked, state) => this.#questions(request, asked, state),
    }
    return request
  }

  async ask(
    reply: Pick<ReplyChannel, 'write'>,
    method: string,
    params: Json | undefined,
    id: unknown = `ask-${++this.#asked}`,
  ): Promise<Json | undefined> {
    const { log, waitMs } = this.#options
    reply.write(JSON.stringify({ jsonrpc: '2.0', id, method, ...(params === undefined ? {} : { params }) }))
    const answers = (one: LoggedMessage): boolean => one.from === 'client' && one.id === id && one.method === undefined
    return (await log.until(() => log.messages.find(answers), waitMs))?.frame
  }

  async #questions(request: ClientRequest, asked: Questions, state?: string): Promise<Json> {
    if (isStateless(request.revision)) {
      const given = request.params['inputResponses']
      if (isRecord(given)) return given
      const requestState = state === undefined ? {} : { requestState: state }
      throw new InputRequired({ resultType: 'input_required', inputRequests: asked, ...requestState })
    }
    const answers: [string, unknown][] = []
    for (const [key, { method, params }] of Object.entries(asked)) {
      const answer = await request.ask(method, params)
      if (answer !== undefined) answers.push([key, 'error' in answer ? { refused: answer['error'] } : answer['result']])
    }
    return Object.fromEntries(answers)
  }
}
