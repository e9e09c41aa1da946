/**
 * Runs calls under idempotency keys: a key is claimed before the call runs and settled with its outcome. A repeated call gets that
 * outcome, joins the running call, or is told that the outcome is unknown. Loaded with the first key.
 */
import type { Audit } from '../../../core/audit/audit.ts'
import { lifetimeOfSeconds } from '../../../core/clock.ts'
import { settlesWithin } from '../../../core/deadlines.ts'
import { fingerprint } from '../../../core/digest.ts'
import type { Operation, Ticket } from '../../../core/journal/operation.ts'
import { type Problem, problem, problemOf, problemText } from '../../../core/problem.ts'
import { addRetryState, compensation, type Exchange, retryState } from '../../../engine/exchange.ts'
import { NS } from '../../../engine/method.ts'
import { accountOf, isNobody, mayName, ownerOf, secretLength } from '../../../engine/owner.ts'
import type { Next } from '../../../engine/stages.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { isRecord, type Params } from '../../../jsonrpc/message.ts'
import { type Op, StoreError } from '../../../stores/store.ts'
import { isInputRequired } from '../../mcp/input-required/messages.ts'
import { workAfterAnswer } from '../../mcp/tasks/messages.ts'
import { type CallToolResult, type FailedResult, failureProblem, type ToolEntry } from '../../mcp/tools/messages.ts'
import { idempotencyExtension, keyHeader, keyPattern, keyRule, otherKeyHeader, type WireStatus } from './messages.ts'
import { giveAgain, type RememberedOutcome, rememberFailure, rememberResult, withKeyMeta } from './outcomes.ts'
import { dedupeMs, type IdempotencyParts } from './server.ts'

interface Parts extends IdempotencyParts {
  /** The longest lifetime of a key. */
  readonly maxTtlMs: number
  /** How long a repeated call waits for a running one. */
  readonly joinMs: number
}

/** The prefix of keys that are generated for calls without one. */
const minted = 'same:'
/** The default lifetime of a key. */
const defaultTtlSeconds = 86_400

/** A call with its key. */
interface KeyedCall {
  readonly exchange: Exchange
  readonly next: Next
  readonly owner: string
  /** The key and its lifetime. */
  readonly wish: KeyOfCall
  /** Owner and key; identifies the operation. */
  readonly place: string
}

/** The default limit of a stored result, in characters. */
const standardResult = 1024 * 1024

