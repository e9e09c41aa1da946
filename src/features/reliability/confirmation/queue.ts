/**
 * Approval by whoever runs the server: a call that needs it stands in line on the store until somebody answers, on any process.
 * An answer is good for exactly this call of this caller, once. What stands in line is one entry a call, however often it is made.
 */
import type { Audit } from '../../../core/audit/audit.ts'
import { type Clock, toMilliseconds } from '../../../core/clock.ts'
import { digestText } from '../../../core/digest.ts'
import { leftOf, quotaExhausted } from '../../../core/occupancy.ts'
import { type Problem, problem } from '../../../core/problem.ts'
import { quoted } from '../../../core/suggestion.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import { accountOf, isNobody } from '../../../engine/owner.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { isRecord, type Params } from '../../../jsonrpc/message.ts'
import { type Entry, type Op, put, remove, type Store } from '../../../stores/store.ts'
import { approvalMs, declined, type ObligedCall, required } from './ask.ts'
import { confirmationExtension, type Risk } from './messages.ts'
import type { ConfirmationParts, ConfirmFacts } from './server.ts'

/** A call that waits for a yes or a no. */
export interface WaitingCall {
  /** Answers are given to it. */
  readonly id: string
  readonly tool: string
  /** What the user of the client would read. */
  readonly message: string
  readonly risk: Risk
  /** As they came; absent where they are too long to be kept: what nobody can look at can only be refused. */
  readonly arguments?: Params
  /** How many characters they have as JSON. */
  readonly length: number
  /** Who calls, where that is known. */
  readonly principal?: string
  /** What its tool says beside it. */
  readonly about?: Readonly<Record<string, string>>
  /** Milliseconds since the epoch. */
  readonly askedAt: number
  readonly expires: number
}

interface Kept extends Omit<WaitingCall, 'id'> {
  readonly status: 'waiting' | 'approved' | 'refused'
  /** Whose share of the line it takes. */
  readonly account?: string
  /** The call that it is for, where the key does not say so. */
  readonly binding?: string
  /** Who has answered, as that one is called, and when. */
  readonly by?: string
  readonly answeredAt?: number
}

/** Who answers. */
interface Answerer {
  readonly clock: Clock
  /** As whoever reads the audit log knows him. */
  readonly by?: string | undefined
  readonly audit?: Audit | undefined
}

/** What came of standing in line. */
export interface Answered {
  readonly by: string | undefined
  /** Milliseconds since the epoch. */
  readonly at: number | undefined
}

/** How long a call stands in line, and a no is remembered. */
const queueMs = 900_000
/** Characters of arguments that are kept, to be shown whole to whoever is asked. */
const mostArguments = 16 * 1024
const lookEveryMs = 250
const prefix = 'approval/'

/** Returns once it is approved; throws where it is not, or not yet. `told` gives what is written with the use of a yes, or for a no. */
export async function byQueue(
  parts: ConfirmationParts,
  exchange: Exchange,
  call: ObligedCall,
  facts: ConfirmFacts,
  told: (answered: Answered) => readonly Op[],
): Promise<'queue'> {
  const store = await parts.store()
  const key = await keyOf(exchange, call)
  const until = parts.clock.now() + (facts.wait === undefined ? 0 : toMilliseconds(facts.wait, 'wait'))
  for (;;) {
    const entry = await store.get(key)
    const record = entry === undefined ? undefined : readRecord(entry)
    if (record?.binding !== undefined && record.binding !== call.binding)
      throw required(call, 'that approval is for another call', 'Call it again without approval_id')
    if (entry === undefined || record === undefined) {
      await enqueue(parts, store, key, exchange, call, facts)
      continue
    }
    if (record.status === 'refused') throw declined(call)
    if (record.status === 'approved') {
      const also = told({ by: record.by, at: record.answeredAt })
      if ((await store.commit([remove(key, entry.version), ...also])).ok) return 'queue'
      continue
    }
    if (!exchange.cancelled && (await answered(parts.clock, store, key, entry.version, until, exchange))) continue
    const again = isNobody(call.owner) ? `, with approval_id in _meta["${confirmationExtension}"]` : ''
    throw required(call, 'it waits for approval', `Call it again once it is approved${again}`, { approval_id: idOf(key) })
  }
}

