/** The server's side of asking the client's model. */
import type { QuestionSender } from '../../../engine/asking.ts'
import type { CallOptions } from '../../../engine/calls.ts'
import { type CallContext, exchangeOf, ignoreUnhandledRejection } from '../../../engine/context.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import { defineServerFeature } from '../../../engine/server-feature.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import { type TaskWish, tasksPort } from '../tasks/messages.ts'
import { createMessage, declaresSamplingDetails, type SamplingParams, type SamplingResult } from './messages.ts'

interface SampleOptions extends CallOptions {
  /** Names the question, so that its answer is found again when the handler runs anew. Default: its number. */
  readonly key?: string
  /** Have the answer worked out as a task, where the client runs such tasks. */
  readonly task?: TaskWish
}

/** What sampling adds to the context of a call. */
export interface SamplingContext {
  /** Asks the client's model. */
  sample(params: SamplingParams, options?: SampleOptions): Promise<SamplingResult>
}

/** The client's model: `ctx.sample`. */
export const samplingFeature = defineServerFeature<object>({
  name: 'sampling',
  context: {
    sample(params, options = {}) {
      const exchange = exchangeOf(this)
      return ignoreUnhandledRejection(
        sample(exchange, params, options, exchange.engine.ports.get(tasksPort).courier(options.task)),
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
