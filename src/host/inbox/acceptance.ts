/**
 * Taking an event in: refused at once where there is too much, written in one commit, and only then answered. An event that came
 * before gets the answer that it got then.
 */
import { type Buckets, createBuckets } from '../../core/bucket.ts'
import { canonicalJson } from '../../core/digest.ts'
import { durationText } from '../../core/duration.ts'
import { type Why, why } from '../../core/why.ts'
import type { PushAnswer, PushEvent } from '../../features/live/push-events/messages.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { add, put } from '../../stores/ops.ts'
import type { Op } from '../../stores/store.ts'
import type { Asked, Verdict } from '../policy/rule.ts'
import type { Place } from './chains.ts'
import { Gate } from './gate.ts'
import { Groups } from './groups.ts'
import { callKey, countKey, digestOf, readSeen, type Seen, seenKey, type Todo, todoKey } from './records.ts'
import type { Shelf } from './shelf.ts'
import type { Item } from './turns.ts'

/** An event on its way in. */
interface Coming {
  readonly server: string
  readonly event: PushEvent
  readonly digest: string
  readonly seat: Item | undefined
  readonly seq: string
  readonly lane: string
}

const remembered = 10_000
/** Looks for earlier answers while a server is being refused: of one at once, and in a second. */
const lookups = 2
const lookupsPerSecond = 50
const fullMs = 250

export class Acceptance {
  readonly #shelf: Shelf
  readonly #rates: Buckets
  /** Few of one server at once: whoever is written in the same commit waits for them. */
  readonly #gate = new Gate({ most: 8, waiting: 1_000 })
  readonly #looking = new Gate({ most: lookups, waiting: 0 })
  readonly #lookups: Buckets
  readonly #groups: Groups
  /** The newest, so that those who send twice at once cost no look at the store. */
  readonly #recent = new Map<string, Pick<Seen, 'inferenceId' | 'digest'>>()
  /** Until when a server whose queue was full is refused without a look. */
  readonly #full = new Map<string, number>()

  constructor(shelf: Shelf) {
    const { perSecond, burst } = shelf.options.rate ?? { perSecond: 500, burst: 1_000 }
    this.#shelf = shelf
    this.#rates = createBuckets({ perSecond, burst, clock: shelf.clock })
    this.#lookups = createBuckets({ perSecond: lookupsPerSecond, clock: shelf.clock })
    this.#groups = new Groups(shelf.clock)
  }

  async accept(server: string, event: PushEvent): Promise<PushAnswer> {
    checkServer(server)
    const known = this.#recent.get(seenKey(server, event.eventId))
    if (known !== undefined) return this.#again(server, event, known)
    const refusal = this.#tooMuch(server)
    if (refusal !== undefined) return this.#unlessSeen(server, event, refusal)
    const [seq, lane] = [this.#shelf.nextSeq(), this.#laneOf(server, event)]
    // The place in the order is that of the call, whatever takes how long from here on.
    const seat = this.#shelf.opened ? this.#shelf.lanes.reserve(server, lane, seq) : undefined
    const coming: Coming = { server, event, digest: digestOf(event), seat, seq, lane }
    try {
      return await this.#decide(coming)
    } catch (error) {
      // Perhaps it was written all the same: then it has to run.
      this.#shelf.failed(server, 'An event could not be written', error)
      this.#later(server)
      throw error
    } finally {
      if (seat?.state === 'coming') this.#shelf.lanes.release(server, lane, seat)
    }
  }

  async #decide(coming: Coming): Promise<PushAnswer> {
    const { server, event } = coming
    const { policy } = this.#shelf.options
    const verdict: Verdict | undefined = policy && (await policy.decide(askedOf(server, event)))
    if (verdict?.do === 'deny') {
      const { why: data, retryAfterMs } = verdict
      const reason = data.code === 'RATE_LIMITED' ? 'rate' : data.message
      return this.#unlessSeen(server, event, refused(reason, data, retryAfterMs))
    }
    const { chains } = this.#shelf
    const place = chains.placeOf(server, event)
    if (place.told && place.depth > chains.depth)
      return this.#unlessSeen(server, event, refused('chain', chains.tooDeep(server, event, place)))
    const todo = this.#placed(coming, place, this.#todo(coming, verdict))
    const text = JSON.stringify(todo)
    const { bytes } = this.#shelf.settings
    if (text.length * 3 > bytes && Buffer.byteLength(text) > bytes) return refused('too large', tooLarge(bytes))
    const entering = this.#gate.enter(server)
    if (entering !== undefined) await entering
    try {
      return await this.#write(coming, todo, text)
    } finally {
      this.#gate.leave(server)
    }
  }