/**
 * Where the call stands in line. Of somebody who is not known a name that nobody can guess says which call it is: one that was
 * given with an earlier refusal, or a new one.
 */
async function keyOf({ meta }: Exchange, { owner, binding }: ObligedCall): Promise<string> {
  if (!isNobody(owner)) return `${prefix}${owner}/${(await digestText(binding)).slice(0, 22)}`
  const said = meta?.[confirmationExtension]
  const given = isRecord(said) ? said['approval_id'] : undefined
  const name = typeof given === 'string' && given.startsWith(`${owner}.`) ? given.slice(owner.length + 1) : undefined
  return `${prefix}${owner}/${name !== undefined && secret.test(name) ? name : crypto.randomUUID()}`
}

const secret = /^[\w-]{36}$/

/** All that wait, the oldest first. */
export async function waiting(store: Store): Promise<readonly WaitingCall[]> {
  const found: WaitingCall[] = []
  for (let after: string | undefined; ; ) {
    const page = await store.scan(prefix, after === undefined ? {} : { after })
    for (const entry of page) {
      const record = readRecord(entry)
      if (record?.status !== 'waiting') continue
      const { status: _, by: __, answeredAt: ___, account: ____, binding: _____, ...rest } = record
      found.push({ ...rest, id: idOf(entry.key) })
    }
    after = page.at(-1)?.key
    if (after === undefined || page.length < 1_000) break
  }
  return found.sort((a, b) => a.askedAt - b.askedAt)
}

/** False where nothing of that name waits: it is over, or was answered before. Throws where it cannot be approved. */
export async function answer(store: Store, id: string, yes: boolean, { clock, by, audit }: Answerer): Promise<boolean> {
  const at = id.lastIndexOf('.')
  const entry = at <= 0 || id.length > 200 ? undefined : await store.get(`${prefix}${id.slice(0, at)}/${id.slice(at + 1)}`)
  const record = entry === undefined ? undefined : readRecord(entry)
  if (entry === undefined || record?.status !== 'waiting') return false
  if (yes && record.arguments === undefined) throw unseen(record)
  const outcome = yes ? 'approved' : 'refused'
  const told: Kept = { ...record, status: outcome, answeredAt: clock.now(), ...(by !== undefined && { by }) }
  const more = { ...record.about, by, approval: id }
  const line = audit?.line({ event: 'confirmation_answered', owner: id.slice(0, at), target: record.tool, outcome, more })
  const ttl = yes ? approvalMs : queueMs
  const answering = put(entry.key, JSON.stringify(told), { ifVersion: entry.version, ttl })
  return (await store.commit(line === undefined ? [answering] : [answering, line])).ok
}

/** A yes to what nobody could look at would be a yes to anything. */
function unseen({ tool, length }: Kept): Error {
  return problem(
    'PAYLOAD_TOO_LARGE',
    `This call of ${clip(tool)} cannot be approved: its arguments have ${length} characters, and ${mostArguments} are kept to be shown`,
    { suggestion: 'Refuse it, and have its caller do it in smaller parts', actor: 'operator', details: { length } },
  )
}

