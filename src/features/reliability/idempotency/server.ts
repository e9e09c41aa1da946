/** Offering idempotency: a call with a key is done once, and its outcome given again. What that takes is loaded with the first key. */
import type { Clock } from '../../../core/clock.ts'
import { type Duration, toMilliseconds } from '../../../core/duration.ts'
import type { Journal } from '../../../core/journal/journal.ts'
import type { Trace } from '../../../core/log-trace.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import { declaration } from '../../../engine/extensions.ts'
import type { Side } from '../../../engine/plan.ts'
import { callTool } from '../../mcp/tools/messages.ts'
import { getKey, idempotencyExtension, keyHeader, otherKeyHeader } from './messages.ts'
import type { ProblemMeta } from './outcome.ts'
import type { Replays } from './replay.ts'

/** What an author may say of it. */
export interface IdempotencyOptions {
  /** The longest that a key is remembered after its call has ended. Default 24 h. */
  readonly maxTtl?: Duration
  /** How long a repetition waits for the call that is under way. Default 10 s. */
  readonly join?: Duration
  /** Calls remembered. Default 100,000; the oldest that has ended is forgotten first. */
  readonly records?: number
  /** Characters of all that is remembered. Default 256 Mi. */
  readonly length?: number
  /** Characters of one result; of a longer one only that it was there is remembered. Default 1 Mi. */
  readonly resultLength?: number
}

export interface IdempotencyParts extends IdempotencyOptions {
  readonly journal: () => Promise<Journal>
  /** Whether clients are told of it. Keys are honoured all the same. */
  readonly declared: boolean
  readonly clock: Clock
  readonly trace: Trace
  /** How long a call that has asked its caller something may wait for the answer. */
  readonly askMs: number
  readonly problemMeta: ProblemMeta
}

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
        when: isKeyed,
        run: async (exchange, next) => (await load()).run(exchange, next),
      },
    ],
    capabilities: revision => (parts.declared ? declaration(revision, idempotencyExtension) : {}),
  }
}

/** Whether there is a key at all. Cheap: every call is asked. */
function isKeyed(exchange: Exchange): boolean {
  if (exchange.carried !== undefined && idempotencyExtension in exchange.carried) return true
  const { meta, caller } = exchange
  if (meta !== undefined && Object.hasOwn(meta, idempotencyExtension)) return true
  // Headers of a handshake say nothing of a call.
  if (caller.carrier !== 'http' || caller.header === undefined) return false
  return caller.header(keyHeader) !== undefined || caller.header(otherKeyHeader) !== undefined
}
