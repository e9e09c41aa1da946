/**
 * Sends what waits: to every host that has the set enabled, in order per origin, again and again until it was answered. Stable ids
 * make that once (§9.4). What belongs to a set that is off stays where it is.
 */
import type { Clock } from '../../../core/clock.ts'
import { digest, digestText } from '../../../core/digest.ts'
import type { Trace } from '../../../core/log.ts'
import { type Problem, problem } from '../../../core/problem.ts'
import { add, put, remove, type Store } from '../../../stores/store.ts'
import type { LiveHost } from '../hosts/messages.ts'
import type { PushAnswer } from './messages.ts'
import { attempt, type OutgoingPush, type Pushed } from './server.ts'

/** Limits of an outbox. */
export interface OutboxOptions {
  readonly eventStore: EventStore
  readonly clock: Clock
  readonly trace: Trace
  readonly hosts: () => Iterable<LiveHost>
  readonly offered: (featureSet: string) => boolean
  /** Whether a host knows the channel of a message: before, it would not know what to do with it. */
  readonly isKnown?: ((host: LiveHost, channelId: string) => boolean) | undefined
  /** How long an event waits for a host at most. */
  readonly keepMs: number
  readonly timeoutMs: number
  /** The list of what waits is another one. */
  readonly changed: () => void
  /** A number from 0 to 1, for the spread of retries. */
  readonly random?: () => number
}

/** In flight per host. */
const window = 32
const firstMs = 1_000
const longestMs = 60_000

class Waiting {
  readonly entry: StoredEvent
  /** What comes from one origin stays in order. */
  readonly lane: string
  readonly flying = new Set<LiveHost>()
  readonly done = new Map<LiveHost, PushAnswer>()
  readonly answered: Promise<PushAnswer>
  tries = 0
  notBefore = 0
  over = false
  settle: (answer: PushAnswer) => void = () => {}
  fail: (error: unknown) => void = () => {}

  constructor(entry: StoredEvent) {
    this.entry = entry
    const { origin, featureSet, channel } = entry.event
    this.lane = channel === undefined ? JSON.stringify(origin ?? featureSet) : `channel ${channel.channelId}`
    this.answered = new Promise((resolve, reject) => {
      this.settle = resolve
      this.fail = reject
    })
    // Most authors never look.
    this.answered.catch(() => undefined)
  }
}

/** Brings events to hosts, and again where that failed. */
export class Outbox {
  readonly #options: OutboxOptions
  readonly #waiting = new Map<string, Waiting>()
  readonly #stop = new AbortController()
  #timer: (() => void) | undefined = undefined
  #pumping = false
  #dropping: Promise<void> = Promise.resolve()

  constructor(options: OutboxOptions) {
    this.#options = options
  }

  /** Takes up what an earlier process, or another one, has left. */
  async open(): Promise<void> {
    await this.#load()
    void this.#follow()
  }

