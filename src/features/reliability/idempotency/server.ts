/**
 * Server side of idempotency: the option `idempotency`, `ctx.idempotencyKey`, and the form in which outcomes are stored and replayed.
 * The runner is loaded with the first key.
 */
import { type Clock, type Duration, toMilliseconds } from '../../../core/clock.ts'
import type { Journal } from '../../../core/journal/journal.ts'
import type { Operation } from '../../../core/journal/operation.ts'
import type { Trace } from '../../../core/log.ts'
import { type Problem, problem } from '../../../core/problem.ts'
import { type CallContext, exchangeOf } from '../../../engine/context.ts'
import { carried, compensation, type Exchange } from '../../../engine/exchange.ts'
import { declaration, declared } from '../../../engine/extensions.ts'
import type { Side } from '../../../engine/plan.ts'
import { defineServerFeature } from '../../../engine/server-feature.ts'
import type { Caller } from '../../../jsonrpc/connection.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { isRecord, type Params } from '../../../jsonrpc/message.ts'
import { because, type CallToolResult, callTool, type FailedResult, toolsPort, wraps } from '../../mcp/tools/messages.ts'
import { fromWire, problemExtension, problemPort, toWire, type WireProblem } from '../problem/messages.ts'
import { getKey, idempotencyExtension, isKeyed, keyHeader, otherKeyHeader, type WireReplay } from './messages.ts'
import type { Replays } from './runtime.ts'

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

/** What the feature needs from the server. */
export interface IdempotencyParts extends IdempotencyOptions {
  readonly journal: () => Promise<Journal>
  /** Whether clients are told about keys; they are honoured in any case. */
  readonly declared: boolean
  readonly clock: Clock
  readonly trace: Trace
  /** How long a call may wait for an answer of its caller. */
  readonly askMs: number
  readonly problemMeta: ProblemMeta
  /** The `dedupe` option of a tool; undefined if each call without a key is separate. */
  readonly dedupe?: (tool: string) => Dedupe | undefined
}

/** How long equal calls without a key count as one. */
type Dedupe = Duration | ((args: Params, caller: Caller) => Duration | undefined)

