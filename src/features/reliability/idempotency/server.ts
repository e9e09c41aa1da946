/** Server side of idempotency: the option `idempotency`, and `ctx.idempotencyKey`. The runner is loaded with the first key. */
import { type Duration, toMilliseconds } from '../../../core/clock.ts'
import { type CallContext, exchangeOf } from '../../../engine/context.ts'
import { compensation, type Exchange, retryState } from '../../../engine/exchange.ts'
import { extensionCapability } from '../../../engine/extensions.ts'
import type { Side } from '../../../engine/plan.ts'
import { defineServerFeature, lazily, type ServerKit } from '../../../engine/server-feature.ts'
import type { Params } from '../../../jsonrpc/message.ts'
import { callTool, toolsPort } from '../../mcp/tools/messages.ts'
import { getKey, idempotencyExtension, isKeyed, keyHeader, otherKeyHeader } from './messages.ts'

/** Options of idempotency. */
interface IdempotencyOptions {
  /** The longest lifetime of a key after its call has ended. Default 24 h. */
  readonly maxTtl?: Duration
  /** How long a repeated call waits for the running one. Default 10 s. */
  readonly join?: Duration
  /**
   * Total limit of remembered calls and transactions. Default 1,000,000. One caller may hold at most as many as are still free; then
   * its new calls are refused. Nothing is forgotten early.
   */
  readonly records?: number
  /** Total limit in characters, shared in the same way. Default 256 Mi; half of the store if it is in memory. */
  readonly length?: number
  /** Limit of one result in characters; a longer one is not stored, only that the call was done. Default 1 Mi. */
  readonly resultLength?: number
}

/** The options of `createServer` that this feature reads. */
export interface IdempotencyServerOptions {
  /** How keyed calls are remembered. */
  readonly idempotency?: IdempotencyOptions
}

/** What the feature adds to `ctx`. */
export interface IdempotencyContext {
  /** The idempotency key of this call, if any; pass it on to other services. */
  readonly idempotencyKey: string | undefined
}

/** The server feature: keyed calls are executed once. */
export const idempotencyFeature = defineServerFeature<IdempotencyServerOptions>({
  name: 'idempotency',
  options: { idempotency: 'object' },
  context: {
    get idempotencyKey() {
      return exchangeOf(this).get(retryState)?.[idempotencyExtension]
    },
  } satisfies IdempotencyContext & ThisType<CallContext>,
  setup: (kit, { idempotency }) => ({ sides: [idempotencyServer({ ...idempotency, ...kit })] }),
})

/** What the feature needs from the server. `shared`: clients are told about keys; they are honoured in any case. */
export interface IdempotencyParts
  extends IdempotencyOptions,
    Pick<ServerKit, 'journal' | 'shared' | 'clock' | 'trace' | 'askMs' | 'port'> {}

/** Creates the layer and the handler of `idempotency/get`. */
export function idempotencyServer(parts: IdempotencyParts): Side {
  const maxTtlMs = toMilliseconds(parts.maxTtl ?? '24h', 'idempotency.maxTtl')
  const joinMs = toMilliseconds(parts.join ?? '10s', 'idempotency.join')
  const load = lazily(async () => new (await import('./runtime.ts')).KeyedCallRunner({ ...parts, maxTtlMs, joinMs })).open
  return {
    handlers: [[getKey, async (exchange: Exchange) => (await load()).status(exchange)]],
    layers: [
      {
        stage: 'replay',
        methods: [callTool.name],
        marked: true,
        headers: [keyHeader, otherKeyHeader],
        concerns: exchange => dedupeOf(parts, exchange) !== undefined,
        when: exchange => isKeyed(exchange) || dedupeMs(parts, exchange) !== undefined,
        run: async (exchange, next) => (await load()).run(exchange, next),
      },
    ],
    capabilities: revision => (parts.shared ? extensionCapability(revision, idempotencyExtension) : {}),
  }
}

/** The `dedupe` option of the called tool; undefined if each call without a key is separate. */
function dedupeOf({ port }: IdempotencyParts, { params }: Exchange) {
  return port(toolsPort).facts(params['name'] as string)?.dedupe
}

/** How long a call without a key is deduplicated; undefined if it is not. */
export function dedupeMs(parts: IdempotencyParts, exchange: Exchange): number | undefined {
  const said = dedupeOf(parts, exchange)
  if (said === undefined || exchange.get(compensation) !== undefined) return undefined
  const given = typeof said === 'function' ? said((exchange.params['arguments'] ?? {}) as Params, exchange.caller) : said
  return given === undefined ? undefined : toMilliseconds(given, 'dedupe')
}
