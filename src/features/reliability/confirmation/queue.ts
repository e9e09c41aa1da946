/**
 * Approval by the operator of the server: a call waits in the store until somebody answers, in any process. The answer is valid once,
 * for exactly this call of this caller. Repeating the call does not add another entry.
 */
import { type AnswerRecord, findAnswer, keepAnswerOp } from '../../../core/answers.ts'
import type { Audit } from '../../../core/audit/audit.ts'
import { type Clock, toMilliseconds } from '../../../core/clock.ts'
import { digestText } from '../../../core/digest.ts'
import { type Problem, problem } from '../../../core/problem.ts'
import { accountOf, isNobody } from '../../../engine/owner.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { isRecord, type Params } from '../../../jsonrpc/message.ts'
import { type Entry, type Op, put, remove, type Store } from '../../../stores/store.ts'
import { progressPort } from '../../mcp/progress/messages.ts'
import { approvalMs, type ObligedCall } from './ask.ts'
import { confirmationExtension, type Risk } from './messages.ts'
import { longRefusal, type QueuedCall, queueRefusal } from './queue-limits.ts'
import { keysWaitedFor, markWaiting } from './waiting-callers.ts'

/** A call that waits for approval. */
export interface WaitingCall {
  /** Names the entry in `approve` and `refuse`. */
  readonly id: string
  /** The name of the tool. */
  readonly tool: string
  /** The question, as a user would read it. */
  readonly message: string
  /** The worst effect that the call can have. */
  readonly risk: Risk
  /** The arguments; absent if they have more than 16,384 characters, and then `confirmations.argumentsOf(id)` gives them. */
  readonly arguments?: Params
  /** Their length as JSON. */
  readonly length: number
  /** Who calls, if known. */
  readonly principal?: string
  /** Further facts from the tool, shown to the operator. */
  readonly about?: Readonly<Record<string, string>>
  /** When the call was made, in milliseconds since the epoch. */
  readonly askedAt: number
  /** When the call is refused without an answer, in milliseconds since the epoch. */
  readonly expires: number
  /**
   * Whether the caller still waits for the answer. If not, an approval counts for a repetition of the same call within 5 minutes, and a
   * refusal for 15 minutes.
   */
  readonly callerWaits: boolean
}

interface StoredQuestion extends Omit<WaitingCall, 'id' | 'callerWaits'> {
  readonly status: 'waiting' | 'approved' | 'refused'
  /** The account whose share of the queue it uses. */
  readonly account?: string
  /** The digest of the call, if the key does not contain it. */
  readonly binding?: string
  /** Who answered. */
  readonly by?: string
  readonly answeredAt?: number
}

/** Who answers, and how it is recorded. */
interface Answerer {
  readonly clock: Clock
  /** The name written to the audit log. */
  readonly by?: string | undefined
  /** Why, for the audit log. */
  readonly reason?: string | undefined
  readonly audit?: Audit | undefined
}

/** The answer that the call got. */
export interface OperatorAnswer {
  readonly by: string | undefined
  /** Milliseconds since the epoch. */
  readonly at: number | undefined
}

/** How long a call waits, and a refusal is remembered. */
const queueMs = 900_000
/** Longer arguments lie beside the entry, so that the list stays quick to read. */
const listedArguments = 16 * 1024
/** Limit of arguments that are stored to be shown to the operator. */
const mostArguments = 1024 * 1024
/** How often the store is checked, in case a change notification was lost. */
const lookEveryMs = 250
const prefix = 'approval/'
const argumentsPrefix = 'approval-arguments/'

/**
 * Waits for an answer. Returns if approved; throws if refused or not answered in time. `told` returns the audit entries that are
 * committed with the answer.
 */
