/** Offering idempotency: a call with a key is done once, and its outcome given again. What that takes is loaded with the first key. */
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

/** For how long a call without a key is the same as another; undefined where it is one of its own. */
export function dedupeMs({ dedupe }: Pick<IdempotencyParts, 'dedupe'>, exchange: Exchange): number | undefined {
  const { params, caller } = exchange
  const said = dedupe?.(params['name'] as string)
  if (said === undefined || exchange.get(compensation) !== undefined) return undefined
  const given = typeof said === 'function' ? said((params['arguments'] ?? {}) as Params, caller) : said
  return given === undefined ? undefined : toMilliseconds(given, 'dedupe')
}

/** Members of a result's `_meta` that tell a peer of a problem. */
type ProblemMeta = (exchange: Exchange, problem: Problem) => Readonly<Record<string, unknown>> | undefined

/** JSON. One of `result`, `failure` and `lost` is there. */
interface Outcome {
  readonly result?: CallToolResult
  /** Why the result is a failure. */
  readonly problem?: WireProblem
  /** The value is of a schema that older wires wrap. */
  readonly wraps?: boolean
  /** The result names a task, which only this wire knows. */
  readonly task?: string
  /** The call was refused by a protocol failure of its handler. */
  readonly failure?: { readonly kind: string; readonly message: string; readonly data?: unknown; readonly code?: number }
  /** The result was longer than what is kept. */
  readonly lost?: number
}

type Marked = FailedResult & { readonly [wraps]?: boolean }

/** What is kept of a call that has ended. */
export interface RememberedOutcome {
  readonly status: 'done' | 'failed'
  readonly outcome: Outcome
  /** How long at most. */
  readonly ttlMs?: number | undefined
}

/** What to remember of a result. Throws where JSON cannot hold it. */
export function rememberResult(exchange: Exchange, result: Marked, longest: number): RememberedOutcome {
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

export function rememberFailure({ kind, message, data, code }: McpError): RememberedOutcome {
  const more = { ...(isJson(data) ? { data } : {}), ...(code === undefined ? {} : { code }) }
  return { status: 'failed', outcome: { failure: { kind, message, ...more } } }
}

/** The answer to a repetition: the same result, or the same failure thrown. */
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

/** Tells of the key in the result, to peers that know what that is. */
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

/** A call that became a task is answered with the task, in one of two forms; the task is kept for so long. */
function taskIn(result: object): { readonly ttlMs: number | undefined } | undefined {
  if (!isRecord(result) || result['content'] !== undefined) return undefined
  const task = result['resultType'] === 'task' ? result : result['task']
  if (!isRecord(task)) return undefined
  const ttl = task['ttlMs'] ?? task['ttl']
  return { ttlMs: typeof ttl === 'number' ? ttl : undefined }
}

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
