/**
 * Accepts events into the inbox: checks limits and policy, stores the event in one commit, and only then answers. A repeated event gets
 * its earlier answer. `InboxGate` bounds the writes of one server.
 */
import { hash } from 'node:crypto'
import { type Buckets, createBuckets } from '../../core/bucket.ts'
import { durationText } from '../../core/clock.ts'
import { canonicalJson } from '../../core/digest.ts'
import { type Why, why } from '../../core/suggestion.ts'
import type { PushAnswer, PushEvent } from '../../features/live/push-events/messages.ts'
import { clip } from '../../jsonrpc/limits.ts'
import type { SetAdmission } from '../../policy/feature-sets/set-consent.ts'
import type { Asked } from '../../policy/rules/rule.ts'
import type { Verdict } from '../../policy/rules/verdict.ts'
import { add, type Entry, type Op, put } from '../../stores/store.ts'
import { Groups, type Item } from './event-queues.ts'
import type { InboxContext } from './inbox-context.ts'
import type { AcceptOptions, InboxNote } from './options.ts'
import { inboxKeys, readSeen, type SeenEvent, seenOf, type Todo } from './records.ts'

/** An event that is being accepted. */
interface Coming {
  readonly server: string
  readonly event: PushEvent
  readonly digest: string
  /** Its reserved place in a queue, where this process runs the server's events. */
  readonly reserved: Item | undefined
  readonly seq: string
  readonly lane: string
  /** How it is admitted; read at once, because another program may connect under the name before it is stored. */
  readonly admitted: SetAdmission | undefined
}

/** What is known of a repeated event. */
type KnownEvent = Pick<SeenEvent, 'inferenceId' | 'digest'>

/** Recent events in memory. */
const remembered = 10_000
/** Lookups of earlier answers while a server is refused: at once, and per second. */
const lookups = 2
const lookupsPerSecond = 50
/** How long a full queue refuses without a check. */
const fullMs = 250

/** Accepts or refuses events of servers. */
export class Acceptance {
  readonly #context: InboxContext
  readonly #rates: Buckets
  /** Bounds concurrent writes per server, because writes that share a commit wait for each other. */
  readonly #gate = new InboxGate({ most: 8, waiting: 1_000 })
  /** Bounds concurrent lookups per server. */
  readonly #looking = new InboxGate({ most: lookups, waiting: 0 })
  readonly #lookups: Buckets
  readonly #groups: Groups
  /** The newest events, so that repeats in quick succession do not read the store. */
  readonly #recent = new Map<string, KnownEvent>()
  /** Until when a server with a full queue is refused without a check. */
  readonly #full = new Map<string, number>()

  constructor(context: InboxContext) {
    const { perSecond, burst } = context.options.rate ?? { perSecond: 500, burst: 1_000 }
    this.#context = context
    this.#rates = createBuckets({ perSecond, burst, clock: context.clock })
    this.#lookups = createBuckets({ perSecond: lookupsPerSecond, clock: context.clock })
    this.#groups = new Groups(context.clock)
  }

