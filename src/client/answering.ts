/** What a server may ask of this client, as requests or inside results: the same handlers, the same limits. */
import { createBuckets } from '../core/bucket.ts'
import type { Clock } from '../core/clock.ts'
import type { Side } from '../engine/plan.ts'
import { elicitationClient } from '../features/mcp/elicitation/client.ts'
import { elicit } from '../features/mcp/elicitation/messages.ts'
import { type Answerers, answerer } from '../features/mcp/input-required/client.ts'
import { rootsClient } from '../features/mcp/roots/client.ts'
import { listRoots } from '../features/mcp/roots/messages.ts'
import { samplingClient } from '../features/mcp/sampling/client.ts'
import { createMessage } from '../features/mcp/sampling/messages.ts'
import { McpError } from '../jsonrpc/error.ts'
import type { ClientRate, ConnectOptions } from './options.ts'

export interface Answering {
  readonly sides: readonly Side[]
  readonly answerers: Answerers
  /** Told of every call that failed, where somebody wants to hear of pages that have done their work. */
  readonly failed?: ((error: unknown) => void) | undefined
}

export function answeringSides(options: ConnectOptions, clock: Clock): Answering {
  const rates = options.limits?.rates
  const elicitation = elicitationClient({
    onElicit: options.onElicit,
    url: options.elicitUrl ?? true,
    admit: admission('elicitations', rates?.elicit, { perSecond: 0.5, burst: 10 }, clock),
    onComplete: id => options.onElicitationComplete?.(id),
    onRefused: options.onQuestionRefused,
  })
  const sampling = samplingClient({
    onSample: options.onSample,
    tools: options.sampleTools ?? false,
    context: options.sampleContext,
    admit: admission('sampling requests', rates?.sample, { perSecond: 1, burst: 20 }, clock),
  })
  const roots = rootsClient(options.roots)
  return {
    failed: options.onElicitationComplete && elicitation.failed,
    sides: [elicitation.side, sampling.side, roots.side],
    answerers: new Map([
      answerer(elicit, elicitation.answer),
      answerer(createMessage, sampling.answer),
      answerer(listRoots, roots.answer),
    ]),
  }
}

/** Refuses what a server asks too often, naming the limit and the wait. */
function admission(what: string, rate: ClientRate | false | undefined, standard: ClientRate, clock: Clock): () => void {
  if (rate === false) return () => {}
  const buckets = createBuckets({ ...(rate ?? standard), clock })
  return () => {
    const wait = buckets.take('server')
    if (wait === 0) return
    const data = { limit: what, retryAfterMs: wait }
    throw new McpError('rate-limited', `Too many ${what}: wait ${wait} ms and try again`, { data })
  }
}
