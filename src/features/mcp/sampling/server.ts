/** The server's side of asking the client's model. */
import type { QuestionSender } from '../../../engine/asking.ts'
import type { CallOptions } from '../../../engine/calls.ts'
import { type CallContext, exchangeOf, ignoreUnhandledRejection } from '../../../engine/context.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import { defineServerFeature } from '../../../engine/server-feature.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import { type TaskWish, tasksPort } from '../tasks/messages.ts'
import { createMessage, declaresSamplingDetails, type SamplingParams, type SamplingResult } from './messages.ts'

/** Options of a sampling request. */
interface SampleOptions extends CallOptions {
  /** Names the request, if a call makes several in an order that may change. Default: its number. */
  readonly key?: string
  /** Has the answer worked out as a task, if the client runs such tasks. Default: no. */
  readonly task?: TaskWish
}

/** Requests to the model of the client. */
export interface SamplingContext {
  /**
   * Asks the model of the client and waits for the answer. Throws if the client does not support sampling.
   * @example
   * const messages = [{ role: 'user', content: { type: 'text', text: 'Summarise the ticket' } }] as const
   * const { content } = await ctx.sample({ messages, maxTokens: 200 })
   */
  sample(params: SamplingParams, options?: SampleOptions): Promise<SamplingResult>
}

/** The client's model: `ctx.sample`. */
export const samplingFeature = defineServerFeature<object>({
  name: 'sampling',
  context: {
    sample(params, options = {}) {
      const exchange = exchangeOf(this)
      return ignoreUnhandledRejection(
        sample(exchange, params, options, exchange.engine.ports.get(tasksPort).questionSender(options.task)),
      )
    },
  } satisfies SamplingContext & ThisType<CallContext>,
  setup: () => ({}),
})

/** `includeContext` beyond none is sent only to clients that declare it: others would have to refuse. */
export function sample(
  exchange: Exchange,
  params: SamplingParams,
  { task, ...options }: SampleOptions = {},
  by?: QuestionSender,
): Promise<SamplingResult> {
  const declared = exchange.peer.capabilities['sampling']
  const withTools = params.tools !== undefined || params.toolChoice !== undefined
  const allowed = isRecord(declared) && (!withTools || isRecord(declared['tools']))
  const old = !declaresSamplingDetails(exchange.peer.revision)
  const { includeContext, ...rest } = params
  const keep =
    includeContext !== undefined && (includeContext === 'none' || old || (isRecord(declared) && isRecord(declared['context'])))
  return exchange.ask(
    createMessage,
    { ...rest, ...(keep ? { includeContext } : {}) },
    {
      ...options,
      kind: 'sample',
      by,
      requires: { sampling: withTools ? { tools: {} } : {} },
      allowed,
      accepts: value => isRecord(value) && typeof value['role'] === 'string' && value['content'] !== undefined,
    },
  )
}