  async #write(coming: Coming, todo: Todo, text: string): Promise<PushAnswer> {
    const { server, event, digest } = coming
    for (;;) {
      const outcome = await this.#shelf.store.commit(this.#steps(coming, todo, text))
      if (outcome.ok) {
        this.#remember(seenKey(server, event.eventId), { inferenceId: todo.inferenceId, digest })
        this.#shelve(coming, outcome.results[1]?.version ?? 0, todo)
        return { accepted: true, inferenceId: todo.inferenceId }
      }
      if (outcome.index === 2) return this.#queueFull(server)
      const seen = await this.#seen(server, event)
      // Where it is not there any more, its time was over just now: then it is new.
      if (seen !== undefined) return this.#again(server, event, seen)
    }
  }

  #steps({ server, event, digest, seq }: Coming, todo: Todo, text: string): readonly Op[] {
    const { eventId, featureSet } = event
    const seen: Seen = { eventId, featureSet, inferenceId: todo.inferenceId, digest, seq, at: todo.at, state: 'waiting' }
    const steps = [
      put(seenKey(server, eventId), JSON.stringify(seen), { ifAbsent: true }),
      put(todoKey(server, seq), text),
      add(countKey(server), 1, { max: this.#shelf.settings.waiting }),
    ]
    if (!this.#shelf.owners.owns(server)) steps.push(put(callKey(server), seq))
    return steps
  }

  #todo({ server, event, digest, lane }: Coming, verdict: Verdict | undefined): Todo {
    const base = { event, digest, at: this.#shelf.clock.now(), lane }
    const inferenceId = `inf_${this.#shelf.id()}`
    if (verdict?.do === 'hold') return { ...base, inferenceId, notBefore: verdict.until }
    if (verdict?.do === 'ask') return { ...base, inferenceId, asks: true }
    if (verdict?.do !== 'coalesce') return { ...base, inferenceId }
    const bytes = Buffer.byteLength(JSON.stringify(event))
    const group = this.#groups.join(`${server}\n${verdict.key}`, verdict.withinMs, inferenceId, bytes)
    // Those that become one run are one lane: elsewhere they would keep waiting for each other.
    return { ...base, lane: `group ${verdict.key}`, inferenceId: group.inferenceId, notBefore: group.until, group: true }
  }

  /** What only seems to lie too deep is not lost, but waits: a chain that is one goes on slowly, and begins anew. */
  #placed({ server, event }: Coming, place: Place, todo: Todo): Todo {
    const { chains, clock } = this.#shelf
    if (place.depth <= chains.depth) return place.depth === 1 ? todo : { ...todo, depth: place.depth }
    this.#shelf.told(server, chains.tooDeep(server, event, place))
    return { ...todo, notBefore: Math.max(todo.notBefore ?? 0, clock.now() + chains.pauseMs) }
  }

  /** Into its lane, where this process runs it. */
  #shelve({ server, seat, seq, lane }: Coming, version: number, todo: Todo): void {
    const { owners, opened, lanes } = this.#shelf
    if (!owners.owns(server)) {
      if (opened) this.#later(server)
      return
    }
    if (seat?.state === 'coming' && todo.lane === lane) return this.#shelf.place(server, seq, version, todo, [], seat)
    if (seat?.state === 'coming') lanes.release(server, lane, seat)
    if (!lanes.has(server, seq)) this.#shelf.place(server, seq, version, todo)
  }

  #later(server: string): void {
    const reading = this.#shelf.owners.owns(server) ? this.#shelf.load(server) : this.#shelf.own(server)
    reading.catch(error => this.#shelf.failed(server, 'What waits could not be read', error))
  }

  #laneOf(server: string, event: PushEvent): string {
    if (this.#shelf.options.orderBy !== undefined) return this.#shelf.options.orderBy(server, event)
    return event.origin === undefined ? `set ${event.featureSet}` : `origin ${canonicalJson(event.origin)}`
  }

  #tooMuch(server: string): PushAnswer | undefined {
    const now = this.#shelf.clock.now()
    const full = this.#full.get(server) ?? 0
    if (full > now) return tooMany(full - now, 'inbox.waiting', 'Its queue is full')
    const wait = this.#rates.take(server)
    if (wait > 0) return tooMany(wait, 'inbox.rate', `It sends more than ${this.#rates.perSecond} events a second`)
    return this.#gate.isFull(server)
      ? tooMany(fullMs, 'inbox.gate', 'Its events come faster than they can be written')
      : undefined
  }

  #queueFull(server: string): PushAnswer {
    this.#full.set(server, this.#shelf.clock.now() + fullMs)
    const { waiting } = this.#shelf.settings
    return tooMany(1_000, 'inbox.waiting', `${waiting} of its events wait already`)
  }

  /** Also one that would be refused now may have been taken before: then it is told so. */
  async #unlessSeen(server: string, event: PushEvent, refusal: PushAnswer): Promise<PushAnswer> {
    // In a flood nobody can be looked up; who is told to come again later gets the answer then.
    if (this.#looking.isBusy(server) || this.#lookups.take(server) > 0) return refusal
    void this.#looking.enter(server)
    try {
      const seen = await this.#seen(server, event)
      return seen === undefined ? refusal : this.#again(server, event, seen)
    } finally {
      this.#looking.leave(server)
    }
  }

  async #seen(server: string, { eventId }: PushEvent): Promise<Seen | undefined> {
    const entry = await this.#shelf.store.get(seenKey(server, eventId))
    return entry === undefined ? undefined : readSeen(entry.value)
  }

  #again(server: string, event: PushEvent, seen: Pick<Seen, 'inferenceId' | 'digest'>): PushAnswer {
    if (seen.digest === digestOf(event)) return { accepted: true, inferenceId: seen.inferenceId }
    const message = `Event ${clip(event.eventId)} of ${clip(server)} came again with another body; the first one counts`
    const conflict = why('EVENT_CONFLICT', 'inbox.dedupe', message, 'Give each occurrence an eventId of its own')
    this.#shelf.told(server, conflict)
    // A yes would say that somebody is going to read this one.
    return refused('conflict', conflict)
  }

  #remember(key: string, seen: Pick<Seen, 'inferenceId' | 'digest'>): void {
    if (this.#recent.size >= remembered) {
      const [oldest] = this.#recent.keys()
      if (oldest !== undefined) this.#recent.delete(oldest)
    }
    this.#recent.set(key, seen)
  }
}

export function askedOf(server: string, { featureSet, tags, origin, content }: PushEvent): Asked {
  return {
    kind: 'push',
    server,
    featureSet,
    payload: content,
    ...(tags !== undefined && { tags }),
    ...(origin !== undefined && { origin }),
  }
}

/** Part of keys, so short; and given by the host's own configuration. */
function checkServer(server: string): void {
  if (server === '' || server.length > 100 || !server.isWellFormed())
    throw new TypeError(`${clip(server)} is no name of a server: give 1 to 100 characters`)
}

function refused(reason: string, data: Why, retryAfterMs?: number): PushAnswer {
  return { accepted: false, reason, data, ...(retryAfterMs !== undefined && { retryAfterMs }) }
}

function tooMany(waitMs: number, rule: string, message: string): PushAnswer {
  const retryAfterMs = Math.ceil(waitMs)
  return refused('rate', why('RATE_LIMITED', rule, message, `Send it again in ${durationText(retryAfterMs)}`), retryAfterMs)
}

function tooLarge(bytes: number): Why {
  return why('EVENT_TOO_LARGE', 'inbox.bytes', `An event takes at most ${bytes} bytes`, 'Send a link to what is large')
}