  async accept(server: string, event: PushEvent, { subscription, ruled }: AcceptOptions): Promise<PushAnswer> {
    checkServer(server)
    const admitted = this.#context.options.policy?.admission?.(server, event.featureSet, subscription)
    const known = this.#recent.get(recentKey(server, event, admitted))
    if (known !== undefined) return this.#again(server, event, known)
    const refusal = this.#tooMuch(server)
    if (refusal !== undefined) return this.#unlessSeen({ server, event, admitted }, refusal)
    const [seq, lane] = [this.#context.nextSeq(), this.#laneOf(server, event)]
    // The order is that of the calls, however long each takes from here.
    const reserved = this.#context.opened ? this.#context.lanes.reserve(server, lane, seq) : undefined
    const coming: Coming = { server, event, digest: eventDigest(event), reserved, seq, lane, admitted }
    try {
      return await this.#decide(coming, ruled)
    } catch (error) {
      // The write may have succeeded despite the error, so the queue is read again.
      this.#context.failed(server, 'Writing an event failed', error)
      this.#later(server)
      throw error
    } finally {
      if (reserved?.state === 'coming') this.#context.lanes.release(server, lane, reserved)
    }
  }

  /** Asks the policy, checks chain depth and size, then stores the event. */
  async #decide(coming: Coming, ruled: ((rule: string) => void) | undefined): Promise<PushAnswer> {
    const { server, event } = coming
    const { policy } = this.#context.options
    const verdict: Verdict | undefined = policy && (await policy.decide(askedOf(server, event)))
    if (verdict?.do === 'deny') {
      const { why: data, retryAfterMs } = verdict
      const reason = data.code === 'RATE_LIMITED' ? 'rate' : data.message
      return this.#unlessSeen(coming, refused(reason, data, retryAfterMs))
    }
    const { chains } = this.#context
    const place = chains.placeOf(server, event)
    const tooDeep = place.depth > chains.depth ? chains.tooDeep(server, event, place) : undefined
    if (tooDeep !== undefined && place.told) return this.#unlessSeen(coming, refused('chain', tooDeep))
    const held = verdict?.do === 'hold' ? verdict.why : tooDeep
    const rule = verdict === undefined ? undefined : 'why' in verdict ? verdict.why.rule : verdict.rule
    const todo = this.#placed(place.depth, place.through, this.#todo(coming, verdict))
    const text = JSON.stringify(todo)
    // Measured only if the text could exceed the limit: a UTF-16 unit takes at most 3 bytes.
    const { bytes } = this.#context.settings
    if (text.length * 3 > bytes && Buffer.byteLength(text) > bytes) return refused('too large', tooLarge(bytes))
    const entering = this.#gate.enter(server)
    if (entering !== undefined) await entering
    try {
      // Not for a repeated event, which gets its first answer.
      const isNew = (): void => {
        if (rule !== undefined) ruled?.(rule)
      }
      return await this.#write(coming, todo, text, held, isNew)
    } finally {
      this.#gate.leave(server)
    }
  }