/** Creates the layer and the handler of `idempotency/get`. */
export function idempotencyServer(parts: IdempotencyParts): Side {
  const maxTtlMs = toMilliseconds(parts.maxTtl ?? '24h', 'idempotency.maxTtl')
  const joinMs = toMilliseconds(parts.join ?? '10s', 'idempotency.join')
  let loading: Promise<Replays> | undefined
  const load = (): Promise<Replays> => {
    loading ??= import('./runtime.ts').then(({ createReplays }) => createReplays({ ...parts, maxTtlMs, joinMs }))
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

/** How long a call without a key is deduplicated; undefined if it is not. */
export function dedupeMs({ dedupe }: Pick<IdempotencyParts, 'dedupe'>, exchange: Exchange): number | undefined {
  const { params, caller } = exchange
  const said = dedupe?.(params['name'] as string)
  if (said === undefined || exchange.get(compensation) !== undefined) return undefined
  const given = typeof said === 'function' ? said((params['arguments'] ?? {}) as Params, caller) : said
  return given === undefined ? undefined : toMilliseconds(given, 'dedupe')
}

/** Returns the `_meta` that describes a problem to a client. */
type ProblemMeta = (exchange: Exchange, problem: Problem) => Readonly<Record<string, unknown>> | undefined

/** A stored outcome, as JSON; exactly one of `result`, `failure` and `lost` is set. */
interface Outcome {
  readonly result?: CallToolResult
  /** The problem behind a failed result. */
  readonly problem?: WireProblem
  /** The value's schema must be wrapped on older wires. */
  readonly wraps?: boolean
  /** The revision whose task the result names; other revisions cannot read it. */
  readonly task?: string
  /** The handler failed with a protocol error. */
  readonly failure?: { readonly kind: string; readonly message: string; readonly data?: unknown; readonly code?: number }
  /** The length of a result that was too long to store. */
  readonly lost?: number
}

type Marked = FailedResult & { readonly [wraps]?: boolean }

/** The outcome of an ended call, as it is stored. */
export interface RememberedOutcome {
  readonly status: 'done' | 'failed'
  readonly outcome: Outcome
  /** A shorter lifetime, for tasks. */
  readonly ttlMs?: number | undefined
}

/** Converts a result for storage. Throws if it is not JSON. */
export function rememberResult(exchange: Exchange, result: Marked, longest: number): RememberedOutcome {
  // The problem is stored separately, because its form depends on the client.
  const { [problemExtension]: _, ...meta } = result._meta ?? {}
  const { _meta, ...rest } = result
  const plain: CallToolResult = Object.keys(meta).length === 0 ? rest : { ...rest, _meta: meta }
  const { length } = JSON.stringify(plain)
  const status = result.isError === true ? 'failed' : 'done'
  if (length > longest) return { status, outcome: { lost: length } }
  const why = result[because]
  const task = taskIn(result)
  return {
    status,
    ttlMs: task?.ttlMs,
    outcome: {
      result: plain,
      ...(why === undefined ? {} : { problem: toWire(why, exchange.correlated) }),
      ...(result[wraps] === true ? { wraps: true } : {}),
      ...(task === undefined ? {} : { task: exchange.peer.revision.id }),
    },
  }
}

/** Converts a protocol error for storage. */
export function rememberFailure({ kind, message, data, code }: McpError): RememberedOutcome {
  const more = { ...(isJson(data) ? { data } : {}), ...(code === undefined ? {} : { code }) }
  return { status: 'failed', outcome: { failure: { kind, message, ...more } } }
}

/** Answers a repeated call: returns the same result, or throws the same error. */
export function giveAgain(exchange: Exchange, key: string, operation: Operation, problemMeta: ProblemMeta): CallToolResult {
  const { result, failure, lost, task, ...more } = operation.outcome as Outcome
  if (failure !== undefined) throw new McpError(failure.kind, failure.message, failure)
  if (result === undefined) throw tooLong(key, lost ?? 0)
  if (task !== undefined && task !== exchange.peer.revision.id) throw elsewhere(key, task)
  const why = more.problem === undefined ? undefined : fromWire(more.problem)
  const meta = why === undefined ? undefined : problemMeta(exchange, why)
  const again: Marked = {
    ...result,
    ...(meta === undefined ? {} : { _meta: { ...result._meta, ...meta } }),
    ...(why === undefined ? {} : { [because]: why }),
    ...(more.wraps === true ? { [wraps]: true } : {}),
  }
  return stamped(exchange, key, again, operation, true)
}

/** Adds the key to the result, for clients that declared the extension. */
export function stamped<R extends CallToolResult>(
  { peer }: Exchange,
  key: string,
  result: R,
  { endedAt, startedAt, ttlMs }: Operation,
  replay: boolean,
  shortened = false,
): R {
  if (declared(peer, idempotencyExtension) === undefined) return result
  const original = new Date(endedAt ?? startedAt).toISOString()
  const stamp: WireReplay = {
    idempotency_key: key,
    was_replay: replay,
    original_timestamp: original,
    ...(shortened ? { idempotency_ttl_seconds: Math.floor(ttlMs / 1_000) } : {}),
  }
  return { ...result, _meta: { ...result._meta, [idempotencyExtension]: stamp } }
}

/** The task in a result, in either of two wire forms, with its lifetime. */
function taskIn(result: object): { readonly ttlMs: number | undefined } | undefined {
  if (!isRecord(result) || result['content'] !== undefined) return undefined
  const task = result['resultType'] === 'task' ? result : result['task']
  if (!isRecord(task)) return undefined
  const ttl = task['ttlMs'] ?? task['ttl']
  return { ttlMs: typeof ttl === 'number' ? ttl : undefined }
}

// Error data of handlers may contain anything.
function isJson(data: unknown): boolean {
  try {
    return data !== undefined && JSON.stringify(data) !== undefined
  } catch {
    return false
  }
}

function tooLong(key: string, length: number): Problem {
  return problem('PAYLOAD_TOO_LARGE', `It was done, but its result of ${length} characters was too long to be kept`, {
    category: 'permanent',
    suggestion: 'Read what it changed by another tool; do not do it again',
    details: { idempotency_key: key },
  })
}

function elsewhere(key: string, revision: string): Problem {
  return problem('IDEMPOTENCY_CONFLICT', `Under this key a task was begun at revision ${revision}, where alone it can be seen`, {
    suggestion: `Ask for it at revision ${revision}`,
    details: { idempotency_key: key },
  })
}
