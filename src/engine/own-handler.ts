/** Handlers that the author of a client gave: what they throw or give by mistake is the client's failure, and told as such. */
import { Problem } from '../core/problem.ts'
import { McpError } from '../jsonrpc/error.ts'
import type { Params } from '../jsonrpc/message.ts'
import type { Exchange } from './exchange.ts'

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