export async function byQueue(call: ObligedCall, told: (answered: OperatorAnswer) => readonly Op[]): Promise<'queue'> {
  const { parts, exchange } = call
  const { clock } = parts
  const store = await parts.store()
  const key = await keyOf(call)
  const until = clock.now() + waitMs(call)
  for (;;) {
    const entry = await store.get(key)
    const record = entry === undefined ? undefined : readRecord(entry)
    if (record?.binding !== undefined && record.binding !== call.binding)
      throw unapproved(call, 'the approval_id is that of another call', 'Repeat the call without approval_id')
    if (entry === undefined || record === undefined) {
      await enqueue(call, store, key)
      continue
    }
    if (record.status === 'refused') throw refusedByOperator(call)
    if (record.status === 'approved') {
      const also = told({ by: record.by, at: record.answeredAt })
      if ((await store.commit([remove(key, entry.version), ...also])).ok) return 'queue'
      // Someone else used the approval in between; look again.
      continue
    }
    if (!exchange.cancelled && (await answered(call, store, entry, until))) continue
    const again = isNobody(call.owner) ? `, with approval_id in _meta["${confirmationExtension}"]` : ''
    throw unapproved(
      call,
      'the call is waiting for approval',
      `Repeat the call within 5 minutes after it has been approved${again}`,
      { approval_id: idOf(key) },
    )
  }
}

/** How long the call waits for its answer. */
function waitMs({ facts: { wait } }: ObligedCall): number {
  return wait === undefined ? 0 : toMilliseconds(wait, 'wait')
}

/** The problem for a call that an operator refused. */
function refusedByOperator({ tool }: ObligedCall): Problem {
  return problem('CONFIRMATION_DECLINED', `The operator of the server refused this call of ${clip(tool)}`, {
    suggestion: 'Do not repeat the call: it is refused for 15 minutes. Ask the operator if you need it',
    actor: 'operator',
  })
}

/** The problem for a call that no operator has approved. */
function unapproved({ tool, risk }: ObligedCall, why: string, suggestion: string, more?: Params): Problem {
  return problem('CONFIRMATION_REQUIRED', `${clip(tool)} requires approval by the operator of the server: ${why}`, {
    suggestion,
    actor: 'operator',
    details: { tool, risk_level: risk, ...more },
  })
}

/** The store key of the call. For anonymous callers the name must be unguessable: the one from an earlier refusal, or a new one. */
async function keyOf({ exchange, owner, binding }: ObligedCall): Promise<string> {
  if (!isNobody(owner)) return `${prefix}${owner}/${(await digestText(binding)).slice(0, 22)}`
  const said = exchange.meta?.[confirmationExtension]
  const given = isRecord(said) ? said['approval_id'] : undefined
  const name = typeof given === 'string' && given.startsWith(`${owner}.`) ? given.slice(owner.length + 1) : undefined
  return `${prefix}${owner}/${name !== undefined && secret.test(name) ? name : crypto.randomUUID()}`
}

const secret = /^[\w-]{36}$/

/** All waiting calls, oldest first. */
export async function waiting(store: Store): Promise<readonly WaitingCall[]> {
  const found: WaitingCall[] = []
  const waitedFor = await keysWaitedFor(store)
  for (let after: string | undefined; ; ) {
    const page = await store.scan(prefix, after === undefined ? {} : { after })
    for (const entry of page) {
      const record = readRecord(entry)
      if (record?.status !== 'waiting') continue
      const { status: _, by: __, answeredAt: ___, account: ____, binding: _____, ...rest } = record
      found.push({ ...rest, id: idOf(entry.key), callerWaits: waitedFor.has(entry.key.slice(prefix.length)) })
    }
    after = page.at(-1)?.key
    if (after === undefined || page.length < 1_000) break
  }
  return found.sort((a, b) => a.askedAt - b.askedAt)
}

/** Whether somebody waits for the answer to the call with this id. */
export async function isWaitedFor(store: Store, id: string): Promise<boolean> {
  const key = keyOfId(id)
  return key !== undefined && (await keysWaitedFor(store, key)).size > 0
}

