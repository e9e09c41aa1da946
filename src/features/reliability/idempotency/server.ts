/** Offering idempotency: a call with a key is done once, and its outcome given again. What that takes is loaded with the first key. */
import { type Clock, type Duration, toMilliseconds } from '../../../core/clock.ts'
import type { Journal } from '../../../core/journal/journal.ts'
import type { Trace } from '../../../core/log.ts'
import { type CallContext, exchangeOf } from '../../../engine/context.ts'
import { carried, compensation, type Exchange } from '../../../engine/exchange.ts'
import { declaration } from '../../../engine/extensions.ts'
import type { Side } from '../../../engine/plan.ts'
import { defineServerFeature } from '../../../engine/server-feature.ts'
import type { Caller } from '../../../jsonrpc/connection.ts'
import type { Params } from '../../../jsonrpc/message.ts'
import { callTool, toolsPort } from '../../mcp/tools/messages.ts'
import { problemPort } from '../problem/messages.ts'
import { getKey, idempotencyExtension, isKeyed, keyHeader, otherKeyHeader } from './messages.ts'
import type { ProblemMeta } from './outcome.ts'
import type { Replays } from './replay.ts'

/** What an author may say of it. */
interface IdempotencyOptions {
  /** The longest that a key is remembered after its call has ended. Default 24 h. */
  readonly maxTtl?: Duration
  /** How long a repetition waits for the call that is under way. Default 10 s. */
  readonly join?: Duration
  /**
   * Calls with keys and transactions remembered, in all. Default 1,000,000. One caller may hold as many as are still free; then its new
   * calls are refused until some of its own have ended, and nothing is forgotten before its time.
   */
  readonly records?: number
  /** Characters of all that is remembered, shared in the same way. Default 256 Mi; half of the store where that is kept in memory. */
  readonly length?: number
  /** Characters of one result; of a longer one, or one beyond the caller's share, only that it was there is remembered. Default 1 Mi. */
  readonly resultLength?: number
}

/** The options of `createServer` for it. */
export interface IdempotencyServerOptions {
  /** How calls with an idempotency key are remembered. */
  readonly idempotency?: IdempotencyOptions
}

/** What it adds to the context of a call. */
export interface IdempotencyContext {
  /** The idempotency key of this call, if it has one: whoever does something elsewhere for it may pass it on, or write it down. */
  readonly idempotencyKey: string | undefined
}

/** Calls under a key are made once. */
export const idempotencyFeature = defineServerFeature<IdempotencyServerOptions>({
  name: 'idempotency',
  options: { idempotency: 'object' },
  context: {
    get idempotencyKey() {
      return exchangeOf(this).get(carried)?.[idempotencyExtension]
    },
  } satisfies IdempotencyContext & ThisType<CallContext>,
  setup: (kit, { idempotency }) => {
    const { journal, shared, clock, trace, askMs } = kit
    const tools = kit.port(toolsPort)
    const problemMeta: ProblemMeta = (exchange, problem) => kit.port(problemPort).meta(exchange, problem)
    const dedupe = (tool: string): Dedupe | undefined => tools.facts(tool)?.dedupe
    const side = idempotencyServer({ ...idempotency, journal, declared: shared, clock, trace, askMs, problemMeta, dedupe })
    return { sides: [side] }
  },
})

export interface IdempotencyParts extends IdempotencyOptions {
  readonly journal: () => Promise<Journal>
  /** Whether clients are told of it. Keys are honoured all the same. */
  readonly declared: boolean
  readonly clock: Clock
  readonly trace: Trace
  /** How long a call that has asked its caller something may wait for the answer. */
  readonly askMs: number
  readonly problemMeta: ProblemMeta
  /** What a tool says of calls without a key; undefined where each is one of its own. Default: it says nothing. */
  readonly dedupe?: (tool: string) => Dedupe | undefined
}

/** The option of a tool. */
type Dedupe = Duration | ((args: Params, caller: Caller) => Duration | undefined)

export function idempotencyServer(parts: IdempotencyParts): Side {
  const maxTtlMs = toMilliseconds(parts.maxTtl ?? '24h', 'idempotency.maxTtl')
  const joinMs = toMilliseconds(parts.join ?? '10s', 'idempotency.join')
  let loading: Promise<Replays> | undefined
  const load = (): Promise<Replays> => {
    loading ??= import('./replay.ts').then(({ createReplays }) => createReplays({ ...parts, maxTtlMs, joinMs }))
    return loading
  }
  return {
    handlers: [[getKey, async (exchange: Exchange) => (await load()).status(exchange)]],
    layers: [
      {
        stage: 'replay',
        methods: [callTool.name],
        marked: true,
        headers: [keyHeader, otherKeyHeader],
        concerns: ({ params }) => parts.dedupe?.(params['name'] as string) !== undefined,
        when: exchange => isKeyed(exchange) || dedupeMs(parts, exchange) !== undefined,
        run: async (exchange, next) => (await load()).run(exchange, next),
      },
    ],
    capabilities: revision => (parts.declared ? declaration(revision, idempotencyExtension) : {}),
  }
}

/** For how long a call without a key is the same as another; undefined where it is one of its own. */
export function dedupeMs({ dedupe }: Pick<IdempotencyParts, 'dedupe'>, exchange: Exchange): number | undefined {
  const { params, caller } = exchange
  const said = dedupe?.(params['name'] as string)
  if (said === undefined || exchange.get(compensation) !== undefined) return undefined
  const given = typeof said === 'function' ? said((params['arguments'] ?? {}) as Params, caller) : said
  return given === undefined ? undefined : toMilliseconds(given, 'dedupe')
}