  async push(event: OutgoingPush): Promise<Pushed> {
    const { entry, added } = await this.#options.eventStore.put(event)
    const waiting = this.#waiting.get(entry.key) ?? new Waiting(entry)
    const { eventId, timestamp } = entry.event
    if (added || this.#waiting.has(entry.key)) this.#waiting.set(entry.key, waiting)
    else waiting.settle({ accepted: true })
    this.#options.changed()
    this.pump()
    return { eventId, timestamp, answered: waiting.answered }
  }

  /** What waits, oldest first. */
  get pending(): readonly OutgoingPush[] {
    return [...this.#waiting.values()].filter(({ over }) => !over).map(({ entry }) => entry.event)
  }

  /** A host has come, can be heard again, or has selected something else. */
  kick(): void {
    for (const waiting of this.#waiting.values()) waiting.notBefore = Math.min(waiting.notBefore, this.#options.clock.now())
    this.pump()
  }

  async close(): Promise<void> {
    this.#stop.abort()
    this.#timer?.()
    await this.#dropping
  }

  /** Once for all that happens in one turn of the loop. */
  pump(): void {
    if (this.#pumping) return
    this.#pumping = true
    queueMicrotask(() => {
      this.#pumping = false
      if (!this.#stop.signal.aborted) this.#pump()
    })
  }

  #pump(): void {
    const { clock, hosts } = this.#options
    this.#timer?.()
    this.#timer = undefined
    this.#expire()
    // One moment for all: what becomes due between two looks at the clock would be neither sent nor waited for.
    const now = clock.now()
    for (const host of hosts()) if (host.reachable) this.#serve(host, now)
    let next = Number.POSITIVE_INFINITY
    for (const { notBefore } of this.#waiting.values()) if (notBefore > now && notBefore < next) next = notBefore
    if (next < Number.POSITIVE_INFINITY) this.#timer = clock.setTimeout(() => this.pump(), next - now, true)
  }

  #serve(host: LiveHost, now: number): void {
    const busy = new Set<string>()
    let flying = 0
    for (const waiting of this.#waiting.values()) {
      if (flying >= window) return
      if (waiting.flying.has(host)) flying++
      const idle = !waiting.flying.has(host) && !busy.has(waiting.lane) && waiting.notBefore <= now
      if (idle && this.#wants(host, waiting)) {
        flying++
        void this.#send(host, waiting)
      }
      // Behind what waits for an answer or another try, nothing of the same origin passes.
      if (this.#wants(host, waiting)) busy.add(waiting.lane)
    }
  }

  #wants(host: LiveHost, { entry: { event }, done, over }: Waiting): boolean {
    if (over || done.has(host) || host.gone || !this.#options.offered(event.featureSet)) return false
    if (event.channel !== undefined && this.#options.isKnown?.(host, event.channel.channelId) !== true) return false
    return host.selected.enabled(event.featureSet) && (event.to === undefined || event.to === host.principal)
  }

  async #send(host: LiveHost, waiting: Waiting): Promise<void> {
    const { clock, trace, timeoutMs, random = Math.random } = this.#options
    waiting.flying.add(host)
    const outcome = await attempt(host, waiting.entry.event, timeoutMs)
    waiting.flying.delete(host)
    if (outcome.is === 'answered') {
      waiting.done.set(host, outcome.answer)
      this.#conclude(waiting)
    } else if (outcome.is === 'off') {
      trace('push-refused', { featureSet: waiting.entry.event.featureSet, hint: 'The host has this feature set disabled' })
      waiting.notBefore = clock.now() + longestMs
    } else {
      const wait = outcome.afterMs ?? Math.min(longestMs, firstMs * 2 ** waiting.tries++) * (0.75 + random() / 2)
      waiting.notBefore = clock.now() + wait
      if (outcome.error !== undefined) trace('push-retried', { eventId: waiting.entry.event.eventId, error: outcome.error })
    }
    this.pump()
  }

  /** Over when one has answered, and nobody who is here has still to. */
  #conclude(waiting: Waiting): void {
    const open = [...this.#options.hosts()].some(host => this.#wants(host, waiting))
    if (waiting.over || open || waiting.flying.size > 0) return
    const answers = [...waiting.done.values()]
    const answer = answers.find(({ accepted }) => accepted) ?? answers[0]
    if (answer === undefined) return
    if (!answer.accepted) this.#options.trace('push-refused', { eventId: waiting.entry.event.eventId, reason: answer.reason })
    this.#finish(waiting)
    waiting.settle(answer)
  }

  #finish(waiting: Waiting): void {
    waiting.over = true
    this.#dropping = Promise.all([this.#dropping, this.#options.eventStore.drop([waiting.entry])]).then(
      () => void this.#waiting.delete(waiting.entry.key),
      error => this.#options.trace('outbox-not-written', error),
    )
    this.#options.changed()
  }

  #expire(): void {
    const oldest = this.#options.clock.now() - this.#options.keepMs
    for (const waiting of this.#waiting.values()) {
      if (waiting.entry.at > oldest) return
      if (waiting.over || waiting.flying.size > 0) continue
      this.#finish(waiting)
      const error = expired(waiting.entry.event)
      this.#options.trace('push-expired', { eventId: waiting.entry.event.eventId, error })
      waiting.fail(error)
    }
  }

  async #load(): Promise<void> {
    const before = [...this.#waiting]
    const found = await this.#options.eventStore.all()
    const there = new Set(found.map(({ key }) => key))
    for (const entry of found) if (!this.#waiting.has(entry.key)) this.#waiting.set(entry.key, new Waiting(entry))
    for (const [key, waiting] of before) {
      // Answered to another process.
      if (there.has(key) || waiting.over || waiting.flying.size > 0) continue
      this.#waiting.delete(key)
      waiting.settle({ accepted: true })
    }
    this.#options.changed()
    this.pump()
  }

  async #follow(): Promise<void> {
    try {
      for await (const _ of this.#options.eventStore.elsewhere(this.#stop.signal)) await this.#load()
    } catch (error) {
      if (!this.#stop.signal.aborted) this.#options.trace('outbox-not-followed', error)
    }
  }
}

function expired({ eventId }: OutgoingPush): Problem {
  return problem('PUSH_EXPIRED', `No host took the event "${eventId}" in time`, {
    suggestion: 'Connect a host that enables its feature set, or raise live.keep',
  })
}

const prefix = 'live/outbox/event/'
const counter = 'live/outbox/count'
const hints = 'live/outbox/hint/'

interface StoredEvent {
  readonly key: string
  readonly event: OutgoingPush
  /** Milliseconds since the epoch, and what tells those of one millisecond apart. */
  readonly at: number
  readonly order: number
}

interface EventStoreOptions {
  readonly store: Store
  readonly clock: Clock
  readonly most: number
}

/** Keeps events on the store until hosts have answered. */
export class EventStore {
  readonly #options: EventStoreOptions
  readonly #self = crypto.randomUUID()
  readonly #seen = new Map<string, number>()
  #order = 0

  constructor(options: EventStoreOptions) {
    this.#options = options
  }

  /** Resolves when it is as lasting as the store. The same event is put down once; another one under its id is refused. */
  async put(event: OutgoingPush): Promise<{ readonly entry: StoredEvent; readonly added: boolean }> {
    const { store, clock, most } = this.#options
    const key = prefix + (await digestText(event.eventId))
    const entry = { key, event, at: clock.now(), order: this.#order++ }
    const value = JSON.stringify({ event, at: entry.at, order: entry.order })
    const ops = [put(key, value, { ifAbsent: true }), add(counter, 1, { max: most }), put(hints + this.#self, `${entry.order}`)]
    const done = await store.commit(ops)
    if (done.ok) return { entry, added: true }
    if (done.index === 1) throw full(most)
    const there = await store.get(key)
    const kept = there === undefined ? undefined : read(key, there.value)
    // Answered in this very moment: it has arrived, as far as anybody can tell.
    if (kept === undefined) return { entry, added: false }
    if ((await digest(kept.event)) !== (await digest({ ...event, timestamp: kept.event.timestamp }))) throw taken(event)
    return { entry: kept, added: false }
  }

  async drop(entries: readonly StoredEvent[]): Promise<void> {
    const { store } = this.#options
    for (const { key } of entries) {
      const there = await store.get(key)
      // Whoever deletes it counts it: several processes may have heard an answer.
      if (there !== undefined) await store.commit([remove(key, there.version), add(counter, -1, { min: 0 })])
    }
  }

  /** All that wait, oldest first. */
  async all(): Promise<readonly StoredEvent[]> {
    const found: StoredEvent[] = []
    for (let after = ''; ; ) {
      const page = await this.#options.store.scan(prefix, after === '' ? {} : { after })
      for (const { key, value } of page) {
        const entry = read(key, value)
        if (entry !== undefined) found.push(entry)
      }
      const last = page.at(-1)
      if (last === undefined || page.length < 1000) break
      after = last.key
    }
    return found.sort((one, other) => one.at - other.at || one.order - other.order)
  }

  /** Settles each time when another process may have put something down, until the signal. */
  async *elsewhere(signal: AbortSignal): AsyncGenerator<void, void, void> {
    const { store } = this.#options
    for await (const _ of store.watch([hints], signal)) {
      const others = (await store.scan(hints)).filter(({ key, version }) => {
        const news = key !== hints + this.#self && this.#seen.get(key) !== version
        this.#seen.set(key, version)
        return news
      })
      if (others.length > 0) yield
    }
  }
}

function read(key: string, value: string): StoredEvent | undefined {
  try {
    const { event, at, order } = JSON.parse(value)
    return typeof event?.eventId === 'string' ? { key, event, at, order } : undefined
  } catch {
    return undefined
  }
}

function full(most: number): Problem {
  return problem('QUOTA_EXHAUSTED', `${most} events wait for a host, which is the limit (live.outbox)`, {
    suggestion: 'Connect a host that enables the set, raise live.outbox, or push less',
    actor: 'operator',
  })
}

function taken({ eventId }: OutgoingPush): Problem {
  return problem('EVENT_CONFLICT', `Another event waits under the id "${eventId}"`, {
    suggestion: 'Give each occurrence an eventId of its own; repeat one only for the same content',
  })
}