  /** Commits the event; on a conflict decides between a repeat, a foreign id and an expired record. */
  async #write(coming: Coming, todo: Todo, text: string, held: Why | undefined, isNew: () => void): Promise<PushAnswer> {
    const { server, event, digest, admitted } = coming
    for (let before: Entry | undefined; ; ) {
      const outcome = await this.#context.store.commit(this.#steps(coming, todo, text, before))
      if (outcome.ok) {
        isNew()
        this.#remember(recentKey(server, event, admitted), { inferenceId: todo.inferenceId, digest })
        this.#enqueue(coming, outcome.results[1]?.version ?? 0, todo)
        this.#context.options.onChange?.(server, event.eventId)
        if (held !== undefined) this.#context.told(server, held, { ...aboutOf(event, todo), outcome: 'held' })
        return { accepted: true, inferenceId: todo.inferenceId }
      }
      if (outcome.index === 2) return this.#queueFull(server)
      // A record that is gone has just expired, so the event is new.
      before = await this.#context.store.get(inboxKeys.seen(server, event.eventId))
      const seen = before && readSeen(before.value)
      if (seen === undefined) continue
      if (seen.identity === admitted?.identity) return this.#again(server, event, seen)
      // Another program used this id. While its event waits the record must stay; after that the id is free.
      if (seen.state === 'waiting') return this.#conflict(server, event, seen)
    }
  }

  /** The operations of the commit. `before`: the record of another program's event with the same id. */
  #steps({ server, event, seq }: Coming, todo: Todo, text: string, before: Entry | undefined): readonly Op[] {
    const when = before === undefined ? { ifAbsent: true } : { ifVersion: before.version }
    const steps = [
      put(inboxKeys.seen(server, event.eventId), JSON.stringify(seenOf(seq, todo, 'waiting')), when),
      put(inboxKeys.todo(server, seq), text),
      add(inboxKeys.count(server), 1, { max: this.#context.settings.waiting }),
    ]
    // Tells the process that owns this server's queue.
    if (!this.#context.owners.owns(server)) steps.push(put(inboxKeys.call(server), seq))
    return steps
  }

  /** The queue record of an event, by the verdict. */
  #todo({ server, event, digest, lane, admitted }: Coming, verdict: Verdict | undefined): Todo {
    const base = { event, digest, at: this.#context.clock.now(), lane, ...(admitted && { admitted }) }
    const inferenceId = `inf_${this.#context.id()}`
    if (verdict?.do === 'hold') return { ...base, inferenceId, notBefore: verdict.until }
    if (verdict?.do === 'ask') return { ...base, inferenceId, asks: true }
    if (verdict?.do !== 'coalesce') return { ...base, inferenceId }
    const bytes = Buffer.byteLength(JSON.stringify(event))
    // Messages of different channels are never merged.
    const key = event.channel === undefined ? verdict.key : `${verdict.key} ${event.channel.channelId}`
    const group = this.#groups.join(`${server}\n${key}`, verdict.withinMs, inferenceId, bytes)
    // Events of one group share a queue, otherwise they would wait for each other.
    return { ...base, lane: `group ${key}`, inferenceId: group.inferenceId, notBefore: group.until, group: true }
  }

  /** Adds the chain position. An event that only seems to be too deep is delayed, not refused. */
  #placed(depth: number, through: readonly string[], given: Todo): Todo {
    const { chains, clock } = this.#context
    const todo = through.length === 0 ? given : { ...given, through }
    if (depth <= chains.depth) return depth === 1 ? todo : { ...todo, depth }
    return { ...todo, notBefore: Math.max(todo.notBefore ?? 0, clock.now() + chains.pauseMs) }
  }

  /** Puts the event into its queue, where this process runs it. */
  #enqueue({ server, reserved, seq, lane }: Coming, version: number, todo: Todo): void {
    const { owners, opened, lanes } = this.#context
    if (!owners.owns(server)) {
      if (opened) this.#later(server)
      return
    }
    if (reserved?.state === 'coming' && todo.lane === lane) return this.#context.place(server, seq, version, todo, [], reserved)
    if (reserved?.state === 'coming') lanes.release(server, lane, reserved)
    if (!lanes.has(server, seq)) this.#context.place(server, seq, version, todo)
  }

  /** Reads the queue again in the background. */
  #later(server: string): void {
    const reading = this.#context.owners.owns(server) ? this.#context.load(server) : this.#context.own(server)
    reading.catch(error => this.#context.failed(server, 'Reading the queue failed', error))
  }

  /** The queue of an event: by option, channel, origin or feature set. */
  #laneOf(server: string, event: PushEvent): string {
    if (this.#context.options.orderBy !== undefined) return this.#context.options.orderBy(server, event)
    // One queue per channel, whoever writes there.
    if (event.channel !== undefined) return `channel ${event.channel.channelId}`
    return event.origin === undefined ? `set ${event.featureSet}` : `origin ${canonicalJson(event.origin)}`
  }

  /** The refusal of a server that sends too much; undefined where it does not. */
  #tooMuch(server: string): PushAnswer | undefined {
    const now = this.#context.clock.now()
    const full = this.#full.get(server) ?? 0
    if (full > now) return tooMany(full - now, 'inbox.waiting', 'The queue of the server is full')
    const wait = this.#rates.take(server)
    if (wait > 0)
      return tooMany(wait, 'inbox.rate', `The server sends more than ${this.#rates.perSecond} events per second (the limit)`)
    return this.#gate.isFull(server)
      ? tooMany(fullMs, 'inbox.gate', 'Events of the server arrive faster than the store can write them')
      : undefined
  }

  #queueFull(server: string): PushAnswer {
    this.#full.set(server, this.#context.clock.now() + fullMs)
    const { waiting } = this.#context.settings
    return tooMany(1_000, 'inbox.waiting', `${waiting} events of the server wait in the queue (the limit)`)
  }

  /** The earlier answer of a repeated event, otherwise the refusal. */
  async #unlessSeen({ server, event, admitted }: Pick<Coming, 'server' | 'event' | 'admitted'>, refusal: PushAnswer) {
    // During a flood nothing is looked up; a retry later gets the answer.
    if (this.#looking.isBusy(server) || this.#lookups.take(server) > 0) return refusal
    void this.#looking.enter(server)
    try {
      const entry = await this.#context.store.get(inboxKeys.seen(server, event.eventId))
      const seen = entry && readSeen(entry.value)
      return seen === undefined || seen.identity !== admitted?.identity ? refusal : this.#again(server, event, seen)
    } finally {
      this.#looking.leave(server)
    }
  }

  /** The answer to a repeated event: the same body is accepted again, another body is a conflict. */
  #again(server: string, event: PushEvent, seen: KnownEvent): PushAnswer {
    if (seen.digest === eventDigest(event)) return { accepted: true, inferenceId: seen.inferenceId }
    return this.#conflict(server, event, seen)
  }

  #conflict(server: string, event: PushEvent, seen: KnownEvent): PushAnswer {
    const message = `Event ${clip(event.eventId)} of ${clip(server)} arrived again with a different body. Only the first one is processed`
    const conflict = why('EVENT_CONFLICT', 'inbox.dedupe', message, 'Use a new eventId for each event')
    this.#context.told(server, conflict, { ...aboutOf(event, seen), outcome: 'dropped' })
    // Accepting it would claim that this body will be processed.
    return refused('conflict', conflict)
  }

  #remember(key: string, seen: KnownEvent): void {
    if (this.#recent.size >= remembered) {
      const [oldest] = this.#recent.keys()
      if (oldest !== undefined) this.#recent.delete(oldest)
    }
    this.#recent.set(key, seen)
  }
}