/** Whether the caller of a queued call is nobody in particular: a repetition has to carry the id of the approval. */
export function needsApprovalId(id: string): boolean {
  return isNobody(id.slice(0, id.lastIndexOf('.')))
}

/** The arguments of a waiting call, however long; undefined if nothing waits under this id. */
export async function argumentsOf(store: Store, id: string): Promise<Params | undefined> {
  const key = keyOfId(id)
  const entry = key === undefined ? undefined : await store.get(prefix + key)
  const record = entry === undefined ? undefined : readRecord(entry)
  if (key === undefined || record?.status !== 'waiting') return undefined
  return record.arguments ?? (await longArguments(store, key))
}

async function longArguments(store: Store, key: string): Promise<Params | undefined> {
  const entry = await store.get(argumentsPrefix + key)
  return entry === undefined ? undefined : (JSON.parse(entry.value) as Params)
}

/** Answers a waiting call; false if nothing waits under this id. Throws if the call cannot be approved. */
export async function answer(store: Store, id: string, yes: boolean, { clock, by, reason, audit }: Answerer): Promise<boolean> {
  const key = keyOfId(id)
  const entry = key === undefined ? undefined : await store.get(prefix + key)
  const record = entry === undefined ? undefined : readRecord(entry)
  if (key === undefined || entry === undefined || record?.status !== 'waiting') return false
  if (yes && record.arguments === undefined && (await store.get(argumentsPrefix + key)) === undefined) throw unseen(record)
  const outcome = yes ? 'approved' : 'refused'
  const now = clock.now()
  const told: StoredQuestion = { ...record, status: outcome, answeredAt: now, ...(by !== undefined && { by }) }
  const more = { ...record.about, by, approval: id, reason }
  const owner = id.slice(0, id.lastIndexOf('.'))
  const line = audit?.line({ event: 'confirmation_answered', owner, target: record.tool, outcome, more })
  const ttl = yes ? approvalMs : queueMs
  const ops = [
    put(entry.key, JSON.stringify(told), { ifVersion: entry.version, ttl }),
    remove(argumentsPrefix + key),
    keepAnswerOp(id, { yes, at: now, ...(by !== undefined && { by }) }),
  ]
  return (await store.commit(line === undefined ? ops : [...ops, line])).ok
}

/** Who answered a call, and how; undefined if nobody did within the last hour. */
export function answeredAs(store: Store, id: string): Promise<AnswerRecord | undefined> {
  return id.length > longestId ? Promise.resolve(undefined) : findAnswer(store, id)
}

const longestId = 200

/** The key of an entry without its prefix. */
function keyOfId(id: string): string | undefined {
  const at = id.lastIndexOf('.')
  return at <= 0 || id.length > longestId ? undefined : `${id.slice(0, at)}/${id.slice(at + 1)}`
}

/** Arguments that nobody could read cannot be approved. */
function unseen({ tool, length }: StoredQuestion): Error {
  return problem(
    'PAYLOAD_TOO_LARGE',
    `This call of ${clip(tool)} cannot be approved: its arguments (${length} characters) are no longer in the store`,
    { suggestion: 'Refuse it. The caller can repeat the call', actor: 'operator', details: { length } },
  )
}

/** A call that nobody could look at whole does not wait: it could only be refused. */
function tooLong(tool: string, length: number): Error {
  return problem(
    'PAYLOAD_TOO_LARGE',
    `This call of ${clip(tool)} needs approval, and its arguments have ${length} characters: at most ${mostArguments} can be shown to the operator`,
    { suggestion: 'Split it into smaller calls', actor: 'caller', details: { length, most: mostArguments } },
  )
}

