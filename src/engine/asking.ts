/** Questions that a handler asks its caller in the middle of a call. Linear code on every wire; how it travels differs. */
import { Problem } from '../core/problem.ts'
import { McpError } from '../jsonrpc/error.ts'
import type { Awaitable, Params } from '../jsonrpc/message.ts'
import type { Capabilities } from '../revisions/index.ts'
import type { CallOptions, SendOptions } from './calls.ts'
import type { Exchange } from './exchange.ts'
import type { Method } from './method.ts'

/** Brings a question that is a request of its own to the client and its answer back, in another way than by that one request. */
export type QuestionSender = (exchange: Exchange, method: Method, params: Params, options: SendOptions) => Promise<unknown>

/** How a question to the caller is asked, and what counts as an answer. */
export interface AskOptions extends CallOptions {
  /** What kind of question this is, for its default key: `elicit`, `sample`, … */
  readonly kind: string
  /** Names the question across re-entry; default: its kind and ordinal. */
  readonly key?: string | undefined
  /** What the client must have declared, as it would declare it. */
  readonly requires: Capabilities
  /** Whether it has. */
  readonly allowed: boolean
  /** Whether an answer is one: what is not is asked anew, where that can be done. */
  readonly accepts: (answer: unknown) => boolean
  /** What is wrong with an answer that is none, where there is more to say than that. */
  readonly fault?: (answer: unknown) => string | undefined
  /** Used on wires where questions are requests. */
  readonly by?: QuestionSender | undefined
}

/** Asks the questions of one request, in the way that its wire has. */
export interface QuestionChannel {
  /** Questions are out that this exchange must answer with, instead of a result. */
  readonly pending: boolean
  ask<P, R>(method: Method<P, R>, params: P, options: AskOptions): Promise<R>
  once<T>(key: string, fn: () => Awaitable<T>): Promise<T>
  /** The result that carries the pending questions. */
  conclude(): Promise<unknown>
}

/** `fault`: what is wrong with the answer, where that is known. */
function invalidAnswer(method: string, fault: string | undefined): McpError {
  const said = fault === undefined ? 'is malformed' : `is not valid: ${fault}`
  return new McpError('invalid-answer', `The client's answer to ${method} ${said}`)
}

/** The refusal of what the client did not declare that it can do. */
export function capabilityMissing(method: string, requires: Capabilities): McpError {
  return new McpError(
    'capability-missing',
    `The client did not declare the capabilities that ${method} needs: ${JSON.stringify(requires)}`,
    {
      data: { requiredCapabilities: requires },
    },
  )
}

/** There is no way to the one who called, and none will open by itself: whoever waited would wait for nothing. */
export function noStreamToClient(method: string): never {
  throw new McpError(
    'capability-missing',
    `${method} needs an event stream to the client, but this request does not accept one and the session has none open. ` +
      'Accept text/event-stream with the request, or open a stream with GET',
  )
}

/** Wires on which a server may send requests: the question goes out on the lane of the call. */
export function pushAsking(exchange: Exchange): QuestionChannel {
  const done = new Map<string, Promise<unknown>>()
  return {
    pending: false,
    ask: async (method, params, options) => {
      const { revision } = exchange.peer
      if (revision.asks !== 'push')
        throw new McpError('capability-missing', `A server cannot send ${method.name} to its client at revision ${revision.id}`)
      if (!options.allowed || !method.in.includes(revision.id)) throw capabilityMissing(method.name, options.requires)
      exchange.engine.streaming(exchange)
      const { conversation } = exchange
      const lane = conversation.connection === undefined ? { lane: exchange.aside ?? noStreamToClient(method.name) } : {}
      const send = { signal: exchange.signal, timeoutMs: exchange.engine.askTimeoutMs, ...options, ...lane }
      const answer = await (options.by === undefined
        ? exchange.engine.call(conversation, method, params, send)
        : (options.by(exchange, method as Method, params as Params, send) as Promise<never>))
      if (!options.accepts(answer)) throw invalidAnswer(method.name, options.fault?.(answer))
      return answer
    },
    once: <T>(key: string, fn: () => Awaitable<T>) => {
      let result = done.get(key)
      if (result === undefined) {
        result = (async () => fn())()
        done.set(key, result)
      }
      return result as Promise<T>
    },
    conclude: () => Promise.reject(new McpError('internal', 'No question is pending')),
  }
}

// Handlers that the author of a client gave: what they throw or give by mistake is the client's failure, and told as such.

/** A handler gave something else than an answer. */
class NoAnswer extends TypeError {}

/** What a handler gave, if it is an answer; else it throws what the handler must return. */
export function answerOf<T>(handler: string, given: unknown, isAnswer: (value: unknown) => value is T, wanted: string): T {
  if (isAnswer(given)) return given
  throw new NoAnswer(`${handler} must return ${wanted}`)
}

/**
 * Answers a request by a handler. What the author threw on purpose passes; the words of anything else stay here, and the server is
 * told who failed.
 */
export function byHandler(handler: string, answer: (params: Params, signal: AbortSignal) => Promise<unknown>) {
  return async (exchange: Exchange): Promise<unknown> => {
    try {
      return await answer(exchange.params, exchange.signal)
    } catch (error) {
      if (error instanceof McpError || error instanceof Problem || exchange.signal.aborted) throw error
      exchange.engine.trace('handler-failed', { handler, error }, exchange.caller)
      const said = error instanceof NoAnswer ? error.message : `its handler ${handler} threw an error`
      throw new McpError('handler-failed', `The client failed: ${said}`, { cause: error })
    }
  }
}
