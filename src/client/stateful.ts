/** Requests that carry the state of their conversation. */
import type { Problem } from '../core/problem.ts'
import { classify } from '../features/reliability/problem/client.ts'
import type { StateTokens } from '../features/reliability/session-state/client.ts'
import type { Params } from '../jsonrpc/message.ts'
import type { RequestOptions } from './options.ts'

/** Sends the state of the conversation along, and keeps what the answer makes of it. */
export function statefully<T extends object, O extends RequestOptions>(
  states: StateTokens,
  options: O,
  work: (options: O) => Promise<T>,
): Promise<T> {
  const { conversation } = options
  const state = states.metaFor(conversation)
  return work(state === undefined ? options : { ...options, meta: { ...state, ...options.meta } }).then(
    answer => {
      const { meta, _meta, isError, problem } = answer as Answered
      states.learn(conversation, meta ?? _meta)
      if (isError === true) states.failed(conversation, problem?.code)
      return answer
    },
    error => {
      if (state !== undefined) states.failed(conversation, classify(error).code)
      throw error
    },
  )
}

/** Of answers only what matters to the state. */
interface Answered {
  readonly meta?: Params | undefined
  readonly _meta?: Params
  readonly isError?: boolean
  readonly problem?: Problem | undefined
}