/** Runs keyed calls, and answers `idempotency/get`. */
export class KeyedCallRunner {
  readonly #parts: Parts
  /** Handlers that still run although their call was already answered, for example after a timeout. */
  readonly #lingering = new Map<string, Promise<unknown>>()

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** Runs a call with a key, or one that is deduplicated. */
  async run(exchange: Exchange, next: Next): Promise<unknown> {
    const owner = await ownerOf(exchange)
    const said = keyOf(exchange, this.#parts.maxTtlMs)
    // Equal calls of anonymous callers are not deduplicated; only a key makes them one call.
    if (said === undefined && isNobody(owner)) return next()
    if (said !== undefined && exchange.get(compensation) === undefined) checkName(owner, said.key)
    const wish = said ?? (await mintedWish(this.#parts, exchange))
    addRetryState(exchange, idempotencyExtension, wish.key)
    // Without a journal record nothing is executed.
    return this.#claimed({ exchange, next, owner, wish, place: `${owner}/${wish.key}` }).catch(told)
  }

  /** What is known about the call with a key. */
  status(exchange: Exchange): Promise<WireStatus> {
    return status(this.#parts, exchange).catch(told)
  }

  // Claims the key in a loop, because other processes may claim or release it at any time.
  async #claimed(keyed: KeyedCall): Promise<unknown> {
    const { exchange, owner, wish, place } = keyed
    const { clock, joinMs, journal } = this.#parts
    const { claims, audit } = await journal()
    const target = exchange.params['name'] as string
    const args = (exchange.params['arguments'] ?? {}) as Params
    const wanted = {
      target,
      account: await accountOf(exchange),
      always: exchange.get(compensation) !== undefined,
      fingerprint: await fingerprint(target, args, unitOf(exchange)),
      ttlMs: wish.ttlMs,
      id: exchange.correlation,
    }
    const until = clock.now() + joinMs
    for (;;) {
      const claim = await claims.claim(owner, wish.key, wanted)
      const left = until - clock.now()
      if (claim.kind === 'replay') return giveAgain(this.#parts, exchange, wish.key, claim.operation)
      if (claim.kind === 'conflict') throw conflict(wish.key, claim.operation)
      // Another call with the key is running: wait for it, then look again.
      if (claim.kind === 'running') {
        if (left <= 0 || !(await claim.settled(left))) throw inProgress(wish.key)
        continue
      }
      // The outcome is unknown: repeat it only if the tool is idempotent.
      if (claim.kind === 'indeterminate' && !isRepeatable(exchange)) throw unknown(wish.key, claim.operation)
      // The handler of a timed-out call may still be running in this process.
      const old = this.#lingering.get(place)
      if (old !== undefined && (left <= 0 || !(await settlesWithin(old, left, clock)))) {
        if (claim.kind === 'fresh') await claim.ticket.release()
        throw inProgress(wish.key)
      }
      const ticket = claim.kind === 'fresh' ? claim.ticket : await claim.retake()
      const done = ticket && (await this.#execute(ticket, keyed, audit))
      // Another process was faster or has taken over; its outcome counts.
      if (done !== undefined) return done
    }
  }

  /** Executes the call, and stores the outcome before the caller learns it. */
  async #execute(ticket: Ticket, keyed: KeyedCall, audit: Audit | undefined): Promise<CallToolResult | undefined> {
    const { exchange, next, owner, wish } = keyed
    const { askMs, resultLength = standardResult, trace } = this.#parts
    const { id: correlation, target } = ticket.operation
    // A continued call keeps its correlation id.
    exchange.correlation = correlation
    /** What may be kept now: other calls of the account fill its share while this one runs. */
    const longest = (): number => Math.min(resultLength, ticket.capacity)
    /** The audit entry that is committed with the outcome. */
    const audited = (outcome: string): readonly Op[] =>
      audit === undefined
        ? []
        : [audit.line({ event: 'call_settled', correlation, owner, target, outcome, more: { key: wish.key } })]
    /** Undefined if another process has taken over. If the store fails, the outcome is lost for others, but this caller still gets it. */
    const settled = ({ status, outcome, ttlMs }: RememberedOutcome): Promise<Operation | undefined> =>
      ticket.settle(status, outcome, audited(status), ttlMs).catch(error => {
        trace('outcome-not-recorded', { error, correlationId: correlation })
        return ticket.operation
      })
    let result: CallToolResult
    try {
      result = (await next()) as CallToolResult
    } catch (error) {
      if (isDone(exchange) && !(error instanceof McpError)) {
        // The handler has finished; the call must not run again because a later step failed.
        await settled(rememberResult(exchange, failedBy(problemOf(error)), longest()))
        throw error
      }
      const end = endOfFailure(exchange, error)
      if (end === 'paused') await ticket.pause(askMs)
      else if (end === 'released') await ticket.release()
      else if ((await settled(rememberFailure(end))) === undefined) return undefined
      throw error
    }
    const end = endOf(exchange, result)
    if (end === 'paused') await ticket.pause(askMs)
    else if (end === 'released') await ticket.release()
    else if (end === 'lost') {
      this.#linger(keyed)
      await ticket.lose(lostBy(result), audited('indeterminate'))
    } else {
      const ended = await settled(rememberResult(exchange, result, longest()))
      return ended && withKeyMeta(exchange, wish.key, result, ended, false, wish.shortened)
    }
    return result
  }

  #linger({ exchange, place }: KeyedCall): void {
    const work = exchange.get(workAfterAnswer)
    if (work === undefined) return
    const over = Promise.resolve(work)
      .catch(() => {})
      .then(() => {
        if (this.#lingering.get(place) === over) this.#lingering.delete(place)
      })
    this.#lingering.set(place, over)
  }
}

/** A generated key, derived from the call, so that an equal call gets the same key. */
async function mintedWish(parts: Parts, exchange: Exchange): Promise<KeyOfCall> {
  const { name, arguments: args } = exchange.params
  const same = await fingerprint(name as string, (args ?? {}) as Params, unitOf(exchange))
  return { key: `${minted}${same}`, ttlMs: Math.min(parts.maxTtlMs, dedupeMs(parts, exchange) ?? 1000) }
}

/** An anonymous caller's result can be fetched by anyone who knows the key, so the key must be unguessable. */
function checkName(owner: string, key: string): void {
  if (!mayName(owner, key))
    throw new McpError(
      'invalid-params',
      `Without authorization or a session, an idempotency key must be impossible to guess. Use at least ${secretLength} random characters, such as a UUID, or sign in`,
    )
}

function told(error: unknown): never {
  throw error instanceof StoreError ? problemOf(error) : error
}

function failedBy(problem: Problem): FailedResult {
  return { content: [{ type: 'text', text: problemText(problem) }], isError: true, [failureProblem]: problem }
}

/** Whether the handler had finished, whatever failed afterwards. */
function isDone(exchange: Exchange): boolean {
  return exchange.given !== undefined && endOf(exchange, exchange.given as FailedResult) === 'stored'
}

// What happens to the claim: kept for the next round, released, outcome unknown, or stored.
type End = 'paused' | 'released' | 'lost' | 'stored'

/** Only outcomes of the handler are stored, and of its failures only those that would recur. */
function endOf(exchange: Exchange, result: FailedResult): End {
  if (exchange.asking?.pending === true || isInputRequired(result)) return 'paused'
  // Refused before the handler ran, so a repeated call may try again.
  if (!exchange.begun && !exchange.detached) return 'released'
  const why = result[failureProblem]
  if (why === undefined) return 'stored'
  // The handler was stopped midway, so nobody knows what it has done.
  if (why.code === 'OPERATION_TIMEOUT' || (exchange.cancelled && why.code === 'SERVER_ERROR')) return 'lost'
  return why.category === 'permanent' || why.category === 'invalid_input' ? 'stored' : 'released'
}

/** The reason shown to whoever repeats the call. */
function lostBy(result: FailedResult): string {
  return clip(result[failureProblem]?.message ?? 'the call was stopped', 300)
}

function endOfFailure(exchange: Exchange, error: unknown): 'paused' | 'released' | McpError {
  if (exchange.asking?.pending === true) return 'paused'
  if (!exchange.begun || !(error instanceof McpError) || error.kind === 'capability-missing') return 'released'
  return error
}

function isRepeatable({ target }: Exchange): boolean {
  const { idempotent, annotations } = (target as ToolEntry).facts
  return idempotent ?? (annotations?.idempotentHint === true || annotations?.readOnlyHint === true)
}

/** The transaction of a call; the same call in another transaction is a different one. */
function unitOf({ meta }: Exchange): string | undefined {
  const said = meta?.[`${NS}/transactions`]
  const id = isRecord(said) ? said['transaction_id'] : undefined
  return typeof id === 'string' ? id : undefined
}

async function status({ journal }: Parts, exchange: Exchange): Promise<WireStatus> {
  const key = exchange.params['idempotency_key'] as string
  if (!keyPattern.test(key)) throw new McpError('invalid-params', `idempotency_key must be ${keyRule}`)
  const owner = await ownerOf(exchange)
  checkName(owner, key)
  const found = await (await journal()).claims.find(owner, key)
  if (found === undefined) return { idempotency_key: key, status: 'unknown' }
  const { endedAt } = found
  return {
    idempotency_key: key,
    status: found.status,
    tool: found.target,
    started_at: new Date(found.startedAt).toISOString(),
    ...(endedAt === undefined ? {} : { ended_at: new Date(endedAt).toISOString() }),
  }
}

function conflict(key: string, { target, status }: Operation): Problem {
  const message =
    status === 'undone'
      ? 'The call with this idempotency key has since been undone'
      : 'This idempotency key was already used for a different call'
  return problem('IDEMPOTENCY_CONFLICT', message, {
    suggestion: 'Use a new key for each call. Use the same key only to retry the same call',
    details: { idempotency_key: key, tool: target, status },
  })
}

function inProgress(key: string): Problem {
  return problem('IDEMPOTENCY_IN_PROGRESS', 'The call with this idempotency key is still running', {
    retryAfter: 1000,
    details: { idempotency_key: key },
  })
}

function unknown(key: string, { target, startedAt, endedAt, lostBy }: Operation): Problem {
  const why = lostBy === undefined ? '' : `: ${lostBy}`
  return problem('OUTCOME_UNKNOWN', `The call with this idempotency key was started, but its outcome is unknown${why}`, {
    actor: 'user',
    suggestion: 'Check whether the call took effect before you repeat it with a new key',
    details: {
      idempotency_key: key,
      tool: target,
      started_at: new Date(startedAt).toISOString(),
      ...(endedAt === undefined ? {} : { given_up_at: new Date(endedAt).toISOString() }),
    },
  })
}

interface KeyOfCall {
  readonly key: string
  readonly ttlMs: number
  /** The caller asked for a longer lifetime. */
  readonly shortened?: boolean
}

/** Reads the key of a call; undefined if there is none. All places that name a key must agree. */
function keyOf(exchange: Exchange, maxTtlMs: number): KeyOfCall | undefined {
  const { meta, caller } = exchange
  const before = exchange.get(retryState)?.[idempotencyExtension]
  const said = meta !== undefined && Object.hasOwn(meta, idempotencyExtension) ? meta[idempotencyExtension] : none
  if (!isRecord(said)) throw invalid(`params._meta["${idempotencyExtension}"] must be an object with idempotency_key`)
  const headed = caller.carrier === 'http' ? caller : undefined
  const found = [
    said['idempotency_key'],
    unquoted(headed?.header?.(keyHeader)),
    unquoted(headed?.header?.(otherKeyHeader)),
    before,
  ].filter(key => key !== undefined)
  const key = found[0]
  // A generated key from sealed state is generated again, with its own lifetime.
  if (found.length === 0 && said === none) return undefined
  if (found.length === 1 && typeof before === 'string' && String(key).startsWith(minted)) return undefined
  if (typeof key !== 'string' || !keyPattern.test(key)) throw invalid(`The idempotency key must be ${keyRule}`)
  const other = found.find(each => each !== key)
  if (other !== undefined)
    throw invalid(`The call has two different idempotency keys, "${clip(key)}" and "${clip(String(other))}". Send only one key`)
  const asked = said['idempotency_ttl_seconds']
  const ttlMs = lifetimeOfSeconds(secondsIn(asked), { mostMs: maxTtlMs })
  return { key, ttlMs, shortened: asked !== undefined && ttlMs < (asked as number) * 1_000 }
}

const none = {}

function secondsIn(seconds: unknown = defaultTtlSeconds): number {
  if (Number.isSafeInteger(seconds) && (seconds as number) > 0) return seconds as number
  throw invalid('idempotency_ttl_seconds must be a whole number above 0')
}

/** The IETF draft defines a quoted string, but most clients send it unquoted. */
function unquoted(header: string | undefined): string | undefined {
  return header === undefined ? undefined : (/^"(.*)"$/s.exec(header.trim())?.[1] ?? header.trim())
}

function invalid(message: string): McpError {
  return new McpError('invalid-params', message)
}
