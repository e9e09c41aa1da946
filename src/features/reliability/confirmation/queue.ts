/**
 * Approval by whoever runs the server: a call that needs it stands in line on the store until somebody answers, on any process.
 * An answer is good for exactly this call of this caller, once. What stands in line is one entry a call, however often it is made.
 */
import type { Audit } from '../../../core/audit/audit.ts'
import type { Clock } from '../../../core/clock.ts'
import { digestText } from '../../../core/digest.ts'
import { toMilliseconds } from '../../../core/duration.ts'
import { problem } from '../../../core/problem.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import { isRecord, type Params } from '../../../jsonrpc/message.ts'
import { put, remove } from '../../../stores/ops.ts'
import type { Entry, Op, Store } from '../../../stores/store.ts'
import { approvalMs, declined, type ObligedCall, required } from './call.ts'
import type { ConfirmFacts } from './facts.ts'
import type { Risk } from './messages.ts'
import type { ConfirmationParts } from './server.ts'

/** A call that waits for a yes or a no. */
export interface WaitingCall {
  /** Answers are given to it. */
  readonly id: string
  readonly tool: string
  /** What the user of the client would read. */
  readonly message: string
  readonly risk: Risk
  /** As they came; absent where they are too long to be kept. */
  readonly arguments?: Params
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
  /** Who has answered, as that one is called, and when. */
  readonly by?: string
  readonly answeredAt?: number
}

/** Who answers. */
export interface Answerer {
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
/** Of one caller. */
const mostWaiting = 100
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
  const hash = (await digestText(call.binding)).slice(0, 22)
  const key = `${prefix}${call.owner}/${hash}`
  const until = parts.clock.now() + (facts.wait === undefined ? 0 : toMilliseconds(facts.wait, 'wait'))
  for (;;) {
    const entry = await store.get(key)
    const record = entry === undefined ? undefined : readRecord(entry)
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
    if (exchange.cancelled || !(await answered(parts.clock, store, key, entry.version, until, exchange)))
      throw required(call, 'it waits for approval', 'Call it again once it is approved', { approval_id: idOf(key) })
  }
}

/** All that wait, the oldest first. */
export async function waiting(store: Store, owner?: string): Promise<readonly WaitingCall[]> {
  const found: WaitingCall[] = []
  const within = owner === undefined ? prefix : `${prefix}${owner}/`
  for (let after: string | undefined; ; ) {
    const page = await store.scan(within, after === undefined ? {} : { after })
    for (const entry of page) {
      const record = readRecord(entry)
      if (record?.status !== 'waiting') continue
      const { status: _, by: __, answeredAt: ___, ...rest } = record
      found.push({ ...rest, id: idOf(entry.key) })
    }
    after = page.at(-1)?.key
    if (after === undefined || page.length < 1_000) break
  }
  return found.sort((a, b) => a.askedAt - b.askedAt)
}

/** False where nothing of that name waits: it is over, or was answered before. */
export async function answer(store: Store, id: string, yes: boolean, { clock, by, audit }: Answerer): Promise<boolean> {
  const at = id.lastIndexOf('.')
  const entry = at <= 0 || id.length > 200 ? undefined : await store.get(`${prefix}${id.slice(0, at)}/${id.slice(at + 1)}`)
  const record = entry === undefined ? undefined : readRecord(entry)
  if (entry === undefined || record?.status !== 'waiting') return false
  const outcome = yes ? 'approved' : 'refused'
  const told: Kept = { ...record, status: outcome, answeredAt: clock.now(), ...(by !== undefined && { by }) }
  const more = { ...record.about, by, approval: id }
  const line = audit?.line({ event: 'confirmation_answered', owner: id.slice(0, at), target: record.tool, outcome, more })
  const ttl = yes ? approvalMs : queueMs
  const answering = put(entry.key, JSON.stringify(told), { ifVersion: entry.version, ttl })
  return (await store.commit(line === undefined ? [answering] : [answering, line])).ok
}

async function enqueue(
  { clock }: ConfirmationParts,
  store: Store,
  key: string,
  { caller }: Exchange,
  call: ObligedCall,
  { about, onWait }: ConfirmFacts,
): Promise<void> {
  if ((await waiting(store, call.owner)).length >= mostWaiting)
    throw problem('RATE_LIMIT_EXCEEDED', `${mostWaiting} calls of this caller wait for approval`, {
      suggestion: 'Wait until they are answered',
      actor: 'operator',
    })
  const now = clock.now()
  const subject = caller.principal?.subject ?? caller.principal?.id
  const record: Kept = {
    status: 'waiting',
    tool: call.tool,
    message: call.text,
    risk: call.risk,
    ...(JSON.stringify(call.args).length <= mostArguments && { arguments: call.args }),
    ...(subject !== undefined && { principal: subject }),
    // What is undefined is left out as it is written.
    ...(about !== undefined && { about: about as Readonly<Record<string, string>> }),
    askedAt: now,
    expires: now + queueMs,
  }
  // Where somebody else was faster, it is the same call.
  const { ok } = await store.commit([put(key, JSON.stringify(record), { ifAbsent: true, ttl: queueMs })])
  const { status: _, ...shown } = record
  if (ok) onWait?.({ ...shown, id: idOf(key) })
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