/** The ids that a diagnostic about an event contains. */
export function aboutOf(
  { eventId, featureSet }: PushEvent,
  { inferenceId }: Pick<SeenEvent, 'inferenceId'>,
): Omit<InboxNote, 'outcome'> {
  return { eventId, featureSet, inferenceId }
}

/** Includes the identity: the same id from another program is another event. */
function recentKey(server: string, { eventId }: PushEvent, admitted: SetAdmission | undefined): string {
  return `${admitted?.identity ?? ''} ${inboxKeys.seen(server, eventId)}`
}

/** A digest of everything but the timestamp, which a repeated event may change. */
function eventDigest({ featureSet, origin, content, tags, extra }: PushEvent): string {
  return hash('sha256', canonicalJson([featureSet, origin ?? null, content, tags ?? null, extra ?? null]) ?? '', 'base64url')
}

/** An event as a request to the policy. */
export function askedOf(server: string, { featureSet, eventId, tags, origin, content }: PushEvent): Asked {
  return {
    kind: 'push',
    server,
    featureSet,
    eventId,
    payload: content,
    ...(tags !== undefined && { tags }),
    ...(origin !== undefined && { origin }),
  }
}

/** Server names are part of keys, so they are short; they come from the host's configuration. */
function checkServer(server: string): void {
  if (server === '' || server.length > 100 || !server.isWellFormed())
    throw new TypeError(`"${clip(server)}" is not a valid server name. Use 1 to 100 characters`)
}

function refused(reason: string, data: Why, retryAfterMs?: number): PushAnswer {
  return { accepted: false, reason, data, ...(retryAfterMs !== undefined && { retryAfterMs }) }
}

function tooMany(waitMs: number, rule: string, message: string): PushAnswer {
  const retryAfterMs = Math.ceil(waitMs)
  return refused('rate', why('RATE_LIMITED', rule, message, `Send it again in ${durationText(retryAfterMs)}`), retryAfterMs)
}

function tooLarge(bytes: number): Why {
  return why(
    'EVENT_TOO_LARGE',
    'inbox.bytes',
    `The event is larger than ${bytes} bytes (the limit)`,
    'Send a link to large content instead',
  )
}

// The gate: bounds concurrent writes per server; more of them wait, and beyond that are refused, so that no server fills the store's queue.

interface Queue {
  under: number
  readonly waiting: (() => void)[]
}

/** Bounds the concurrent writes of each server. */
export class InboxGate {
  readonly #most: number
  readonly #waiting: number
  readonly #queues = new Map<string, Queue>()

  /** `most`: concurrent writes per server; `waiting`: how many more may wait. */
  constructor({ most, waiting }: { readonly most: number; readonly waiting: number }) {
    this.#most = most
    this.#waiting = waiting
  }

  /** Whether the waiting list is full. */
  isFull(server: string): boolean {
    return (this.#queues.get(server)?.waiting.length ?? 0) >= this.#waiting
  }

  /** Whether one more would have to wait. */
  isBusy(server: string): boolean {
    return (this.#queues.get(server)?.under ?? 0) >= this.#most
  }

  /** Undefined where there is room. Each `enter` needs a `leave`. */
  enter(server: string): Promise<void> | undefined {
    let queue = this.#queues.get(server)
    if (queue === undefined) {
      queue = { under: 0, waiting: [] }
      this.#queues.set(server, queue)
    }
    if (queue.under < this.#most) {
      queue.under++
      return undefined
    }
    const { promise, resolve } = Promise.withResolvers<void>()
    queue.waiting.push(resolve)
    return promise
  }

  leave(server: string): void {
    const queue = this.#queues.get(server)
    if (queue === undefined) return
    const next = queue.waiting.shift()
    // The place passes directly to the next one that waits.
    if (next !== undefined) return next()
    if (--queue.under === 0) this.#queues.delete(server)
  }
}