async function enqueue(
  { clock }: ConfirmationParts,
  store: Store,
  key: string,
  exchange: Exchange,
  call: ObligedCall,
  { about, onWait }: ConfirmFacts,
): Promise<void> {
  const account = await accountOf(exchange)
  const { length } = JSON.stringify(call.args)
  const now = clock.now()
  const refusal = queueRefusal(await standing(store), account, about?.['client'], now)
  if (refusal !== undefined) throw refusal
  const { caller } = exchange
  const subject = caller.principal?.subject ?? caller.principal?.id
  const record: Kept = {
    status: 'waiting',
    account,
    ...(isNobody(call.owner) && { binding: call.binding }),
    tool: call.tool,
    message: call.text,
    risk: call.risk,
    ...(length <= mostArguments && { arguments: call.args }),
    length,
    ...(subject !== undefined && { principal: subject }),
    // What is undefined is left out as it is written.
    ...(about !== undefined && { about: about as Readonly<Record<string, string>> }),
    askedAt: now,
    expires: now + queueMs,
  }
  // Where somebody else was faster, it is the same call.
  const { ok } = await store.commit([put(key, JSON.stringify(record), { ifAbsent: true, ttl: queueMs })])
  const { status: _, account: __, binding: ___, ...shown } = record
  if (ok) onWait?.({ ...shown, id: idOf(key) })
}

/** Who stands in line. */
async function standing(store: Store): Promise<readonly QueuedCall[]> {
  const found: QueuedCall[] = []
  for (const entry of await store.scan(prefix, { limit: 1_000 })) {
    const record = readRecord(entry)
    if (record?.status === 'waiting')
      found.push({ account: record.account ?? '', client: record.about?.['client'], expires: record.expires })
  }
  return found
}

/** Whether the entry is another one now, before the time is over or the caller has gone. */
async function answered(
  clock: Clock,
  store: Store,
  key: string,
  version: number,
  until: number,
  exchange: Exchange,
): Promise<boolean> {
  const ending = new AbortController()
  const end = (): void => ending.abort()
  const over = until - clock.now()
  if (over <= 0) return false
  const cancel = clock.setTimeout(end, over)
  exchange.signal.addEventListener('abort', end)
  const changes = store.watch([key], ending.signal)[Symbol.asyncIterator]()
  let change: Promise<unknown> | undefined
  try {
    for (;;) {
      if ((await store.get(key))?.version !== version) return true
      if (ending.signal.aborted) return false
      change ??= changes.next().finally(() => {
        change = undefined
      })
      await sooner(clock, change, ending.signal)
    }
  } finally {
    cancel()
    ending.abort()
    exchange.signal.removeEventListener('abort', end)
  }
}

/** A hint may be lost: it is looked again after a while. */
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

function readRecord({ value }: Entry): Kept | undefined {
  const record: unknown = JSON.parse(value)
  return isRecord(record) && typeof record['status'] === 'string' ? (record as unknown as Kept) : undefined
}

function idOf(key: string): string {
  return key.slice(prefix.length).replace('/', '.')
}

// How many calls may stand in line for an approval: of one caller, of one client of a gateway, and in all, so that nobody crowds out others or whoever answers.

/** A call that waits, by whose it is. */
interface QueuedCall {
  readonly account: string
  /** The name by which a gateway knows those who call so. */
  readonly client: string | undefined
  /** Milliseconds since the epoch. */
  readonly expires: number
}

/** Of one caller. */
const mostOfCaller = 100
/** Of all callers together; an account, and a client of a gateway, has its share of them. */
const mostInAll = 1_000

/** Why one more may not; undefined where it may. */
export function queueRefusal(
  all: readonly QueuedCall[],
  account: string,
  client: string | undefined,
  now: number,
): Problem | undefined {
  const mine = all.filter(each => each.account === account)
  if (mine.length >= mostOfCaller || leftOf(mostInAll, all.length, mine.length) === 0) return full('', mine, now)
  if (client === undefined) return undefined
  const named = all.filter(each => each.client === client)
  return leftOf(mostInAll, all.length, named.length) === 0 ? full(` of the client ${quoted(client)}`, named, now) : undefined
}

function full(whose: string, held: readonly QueuedCall[], now: number): Problem {
  const soonest = Math.min(...held.map(({ expires }) => expires))
  return quotaExhausted(
    `calls${whose} that wait for approval (${held.length})`,
    Number.isFinite(soonest) ? soonest - now : undefined,
    'Wait until some of them are answered, or over: that takes 15 minutes at most',
  )
}