async function enqueue(call: ObligedCall, store: Store, key: string): Promise<void> {
  const { about, onWait } = call.facts
  const account = await accountOf(call.exchange)
  const text = JSON.stringify(call.args)
  const { length } = text
  if (length > mostArguments) throw tooLong(call.tool, length)
  const long = length > listedArguments
  const now = call.parts.clock.now()
  const all = await standing(store)
  const refusal = queueRefusal(all, account, about?.['client'], now) ?? (long ? longRefusal(all, account, now) : undefined)
  if (refusal !== undefined) throw refusal
  const { principal } = call.exchange.caller
  const subject = principal?.subject ?? principal?.id
  const record: StoredQuestion = {
    status: 'waiting',
    account,
    ...(isNobody(call.owner) && { binding: call.binding }),
    tool: call.tool,
    message: call.text,
    risk: call.risk,
    ...(!long && { arguments: call.args }),
    length,
    ...(subject !== undefined && { principal: subject }),
    // JSON.stringify omits undefined members.
    ...(about !== undefined && { about: about as Readonly<Record<string, string>> }),
    askedAt: now,
    expires: now + queueMs,
  }
  // If another process was faster, the entry is for the same call.
  const entry = put(key, JSON.stringify(record), { ifAbsent: true, ttl: queueMs })
  const beside = long ? [put(argumentsPrefix + key.slice(prefix.length), text, { ttl: queueMs })] : []
  const { ok } = await store.commit([entry, ...beside])
  const { status: _, account: __, binding: ___, ...shown } = record
  if (ok) onWait?.({ ...shown, id: idOf(key), callerWaits: waitMs(call) > 0 })
}

/** The waiting calls, by account and client. */
async function standing(store: Store): Promise<readonly QueuedCall[]> {
  const found: QueuedCall[] = []
  for (const entry of await store.scan(prefix, { limit: 1_000 })) {
    const record = readRecord(entry)
    if (record?.status === 'waiting')
      found.push({
        account: record.account ?? '',
        client: record.about?.['client'],
        expires: record.expires,
        long: record.length > listedArguments,
      })
  }
  return found
}

/** Waits until the entry changes; false if the time is over or the caller has gone. Meanwhile a caller that asked for progress gets it. */
async function answered(
  { parts: { clock, port }, exchange, tool }: ObligedCall,
  store: Store,
  { key, version }: Entry,
  until: number,
): Promise<boolean> {
  const over = until - clock.now()
  if (over <= 0) return false
  const message = `${clip(tool)} waits for approval by the operator of the server`
  // Repeated, because clients wait longer for an answer while progress arrives.
  const tell = (): void => void port(progressPort).along(exchange, { message }, true)
  const leave = await markWaiting(store, clock, key.slice(prefix.length), tell)
  const ending = new AbortController()
  const cancel = clock.setTimeout(() => ending.abort(), over)
  const signal = AbortSignal.any([exchange.signal, ending.signal])
  const changes = store.watch([key], signal)[Symbol.asyncIterator]()
  let change: Promise<unknown> | undefined
  try {
    for (;;) {
      if ((await store.get(key))?.version !== version) return true
      if (signal.aborted) return false
      change ??= changes.next().finally(() => {
        change = undefined
      })
      await sooner(clock, change, signal)
    }
  } finally {
    cancel()
    ending.abort()
    await leave()
  }
}

/** Waits for a change, or for the next check, because notifications can get lost. */
async function sooner(clock: Clock, change: Promise<unknown>, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const end = (): void => resolve()
  const cancel = clock.setTimeout(end, lookEveryMs, true)
  signal.addEventListener('abort', end)
  try {
    await Promise.race([promise, change])
  } finally {
    cancel()
    signal.removeEventListener('abort', end)
  }
}

function readRecord({ value }: Entry): StoredQuestion | undefined {
  const record: unknown = JSON.parse(value)
  return isRecord(record) && typeof record['status'] === 'string' ? (record as unknown as StoredQuestion) : undefined
}

function idOf(key: string): string {
  return key.slice(prefix.length).replace('/', '.')
}
